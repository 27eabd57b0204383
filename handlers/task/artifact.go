package task

import (
	"net/http"
	"strconv"

	"gatehouse/handlers"
	"gatehouse/orchestrator"

	"github.com/labstack/echo/v4"
)

// Artifact answers GET /delegations/{id}/artifacts/{n}: the n-th thing that an agent
// handed over beside its text, from 1.
func (p *Pages) Artifact(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	d, err := p.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.Param("n"))
	if err != nil || d.Result == nil || n < 1 || n > len(d.Result.Artifacts) {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "%s has no artifact %.20q. Its page lists what it has.", d.To, c.Param("n"))
	}
	a := d.Result.Artifacts[n-1]
	content, err := p.Engine.Artifact(ctx, d, a)
	if err != nil {
		return err
	}
	handlers.AsDownload(c, a.Name, n)
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, content)
}

// Attachment answers GET /delegations/{id}/attachments/{n}: the n-th file that came with the
// task, from 1.
func (p *Pages) Attachment(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	d, err := p.Ids.Delegation(ctx, who, c.Param("id"))
	if err != nil {
		return err
	}
	t, err := p.Reader.Task(ctx, d.TaskID)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(c.Param("n"))
	if err != nil || n < 1 || n > len(t.Attachments) {
		return orchestrator.Errorf(orchestrator.CodeNotFound, "The task has no attachment %.20q. Its page lists what it has.", c.Param("n"))
	}
	content, err := p.Engine.Attachment(ctx, t, t.Attachments[n-1])
	if err != nil {
		return err
	}
	handlers.AsDownload(c, t.Attachments[n-1].Name, n)
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, content)
}
