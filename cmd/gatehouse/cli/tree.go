package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// TreeCmd shows who handed what to whom.
type TreeCmd struct {
	ID string `arg:"" help:"An id, or its last 6 characters or more."`
}

// Run prints the tree below the id, with the hops that were refused.
func (c *TreeCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	found, err := findDelegation(ctx, api, c.ID)
	if err != nil {
		return err
	}
	d := found.Value
	all, err := api.Tree(ctx, d.TaskID)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(all.Raw)
	}
	p := planter{sh: sh, children: map[string][]wire.Delegation{}, requests: map[string]wire.Request{}}
	for _, other := range all.Items {
		p.children[string(other.ParentID)] = append(p.children[string(other.ParentID)], other)
	}
	if p.refused, err = refusals(ctx, api, d.TaskID); err != nil {
		return err
	}
	if err := p.readRequests(ctx, api, d.TaskID); err != nil {
		return err
	}
	p.plant(d, "", "", "")
	return console.Table(sh.Out, p.rows)
}

// refusals reads the refused hops of a task, by the delegation that tried.
func refusals(ctx context.Context, api *client.Client, taskID string) (map[string][]event.DelegationRefusedData, error) {
	events, err := api.Events(ctx, taskID, 0)
	if err != nil {
		return nil, err
	}
	by := map[string][]event.DelegationRefusedData{}
	for _, e := range events.Items {
		if r, ok := e.Payload().(event.DelegationRefusedData); ok {
			by[e.DelegationID] = append(by[e.DelegationID], r)
		}
	}
	return by, nil
}

// planter draws a tree row by row.
type planter struct {
	sh       *console.Shell
	children map[string][]wire.Delegation
	refused  map[string][]event.DelegationRefusedData
	requests map[string]wire.Request // by id
	rows     [][]string
}

// readRequests reads the requests of a task; a token that may not goes without.
func (p *planter) readRequests(ctx context.Context, api *client.Client, taskID string) error {
	found, err := api.Requests(ctx, client.RequestFilter{TaskID: taskID})
	var refused *client.Error
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	for _, r := range found.Items {
		p.requests[r.ID] = r
	}
	return nil
}

// plant adds d and everything below it; branch is the sign before d, below what
// stands before its children.
func (p *planter) plant(d wire.Delegation, lead, branch, below string) {
	p.rows = append(p.rows, []string{
		lead + branch + p.sh.Icon(d.State) + " " + console.Line(d.To), p.spent(d), p.note(d),
	})
	children, refused := p.children[d.ID], p.refused[d.ID]
	for i, child := range children {
		if i < len(children)-1 || len(refused) > 0 {
			p.plant(child, lead+below, "├─ ", "│  ")
			continue
		}
		p.plant(child, lead+below, "└─ ", "   ")
	}
	for i, r := range refused {
		sign := "├─ "
		if i == len(refused)-1 {
			sign = "└─ "
		}
		why := console.Line(r.Code) + ": " + console.Line(r.Message)
		if r.Chain != "" && r.Code == "cycle" {
			why = "cycle: " + console.Line(r.Chain) + " → " + console.Line(r.To)
		}
		p.rows = append(p.rows, []string{lead + below + sign + p.sh.Icon("refused") + " " + console.Line(r.To), "", why})
	}
}

// spent is how long it took, or takes until now.
func (p *planter) spent(d wire.Delegation) string {
	end := p.sh.Now()
	if d.EndedAt != nil {
		end = *d.EndedAt
	}
	if d.StartedAt == nil {
		return ""
	}
	return console.Length(end.Sub(*d.StartedAt))
}

// note says what it has come to, and what was thrown away of it.
func (p *planter) note(d wire.Delegation) string {
	if d.Discarded == "" {
		return p.outcome(d)
	}
	return p.outcome(d) + "; " + console.Line(d.Discarded)
}

// outcome says what it has come to.
func (p *planter) outcome(d wire.Delegation) string {
	word := strings.ReplaceAll(console.Line(d.State), "_", " ")
	change := ""
	if r, ok := p.requests[string(d.ApprovalID)]; ok && d.ApprovalID != "" {
		change = size(r)
	}
	switch {
	case d.Error != nil && d.Error.Code == d.State: // "cancelled: cancelled: …" says one word twice
		return reason(d)
	case d.Error != nil:
		return word + ": " + reason(d)
	case change != "" && d.Result != nil && d.Result.Commit != "":
		return change + ", " + delivered(*d.Result)
	case d.Result != nil && d.Result.Commit != "": // this token may read no requests
		return delivered(*d.Result)
	case d.State == "landing" && d.Problem != "":
		return word + ": " + console.Brief(d.Problem, 160)
	case change != "":
		return change + ", " + word
	case d.State == "completed" && d.Result != nil && console.Brief(d.Result.Text, 60) != "":
		return `"` + console.Brief(d.Result.Text, 60) + `"`
	case len(p.children[d.ID]) > 0:
		var names []string
		times := map[string]int{}
		for _, child := range p.children[d.ID] {
			if times[child.To]++; times[child.To] == 1 {
				names = append(names, child.To)
			}
		}
		for i, name := range names {
			if names[i] = console.Line(name); times[name] > 1 {
				names[i] += fmt.Sprintf(" (%d times)", times[name])
			}
		}
		return word + ", handed to " + console.Joined(names, "and")
	}
	return word
}

// size is how much a request changes: +48 −12, 3 files.
func size(r wire.Request) string {
	if !r.IsPatch() {
		return ""
	}
	return fmt.Sprintf("+%d −%d, %s", r.Added, r.Removed, console.Counted(len(r.Files), "file"))
}
