package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// How much of a request one printed page has; the bundle has all.
const (
	evidenceEvents = 500
	evidenceFiles  = 400 // of each revision
)

// Evidence answers GET /approvals/{id}/evidence: one request, made to be printed.
func (p *Pages) Evidence(c echo.Context) error {
	ctx := c.Request().Context()
	id, err := p.Ids.Request(ctx, c.Param("id"))
	if err != nil {
		return err
	}
	r, err := p.Requests.Request(ctx, id)
	if err != nil {
		return err
	}
	f, err := p.begin(c, views.SectionAudit, "Evidence "+r.ID)
	if err != nil {
		return err
	}
	f.chrome.StreamURL = "" // what is printed does not move
	f.chrome.State = string(r.State)
	return renderEvidence(c, p.Reader, p.Requests, r, f.chrome)
}

// RenderEvidence writes the same page for the API's address.
func RenderEvidence(c echo.Context, reader Reader, requests Requests, r approval.Request, now time.Time) error {
	who, _ := Who(c)
	return renderEvidence(c, reader, requests, r, views.Chrome{Title: "Evidence " + r.ID, Section: views.SectionAudit, State: string(r.State),
		Path: pathOf(c), Person: personOf(who), Now: now})
}

func renderEvidence(c echo.Context, reader Reader, requests Requests, r approval.Request, chrome views.Chrome) error {
	ctx := c.Request().Context()
	page := views.EvidencePage{Chrome: chrome, Request: r}
	var err error
	if page.Revisions, err = requests.Revisions(ctx, r.ID); err != nil {
		return err
	}
	for _, v := range page.Revisions {
		shown := v.Files[:min(len(v.Files), evidenceFiles)]
		page.Files = append(page.Files, views.EvidenceFiles{Shown: shown, More: len(v.Files) - len(shown)})
	}
	task, err := reader.Task(ctx, r.TaskID)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	page.Task, page.TaskAt = task.Text, task.CreatedAt
	if err := evidenceTrail(ctx, reader, r, &page); err != nil {
		return err
	}
	return render(c, http.StatusOK, views.Evidence(page))
}

// evidenceTrail walks the task's events and keeps those about the request.
func evidenceTrail(ctx context.Context, reader Reader, r approval.Request, page *views.EvidencePage) error {
	for after := int64(0); ; {
		batch, err := reader.Events(ctx, r.TaskID, after, 500)
		if err != nil {
			return err
		}
		for _, e := range batch {
			after, page.EventsAll, page.Head = e.N, page.EventsAll+1, e.Hash
			if about(e, r) && len(page.Events) < evidenceEvents {
				page.Events = append(page.Events, e)
			}
		}
		if len(batch) < 500 {
			return nil
		}
	}
}

// about reports whether e belongs to the story of the request: its delegation's and
// the task's own acts, but not what a model said on the way.
func about(e event.Event, r approval.Request) bool {
	kind, _, _ := strings.Cut(string(e.Type), ".")
	switch kind {
	case "task":
		return true
	case "approval", "patch", "delegation":
		return e.DelegationID == r.DelegationID && e.Type != event.Progress
	}
	return false
}
