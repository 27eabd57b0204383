package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
	"gatehouse/orchestrator/trigger/intake"
)

// A trigger starts work in its owner's name, so it starts none when they may not: neither a
// schedule nor a webhook. Its page says why and what to do, and so does one event. With the
// right it goes on by itself.
func TestATriggerMayNoMoreThanItsOwner(t *testing.T) {
	both(t, func(w *world) {
		in, _ := w.node(w.store, hourly(func(s *trigger.Spec) { s.Overlap = trigger.OverlapAllow }), hook())
		w.run(in)
		w.known("hourly")
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started")
		w.must(w.store.SetRoles(w.Context(), "root", w.ann.ID, []people.Role{people.Approver}))
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started", "refused owner")
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started", "refused owner", "refused owner")
		if got, err := w.call(in, "one", `{"ref":"main"}`); err != nil || got.Delivery.State != trigger.Refused || got.Delivery.TaskID != "" {
			w.Errorf("the webhook: %+v, %v", got, err)
		}
		const why = "belongs to ann, who may not start tasks: that takes the role operator or admin. Nothing was started. Give it back with gatehouse user roles ann --role operator"
		d := w.last("hourly")
		s, err := in.Status(w.Context(), "hourly")
		w.must(err)
		if d.Code != trigger.CodeOwner || !strings.Contains(d.Message, why) || d.TaskID != "" || !strings.Contains(s.Problem, why) {
			w.Errorf("the delivery has %s %q, the page %q", d.Code, d.Message, s.Problem)
		}
		w.must(w.store.SetRoles(w.Context(), "root", w.ann.ID, []people.Role{people.Operator}))
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started", "refused owner", "refused owner", "started")
		if s, err = in.Status(w.Context(), "hourly"); err != nil || s.Problem != "" {
			w.Errorf("with the role it still has the problem %q, %v", s.Problem, err)
		}
		w.must(w.store.SetDisabled(w.Context(), "root", w.ann.ID, true))
		w.clock.Add(time.Hour)
		w.becomes("hourly", "started", "refused owner", "refused owner", "started", "refused owner")
		events, err := w.store.Events(w.Context(), event.System, 0, 200)
		w.must(err)
		var said []string
		for _, e := range events {
			var data struct{ Trigger, Code, Message string }
			if e.Type == event.TriggerNotStarted {
				w.must(json.Unmarshal(e.Data, &data))
				said = append(said, data.Trigger+" "+data.Code)
			}
		}
		if want := []string{"hourly owner", "ci owner", "hourly owner"}; !slices.Equal(said, want) {
			w.Errorf("the log has %q, want %q", said, want)
		}
	})
}

// away is a store that does not take the first end of a delivery.
type away struct {
	intake.Store
	was bool
}

func (a *away) EndDelivery(ctx context.Context, d trigger.Delivery, said ...event.Event) (bool, error) {
	if !a.was {
		a.was = true
		return false, errors.New("the database is away")
	}
	return a.Store.EndDelivery(ctx, d, said...)
}

// A refusal whose end could not be stored is made again, and the log still has it once: the
// end and what is said of it are one.
func TestARefusalThatIsMadeAgainIsSaidOnce(t *testing.T) {
	both(t, func(w *world) {
		in, _ := w.node(w.store, hook())
		in.Store = &away{Store: in.Store}
		w.must(w.store.SetRoles(w.Context(), "root", w.ann.ID, []people.Role{people.Approver}))
		if got, err := w.call(in, "one", `{"ref":"main"}`); err != nil || got.Delivery.State != trigger.Stored {
			w.Fatalf("while the database is away: %+v, %v", got, err)
		}
		w.clock.Add(time.Hour)
		w.run(in)
		w.becomes("ci", "refused owner")
		events, err := w.store.Events(w.Context(), event.System, 0, 200)
		w.must(err)
		if n := len(slices.DeleteFunc(events, func(e event.Event) bool { return e.Type != event.TriggerNotStarted })); n != 1 {
			w.Errorf("it was said %d times", n)
		}
	})
}

// What somebody had delivered again is tried for two hours where the engine is away. They may
// have lost their right by then, and start nothing any more.
func TestWhatIsDeliveredAgainStartsNoMoreThanItsPersonMay(t *testing.T) {
	both(t, func(w *world) {
		in, engine := w.node(w.store, hook())
		first, err := w.call(in, "one", `{"ref":"main"}`)
		w.must(err)
		bob, err := w.store.CreateUser(w.Context(), "test", people.User{Name: "bob", Roles: []people.Role{people.Operator}})
		w.must(err)
		engine.fails(errors.New("the disk is full"))
		again, err := in.Redeliver(w.Context(), first.Delivery.ID, bob)
		if w.must(err); again.State != trigger.Stored {
			w.Fatalf("delivered again it is %s", again.State)
		}
		w.must(w.store.SetRoles(w.Context(), "root", bob.ID, []people.Role{people.Approver}))
		engine.fails(nil)
		w.run(in)
		w.clock.Add(time.Hour)
		now := func() trigger.Delivery {
			d, err := w.store.Delivery(w.Context(), again.ID)
			w.must(err)
			return d
		}
		w.until("it was tried again", func() bool { return now().State != trigger.Stored })
		if d := now(); d.State != trigger.Refused || d.Code != trigger.CodeOwner || d.TaskID != "" || !strings.HasPrefix(d.Message, "bob, who had this delivered again, may not start tasks any more.") {
			w.Errorf("it is %s %s %q with task %q", d.State, d.Code, d.Message, d.TaskID)
		}
	})
}
