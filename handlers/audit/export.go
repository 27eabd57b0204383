package audit

import (
	"net/http"
	"slices"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/views"
	view "gatehouse/views/audit"

	"github.com/labstack/echo/v4"
)

// AuditExport answers GET /audit/export: it says what a file will have. The file itself is
// made under /api/v1/audit/export.
func (p *Pages) AuditExport(c echo.Context) error {
	q := c.QueryParams()
	asked := auditAsked{list: listOf(q), line: q.Get("filter")}
	if !slices.Contains(auditLists, asked.list) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "There is no list of that name. Choose requests, delegations or events.")
	}
	f, err := p.Begin(c, views.SectionAudit, "Export")
	if err != nil {
		return err
	}
	f.Chrome.StreamURL = ""
	line, status := p.auditLine(c, asked), http.StatusOK
	page := view.AuditExportPage{Chrome: f.Chrome, List: asked.list, Line: asked.line, Problem: line.Problem,
		Zone: p.ReaderZone(c).String(), Back: auditBack(asked.list, asked.line, "")}
	if line.Problem != nil {
		status = http.StatusBadRequest
	} else if page.Count.N, err = p.History.HistoryTotal(f.Ctx, line.Query); err != nil {
		return err
	}
	return handlers.Render(c, status, view.AuditExport(page))
}
