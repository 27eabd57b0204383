package main

import (
	"encoding/json"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store/storetest"
)

// forgetful is a house that forgets after 30 days.
const forgetful = `
engine: {workers: 1}
retention: {data: 30d}
agents:
  talker: {kind: command, command: [sh, -c, "echo 'Nothing needs to change.'"]}
`

// TestAServerKilledWhileItForgetsGoesOn: kill -9 strikes in a batch of retention that is
// written and not committed. Nothing is half forgotten, what is held meanwhile stays, and
// the next start forgets the rest.
func TestAServerKilledWhileItForgetsGoesOn(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, forgetful)
		storetest.Seed(t, database, 2_500, time.Now())
		n := p.Start(p.Config, "forgetting#3")
		n.Died()

		whole, gone := forgotten(p)
		if len(gone) == 0 || len(whole) == 0 {
			t.Fatalf("%d tasks were forgotten and %d were not: the batch was none between others", len(gone), len(whole))
		}
		held := whole[0] // the newest: the oldest go first, so this one is whole
		hold, err := p.Store.SetHold(t.Context(), retention.Hold{Kind: retention.Task, Subject: held.ID, Reason: "case 12", By: "iris"})
		p.Must(err)

		n = p.Start(p.Config, "")
		p.Until("everything that is old and not held to be forgotten", func() bool {
			whole, gone = forgotten(p)
			return len(whole) == 1
		})
		if whole[0].ID != held.ID || whole[0].Text != held.Text {
			t.Errorf("left is %s %q, held was %s %q", whole[0].ID, whole[0].Text, held.ID, held.Text)
		}
		standing, err := p.Store.HoldsOn(t.Context(), held.ID)
		p.Must(err)
		if len(standing) != 1 || standing[0].ID != hold.ID {
			t.Errorf("holds on it: %+v", standing)
		}
		n.Stop()
		if v, err := p.Store.Verify(t.Context(), "test", nil); err != nil || !v.OK() {
			t.Errorf("%+v %v", v, err)
		}
	})
}

// forgotten lists the old tasks that have something left, and those that have nothing. It
// fails where more than the one task between two batches is partly forgotten, and where the
// log does not say of every batch what it removed.
func forgotten(p *placetest.Place) (whole, gone []orchestrator.Task) {
	p.Helper()
	recorded, dropped, partly := recordedDrops(p), 0, 0
	old := time.Now().Add(-31 * 24 * time.Hour) // a day more: what gets old meanwhile is not looked at
	for after := ""; ; {
		page, err := p.Store.List(p.Context(), orchestrator.Filter{RootsOnly: true, After: after, Limit: 200})
		p.Must(err)
		for _, d := range page.Items {
			task, err := p.Store.Task(p.Context(), d.TaskID)
			p.Must(err)
			events := p.Events(task.ID)
			n, text := withoutData(events), task.Text != retention.GoneText
			dropped += n
			switch {
			case task.EndedAt == nil || task.EndedAt.After(old):
			case n == len(events) && !text:
				gone = append(gone, task)
			default:
				if whole = append(whole, task); n > 0 || !text {
					partly++
				}
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if recordedDrops(p) != recorded { // a batch came between
		return whole, gone
	}
	if dropped != recorded {
		p.Errorf("the data of %d events is gone, and the log says of %d", dropped, recorded)
	}
	if partly > 1 {
		p.Errorf("%d tasks are partly forgotten", partly)
	}
	return whole, gone
}

// withoutData is how many events have lost their data.
func withoutData(events []event.Event) (n int) {
	for _, e := range events {
		if e.Dropped != nil {
			n++
		}
	}
	return n
}

// recordedDrops is of how many events the log says that their data was removed.
func recordedDrops(p *placetest.Place) (n int) {
	p.Helper()
	for _, e := range p.Events(event.System) {
		if e.Type == event.RetentionApplied {
			var what struct{ Events int }
			p.Must(json.Unmarshal(e.Data, &what))
			n += what.Events
		}
	}
	return n
}
