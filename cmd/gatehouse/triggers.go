package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"gatehouse/orchestrator/trigger"
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
func (c *TriggersListCmd) Run(ctx context.Context, sh *shell) error {
	return list(ctx, sh, func(api *client.Client) (client.List[wire.Trigger], error) { return api.Triggers(ctx) }, func(t wire.Trigger) []string {
		said := "nothing came yet"
		if t.Last != nil {
			said = line(t.Last.State) + " " + ago(t.Last.ReceivedAt, sh.now())
		}
		if t.Failures > 0 {
			said = parts(said, counted(t.Failures, "failure")+" in 24 h")
		}
		said = parts(said, refusedCalls(t.Refused, sh.now()))
		if t.Problem != "" {
			said = sh.icon("failed") + " " + brief(t.Problem, 80)
		}
		return []string{line(t.Name), line(t.Kind), parts(line(t.Source), line(t.Cron)), line(t.Agent), said}
	}, "There are no triggers. Add one under triggers: in the configuration.")
}

// TriggersShowCmd shows one trigger.
type TriggersShowCmd struct {
	Trigger string `arg:"" help:"Its name."`
}

// Run prints what it is made of, and exits 1 where it cannot work.
func (c *TriggersShowCmd) Run(ctx context.Context, sh *shell) error {
	return act(ctx, sh, func(api *client.Client) (client.Answer[wire.Trigger], error) { return api.Trigger(ctx, c.Trigger) }, func(_ *client.Client, t wire.Trigger) error {
		return c.tell(sh, t)
	})
}

