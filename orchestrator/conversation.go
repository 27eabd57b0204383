package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/textcut"
)

// SaveTurn stores the next turn of a conversation; see agent.Host.
func (r *run) SaveTurn(ctx context.Context, t agent.Turn, changed bool) error {
	if t.Usage.InputTokens < 0 || t.Usage.OutputTokens < 0 || t.Usage.USD != nil && *t.Usage.USD < 0 {
		return fmt.Errorf("usage cannot be negative: %d in, %d out", t.Usage.InputTokens, t.Usage.OutputTokens)
	}
	r.filing.Lock()
	defer r.filing.Unlock()
	kept, bundle, err := r.keepFiles(ctx, changed)
	if err != nil {
		return err
	}
	r.turnOver(t.N)
	paused, unsure := false, false
	var over *agent.Failure
	var unread []agent.PersonMessage
	err = r.write(ctx, func(tx Tx, d *Delegation) error {
		tx.OnRollback(func(maybe bool) { unsure = unsure || maybe })
		paused = tx.Task().PausedAt != nil
		err := r.putTurn(ctx, tx, d, t, kept, bundle)
		unread = asTold(d.Work.Unread)
		if unsure && errors.Is(err, ErrExists) {
			err = nil // the try before was committed after all
		}
		// A turn of the model stands whatever it cost, and so do the results of its calls: the
		// run ends once they are on record (O17, O18).
		if over = nil; t.Message.Role != agent.FromModel {
			over = exceeded(d)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.filed(kept)
	r.nowUnread(unread)
	r.d.Work.Checkpoint = r.d.Work.Checkpoint.without(t.Children)
	for _, id := range t.Children {
		delete(r.back, id)
	}
	r.e.Trace("turn stored")
	if over != nil {
		return over
	}
	if paused {
		return agent.ErrPaused
	}
	return nil
}

// putTurn writes a turn with all that belongs to it.
func (r *run) putTurn(ctx context.Context, tx Tx, d *Delegation, t agent.Turn, kept *Checkpoint, bundle []byte) error {
	if err := r.file(ctx, tx, d, kept, bundle); err != nil {
		return err
	}
	d.Work.Checkpoint = d.Work.Checkpoint.without(t.Children)
	d.Losses = 0 // it came on
	if t.Message.Role == agent.FromTools {
		if err := d.Work.carriedBy(ctx, tx, t); err != nil {
			return err
		}
		d.Work.Refused = nil // the turn has the answers to all hops of the turn before
	}
	if err := tx.PutTurn(ctx, d, t); err != nil {
		return err
	}
	if err := hears(ctx, tx, d, t.Messages, t.N); err != nil {
		return err
	}
	if err := tx.Take(ctx, d.ID, t.Children); err != nil {
		return err
	}
	if err := r.charge(ctx, tx, d, t); err != nil {
		return err
	}
	return save(ctx, tx, d)
}

// charge adds what a turn used and writes its events.
func (r *run) charge(ctx context.Context, tx Tx, d *Delegation, t agent.Turn) error {
	d.Usage = d.Usage.Add(t.Usage)
	if t.Message.Role == agent.FromModel {
		if _, err := (ledger{tx}).charge(ctx, d, amountOf(t.Usage)); err != nil {
			return err
		}
		account(d).Call = amountOf(t.Usage)
	}
	var keys []string
	if announces(t) {
		var err error
		if keys, err = announceOnce(ctx, tx, d, t.Children); err != nil {
			return err
		}
	}
	for _, e := range turnEvents(d, t, keys) {
		if err := tx.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// maxShown is how many bytes of a text an event repeats; the turn has the whole.
const maxShown = 4000

// turnEvents are the events of a stored turn; keys are those of the ends that it announces.
func turnEvents(d *Delegation, t agent.Turn, keys []string) []event.Event {
	say := func(p event.Payload) event.Event { return event.Of(d.ID, d.To, p) }
	var events []event.Event
	switch t.Message.Role {
	case agent.FromModel:
		var calls []event.Call
		for room, c := range roomFor(t.Message.Calls()) {
			calls = append(calls, event.Call{ID: c.ID, Name: c.Name, Input: cutTo(string(c.Input), room)})
		}
		events = append(events,
			say(event.MessageCompletedData{Turn: t.N, Model: t.Model, Stop: t.Stop, Text: cut(t.Message.Text()),
				Calls: calls, TookMS: t.Took.Milliseconds()}),
			say(event.UsageRecordedData{InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens, USD: t.Usage.USD,
				Model: event.Given(t.Model), Turn: event.Given(t.N)}))
	case agent.FromTools:
		for _, b := range t.Message.Blocks {
			if b.Type == agent.AnswerBlock {
				events = append(events, say(event.ToolCompletedData{Turn: t.N, ID: b.ID, Name: b.Name, OK: event.Given(!b.IsError), Text: cut(b.Text)}))
			}
		}
	}
	if announces(t) {
		events = append(events, say(event.AnnouncedData{Turn: t.N, Children: t.Children, Keys: keys}))
	}
	return events
}

// roomFor gives each call the bytes that its input may take in the event: many calls of
// one message share the room of eight.
func roomFor(calls []agent.Block) iter.Seq2[int, agent.Block] {
	room := maxShown
	if n := len(calls); n > 8 {
		room = 8 * maxShown / n
	}
	return func(yield func(int, agent.Block) bool) {
		for _, c := range calls {
			if !yield(room, c) {
				return
			}
		}
	}
}

// cut shortens a text for an event.
func cut(s string) string { return cutTo(s, maxShown) }

func cutTo(s string, most int) string {
	s = mask.Text(s) // before the cut, which could leave half a secret that has no shape any more
	head, all := textcut.Bytes(s, most)
	if all {
		return s
	}
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("… (%d bytes)", len(s))
}

// Ended returns the spawned children whose end no turn has carried.
func (r *run) Ended(ctx context.Context) ([]agent.Child, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	all, err := r.e.Store.Untaken(ctx, r.id, r.d.Work.Runs)
	var ended []agent.Child
	for i := range all {
		if err != nil || !all[i].Spawned || !all[i].State.Ended() {
			continue
		}
		c, takeErr := r.takeIn(ctx, &all[i])
		ended, err = append(ended, c), takeErr
	}
	return ended, err
}

// Checks runs the repository's checks on the checkout as it is now.
func (r *run) Checks(ctx context.Context) ([]agent.CheckResult, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	if r.dir == "" {
		return nil, agent.Fail(agent.CodeNoCheckout, "There is no repository to check: the task has none.")
	}
	_, repo, err := r.e.mirror(r.d.Repository)
	if err != nil {
		return nil, err
	}
	s, err := r.mirror.Snapshot(ctx, r.dir, r.d.Work.BaseTree)
	if err != nil {
		return nil, refusedFiles(err)
	}
	saved, _, err := r.mirror.SaveTree(ctx, r.id+"-checks", r.d.Work.BaseCommit, s.Tree, r.d.CreatedAt)
	if err != nil {
		return nil, err
	}
	checks, err := r.e.runChecks(r, saved, s.Tree, repo)
	return each.Of(checks, func(c Check) agent.CheckResult {
		return agent.CheckResult{Command: c.Command, OK: c.OK, Output: c.Output}
	}), err
}

// Apply changes the checkout as a unified diff says.
func (r *run) Apply(ctx context.Context, diff string) error {
	if err := r.live(); err != nil {
		return err
	}
	if r.dir == "" {
		return agent.Fail(patch.CodePathOutside, "There is no repository to change: the task has none.")
	}
	s, err := r.mirror.Snapshot(ctx, r.dir, r.d.Work.BaseTree)
	if err != nil {
		return refusedFiles(err)
	}
	tree, err := r.mirror.ApplyText(ctx, s.Tree, []byte(diff))
	if err != nil {
		return refusedFiles(err)
	}
	return refusedFiles(r.mirror.MergeBack(ctx, r.dir, s.Tree, tree))
}

// Over reports whether the delegation has ended, or begun anew; see agent.Host.
func (r *run) Over(ctx context.Context) (bool, error) {
	d, err := r.e.Store.Delegation(ctx, r.id)
	return err == nil && (d.State.Ended() || d.Work.Runs != r.d.Work.Runs), err
}

// Remaining is what this run may still use: what is left to it and to all whom it works
// for, with what is reserved for the call that it makes.
func (r *run) Remaining(ctx context.Context) (budget.Limits, error) {
	d, err := r.e.Store.Delegation(ctx, r.id)
	var left budget.Limits
	if err == nil && d.Work.Budget != nil {
		var of line
		of, err = lineOf(ctx, &d, r.e.committed)
		left = of.left.Plus(d.Work.Budget.Held)
	}
	if d.Work.Independent {
		left.Handoffs = new(int)
	}
	return left, err
}

// withoutSecrets is an agent's result as it is stored, shown and told to whoever called:
// what looks like a secret in its text, its data and the texts of its artifacts is masked.
// Its patch is files, and stays as it is.
func withoutSecrets(res *agent.Result) *agent.Result {
	if res == nil {
		return nil
	}
	told := *res
	told.Text, told.Data = mask.Text(res.Text), mask.JSON(res.Data)
	told.Artifacts = slices.Clone(res.Artifacts)
	for i, a := range told.Artifacts {
		told.Artifacts[i].Name, told.Artifacts[i].Text = mask.Text(a.Name), mask.Text(a.Text)
	}
	return &told
}

// Asked is one ask of a run as its row keeps it, until a turn has carried its answer.
type Asked struct {
	Ref     string            `json:"ref,omitempty"`
	Content string            `json:"content"`           // over what was asked; finds an ask without Ref
	Attempt int               `json:"attempt,omitempty"` // that asked last
	Request string            `json:"request,omitempty"` // "" where nobody was asked
	State   agent.AnswerState `json:"state"`
	Input   json.RawMessage   `json:"input,omitempty"` // what a person made of it
	Text    string            `json:"text,omitempty"`
	By      string            `json:"by,omitempty"`
	Begun   bool              `json:"begun,omitempty"` // the call may have been made
}

// answer is how the run is told what came of its ask.
func (o Asked) answer(a agent.Ask) agent.Answer {
	said := agent.Answer{Ref: a.Ref, ID: o.Request, State: o.State, Input: o.Input, Edited: o.Input != nil, Text: o.Text, By: o.By, Begun: o.Begun}
	if a.Action != nil && !said.Edited {
		said.Input = a.Action.Input
	}
	return said
}

// means reports whether a call is with the input that people said yes to.
func (o Asked) means(a agent.Ask) bool {
	if o.Input == nil {
		return a.Content() == o.Content
	}
	edited := agent.Action{Input: o.Input}
	return a.Action != nil && (agent.Ask{Action: &edited}).Content() == (agent.Ask{Action: &agent.Action{Input: a.Action.Input}}).Content()
}

// as is the ask with what came of it.
func (o Asked) as(a agent.Answer) Asked {
	now := Asked{Ref: o.Ref, Content: o.Content, Attempt: o.Attempt, Request: o.Request, State: a.State, Text: a.Text, By: a.By, Begun: o.Begun}
	if a.Edited {
		now.Input = a.Input
	}
	return now
}

// OpenAsks is how many answers of people the run waits for.
func (w *Session) OpenAsks() int {
	return len(slices.DeleteFunc(slices.Clone(w.Asks), func(a Asked) bool { return a.State != agent.AskOpen }))
}

// MayHaveRun reports whether the same call was allowed before, and perhaps made.
func (w *Session) MayHaveRun(a agent.Ask) bool {
	content := a.Content()
	return slices.ContainsFunc(w.Asks, func(o Asked) bool { return o.Begun && o.Content == content })
}

// forget drops an ask whose answer the run has.
func (w *Session) forget(gone Asked) {
	w.Asks = slices.DeleteFunc(w.Asks, func(o Asked) bool {
		return o.Ref == gone.Ref && o.Request == gone.Request && o.Content == gone.Content && o.State == gone.State
	})
}

// keptBegun is how many calls that were begun a row keeps, for a run that begins anew.
const keptBegun = 32

// forgetSpent drops the oldest of those that were begun.
func (w *Session) forgetSpent() {
	begun := 0
	for i := len(w.Asks) - 1; i >= 0; i-- {
		if !w.Asks[i].Begun {
			continue
		}
		if begun++; begun > keptBegun {
			w.Asks = slices.Delete(w.Asks, i, i+1)
		}
	}
}

// carriedBy drops the asks whose answers stand in a turn. Nobody waits for one that is open
// again, as its yes was taken back.
func (w *Session) carriedBy(ctx context.Context, tx Tx, t agent.Turn) error {
	var all error
	w.Asks = slices.DeleteFunc(w.Asks, func(o Asked) bool {
		told := o.Ref != "" && slices.ContainsFunc(t.Message.Blocks, func(b agent.Block) bool { return b.Type == agent.AnswerBlock && b.ID == o.Ref })
		if told && o.State == agent.AskOpen && o.Request != "" {
			all = errors.Join(all, tx.CloseAsk(ctx, o.Request))
		}
		return told
	})
	return all
}

// named gives an ask that an attempt before made, and nobody used, the name that it has now:
// under that it is used up.
func (d *Delegation) named(ctx context.Context, tx Tx, at int, ref string) error {
	if o := &d.Work.Asks[at]; !o.Begun && o.Ref != ref {
		o.Ref, o.Attempt = ref, d.Attempt
		return save(ctx, tx, d)
	}
	return nil
}

// stand asks people again whose yes does not count any more, before the call is made.
func stand(ctx context.Context, tx Tx, now Asks, d *Delegation, at int) error {
	if o := d.Work.Asks[at]; o.State != agent.AskAllowed || o.Begun || o.Request == "" {
		return nil
	}
	return now.Stand(ctx, tx, d, d.Work.Asks[at].Request)
}

// use takes a grant that covers what is asked; "" where none does.
func use(ctx context.Context, tx Tx, now Asks, d *Delegation, a agent.Ask, again bool) (by string, err error) {
	if a.Action == nil || now == nil {
		return "", nil
	}
	return now.Use(ctx, tx, d, *a.Action, again)
}
