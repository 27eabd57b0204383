package handlers

import (
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	auditview "gatehouse/views/audit"
)

// auditTasks lists delegations.
func (p *Pages) auditTasks(f *frame, line filterLine, after string, page *auditview.AuditPage) error {
	if after != "" && !IsID(after, orchestrator.DelegationPrefix) {
		return unknownPlace
	}
	found, err := p.Reader.List(f.ctx, orchestrator.Filter{Line: line.query, After: after, Limit: auditRows})
	if err != nil {
		return err
	}
	for _, d := range found.Items {
		page.Tasks = append(page.Tasks, f.delegationRow(d, nil))
	}
	page.NextHref = nextHref(page.Path, found.Next)
	return nil
}

// auditEvents lists events. A search through many may end before it has found a page full;
// it goes on there.
func (p *Pages) auditEvents(f *frame, line filterLine, after string, page *auditview.AuditPage) error {
	found, err := p.History.HistoryEvents(f.ctx, line.query, after, auditRows)
	if err != nil {
		return err
	}
	for _, r := range found.Rows {
		e := event.Event{TaskID: r.TaskID, N: r.N, ID: r.ID, Type: event.Type(r.Type), DelegationID: r.DelegationID, Actor: r.Actor, At: r.At, Data: r.Data}
		page.Events = append(page.Events, auditview.AuditEvent{ID: r.ID, TaskID: r.TaskID, N: r.N, Type: r.Type, Actor: r.Actor, At: r.At, Text: eventLine(e), Hash: r.Hash})
	}
	page.NextHref = nextHref(page.Path, found.Next)
	if len(found.Rows) < auditRows && found.Next != "" {
		page.LookedTo = found.To
	}
	return nil
}

// unknownPlace refuses a cursor that no page of ours gave.
var unknownPlace = Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the first page.")