func (c *TriggersShowCmd) tell(sh *shell, t wire.Trigger) error {
	var rows [][]string
	for _, row := range [][2]string{{"trigger", parts(line(t.Name), line(t.Kind), line(t.Source))}, {"agent", line(t.Agent)}, {"owner", line(t.Owner)}, {"task", brief(t.Task, 120)},
		{"when", brief(t.When, 120)}, {"address", line(t.URL)}, {"window", lasting(string(t.Window))}, {"cron", parts(line(t.Cron), line(t.Timezone))}, {"overlap", line(t.Overlap)}, {"missed", line(t.Missed)}} {
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
		rows = append(rows, []string{"last", parts(line(t.Last.ID), line(t.Last.State), ago(t.Last.ReceivedAt, sh.now()))})
	}
	if t.Refused != nil {
		rows = append(rows, []string{"refused", refusedCalls(t.Refused, sh.now())})
	}
	if err := table(sh.out, rows); err != nil {
		return err
	}
	if t.Problem != "" {
		return fail(exitFailed, "%s", line(t.Problem))
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
func (c *TriggersDeliveriesCmd) Run(ctx context.Context, sh *shell) error {
	if c.Limit < 0 {
		return usage("--limit %d: write a number from 0 on.", c.Limit)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	found, err := api.Deliveries(ctx, c.Trigger, c.State, c.Limit)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(found.Raw)
	}
	now, err := api.Trigger(ctx, c.Trigger)
	if err != nil && !isStatus(err, http.StatusNotFound) { // what came of one that is not configured any more stays
		return err
	}
	if t := now.Value; t.Refused != nil {
		sh.hint("%s %s. They were answered 401 and are not in the list.", sh.icon("refused"), refusedCalls(t.Refused, sh.now()))
	}
	if len(found.Items) == 0 {
		sh.hint("Nothing came.")
		return nil
	}
	rows := make([][]string, len(found.Items))
	for i, d := range found.Items {
		rows[i] = []string{line(d.ID), line(d.State), brief(d.Event, 30), line(d.TaskID), ago(d.ReceivedAt, sh.now()), parts(repeats(d), brief(d.Message, 80))}
	}
	return table(sh.out, rows)
}

// refusedCalls says how many calls were answered 401, and about the last one.
func refusedCalls(r *wire.Refused, now time.Time) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s refused: %s, last %s from %s", counted(int(r.Calls), "call"), line(r.Reason), ago(r.LastAt, now), line(r.Address))
}

func repeats(d wire.Delivery) string {
	if d.Repeats == 0 {
		return ""
	}
	return "came again " + counted(d.Repeats, "time")
}

// TriggersDeliveryCmd shows a delivery.
type TriggersDeliveryCmd struct {
	ID string `arg:"" help:"The delivery."`
}

// Run prints what it carried, after what became of it.
func (c *TriggersDeliveryCmd) Run(ctx context.Context, sh *shell) error {
	return act(ctx, sh, func(api *client.Client) (client.Answer[wire.Delivery], error) { return api.Delivery(ctx, c.ID) }, func(_ *client.Client, d wire.Delivery) error {
		rows := [][]string{{"delivery", parts(line(d.ID), line(d.Trigger), line(d.Event))}, {"state", parts(line(d.State), brief(d.Message, 200))}, {"received", d.ReceivedAt.UTC().Format(time.RFC3339)}}
		if d.TaskID != "" {
			rows = append(rows, []string{"task", line(d.TaskID)})
		}
		if err := table(sh.out, rows); err != nil {
			return err
		}
		payload := ""
		if d.Payload != nil {
			payload = *d.Payload
		}
		return sh.foreign(payload)
	})
}

// TriggersRedeliverCmd has a delivery delivered again.
type TriggersRedeliverCmd struct {
	ID string `arg:"" help:"The delivery."`
}

// Run prints the new delivery, and exits 1 where it made no task.
func (c *TriggersRedeliverCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	answer, err := api.Redeliver(ctx, c.ID)
	if err != nil {
		return err
	}
	d := answer.Value
	made := d.State == string(trigger.Started) || d.State == string(trigger.Stored)
	switch {
	case sh.JSON:
		err = sh.document(answer.Raw)
	case made:
		err = sh.say("%s %s", line(d.ID), parts(line(d.State), line(d.TaskID)))
	default:
		err = sh.say("%s %s: %s", line(d.ID), line(d.State), line(d.Message))
	}
	if err == nil && !made {
		err = &failure{code: exitFailed}
	}
	return err
}

// TriggersTestCmd is a dry run.
type TriggersTestCmd struct {
	Trigger string `arg:"" help:"Its name."`
	File    string `arg:"" optional:"" help:"A file with the payload; - is standard input. A schedule needs none."`
	Event   string `help:"What the sender would call it: workflow_run." placeholder:"NAME"`
}

// Run prints the text that the agent would get, and exits 1 where nothing would start.
func (c *TriggersTestCmd) Run(ctx context.Context, sh *shell) error {
	payload, err := c.payload(sh)
	if err != nil {
		return err
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	answer, err := api.TryTrigger(ctx, c.Trigger, c.Event, payload)
	if err != nil {
		return err
	}
	got := answer.Value
	switch {
	case sh.JSON:
		err = sh.document(answer.Raw)
	case got.Fires:
		sh.hint("✓ It would start a task for %s with this text:", line(got.Agent))
		if got.Asks != "" {
			sh.hint("%s", line(got.Asks))
		}
		err = sh.foreign(string(got.Text))
	default:
		err = sh.say("%s %s: %s", sh.icon("refused"), line(got.Code), line(got.Message))
	}
	if err == nil && !got.Fires {
		err = &failure{code: exitFailed}
	}
	return err
}

// payload reads the file; without one there is none.
func (c *TriggersTestCmd) payload(sh *shell) (json.RawMessage, error) {
	if c.File == "" {
		return json.RawMessage("null"), nil
	}
	from := sh.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, usage("The payload cannot be read: %v.", err)
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, trigger.MaxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the payload: %w", err)
	case len(text) > trigger.MaxBody:
		return nil, usage("The payload has more than %d bytes, which is what a webhook may send.", trigger.MaxBody)
	case !json.Valid(text):
		return nil, usage("The payload is not JSON.")
	}
	return text, nil
}

// lasting is a length of time of the API, 24h0m0s, as people write it.
func lasting(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return length(d)
	}
	return line(text)
}
