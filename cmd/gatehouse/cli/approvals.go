package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// ApprovalsCmd lists approval requests.
type ApprovalsCmd struct {
	State string `help:"Those in this state; all for every state." default:"pending" placeholder:"pending"`
	Limit int    `help:"At most so many." default:"50" placeholder:"N"`
}

// Run prints one line for each.
func (c *ApprovalsCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Limit < 1 {
		return console.Usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	f := client.RequestFilter{State: plainState(c.State), Limit: c.Limit}
	if f.State == "all" {
		f.State = ""
	}
	found, err := api.Requests(ctx, f)
	for _, r := range found.Items { // above the list: which requests cannot get enough yeses
		if err != nil || r.Needs.Problem == "" || sh.JSON {
			continue
		}
		if err := sh.Say("⚠ %s: %s", console.Short(r.ID), console.Line(r.Needs.Problem)); err != nil {
			return err
		}
	}
	return list(sh, found, err, requestRow(sh), fmt.Sprintf("No request is %s.", console.Line(c.State)))
}

// plainState takes a state as people read it: awaiting approval.
func plainState(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "_") }

// requestRow shows a request: state, id, title, where, size, whose turn.
func requestRow(sh *console.Shell) func(wire.Request) []string {
	return func(r wire.Request) []string {
		turn := console.Ago(r.CreatedAt, sh.Now())
		if r.State == "pending" {
			turn = console.Parts(overtaken(&r), needed("needs", r), turn, console.Expiry(r.ExpiresAt, sh.Now()))
		}
		turn = console.Parts(turn, console.Line(r.Read.Text))
		title := cmp.Or(console.Brief(r.Title, 40), console.Brief(r.Text, 40))
		if len(r.Warnings) > 0 {
			title += " ⚠"
		}
		from := r.Agent
		if r.IsHandover() {
			from = r.Question.From
		}
		return []string{sh.State(badge.Arrived(r.State, r.Pushes()), 0), console.Line(r.ID), title, console.Line(from) + " → " + where(r), size(r), turn}
	}
}

// overtaken says that a yes to a request lands nothing; "" where it may land.
func overtaken(r *wire.Request) string {
	if r == nil || r.Overtaken == nil {
		return ""
	}
	return "⚠ " + console.Line(r.Overtaken.Brief)
}

// where is the repository and branch that a request lands on or is pushed to, or whom a hand-over goes to.
func where(r wire.Request) string {
	if r.IsHandover() {
		return "hand-over to " + console.Line(r.Question.To)
	}
	if !r.IsPatch() {
		return asksWhat(r)
	}
	if r.Pushes() && r.Branch != "" {
		return console.Line(r.Repository) + "/" + console.Line(r.Branch)
	}
	if r.Target == "" {
		return console.Line(r.Repository) + " (no branch)" // asked by an older version, on a commit's id
	}
	return console.Line(r.Repository) + "/" + console.Line(r.Target)
}

// shortest is how much of an id's end names it, in characters.
const shortest = 6

// namesNothing answers an id that is shorter.
const namesNothing = "%q is too short for an id: write at least its last %d characters."

// tooShort reports whether what follows an id's prefix names nothing.
func tooShort(id string, prefixes ...string) bool {
	id = strings.TrimSpace(id)
	for _, prefix := range prefixes {
		id = strings.TrimPrefix(id, prefix)
	}
	return len(id) < shortest
}

// findDelegation understands the id of a task or delegation. Of a request's it says so.
func findDelegation(ctx context.Context, api *client.Client, id string) (client.Answer[wire.Delegation], error) {
	d, err := api.Delegation(ctx, id)
	if !isStatus(err, http.StatusNotFound) {
		return d, err
	}
	if tooShort(id, "tsk_", "dlg_") {
		return d, console.Fail(console.ExitNotFound, namesNothing+" List the tasks: gatehouse list", console.Line(id), shortest)
	}
	if r, err := api.Request(ctx, id); err == nil { // a token that may read no requests learns of none
		return d, console.Fail(console.ExitNotFound, "%q is a request, and neither a task nor a delegation. See it: gatehouse review %s   Its task: %s", console.Line(id), console.Short(r.Value.ID), console.Short(r.Value.TaskID))
	}
	return d, err
}

// findRequest understands a request's id and, while exactly one of its requests is in
// the state, that of a task or delegation.
func findRequest(ctx context.Context, sh *console.Shell, api *client.Client, id, state string) (none client.Answer[wire.Request], err error) {
	work := strings.HasPrefix(id, "tsk_") || strings.HasPrefix(id, "dlg_")
	if !work {
		r, err := api.Request(ctx, id)
		switch {
		case err == nil || !isStatus(err, http.StatusNotFound):
			return r, err
		case tooShort(id, "apr_"):
			return r, console.Fail(console.ExitNotFound, namesNothing+" List the requests: gatehouse approvals", console.Line(id), shortest)
		case strings.HasPrefix(id, "apr_"):
			return r, console.Fail(console.ExitNotFound, "No request has the id %q. List them: gatehouse approvals", console.Line(id))
		}
	}
	found, err := api.Delegation(ctx, id)
	d := found.Value
	switch {
	case !work && isStatus(err, http.StatusForbidden): // it was no request's, and tasks are not this token's business
		return none, console.Fail(console.ExitNotFound, "No request has the id %q. List them: gatehouse approvals", console.Line(id))
	case isStatus(err, http.StatusNotFound):
		return none, console.Fail(console.ExitNotFound, "No request, task or delegation has the id %q. List them: gatehouse approvals", console.Line(id))
	case err != nil:
		return none, err
	case d.ParentID != "" && d.ApprovalID != "":
		return api.Request(ctx, string(d.ApprovalID))
	}
	all, err := api.Requests(ctx, client.RequestFilter{TaskID: d.TaskID})
	if err != nil {
		return none, err
	}
	var fitting []wire.Request
	for _, r := range all.Items {
		if r.State == state {
			fitting = append(fitting, r)
		}
	}
	if len(fitting) == 1 { // a list does not look at branches, nor says what who asks may do
		return api.Request(ctx, fitting[0].ID)
	}
	return none, choose(sh, d.TaskID, state, fitting, all.Items)
}

// choose lists the requests that could have been meant.
func choose(sh *console.Shell, taskID, state string, fitting, all []wire.Request) error {
	if len(all) == 0 {
		return console.Usage("The task %s has no request.", console.Line(taskID))
	}
	listed, what := fitting, "has more than one "+state+" request"
	if len(fitting) == 0 {
		listed, what = all, "has no "+state+" request; these are all"
	}
	if err := console.Table(sh.Errs, each.Of(listed, requestRow(sh))); err != nil {
		return err
	}
	return console.Usage("The task %s %s. Name one of them by its id.", console.Line(taskID), what)
}

func isStatus(err error, status int) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == status
}
