package api

import (
	"net/http"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"

	"github.com/labstack/echo/v4"
)

// decisionInput is the body of POST /approvals/{id}/decision.
type decisionInput struct {
	Verdict  approval.Verdict    `json:"verdict"`
	Digest   string              `json:"digest"`
	Comment  string              `json:"comment"`
	Files    []string            `json:"files"`
	Comments []agent.LineComment `json:"comments"`
	// TakeDrafts adds the caller's drafts, which they wrote on the page.
	TakeDrafts bool             `json:"take_drafts"`
	Edits      []patch.FileEdit `json:"edits"`
	Patch      string           `json:"patch"`
}

// Decide answers POST /approvals/{id}/decision with the request as it is then.
func (a *API) Decide(c echo.Context) error {
	var in decisionInput
	if err := read(c, &in); err != nil {
		return err
	}
	id, err := a.requestID(c)
	if err != nil {
		return err
	}
	channel := handlers.Channel(c)
	r, err := a.Gateway.Decide(c.Request().Context(), approval.Ballot{
		RequestID: id, Principal: caller(c).Principal, Channel: channel, Verdict: in.Verdict, Digest: in.Digest,
		Comment: in.Comment, Comments: in.Comments, TakeDrafts: in.TakeDrafts, Files: in.Files, Edits: in.Edits, Patch: in.Patch, Seen: approval.Seen{Surface: channel},
	})
	if err != nil {
		return err
	}
	return a.answer(c, r)
}

// Revert answers POST /approvals/{id}/revert: a new task whose patch is the reverse
// of the landed one, with a request of its own.
func (a *API) Revert(c echo.Context) error {
	var none struct{}
	if err := readOptional(c, &none); err != nil {
		return err
	}
	id, err := a.requestID(c)
	if err != nil {
		return err
	}
	t, err := a.Gateway.Revert(c.Request().Context(), id, caller(c).Principal)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, submitted{ID: t.ID, DelegationID: t.RootID, Agent: t.Agent, State: "checking"})
}
