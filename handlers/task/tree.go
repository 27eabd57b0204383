package task

import (
	"fmt"
	"slices"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
	view "gatehouse/views/task"
)

// refusedState is the state of rows that are no delegation but a refused hand-over.
const refusedState = agent.Refused

// treeRows makes rows of delegations, depth first, with the refused hand-overs between
// them in the order of time. full has what the outline leaves out.
func (p *Pages) treeRows(t *trace, shown []int, full map[string]orchestrator.Delegation, spans map[string][]view.Span, refused *refusals) []view.TreeRow {
	var rows []view.TreeRow
	var way []orchestrator.Delegation // from the root to the last row
	settle := func(id string, before time.Time) {
		left := refused.rows[id]
		for len(left) > 0 && (before.IsZero() || left[0].At.Before(before)) {
			rows = append(rows, under(left[0], t.tree[t.at[id]]))
			left = left[1:]
		}
		refused.rows[id] = left
	}
	leave := func(depth int) {
		for len(way) > 0 && way[len(way)-1].Depth >= depth {
			settle(way[len(way)-1].ID, time.Time{})
			way = way[:len(way)-1]
		}
	}
	for _, i := range shown {
		d := t.tree[i]
		leave(d.Depth)
		if d.ParentID != "" {
			settle(d.ParentID, d.CreatedAt)
		}
		if whole, ok := full[d.ID]; ok {
			d = whole
		}
		bars := spans[d.ID]
		if len(bars) == 0 {
			bars = columnSpans(d)
		}
		rows = append(rows, p.treeRow(d, bars))
		way = append(way, d)
	}
	leave(0)
	return rows
}

// under places a refusal below the delegation that asked.
func under(r view.TreeRow, d orchestrator.Delegation) view.TreeRow {
	r.Depth = d.Depth + 1
	return r
}

func (p *Pages) treeRow(d orchestrator.Delegation, spans []view.Span) view.TreeRow {
	spec, _ := p.Engine.Config().Agents.Get(d.To)
	row := view.TreeRow{ID: d.ID, Name: d.To, From: d.From, Kind: string(spec.Kind), Depth: d.Depth, State: string(d.State),
		At: d.CreatedAt, EndedAt: handlers.At(d.EndedAt), Spans: spans}
	if d.Error != nil {
		row.Code, row.Message = d.Error.Code, d.Error.Message
	}
	switch {
	case d.Work.Problem != "":
		row.Note = "approved, and not landed yet"
	case d.Result != nil && d.Result.Commit != "":
		row.Note = fmt.Sprintf("landed %.7s", d.Result.Commit)
		if d.Result.Pushed != "" {
			row.Note = fmt.Sprintf("pushed %.7s to %s", d.Result.Commit, views.BranchName(d.Result.Pushed))
		}
	case d.Result != nil:
		row.Note = orchestrator.Title(d.Result.Text)
	}
	return row
}

// spansOf reads from the events what each delegation spent its time on.
func spansOf(story []event.Event) map[string][]view.Span {
	spans := map[string][]view.Span{}
	enter := func(id string, kind view.SpanKind, t time.Time) {
		list := leave(spans[id], t)
		spans[id] = append(list, view.Span{Kind: kind, From: t})
	}
	for _, e := range story {
		switch e.Type {
		case event.Queued, event.Resumed, event.ChangesRequested:
			enter(e.DelegationID, view.SpanQueued, e.At)
		case event.Acknowledged:
			enter(e.DelegationID, view.SpanWorking, e.At)
		case event.Waiting:
			enter(e.DelegationID, view.SpanChild, e.At)
		case event.PatchValidated:
			enter(e.DelegationID, view.SpanLanding, e.At)
		case event.Requested:
			enter(e.DelegationID, view.SpanPerson, e.At)
		case event.Decided:
			if n := len(spans[e.DelegationID]); n > 0 && spans[e.DelegationID][n-1].Kind == view.SpanPerson && event.Read[event.DecidedData](e).State == "approved" {
				enter(e.DelegationID, view.SpanLanding, e.At)
			}
		case event.Completed, event.Failed, event.Cancelled:
			spans[e.DelegationID] = leave(spans[e.DelegationID], e.At)
		}
	}
	return spans
}

// leave ends the last span at t; one without length is dropped.
func leave(list []view.Span, t time.Time) []view.Span {
	n := len(list)
	if n == 0 || !list[n-1].To.IsZero() {
		return list
	}
	if !list[n-1].From.Before(t) {
		return slices.Delete(list, n-1, n)
	}
	list[n-1].To = t
	return list
}
