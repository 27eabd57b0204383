package intake_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/intake"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
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
			if e.Type == intake.NotStarted {
				w.must(json.Unmarshal(e.Data, &data))
				said = append(said, data.Trigger+" "+data.Code)
			}
		}
		if want := []string{"hourly owner", "ci owner", "hourly owner"}; !slices.Equal(said, want) {
			w.Errorf("the log has %q, want %q", said, want)
		}
	})
}
