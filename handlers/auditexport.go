package handlers

import (
	"net/http"
	"slices"

	"gatehouse/orchestrator"
	"gatehouse/views"
	auditview "gatehouse/views/audit"

	"github.com/labstack/echo/v4"
)

// AuditExport answers GET /audit/export: it says what a file will have. The file itself is
// made under /api/v1/audit/export.
func (p *Pages) AuditExport(c echo.Context) error {
	q := c.QueryParams()
	asked := auditAsked{list: listOf(q), line: q.Get("filter")}
	if !slices.Contains(auditLists, asked.list) {
		return Refuse(orchestrator.CodeBadRequest, "There is no list of that name. Choose requests, delegations or events.")
	}
	f, err := p.begin(c, views.SectionAudit, "Export")
	if err != nil {
		return err
	}
	f.chrome.StreamURL = ""
	line, status := p.auditLine(c, asked), http.StatusOK
	page := auditview.AuditExportPage{Chrome: f.chrome, List: asked.list, Line: asked.line, Problem: line.problem,
		Zone: p.readerZone(c).String(), Back: auditBack(asked.list, asked.line, "")}
	if line.problem != nil {
		status = http.StatusBadRequest
	} else if page.Count.N, err = p.History.HistoryTotal(f.ctx, line.query); err != nil {
		return err
	}
	return render(c, status, auditview.AuditExport(page))
}
