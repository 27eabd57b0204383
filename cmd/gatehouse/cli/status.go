package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// StatusCmd shows one task or delegation, or how busy the server is.
type StatusCmd struct {
	ID string `arg:"" optional:"" help:"An id, or its last 6 characters or more; without it how many workers are busy and how landing stands."`
}

// Run prints where it stands and what to do next.
func (c *StatusCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.ID == "" {
		return siteStatus(ctx, sh, api)
	}
	found, err := findDelegation(ctx, api, c.ID)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(found.Raw)
	}
	v, err := inspect(ctx, api, found.Value)
	if err != nil {
		return err
	}
	return v.print(sh)
}

// view is what is known of one delegation and everything below it.
type view struct {
	d       wire.Delegation
	all     []wire.Delegation // of the whole task
	focus   wire.Delegation   // whose state says whose turn it is
	lander  wire.Delegation   // whose change landed last, or focus while it goes on
	request *wire.Request     // of lander; nil where there is none or it may not be read
	inbox   string            // how full the queue is that focus waits in, "" elsewhere
	queue   string            // how landing stands where focus waits to land
}

// inspect reads what a delegation stands for: while it waits for others, the liveliest
// one below it says whose turn it is.
func inspect(ctx context.Context, api *client.Client, d wire.Delegation) (view, error) {
	v := view{d: d, focus: d}
	tree, err := api.Tree(ctx, d.TaskID)
	if err != nil {
		return v, err
	}
	v.all = tree.Items
	v.lander = d
	if !d.Ended() {
		v.focus = liveliest(d, v.all)
		v.lander = v.focus
	} else if other, ok := lander(d, v.all); ok {
		v.lander = other
	}
	if v.focus.State == "queued" {
		if v.inbox, err = inboxOf(ctx, api, v.focus.To); err != nil {
			return v, err
		}
	}
	if v.queue, err = landingOf(ctx, api, v.focus); err != nil {
		return v, err
	}
	if v.lander.ApprovalID == "" {
		return v, nil
	}
	r, err := api.Request(ctx, string(v.lander.ApprovalID))
	var refused *client.Error
	switch {
	case errors.As(err, &refused): // a token may read tasks and no requests
	case err != nil:
		return v, err
	default:
		v.request = &r.Value
	}
	return v, nil
}

// subtree has the ids of d and of everything below it.
func subtree(d wire.Delegation, all []wire.Delegation) map[string]bool {
	below := map[string]bool{d.ID: true}
	for _, other := range all { // oldest first: callers stand before those they called
		if below[string(other.ParentID)] {
			below[other.ID] = true
		}
	}
	return below
}

// lander is d when it landed something, else the last one below that did.
func lander(d wire.Delegation, all []wire.Delegation) (last wire.Delegation, found bool) {
	below := subtree(d, all)
	for _, other := range all {
		if below[other.ID] && other.Result != nil && other.Result.Commit != "" {
			if last, found = other, true; other.ID == d.ID {
				break
			}
		}
	}
	return last, found
}

// urgency orders states by how much they tell of a tree that is not at its end.
var urgency = []string{"awaiting_approval", "landing", "checking", "running", "queued"}

// liveliest is d, or the delegation below it whose state says more than "waiting".
func liveliest(d wire.Delegation, all []wire.Delegation) wire.Delegation {
	if d.State != "waiting" {
		return d
	}
	below := subtree(d, all)
	for _, state := range urgency {
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].State == state && below[all[i].ID] {
				return all[i]
			}
		}
	}
	return d
}

