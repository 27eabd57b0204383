package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/views"
	"gatehouse/web/wire"
)

// What a delegation may wait for.
const (
	WaitsForChildren = "children"
	WaitsForPeople   = "people"
	WaitsForSlot     = "slot"
	WaitsForTime     = "time"   // it is not tried again before
	WaitsForResume   = "paused" // a person paused the task
	WaitsForRemote   = "remote"
	WaitsForTurn     = "turn"   // another change of its repository lands first
	WaitsForNobody   = "nobody" // it works
)

// NoCycle says why nobody waits in a circle, and what could still hold work up.
const NoCycle = "Nobody waits in a circle: work goes down a tree only, and who waits for others holds no worker."

// WaitsOf answers who waits for whom.
type WaitsOf struct {
	Engine   Engine
	Reader   Reader
	Requests Requests
	Gateway  Gateway
	Insights Insights
	Now      func() time.Time
}

// Task lists the live delegations of a task, oldest first.
func (w WaitsOf) Task(ctx context.Context, taskID string) ([]wire.Wait, error) {
	tree, err := w.Reader.Tree(ctx, taskID)
	if err != nil {
		return nil, err
	}
	return w.Of(ctx, slices.DeleteFunc(tree, func(d orchestrator.Delegation) bool { return d.State.Ended() }))
}

