package orchestrator

import (
	"errors"
	"fmt"

	"gatehouse/orchestrator/patch"
)

// outdated says why an order is not carried out under the settings of its repository as
// they are now, "" where it is. People said yes to one way of delivery, which their digest
// names: by another one the change would go where nobody was asked. What is protected since
// then is an error, so that the landing waits with the approval standing until the settings
// or a person decide.
func (e *Engine) outdated(r *run, o *Order) (why string, err error) {
	m, repo, err := e.mirror(r.d.Repository)
	if err != nil {
		return "", err
	}
	r.mirror = m // the plan is made with the settings that are looked at here
	if now := deliver(repo); o.Deliver != "" && o.Deliver != now {
		return fmt.Sprintf("%s was delivered with `deliver: %s` when people said yes, and is with `deliver: %s` now.", repo.Name, o.Deliver, now), nil
	}
	if r.d.Work.Reverts != "" { // it puts back what was there
		return "", nil
	}
	err = m.Protected(r.ctx, o.Base.Tree, o.Tree)
	if refused := new(patch.Refusal); errors.As(err, &refused) {
		return "", fmt.Errorf("%s protects %s since people said yes. Nothing landed. Cancel the task, or change `protect`", repo.Name, patch.Shown(refused.Path))
	}
	return "", err
}
