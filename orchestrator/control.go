package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// Cancel is CancelFor without a reason.
func (e *Engine) Cancel(ctx context.Context, id, actor string) (Delegation, error) {
	return e.CancelFor(ctx, id, actor, "")
}

// CancelFor stops a delegation and everything below it, and stores why, "" where nobody
// said; the id of a task stops its whole tree. Processes are killed by the nodes that run
// them. A landing whose intent is recorded can no longer be stopped.
func (e *Engine) CancelFor(ctx context.Context, id, actor, reason string) (Delegation, error) {
	reason, err := reasonOf(reason)
	if err != nil {
		return Delegation{}, err
	}
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	var after Delegation
	err = e.inRow(ctx, d.TaskID, d.ID, func(tx Tx, row *Delegation) error {
		if row.State.Ended() {
			return Errorf(CodeEnded, "This has ended already, as %s. Nothing was changed.", row.State)
		}
		if err := landingBelow(ctx, tx, row); err != nil {
			return err
		}
		row.Error = &agent.Failure{Code: string(Cancelled), Message: fmt.Sprintf("%s cancelled this.", actor) + because(reason)}
		if err := end(ctx, tx, row, Cancelled, actor, reason); err != nil {
			return err
		}
		after = *row
		return nil
	})
	return after, err
}

// inRow runs fn on a delegation's row, in a transaction that holds its task.
func (e *Engine) inRow(ctx context.Context, taskID, id string, fn func(tx Tx, d *Delegation) error) error {
	return e.Store.InTask(ctx, taskID, func(tx Tx) error {
		d, err := tx.Delegation(ctx, id)
		if err != nil {
			return err
		}
		return fn(tx, d)
	})
}

// landingBelow refuses when the delegation, or one below it, is past its intent.
func landingBelow(ctx context.Context, tx Tx, d *Delegation) error {
	if d.intended() {
		return Errorf(CodeLanding, "The change of %s is landing on %s right now and can no longer be cancelled. Revert it after it landed.", d.To, d.Work.Land.Base.Branch)
	}
	children, err := tx.Live(ctx, d.ID)
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := landingBelow(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

// lookUp finds a delegation by its id, or the root by its task's.
func (e *Engine) lookUp(ctx context.Context, id string) (Delegation, error) {
	if len(id) > len(TaskPrefix) && id[:len(TaskPrefix)] == TaskPrefix {
		t, err := e.Store.Task(ctx, id)
		if err != nil {
			return Delegation{}, err
		}
		id = t.RootID
	}
	return e.Store.Delegation(ctx, id)
}

// Pause holds a task: none of its delegations is claimed any more, models stop once
// their next turn is stored, programs run on to their end, and a landing past its intent
// is carried out. The id is the task's or that of any of its delegations. Pausing a
// paused task changes nothing.
func (e *Engine) Pause(ctx context.Context, id, actor string) (Delegation, error) {
	return e.hold(ctx, id, func(tx Tx, root *Delegation) error {
		t := tx.Task()
		if t.EndedAt != nil {
			return Errorf(CodeEnded, "This task has ended already, as %s. There is nothing to pause.", root.State)
		}
		if t.PausedAt != nil {
			return nil
		}
		t.PausedAt = new(tx.Now())
		return tx.Append(ctx, event.Of(root.ID, actor, event.PausedData{Agent: t.Agent}))
	})
}

// Unpause lets a paused task go on from where it was held. A task that is not paused
// stays as it is.
func (e *Engine) Unpause(ctx context.Context, id, actor string) (Delegation, error) {
	return e.hold(ctx, id, func(tx Tx, root *Delegation) error {
		t := tx.Task()
		if t.EndedAt != nil {
			return Errorf(CodeEnded, "This task has ended already, as %s. Retry it, or send a new one.", root.State)
		}
		if t.PausedAt == nil {
			return nil
		}
		held := tx.Now().Sub(*t.PausedAt)
		t.PausedAt = nil
		if e.Config().Settings.QueueTimeout > 0 {
			if err := restartQueues(ctx, tx); err != nil {
				return err
			}
		}
		return tx.Append(ctx, event.Of(root.ID, actor, event.UnpausedData{Agent: t.Agent, PausedMS: held.Milliseconds()}))
	})
}

// hold runs fn on the task of a delegation with its root, and returns the delegation
// that was named.
func (e *Engine) hold(ctx context.Context, id string, fn func(tx Tx, root *Delegation) error) (Delegation, error) {
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	err = e.Store.InTask(ctx, d.TaskID, func(tx Tx) error {
		root, err := tx.Delegation(ctx, tx.Task().RootID)
		if err != nil {
			return err
		}
		return fn(tx, root)
	})
	return d, err
}

// MaxReason is the longest reason of a cancel or a stop, in characters.
const MaxReason = 500

// Stop says what StopAll ends, by whose word and why.
type Stop struct {
	Agent  string // only the work of this agent; "" is everybody's
	Reason string // stored with each cancel; "" when none was given
	Actor  string
	// Until, as Stopped.At gave it, leaves what was made later, so that the same stop asked for
	// again ends nothing that nobody has counted; zero is everything. It is a time of the one
	// clock that all nodes share: a node whose own is ahead or behind makes nothing older or
	// younger by that.
	Until time.Time
}

// Stopped counts what a stop ends. Where only one agent's work is stopped, what stands below
// that work ends with it and is not counted.
type Stopped struct {
	Agent       string // as it is spelled here, "" for everybody
	Delegations int    // that ran or waited
	Tasks       int    // that these belong to
	Landing     int    // beside them: left alone, because a change lands at this moment
	// At is when it was counted, by the clock that all nodes share; what is younger is not in it.
	At time.Time
}

// Underway counts what StopAll would end now. Nothing is changed.
func (e *Engine) Underway(ctx context.Context, name string) (Stopped, error) {
	at, err := e.Store.Clock(ctx) // before the count, so that this has all that is older
	if err != nil {
		return Stopped{Agent: name}, err
	}
	name, byTask, err := e.underWay(ctx, name, at)
	n := Stopped{Agent: name, Tasks: len(byTask), At: at}
	for _, live := range byTask {
		n.Delegations += live
	}
	return n, err
}

// StopAll cancels everything that runs or waits, or only the work of one agent, with all
// that is below it (P37). Each task is one transaction; what ended meanwhile is no error,
// so that it may be asked for again. After an error it tells what was stopped by then.
func (e *Engine) StopAll(ctx context.Context, s Stop) (Stopped, error) {
	var err error
	if s.Reason, err = reasonOf(s.Reason); err != nil {
		return Stopped{}, err
	}
	if s.Until.IsZero() {
		at, err := e.Store.Clock(ctx)
		if err != nil {
			return Stopped{Agent: s.Agent}, err
		}
		s.Until = at
	}
	name, byTask, err := e.underWay(ctx, s.Agent, s.Until)
	all := Stopped{Agent: name, At: s.Until}
	if err != nil {
		return all, err
	}
	s.Agent = name
	for task := range byTask {
		one, err := e.stopIn(ctx, task, s)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return all, fmt.Errorf("stop the work of %s: %w", task, err)
		}
		all.Delegations += one.Delegations
		all.Tasks += one.Tasks
		all.Landing += one.Landing
	}
	return all, nil
}

func reasonOf(s string) (string, error) {
	s = strings.TrimSpace(s)
	if n := utf8.RuneCountInString(s); n > MaxReason {
		return "", Errorf(CodeBadRequest, "The reason has %d characters; %d is the limit.", n, MaxReason)
	}
	return s, nil
}

// because is a reason behind the sentence that it explains.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return fmt.Sprintf(" The reason: %q", mask.Text(reason))
}

