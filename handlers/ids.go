package handlers

import (
	"context"
	"errors"
	"strings"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/trigger"
)

// Ids resolves what people write for an id: the whole id, or an unambiguous ending
// of at least 6 characters.
type Ids struct{ Reader Reader }

// ulidLength is the length of an id without its prefix.
const ulidLength = 26

// Ambiguous lists the ids that an ending fits.
type Ambiguous struct {
	Ending     string
	Candidates []string
}

// Error says what was ambiguous and lists the candidates.
func (a *Ambiguous) Error() string {
	return "The ending " + a.Ending + " fits more than one: " + strings.Join(a.Candidates, ", ") + ". Use a longer ending."
}

// find returns the one id with one of the prefixes that s names.
func (i Ids) find(ctx context.Context, what, s string, prefixes ...string) (string, error) {
	id := strings.ToLower(strings.TrimSpace(s))
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(id, p); ok {
			if len(rest) == ulidLength && isULID(rest) {
				return id, nil
			}
			prefixes, id = []string{p}, strings.TrimLeft(rest, "…")
			break
		}
	}
	if len(id) < 6 || len(id) > ulidLength || !isULID(id) {
		return "", NotFound(what, s)
	}
	found, err := i.Reader.Resolve(ctx, id, 10, prefixes...)
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", NotFound(what, s)
	case len(found) > 1:
		a := &Ambiguous{Ending: id, Candidates: found}
		return "", &orchestrator.Error{Code: orchestrator.CodeAmbiguous, Message: a.Error(), Err: a}
	}
	return found[0], nil
}

func isULID(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}

// Task reads the task that s names: its id, or that of any of its delegations.
func (i Ids) Task(ctx context.Context, who Caller, s string) (orchestrator.Task, error) {
	id, err := i.either(ctx, s)
	if err != nil {
		return orchestrator.Task{}, err
	}
	if strings.HasPrefix(id, orchestrator.DelegationPrefix) {
		d, err := i.Reader.Delegation(ctx, id)
		if err != nil {
			return orchestrator.Task{}, Known(err, "task", s)
		}
		id = d.TaskID
	}
	t, err := i.Reader.Task(ctx, id)
	if err == nil && !who.Sees(t.ID) {
		err = orchestrator.ErrNotFound
	}
	return t, Known(err, "task", s)
}

// Delegation reads the delegation that s names; a task's id names its root.
func (i Ids) Delegation(ctx context.Context, who Caller, s string) (orchestrator.Delegation, error) {
	id, err := i.either(ctx, s)
	if err != nil {
		return orchestrator.Delegation{}, err
	}
	if strings.HasPrefix(id, orchestrator.TaskPrefix) {
		t, err := i.Reader.Task(ctx, id)
		if err != nil {
			return orchestrator.Delegation{}, Known(err, "task", s)
		}
		id = t.RootID
	}
	d, err := i.Reader.Delegation(ctx, id)
	if err == nil && !who.Sees(d.TaskID) {
		err = orchestrator.ErrNotFound
	}
	return d, Known(err, "delegation", s)
}

// Thread resolves what a message goes on with: a task of the caller's own, which names its
// thread. Anybody else's is not found.
func (i Ids) Thread(ctx context.Context, who Caller, s string) (orchestrator.Task, error) {
	t, err := i.Task(ctx, who, s)
	if err == nil && t.RequesterID != who.User.ID {
		err = NotFound("thread", s)
	}
	return t, err
}

// Follows is the task that a message names to go on with, "" where it names none.
func (i Ids) Follows(ctx context.Context, who Caller, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	t, err := i.Thread(ctx, who, s)
	return t.ID, err
}

// either resolves an ending over tasks and delegations. A task and its root may
// share an ending only by chance, which is then ambiguous.
func (i Ids) either(ctx context.Context, s string) (string, error) {
	return i.find(ctx, "task or delegation", s, orchestrator.TaskPrefix, orchestrator.DelegationPrefix)
}

// Any resolves what has a page of its own: a task, a delegation or a request.
func (i Ids) Any(ctx context.Context, s string) (string, error) {
	return i.find(ctx, "task, delegation or request", s, orchestrator.TaskPrefix, orchestrator.DelegationPrefix, orchestrator.RequestPrefix)
}

// Request resolves the id of an approval request.
func (i Ids) Request(ctx context.Context, s string) (string, error) {
	return i.find(ctx, "request", s, orchestrator.RequestPrefix)
}

// Arrival resolves the id of a delivery of a trigger.
func (i Ids) Arrival(ctx context.Context, s string) (string, error) {
	return i.find(ctx, "delivery", s, trigger.DeliveryPrefix)
}

// Known turns the store's ErrNotFound into a sentence that names the id.
func Known(err error, what, id string) error {
	if errors.Is(err, orchestrator.ErrNotFound) {
		return NotFound(what, id)
	}
	return err
}

// Scope says what an id names where events are asked for: the task, and the one
// delegation whose events are meant, or "" for all of them.
func Scope(ctx context.Context, ids Ids, who Caller, id string) (taskID, only string, err error) {
	full, err := ids.either(ctx, id)
	if err != nil {
		return "", "", err
	}
	if strings.HasPrefix(full, orchestrator.TaskPrefix) {
		t, err := ids.Task(ctx, who, full)
		return t.ID, "", err
	}
	d, err := ids.Delegation(ctx, who, full)
	return d.TaskID, d.ID, err
}

// IsID reports whether s is a whole id with the prefix; list cursors are such ids.
func IsID(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && len(rest) == ulidLength && isULID(rest)
}
