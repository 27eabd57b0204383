package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// TriggersCmd looks at what makes tasks by itself.
type TriggersCmd struct {
	List       TriggersListCmd       `cmd:"" default:"1" hidden:"" help:"List the triggers."`
	Show       TriggersShowCmd       `cmd:"" help:"Show one trigger, and its next times."`
	Deliveries TriggersDeliveriesCmd `cmd:"" help:"List what came, newest first."`
	Delivery   TriggersDeliveryCmd   `cmd:"" help:"Show one delivery with what it carried."`
	Redeliver  TriggersRedeliverCmd  `cmd:"" help:"Make of a delivery what its trigger makes of it today."`
	Test       TriggersTestCmd       `cmd:"" help:"Ask what a trigger would make of a payload; nothing is stored."`
}

// TriggersListCmd lists the triggers.
type TriggersListCmd struct{}

// Run prints one line a trigger.
func (c *TriggersListCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Triggers(ctx)
	return list(sh, got, err, func(t wire.Trigger) []string {
		said := "nothing came yet"
		if t.Last != nil {
			said = console.Line(t.Last.State) + " " + console.Ago(t.Last.ReceivedAt, sh.Now())
		}
		if t.Failures > 0 {
			said = console.Parts(said, console.Counted(t.Failures, "failure")+" in 24 h")
		}
		said = console.Parts(said, refusedCalls(t.Refused, sh.Now()))
		if t.Problem != "" {
			said = sh.Icon("failed") + " " + console.Brief(t.Problem, 80)
		}
		return []string{console.Line(t.Name), console.Line(t.Kind), console.Parts(console.Line(t.Source), console.Line(t.Cron)), console.Line(t.Agent), said}
	}, "There are no triggers. Add one under triggers: in the configuration.")
}

// TriggersShowCmd shows one trigger.
type TriggersShowCmd struct {
	Trigger string `arg:"" help:"Its name."`
}

// Run prints what it is made of, and exits 1 where it cannot work.
func (c *TriggersShowCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Trigger(ctx, c.Trigger)
	return act(sh, got, err, func(t wire.Trigger) error {
		return c.tell(sh, t)
	})
}

func (c *TriggersShowCmd) tell(sh *console.Shell, t wire.Trigger) error {
	var rows [][]string
	for _, row := range [][2]string{{"trigger", console.Parts(console.Line(t.Name), console.Line(t.Kind), console.Line(t.Source))}, {"agent", console.Line(t.Agent)}, {"owner", console.Line(t.Owner)}, {"task", console.Brief(t.Task, 120)},
		{"when", console.Brief(t.When, 120)}, {"address", console.Line(t.URL)}, {"window", lasting(string(t.Window))}, {"cron", console.Parts(console.Line(t.Cron), console.Line(t.Timezone))}, {"overlap", console.Line(t.Overlap)}, {"missed", console.Line(t.Missed)}} {
		if row[1] != "" {
			rows = append(rows, row[:])
		}
	}
	for i, at := range t.Next {
		name := ""
		if i == 0 {
			name = "next"
		}
		rows = append(rows, []string{name, at.Format("Mon 2006-01-02 15:04 MST")})
	}
	if t.Last != nil {
		rows = append(rows, []string{"last", console.Parts(console.Line(t.Last.ID), console.Line(t.Last.State), console.Ago(t.Last.ReceivedAt, sh.Now()))})
	}
	if t.Refused != nil {
		rows = append(rows, []string{"refused", refusedCalls(t.Refused, sh.Now())})
	}
	if err := console.Table(sh.Out, rows); err != nil {
		return err
	}
	if t.Problem != "" {
		return console.Fail(console.ExitFailed, "%s", console.Line(t.Problem))
	}
	return nil
}

// TriggersDeliveriesCmd lists deliveries.
type TriggersDeliveriesCmd struct {
	Trigger string `arg:"" help:"Its name."`
	State   string `help:"Only those: stored, started, filtered, refused, skipped or failed; several with commas." placeholder:"S"`
	Limit   int    `help:"At most so many; 0 is all." default:"20" placeholder:"N"`
}

