package api

import (
	"net/http"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator/patch"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Decide answers POST /approvals/{id}/decision with the request as it is then.
func (a *API) Decide(c echo.Context) error {
	var in wire.Verdict
	if err := read(c, &in); err != nil {
		return err
	}
	id, err := a.requestID(c)
	if err != nil {
		return err
	}
	channel := handlers.Channel(c)
	r, err := a.Gateway.Decide(c.Request().Context(), approval.Ballot{
		RequestID: id, Principal: caller(c).Principal, Channel: channel, Verdict: approval.Verdict(in.Verdict), Digest: in.Digest, Revision: in.Revision,
		Comment: in.Comment, Comments: in.Comments, LeaveDrafts: in.TakeDrafts != nil && !*in.TakeDrafts, StartOver: in.StartOver, Files: in.Files, Edits: editsOf(in.Edits), Patch: in.Patch, Seen: approval.Seen{Surface: string(channel), WarningsTicked: in.Ticked},
	})
	if err != nil {
		return err
	}
	return a.answer(c, r)
}

func editsOf(all []wire.Edit) []patch.FileEdit {
	var edits []patch.FileEdit
	for _, e := range all {
		edits = append(edits, patch.FileEdit(e))
	}
	return edits
}

// Answer answers POST /approvals/{id}/comments/{comment} with the request as it is then:
// a reply to a line comment that was sent, or that it is resolved or open again.
func (a *API) Answer(c echo.Context) error {
	var in wire.Said
	if err := read(c, &in); err != nil {
		return err
	}
	id, err := a.requestID(c)
	if err != nil {
		return err
	}
	ctx, seen := c.Request().Context(), -1
	if in.Seen != nil {
		seen = *in.Seen
	}
	if err := a.Gateway.Answer(ctx, approval.Said{RequestID: id, Thread: c.Param("comment"), Principal: caller(c).Principal, Channel: handlers.Channel(c), Act: approval.Act(in.Act), Text: in.Text, Seen: seen}); err != nil {
		return err
	}
	r, err := a.Requests.Request(ctx, id)
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
	return c.JSON(http.StatusAccepted, wire.Submitted{ID: t.ID, DelegationID: t.RootID, Agent: t.Agent, State: "checking"})
}
