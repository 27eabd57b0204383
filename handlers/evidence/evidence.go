package evidence

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
	view "gatehouse/views/evidence"

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
	f, err := p.Begin(c, views.SectionAudit, "Evidence "+r.ID)
	if err != nil {
		return err
	}
	f.Chrome.StreamURL = "" // what is printed does not move
	f.Chrome.State = string(r.State)
	if r, err = p.Gateway.ReadersOf(f.Ctx, f.Who.Principal, r); err != nil {
		return err
	}
	return p.evidence().render(c, r, f.Chrome)
}

// Evidences has what the page of one request is made from.
type Evidences struct {
	Reader   handlers.Reader
	Requests handlers.Requests
	Proof    handlers.Proof
	Now      func() time.Time
}

func (p *Pages) evidence() Evidences {
	return Evidences{Reader: p.Reader, Requests: p.Requests, Proof: p.Proof, Now: p.Now}
}

// Render writes the page for the API's address.
func (e Evidences) Render(c echo.Context, r approval.Request) error {
	who, _ := handlers.Who(c)
	return e.render(c, r, views.Chrome{Title: "Evidence " + r.ID, Section: views.SectionAudit, State: string(r.State),
		Path: handlers.PathOf(c), Person: handlers.PersonOf(who), Now: e.Now()})
}

func (e Evidences) render(c echo.Context, r approval.Request, chrome views.Chrome) error {
	ctx := c.Request().Context()
	page := view.EvidencePage{Chrome: chrome, Request: r}
	var err error
	if page.Revisions, err = e.Requests.Revisions(ctx, r.ID); err != nil {
		return err
	}
	for _, v := range page.Revisions {
		shown := v.Files[:min(len(v.Files), evidenceFiles)]
		page.Files = append(page.Files, view.EvidenceFiles{Shown: shown, More: len(v.Files) - len(shown)})
	}
	if page.Answers, err = e.Requests.Answers(ctx, r.ID); err != nil {
		return err
	}
	task, err := e.Reader.Task(ctx, r.TaskID)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return err
	}
	page.Task, page.TaskAt, page.Attached = task.Text, task.CreatedAt, views.AttachedFiles(task)
	if err := evidenceTrail(ctx, e.Reader, r, &page); err != nil {
		return err
	}
	if page.Seal, err = e.seal(ctx, r.TaskID); err != nil {
		return err
	}
	return handlers.Render(c, http.StatusOK, view.Evidence(page))
}

// sealHeads is how many heads of one checkpoint are read to find a task's.
const sealHeads = 100_000

// seal is the newest checkpoint that covers the task; nil while none does.
func (e Evidences) seal(ctx context.Context, taskID string) (*view.EvidenceSeal, error) {
	proofs, err := e.Proof.Proofs(ctx, []string{taskID}, sealHeads)
	if err != nil || len(proofs) == 0 {
		return nil, err
	}
	s := &view.EvidenceSeal{At: proofs[0].At, Pos: proofs[0].Pos, Key: proofs[0].KeyID}
	for _, h := range proofs[0].Heads {
		if h.TaskID == taskID {
			s.N = h.N
		}
	}
	return s, nil
}

// evidenceTrail walks the task's events and keeps those about the request.
func evidenceTrail(ctx context.Context, reader handlers.Reader, r approval.Request, page *view.EvidencePage) error {
	for after := int64(0); ; {
		batch, err := reader.Events(ctx, r.TaskID, after, 500)
		if err != nil {
			return err
		}
		for _, e := range batch {
			after, page.EventsAll, page.Head = e.N, page.EventsAll+1, e.Hash
			if e.Dropped != nil {
				page.Dropped++
			}
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
	if id := e.ApprovalID(); id != "" && id != r.ID && (!r.IsPatch() || handlers.AsksPeople(e)) {
		return false // of another call or question of the same work
	}
	kind, _, _ := strings.Cut(string(e.Type), ".")
	switch kind {
	case "task":
		return true
	case "approval", "patch", "delegation":
		return e.DelegationID == r.DelegationID && e.Type != event.Progress
	}
	return false
}
