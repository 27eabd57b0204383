package api

import (
	"bytes"
	_ "embed" // for the page below
	"html/template"
	"net/http"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/event"

	"github.com/labstack/echo/v4"
)

//go:embed evidence.html
var evidenceHTML string

// evidenceTemplate is made to be printed: plain, complete, no script.
var evidenceTemplate = template.Must(template.New("evidence").Funcs(template.FuncMap{
	"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
}).Parse(evidenceHTML))

// evidencePage is what the page shows.
type evidencePage struct {
	R         approval.Request
	Revisions []approval.Revision
	Events    []event.Event
	Styles    []string
	At        time.Time
}

func (a *API) evidencePage(c echo.Context, r approval.Request) error {
	revisions, err := a.Requests.Revisions(c.Request().Context(), r.ID)
	if err != nil {
		return err
	}
	events, err := a.eventsOf(c, r.TaskID)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = evidenceTemplate.Execute(&b, evidencePage{R: r, Revisions: revisions, Events: events, Styles: a.Styles, At: a.Now()})
	if err != nil {
		return err
	}
	return c.HTMLBlob(http.StatusOK, b.Bytes())
}