func (v view) print(sh *console.Shell) error {
	title := console.Brief(v.d.Text, 72)
	if err := sh.Say("%s   %s   %s", sh.State(v.focus.State, console.StateWidth), title, v.turn(sh)); err != nil {
		return err
	}
	row := func(name, value string) error {
		if value == "" {
			return nil
		}
		return sh.Say("  %-8s%s", name, value)
	}
	answer := ""
	if r := v.d.Result; r != nil {
		answer = strings.ReplaceAll(console.Block(strings.TrimSpace(r.Text)), "\n", "\n          ")
	}
	return errors.Join(
		row("id", console.Line(v.d.ID)+"   "+console.Line(v.d.TaskID)),
		row("chain", v.chain()+"          usage "+console.Used(v.d.Usage)),
		row("budget", allowed(v.d.Budget)),
		row("paused", v.paused(sh)),
		row("inbox", v.inbox),
		row("error", reason(v.d)),
		row("problem", v.problem()),
		row("landing", v.queue),
		row("dropped", strings.Join(v.discarded(), " ")),
		row("answer", answer),
		row("next", v.next()),
	)
}

// discarded says what was thrown away of agents that only analyse, of d and below it: each
// sentence once, with how often it is meant.
func (v view) discarded() (said []string) {
	below := subtree(v.d, v.all)
	times := map[string]int{}
	for _, d := range v.all {
		if d.Discarded == "" || !below[d.ID] {
			continue
		}
		if times[d.Discarded]++; times[d.Discarded] == 1 {
			said = append(said, d.Discarded)
		}
	}
	for i, text := range said {
		if said[i] = console.Line(text); times[text] > 1 {
			said[i] += fmt.Sprintf(" (%d times)", times[text])
		}
	}
	return said
}

// paused says since when people hold the task, "" when they do not.
func (v view) paused(sh *console.Shell) string {
	if v.d.PausedAt == nil {
		return ""
	}
	return "for " + console.Length(sh.Now().Sub(*v.d.PausedAt)) + "; nothing new is begun until gatehouse resume " + handle(v.d)
}

// allowed is what a delegation may use, "" where nothing limits it.
func allowed(b *wire.Budget) string {
	if b == nil {
		return ""
	}
	var limits []string
	if b.Limits.Tokens != nil {
		limits = append(limits, console.Tokens(*b.Limits.Tokens)+" tokens")
	}
	if b.Limits.USD != nil {
		limits = append(limits, fmt.Sprintf("$%.2f", *b.Limits.USD))
	}
	if b.Limits.Handoffs != nil {
		limits = append(limits, console.Counted(*b.Limits.Handoffs, "hand-over"))
	}
	if b.Limits.Agents != nil {
		limits = append(limits, console.Counted(*b.Limits.Agents, "agent"))
	}
	if b.Limits.Time != nil {
		limits = append(limits, console.Line(*b.Limits.Time)+" of running")
	}
	if b.Reserved.Tokens != nil && *b.Reserved.Tokens > 0 {
		limits = append(limits, console.Tokens(*b.Reserved.Tokens)+" tokens reserved below it")
	}
	return strings.Join(limits, " · ")
}

// turn says whose turn it is and since when, or how it ended.
func (v view) turn(sh *console.Shell) string {
	d, now := v.focus, sh.Now()
	since := console.Ago(d.Since, now)
	switch d.State {
	case "awaiting_approval":
		if v.request == nil {
			return console.Parts("needs "+v.turnNames(), since)
		}
		return console.Parts(overtaken(v.request), needed("needs", *v.request), since, console.Expiry(v.request.ExpiresAt, now))
	case "completed":
		return console.Parts(v.landed(), took(d))
	case "failed", "rejected", "expired", "cancelled":
		return took(d)
	case "queued":
		return console.Parts("waits for "+console.Line(d.To), since)
	}
	return console.Parts(console.Line(d.To), since)
}

// landed says which commit landed where, or quotes the answer.
func (v view) landed() string {
	switch r := v.lander.Result; {
	case r == nil:
	case r.Commit != "" && r.Pushed == "" && v.request != nil && v.request.Target != "":
		return console.Parts(delivered(*r)+" on "+console.Line(v.request.Target), v.share())
	case r.Commit != "":
		return console.Parts(delivered(*r), v.share())
	}
	if r := v.d.Result; r != nil && strings.TrimSpace(r.Text) != "" {
		return `"` + console.Brief(r.Text, 72) + `"`
	}
	return ""
}

