package api

import (
	"net/http"

	"gatehouse/approval"
	"gatehouse/handlers/evidence"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Evidence answers GET /approvals/{id}/evidence with one printable page;
// ?format=bundle gives the task's events as sealed JSON lines, which verify offline,
// and ?format=json the request with its events.
func (a *API) Evidence(c echo.Context) error {
	if err := only(c.QueryParams(), "format"); err != nil {
		return err
	}
	r, err := a.request(c)
	if err != nil {
		return err
	}
	switch format := c.QueryParam("format"); format {
	case "":
		if r, err = a.Gateway.ReadersOf(c.Request().Context(), caller(c).Principal, r); err != nil {
			return err
		}
		return evidence.Evidences{Reader: a.Reader, Requests: a.Requests, Proof: a.Proof, Now: a.Now}.Render(c, r)
	case "bundle":
		return a.evidenceBundle(c, r)
	case "json":
		return a.evidenceJSON(c, r)
	default:
		return bad("There is no format %.40q. Use bundle or json, or none for the page.", format)
	}
}

func (a *API) evidenceBundle(c echo.Context, r approval.Request) error {
	if err := a.canSeal(); err != nil {
		return err
	}
	events, err := a.eventsOf(c, r.TaskID)
	if err != nil {
		return err
	}
	start(c, "application/jsonl; charset=utf-8", "gatehouse-"+r.ID+".jsonl")
	b := proof.NewWriter(c.Response(), proof.WholeTasks)
	for _, e := range events {
		if err := b.Add(e); err != nil {
			return err
		}
	}
	return a.sealed(c, b)
}

// trail is the trail of one request as JSON.
type trail struct {
	Request wire.Request  `json:"request"`
	Events  []event.Event `json:"events"`
}

func (a *API) evidenceJSON(c echo.Context, r approval.Request) error {
	e, err := a.Gateway.Electorate(c.Request().Context())
	if err != nil {
		return err
	}
	events, err := a.eventsOf(c, r.TaskID)
	if err != nil {
		return err
	}
	s, err := a.whole(c, e, r)
	return send(c, http.StatusOK, trail{Request: s, Events: events}, err)
}

// eventsOf reads all events of a task.
func (a *API) eventsOf(c echo.Context, taskID string) ([]event.Event, error) {
	events := []event.Event{}
	for after := int64(0); ; {
		batch, err := a.Reader.Events(c.Request().Context(), taskID, after, 500)
		if err != nil {
			return nil, err
		}
		for _, e := range batch {
			e.At, after = e.At.UTC(), e.N
			events = append(events, e)
		}
		if len(batch) < 500 {
			return events, nil
		}
	}
}