// Site lists one page of all live delegations, newest first, and the cursor of the next.
func (w WaitsOf) Site(ctx context.Context, after string, limit int) ([]wire.Wait, string, error) {
	page, err := w.Reader.List(ctx, orchestrator.Filter{States: LiveStates(), After: after, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	rows, err := w.Of(ctx, page.Items)
	return rows, page.Next, err
}

// Queues tells how landing stands in the repositories of rows that land: of all of them on
// the site, of its own in a task.
func (w WaitsOf) Queues(ctx context.Context, only []wire.Wait, site bool) ([]wire.Queue, error) {
	queues, err := w.Insights.LandingQueues(ctx)
	if err != nil {
		return nil, err
	}
	told := []wire.Queue{}
	for _, q := range queues {
		if site || slices.ContainsFunc(only, func(row wire.Wait) bool {
			return row.State == string(orchestrator.Landing) && row.Repository == q.Repository
		}) {
			told = append(told, QueueOf(q))
		}
	}
	return told, nil
}

// asker remembers what several rows of one answer need.
type asker struct {
	WaitsOf
	ctx    context.Context
	below  map[string][]orchestrator.Below
	paused map[string]*time.Time
	voters *approval.Electorate
}

func (w WaitsOf) Of(ctx context.Context, live []orchestrator.Delegation) ([]wire.Wait, error) {
	a := asker{WaitsOf: w, ctx: ctx, below: map[string][]orchestrator.Below{}, paused: map[string]*time.Time{}}
	var parents []string
	for _, d := range live {
		if d.State == orchestrator.Waiting {
			parents = append(parents, d.ID)
		}
	}
	for some := range slices.Chunk(parents, 200) {
		found, err := w.Insights.LiveBelow(ctx, some)
		if err != nil {
			return nil, err
		}
		maps.Copy(a.below, found)
	}
	rows := make([]wire.Wait, 0, len(live))
	for _, d := range live {
		row, err := a.row(d)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	leaves(rows)
	return rows, nil
}

// leaves adds to the rows that wait for work below for which people it waits there, with the
// request that leads to them. It says so where the row below is in the same answer.
func leaves(rows []wire.Wait) {
	at := make(map[string]int, len(rows))
	for i, w := range rows {
		at[w.DelegationID] = i
	}
	for i := range rows {
		leaf, known := i, true
		for depth := 0; known && depth < len(rows) && rows[leaf].For == WaitsForChildren && len(rows[leaf].Children) > 0; depth++ {
			leaf, known = at[rows[leaf].Children[0].ID]
		}
		if w := &rows[i]; known && leaf != i && rows[leaf].For == WaitsForPeople && rows[leaf].ApprovalID != "" {
			w.ApprovalID, w.People = rows[leaf].ApprovalID, rows[leaf].People
			w.Says += "; there " + rows[leaf].Agent + " waits for people: " + rows[leaf].Says
		}
	}
}

func (a *asker) row(d orchestrator.Delegation) (wire.Wait, error) {
	w := wire.Wait{TaskID: d.TaskID, DelegationID: d.ID, Agent: d.To, Text: orchestrator.Title(d.Text), Requester: d.Requester, State: string(d.State), Repository: d.Repository, Since: d.Since.UTC(),
		People: []string{}, Children: []wire.Below{}, For: WaitsForNobody, ApprovalID: d.ApprovalID}
	var err error
	switch d.State {
	case orchestrator.Queued:
		err = a.queued(d, &w)
	case orchestrator.Waiting:
		err = a.waiting(d, &w)
	case orchestrator.AwaitingApproval:
		err = a.people(d, &w)
	case orchestrator.Landing:
		w.Says = "its change is being landed"
		if d.Holder == "" {
			w.For, w.Says = WaitsForTurn, "its change is approved and waits for its turn to land in "+d.Repository
		}
		if d.Work.Problem != "" {
			w.For, w.Says = WaitsForPeople, "landing is held up: "+d.Work.Problem
		}
	case orchestrator.Checking:
		w.Says = "its change is being checked"
	default:
		w.Says = d.To + " works"
		if a.Engine.Traits(d.To).Elsewhere {
			w.For, w.Says = WaitsForRemote, d.To+" works elsewhere; its answer is awaited"
		}
	}
	return w, err
}

// queued: paused, not yet due, or no worker is free.
func (a *asker) queued(d orchestrator.Delegation, w *wire.Wait) error {
	since, known := a.paused[d.TaskID]
	if !known {
		t, err := a.Reader.Task(a.ctx, d.TaskID)
		if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
			return err
		}
		since = t.PausedAt
		a.paused[d.TaskID] = since
	}
	used, size := a.Engine.Slots()
	switch now := a.Now(); {
	case since != nil:
		w.For, w.Says, w.Since = WaitsForResume, "the task is paused; resume it to go on", since.UTC()
	case d.ReadyAt.After(now):
		w.For, w.Says = WaitsForTime, "it is not tried again for "+views.Duration(d.ReadyAt.Sub(now))
	case used >= size:
		w.For, w.Says = WaitsForSlot, fmt.Sprintf("no worker is free: all %d of this node are busy", size)
	default:
		w.For, w.Says = WaitsForSlot, "a worker takes it next"
	}
	return nil
}

func (a *asker) waiting(d orchestrator.Delegation, w *wire.Wait) error {
	w.For = WaitsForChildren
	for _, c := range a.below[d.ID] {
		if !c.Spawned || d.Work.ForSpawned {
			w.Children = append(w.Children, wire.Below{ID: c.ID, Agent: c.Agent, State: string(c.State), Since: c.Since, Spawned: c.Spawned})
		}
	}
	switch names := counted(w.Children); {
	case len(names) == 0 && d.Work.OpenAsks() > 0:
		return a.answers(d, w)
	case len(names) == 0:
		w.Says = "what it waited for has ended; it goes on"
	case len(names) > 5:
		w.Says = fmt.Sprintf("it waits for %s and %d other agents below", strings.Join(names[:5], ", "), len(names)-5)
	default:
		w.Says = "it waits for " + strings.Join(names, ", ") + " below"
	}
	if d.Work.OpenAsks() > 0 {
		below := w.Says
		if err := a.answers(d, w); err != nil {
			return err
		}
		w.Says += "; also " + below
	}
	return nil
}

// answers: people have to decide on calls of d, or to answer its questions. The row leads to
// the oldest of them.
func (a *asker) answers(d orchestrator.Delegation, w *wire.Wait) error {
	open := slices.DeleteFunc(slices.Clone(d.Work.Asks), func(o orchestrator.Asked) bool { return o.State != agent.AskOpen })
	w.For, w.Says = WaitsForPeople, "people are asked"
	r, err := a.Requests.Request(a.ctx, open[0].Request)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	w.ApprovalID = r.ID
	if err := a.voices(r, w); err != nil {
		return err
	}
	if r.IsQuestion() {
		if says := "its question waits for an answer"; len(w.People) > 0 {
			w.Says = says + "; who can give one: " + strings.Join(w.People, ", ")
		} else {
			w.Says = says + ": " + w.Says
		}
	} else {
		w.Says = "its call of " + callee(r) + " waits for a yes: " + w.Says
	}
	if n := len(open) - 1; n > 0 {
		w.Says += fmt.Sprintf("; and %d more", n)
	}
	return nil
}

// counted names each agent once, with how often it is there: coder, 9 × reviewer.
func counted(children []wire.Below) []string {
	n := map[string]int{}
	var order []string
	for _, c := range children {
		if n[c.Agent]++; n[c.Agent] == 1 {
			order = append(order, c.Agent)
		}
	}
	for i, name := range order {
		if n[name] > 1 {
			order[i] = fmt.Sprintf("%d × %s", n[name], name)
		}
	}
	return order
}

func (a *asker) people(d orchestrator.Delegation, w *wire.Wait) error {
	w.For, w.Says = WaitsForPeople, "a person has to say yes"
	if d.ApprovalID == "" {
		return nil
	}
	r, err := a.Requests.Request(a.ctx, d.ApprovalID)
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.voices(r, w)
}

// voices says how far r is on its way to a yes.
func (a *asker) voices(r approval.Request, w *wire.Wait) error {
	if a.voters == nil {
		e, err := a.Gateway.Electorate(a.ctx)
		if err != nil {
			return err
		}
		a.voters = &e
	}
	needs := a.voters.Needs(r)
	w.People = approval.Names(needs.Missing)
	if w.Says = fmt.Sprintf("%d of %d yeses are there", needs.Have, needs.Count); len(needs.Missing) > 0 {
		w.Says += "; who can still say yes: " + strings.Join(w.People, ", ")
	} else if tooFew := a.voters.TooFew(r); tooFew != "" {
		w.Says = tooFew
	}
	return nil
}

func (p *Site) WhoWaits() WaitsOf {
	return WaitsOf{Engine: p.Engine, Reader: p.Reader, Requests: p.Requests, Gateway: p.Gateway, Insights: p.Sums, Now: p.Now}
}

func WaitRows(waits []wire.Wait) []views.WaitRow {
	var rows []views.WaitRow
	for _, w := range waits {
		r := views.WaitRow{ID: w.DelegationID, Agent: w.Agent, Text: w.Text, State: w.State, Says: w.Says, Since: w.Since}
		if w.ApprovalID != "" && (w.For == WaitsForPeople || w.For == WaitsForChildren) {
			r.Href = views.ApprovalHref(w.ApprovalID)
		}
		for _, b := range w.Children[:min(len(w.Children), 5)] {
			r.Below = append(r.Below, views.Crumb{Text: b.Agent + " " + views.StateWord(b.State), Href: views.DelegationHref(b.ID)})
		}
		rows = append(rows, r)
	}
	return rows
}

// QueueOf is how a queue is told.
func QueueOf(q orchestrator.LandingQueue) wire.Queue {
	return wire.Queue{Repository: q.Repository, Waiting: q.Waiting, HeldUp: q.HeldUp, Since: q.Since.UTC(), Landed: q.Landed,
		Pace: q.Pace.Seconds(), Left: q.Left().Seconds(), Says: QueueSays(q)}
}

// queueSays: how many wait, what is in the way, at which pace they land, how long it takes.
func QueueSays(q orchestrator.LandingQueue) string {
	says := fmt.Sprintf("%d approved changes of %s land one after the other", q.Waiting, q.Repository)
	if q.Waiting == 1 {
		says = fmt.Sprintf("1 approved change of %s lands", q.Repository)
	}
	if q.Waiting == 1 && q.HeldUp == 1 {
		says = fmt.Sprintf("1 approved change of %s waits to land; something is in its way", q.Repository)
	} else if q.HeldUp > 0 {
		says += fmt.Sprintf("; something is in the way of %d of them", q.HeldUp)
	}
	switch {
	case q.Landed == 0:
		return says + "; none has landed there yet, so the pace is not known"
	case q.Landed == 1:
		says += "; the last one took " + views.Duration(q.Pace)
	default:
		says += fmt.Sprintf("; the last %d took %s each", q.Landed, views.Duration(q.Pace))
	}
	if left := q.Left(); left > q.Pace {
		says += ", so all of them take about " + views.Duration(left)
	}
	return says
}
