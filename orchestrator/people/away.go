package people

import (
	"fmt"
	"slices"
	"time"
)

// Away says that a person is out of office and who decides in their place. While it
// lasts the person does not decide: one seat has one voice.
type Away struct {
	To    string    `json:"to"` // id of a user
	From  time.Time `json:"from"`
	Until time.Time `json:"until"` // the first moment at which it holds no more
}

// Now reports whether it holds at t.
func (a *Away) Now(t time.Time) bool { return a != nil && !t.Before(a.From) && t.Before(a.Until) }

// Check says whether u may be away like that from now on; to is the user a.To.
func (a *Away) Check(u, to User, now time.Time) error {
	switch {
	case a.To == u.ID:
		return fmt.Errorf("nobody stands in for themselves: name another approver to decide for %s", u.Name)
	case !a.From.Before(a.Until):
		return fmt.Errorf("the end of the absence must come after its beginning")
	case !now.Before(a.Until):
		return fmt.Errorf("the end of the absence has passed already: name one that is still to come")
	case to.Disabled:
		return fmt.Errorf("the deputy %s is disabled: name another approver to decide for %s", to.Name, u.Name)
	case !slices.Contains(to.Roles, Approver):
		return fmt.Errorf("the deputy %s does not have the role approver: name one who has it to decide for %s", to.Name, u.Name)
	}
	return nil
}
