package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"gatehouse/orchestrator/badge"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// ApprovalsCmd lists approval requests.
type ApprovalsCmd struct {
	State string `help:"Those in this state; all for every state." default:"pending" placeholder:"pending"`
	Limit int    `help:"At most so many." default:"50" placeholder:"N"`
}

// Run prints one line for each.
func (c *ApprovalsCmd) Run(ctx context.Context, sh *shell) error {
	if c.Limit < 1 {
		return usage("--limit %d: write a number from 1 on.", c.Limit)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	f := client.RequestFilter{State: plainState(c.State), Limit: c.Limit}
	if f.State == "all" {
		f.State = ""
	}
	found, err := api.Requests(ctx, f)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(found.Raw)
	}
	if len(found.Items) == 0 {
		sh.hint("No request is %s.", line(c.State))
		return nil
	}
	if err := sh.tooFew(found.Items); err != nil {
		return err
	}
	return table(sh.out, sh.requestRows(found.Items))
}

// tooFew says above a list which of its requests cannot get enough yeses.
func (sh *shell) tooFew(all []wire.Request) error {
	for _, r := range all {
		if r.Needs.Problem == "" {
			continue
		}
		if err := sh.say("⚠ %s: %s", short(r.ID), line(r.Needs.Problem)); err != nil {
			return err
		}
	}
	return nil
}

// plainState takes a state as people read it: awaiting approval.
func plainState(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "_") }

// requestRows shows requests: state, id, title, where, size, whose turn.
func (sh *shell) requestRows(all []wire.Request) [][]string {
	rows := make([][]string, len(all))
	for i, r := range all {
		turn := ago(r.CreatedAt, sh.now())
		if r.State == "pending" {
			turn = parts(overtaken(&r), needed("needs", r), turn, expiry(r.ExpiresAt, sh.now()))
		}
		turn = parts(turn, line(r.Read.Text))
		title := brief(r.Title, 40)
		if title == "" {
			title = brief(r.Text, 40)
		}
		if len(r.Warnings) > 0 {
			title += " ⚠"
		}
		from := r.Agent
		if r.IsHandover() {
			from = r.Question.From
		}
		rows[i] = []string{sh.state(badge.Arrived(r.State, r.Pushes()), 0), line(r.ID), title, line(from) + " → " + where(r), size(r), turn}
	}
	return rows
}

// overtaken says that a yes to a request lands nothing; "" where it may land.
func overtaken(r *wire.Request) string {
	if r == nil || r.Overtaken == nil {
		return ""
	}
	return "⚠ " + line(r.Overtaken.Brief)
}

// where is the repository and branch that a request lands on or is pushed to, or whom a hand-over goes to.
func where(r wire.Request) string {
	if r.IsHandover() {
		return "hand-over to " + line(r.Question.To)
	}
	if r.Pushes() && r.Branch != "" {
		return line(r.Repository) + "/" + line(r.Branch)
	}
	if r.Target == "" {
		return line(r.Repository) + " (no branch)" // asked by an older version, on a commit's id
	}
	return line(r.Repository) + "/" + line(r.Target)
}

// shortest is how much of an id's end names it, in characters.
const shortest = 6

// findDelegation understands the id of a task or delegation. Of a request's it says so.
func findDelegation(ctx context.Context, api *client.Client, id string) (client.Answer[wire.Delegation], error) {
	d, err := api.Delegation(ctx, id)
	if !isStatus(err, http.StatusNotFound) {
		return d, err
	}
	ending := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(id), "tsk_"), "dlg_")
	if len(ending) < shortest {
		return d, fail(exitNotFound, "%q is too short for an id: write at least its last %d characters. List the tasks: gatehouse list", line(id), shortest)
	}
	if r, err := api.Request(ctx, id); err == nil { // a token that may read no requests learns of none
		return d, fail(exitNotFound, "%q is a request, and neither a task nor a delegation. See it: gatehouse review %s   Its task: %s", line(id), short(r.Value.ID), short(r.Value.TaskID))
	}
	return d, err
}

// findRequest understands a request's id and, while exactly one of its requests is in
// the state, that of a task or delegation.
func findRequest(ctx context.Context, sh *shell, api *client.Client, id, state string) (none client.Answer[wire.Request], err error) {
	work := strings.HasPrefix(id, "tsk_") || strings.HasPrefix(id, "dlg_")
	if !work {
		r, err := api.Request(ctx, id)
		switch {
		case err == nil || !isStatus(err, http.StatusNotFound):
			return r, err
		case len(strings.TrimPrefix(id, "apr_")) < shortest:
			return r, fail(exitNotFound, "%q is too short for an id: write at least its last %d characters. List the requests: gatehouse approvals", line(id), shortest)
		case strings.HasPrefix(id, "apr_"):
			return r, fail(exitNotFound, "No request has the id %q. List them: gatehouse approvals", line(id))
		}
	}
	found, err := api.Delegation(ctx, id)
	d := found.Value
	switch {
	case !work && isStatus(err, http.StatusForbidden): // it was no request's, and tasks are not this token's business
		return none, fail(exitNotFound, "No request has the id %q. List them: gatehouse approvals", line(id))
	case isStatus(err, http.StatusNotFound):
		return none, fail(exitNotFound, "No request, task or delegation has the id %q. List them: gatehouse approvals", line(id))
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
	return none, sh.choose(d.TaskID, state, fitting, all.Items)
}

// choose lists the requests that could have been meant.
func (sh *shell) choose(taskID, state string, fitting, all []wire.Request) error {
	if len(all) == 0 {
		return usage("The task %s has no request.", line(taskID))
	}
	listed, what := fitting, "has more than one "+state+" request"
	if len(fitting) == 0 {
		listed, what = all, "has no "+state+" request; these are all"
	}
	if err := table(sh.errs, sh.requestRows(listed)); err != nil {
		return err
	}
	return usage("The task %s %s. Name one of them by its id.", line(taskID), what)
}

func isStatus(err error, status int) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == status
}