// Run prints one line a delivery.
func (c *TriggersDeliveriesCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Limit < 0 {
		return console.Usage("--limit %d: write a number from 0 on.", c.Limit)
	}
	found, err := api.Deliveries(ctx, c.Trigger, c.State, c.Limit)
	if err != nil || sh.JSON {
		return list(sh, found, err, nil, "")
	}
	now, err := api.Trigger(ctx, c.Trigger)
	if err != nil && !isStatus(err, http.StatusNotFound) { // what came of one that is not configured any more stays
		return err
	}
	if t := now.Value; t.Refused != nil {
		sh.Hint("%s %s. They were answered 401 and are not in the list.", sh.Icon("refused"), refusedCalls(t.Refused, sh.Now()))
	}
	return list(sh, found, nil, func(d wire.Delivery) []string {
		return []string{console.Line(d.ID), console.Line(d.State), console.Brief(d.Event, 30), console.Line(d.TaskID), console.Ago(d.ReceivedAt, sh.Now()), console.Parts(repeats(d), console.Brief(d.Message, 80))}
	}, "Nothing came.")
}

// refusedCalls says how many calls were answered 401, and about the last one.
func refusedCalls(r *wire.Refused, now time.Time) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s refused: %s, last %s from %s", console.Counted(int(r.Calls), "call"), console.Line(r.Reason), console.Ago(r.LastAt, now), console.Line(r.Address))
}

func repeats(d wire.Delivery) string {
	if d.Repeats == 0 {
		return ""
	}
	return "came again " + console.Counted(d.Repeats, "time")
}

// TriggersDeliveryCmd shows a delivery.
type TriggersDeliveryCmd struct {
	ID string `arg:"" help:"The delivery."`
}

// Run prints what it carried, after what became of it.
func (c *TriggersDeliveryCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Delivery(ctx, c.ID)
	return act(sh, got, err, func(d wire.Delivery) error {
		rows := [][]string{{"delivery", console.Parts(console.Line(d.ID), console.Line(d.Trigger), console.Line(d.Event))}, {"state", console.Parts(console.Line(d.State), console.Brief(d.Message, 200))}, {"received", d.ReceivedAt.UTC().Format(time.RFC3339)}}
		if d.TaskID != "" {
			rows = append(rows, []string{"task", console.Line(d.TaskID)})
		}
		if err := console.Table(sh.Out, rows); err != nil {
			return err
		}
		payload := ""
		if d.Payload != nil {
			payload = *d.Payload
		}
		return sh.Foreign(payload)
	})
}

// TriggersRedeliverCmd has a delivery delivered again.
type TriggersRedeliverCmd struct {
	ID string `arg:"" help:"The delivery."`
}

// Run prints the new delivery, and exits 1 where it made no task.
func (c *TriggersRedeliverCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	got, err := api.Redeliver(ctx, c.ID)
	return orFailed(got.Value.Made(), act(sh, got, err, func(d wire.Delivery) error {
		if d.Made() {
			return sh.Say("%s %s", console.Line(d.ID), console.Parts(console.Line(d.State), console.Line(d.TaskID)))
		}
		return sh.Say("%s %s: %s", console.Line(d.ID), console.Line(d.State), console.Line(d.Message))
	}))
}

// TriggersTestCmd is a dry run.
type TriggersTestCmd struct {
	Trigger string `arg:"" help:"Its name."`
	File    string `arg:"" optional:"" help:"A file with the payload; - is standard input. A schedule needs none."`
	Event   string `help:"What the sender would call it: workflow_run." placeholder:"NAME"`
}

// Run prints the text that the agent would get, and exits 1 where nothing would start.
func (c *TriggersTestCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	payload, err := c.payload(sh)
	if err != nil {
		return err
	}
	got, err := api.TryTrigger(ctx, c.Trigger, c.Event, payload)
	return orFailed(got.Value.Fires, act(sh, got, err, func(trial wire.Trial) error {
		if !trial.Fires {
			return sh.Say("%s %s: %s", sh.Icon("refused"), console.Line(trial.Code), console.Line(trial.Message))
		}
		sh.Hint("✓ It would start a task for %s with this text:", console.Line(trial.Agent))
		if trial.Asks != "" {
			sh.Hint("%s", console.Line(trial.Asks))
		}
		return sh.Foreign(string(trial.Text))
	}))
}

// payload reads the file; without one there is none.
func (c *TriggersTestCmd) payload(sh *console.Shell) (json.RawMessage, error) {
	if c.File == "" {
		return json.RawMessage("null"), nil
	}
	from := sh.In
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, console.Usage("The payload cannot be read: %v.", err)
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, wire.MaxPayload+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the payload: %w", err)
	case len(text) > wire.MaxPayload:
		return nil, console.Usage("The payload has more than %d bytes, which is what a webhook may send.", wire.MaxPayload)
	case !json.Valid(text):
		return nil, console.Usage("The payload is not JSON.")
	}
	return text, nil
}

// lasting is a length of time of the API, 24h0m0s, as people write it.
func lasting(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return console.Length(d)
	}
	return console.Line(text)
}
