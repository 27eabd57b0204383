package audit

import (
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	view "gatehouse/views/audit"
)

// auditTasks lists delegations.
func (p *Pages) auditTasks(f *handlers.Frame, line handlers.FilterLine, after string, page *view.AuditPage) error {
	if after != "" && !handlers.IsID(after, orchestrator.DelegationPrefix) {
		return handlers.UnknownPlace
	}
	found, err := p.Reader.List(f.Ctx, orchestrator.Filter{Line: line.Query, After: after, Limit: auditRows})
	if err != nil {
		return err
	}
	for _, d := range found.Items {
		page.Tasks = append(page.Tasks, f.DelegationRow(d, nil))
	}
	page.NextHref = handlers.NextHref(page.Path, found.Next)
	return nil
}

// auditEvents lists events. A search through many may end before it has found a page full;
// it goes on there.
func (p *Pages) auditEvents(f *handlers.Frame, line handlers.FilterLine, after string, page *view.AuditPage) error {
	found, err := p.History.HistoryEvents(f.Ctx, line.Query, after, auditRows)
	if err != nil {
		return err
	}
	for _, r := range found.Rows {
		e := event.Event{TaskID: r.TaskID, N: r.N, ID: r.ID, Type: event.Type(r.Type), DelegationID: r.DelegationID, Actor: r.Actor, At: r.At, Data: r.Data}
		page.Events = append(page.Events, view.AuditEvent{Found: r, Text: handlers.EventLine(e)})
	}
	page.NextHref = handlers.NextHref(page.Path, found.Next)
	if len(found.Rows) < auditRows && found.Next != "" {
		page.LookedTo = found.To
	}
	return nil
}