// underWay counts the delegations of an agent, or of all, that were made by then and live, by
// task. An agent that the configuration no longer has may still have work.
func (e *Engine) underWay(ctx context.Context, name string, until time.Time) (string, map[string]int, error) {
	spec, known := e.Config().Agents.Get(name)
	if known {
		name = spec.Name
	}
	byTask, err := e.Store.UnderWay(ctx, name, until)
	if err != nil {
		return name, nil, err
	}
	if name != "" && !known && len(byTask) == 0 {
		_, err := e.Config().find(name, "") // says who was meant
		return name, nil, err
	}
	return name, byTask, nil
}

// stopIn ends the work of one task, callers before those whom they called.
func (e *Engine) stopIn(ctx context.Context, task string, s Stop) (Stopped, error) {
	var done Stopped
	err := e.Store.InTask(ctx, task, func(tx Tx) error {
		done = Stopped{}
		live, err := tx.UnderWay(ctx, s.Until)
		if err != nil {
			return err
		}
		for _, d := range live {
			if s.Agent != "" && d.To != s.Agent {
				continue
			}
			left, err := stopOne(ctx, tx, d, s)
			if err != nil {
				return err
			}
			if left {
				done.Landing++
			} else {
				done.Delegations++
			}
		}
		if done.Delegations > 0 {
			done.Tasks = 1
		}
		return nil
	})
	return done, err
}

// stopOne ends d, unless its caller's end has ended it just now, and reports whether it had
// to be left: a landing past its intent is carried out.
func stopOne(ctx context.Context, tx Tx, d *Delegation, s Stop) (left bool, err error) {
	if d.State.Ended() {
		return false, nil
	}
	switch err := landingBelow(ctx, tx, d); {
	case CodeOf(err) == CodeLanding:
		return true, nil
	case err != nil:
		return false, err
	}
	message := fmt.Sprintf("%s stopped everything that ran.", s.Actor)
	if s.Agent != "" {
		message = fmt.Sprintf("%s stopped all work of %s.", s.Actor, s.Agent)
	}
	d.Error = &agent.Failure{Code: string(Cancelled), Message: message + because(s.Reason)}
	return false, end(ctx, tx, d, Cancelled, s.Actor, s.Reason)
}
