package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
)

// MaxReason is the longest reason of a cancel or a stop, in characters.
const MaxReason = 500

// Stop says what StopAll ends, by whose word and why.
type Stop struct {
	Agent  string // only the work of this agent; "" is everybody's
	Reason string // stored with each cancel; "" when none was given
	Actor  string
	// Until leaves what was made later, so that the same stop asked for again ends nothing
	// that nobody has counted; zero is everything.
	Until time.Time
}

// Stopped counts what a stop ends. Where only one agent's work is stopped, what stands below
// that work ends with it and is not counted.
type Stopped struct {
	Agent       string // as it is spelled here, "" for everybody
	Delegations int    // that ran or waited
	Tasks       int    // that these belong to
	Landing     int    // beside them: left alone, because a change lands at this moment
	// At is when it was counted; what is younger is not in it.
	At time.Time
}

// Underway counts what StopAll would end now. Nothing is changed.
func (e *Engine) Underway(ctx context.Context, name string) (Stopped, error) {
	at := e.Now().UTC()
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
		s.Until = e.Now().UTC()
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

// reasonOf is a reason as it is stored.
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
// task. An agent that the
// configuration no longer has may still have work.
func (e *Engine) underWay(ctx context.Context, name string, until time.Time) (string, map[string]int, error) {
	spec, known := e.Config().Agents.Get(name)
	if known {
		name = spec.Name
	}
	f := Filter{Agent: name, Limit: 200}
	for _, s := range States() {
		if !s.Ended() {
			f.States = append(f.States, s)
		}
	}
	byTask := map[string]int{}
	for {
		page, err := e.Store.List(ctx, f)
		if err != nil {
			return name, nil, err
		}
		for _, d := range page.Items {
			if !d.CreatedAt.After(until) {
				byTask[d.TaskID]++
			}
		}
		if page.Next == "" {
			break
		}
		f.After = page.Next
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
		tree, err := tx.Tree(ctx)
		if err != nil {
			return err
		}
		live := slices.DeleteFunc(tree, func(d *Delegation) bool {
			return d.State.Ended() || s.Agent != "" && d.To != s.Agent || d.CreatedAt.After(s.Until)
		})
		for _, d := range live {
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
	return false, endFor(ctx, tx, d, Cancelled, s.Actor, s.Reason)
}