// share says how much of the change has landed, where people left files out.
func (v view) share() string {
	left := v.lander.Result.Declined
	switch {
	case len(left) == 0:
		return ""
	case v.request == nil:
		return "left out: " + fewFiles(left)
	}
	return share(len(v.request.Files), left)
}

// share says how many files of a change there are without those that were left out.
func share(n int, left []string) string {
	return fmt.Sprintf("%d of %s; left out: %s", n, console.Counted(n+len(left), "file"), fewFiles(left))
}

// fewFiles names a few files and counts the rest.
func fewFiles(paths []string) string {
	const most = 5
	names := each.Of(paths[:min(len(paths), most)], console.Line)
	more := ""
	if len(paths) > most {
		more = fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return strings.Join(names, ", ") + more
}

// problem is why nothing goes on: a landing that is held up, or too few people.
func (v view) problem() string {
	if v.focus.State == "awaiting_approval" && v.request != nil {
		return console.Line(v.request.Needs.Problem)
	}
	return console.Line(v.focus.Problem)
}

// handle is the id to call d by: its task's at the root, as send has printed it.
func handle(d wire.Delegation) string {
	if d.ParentID == "" && d.TaskID != "" {
		return console.Short(d.TaskID)
	}
	return console.Short(d.ID)
}

// chain names the longest way that the task has gone through d.
func (v view) chain() string {
	below, deepest := subtree(v.d, v.all), v.d
	for _, other := range v.all {
		if below[other.ID] && other.Depth > deepest.Depth {
			deepest = other
		}
	}
	names := make([]string, 0, len(deepest.Chain)+1)
	for _, step := range deepest.Chain {
		if step.From != "" && len(names) == 0 {
			names = append(names, console.Line(step.From))
		}
		names = append(names, console.Line(step.To))
	}
	if len(names) == 0 || names[len(names)-1] != console.Line(deepest.To) {
		names = append(names, console.Line(deepest.To))
	}
	return strings.Join(names, " → ")
}

// next is the command that moves it on, "" where nobody can.
func (v view) next() string {
	if v.d.PausedAt != nil && v.focus.State == "queued" {
		return "gatehouse resume " + handle(v.d)
	}
	switch v.focus.State {
	case "awaiting_approval":
		return "gatehouse review " + console.Short(string(v.focus.ApprovalID))
	case "landing":
		if heldUp(v.focus) != "" {
			return "gatehouse retry " + handle(v.focus)
		}
	case "failed", "expired":
		return "gatehouse retry " + handle(v.d)
	case "completed", "rejected", "cancelled":
		return ""
	}
	return "gatehouse wait " + handle(v.d)
}

// reason is why a delegation did not complete: CODE: sentence.
func reason(d wire.Delegation) string {
	if d.Error == nil {
		return ""
	}
	return console.Line(d.Error.Code) + ": " + console.Line(d.Error.Message)
}

// needed says whom a request needs, behind a verb, or that a yes of theirs is nobody's to give.
func needed(verb string, r wire.Request) string {
	if stuck(r) {
		return who(r)
	}
	return verb + " " + who(r)
}

// stuck reports whether nobody who has not done so can say yes to a request.
func stuck(r wire.Request) bool {
	return r.State == "pending" && len(r.Needs.Missing) == 0 && r.Needs.Problem != ""
}

// who names the people that a request waits for.
func who(r wire.Request) string {
	switch {
	case len(r.Needs.Missing) > 0:
		names := each.Of(r.Needs.Missing, console.Line)
		return console.Joined(names, "or")
	case stuck(r):
		return badge.Nobody(r.Needs.Have)
	case len(r.Needs.From) > 0:
		return console.Line(console.Joined(r.Needs.From, "or"))
	}
	return "an approver"
}

func took(d wire.Delegation) string {
	if d.EndedAt == nil {
		return ""
	}
	return console.Length(d.EndedAt.Sub(d.CreatedAt))
}
