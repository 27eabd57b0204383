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
	Revision int                 `json:"revision"` // that was read; without it the digest must be that of one revision only
	Ticked   []string            `json:"ticked"`   // with approve: the codes of what was looked at
	Comment  string              `json:"comment"`
	Files    []string            `json:"files"`
	Comments []agent.LineComment `json:"comments"`
	// TakeDrafts adds the caller's drafts, which they wrote on the page. Only a false that
	// is said leaves them there.
	TakeDrafts *bool            `json:"take_drafts"`
	StartOver  bool             `json:"start_over"` // with request_changes: from the base, with an empty conversation
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
		RequestID: id, Principal: caller(c).Principal, Channel: channel, Verdict: in.Verdict, Digest: in.Digest, Revision: in.Revision,
		Comment: in.Comment, Comments: in.Comments, LeaveDrafts: in.TakeDrafts != nil && !*in.TakeDrafts, StartOver: in.StartOver, Files: in.Files, Edits: in.Edits, Patch: in.Patch, Seen: approval.Seen{Surface: string(channel), WarningsTicked: in.Ticked},
	})
	if err != nil {
		return err
	}
	return a.answer(c, r)
}

// answerInput is the body of POST /approvals/{id}/comments/{comment}.
type answerInput struct {
	Act  approval.Act `json:"act"` // reply, resolve or reopen
	Text string       `json:"text"`
	// Seen is how many answers of the comment the caller has read: sent again, the same
	// reply is then the one that is there. Absent, only the newest answer is compared.
	Seen *int `json:"seen"`
}

// Answer answers POST /approvals/{id}/comments/{comment} with the request as it is then:
// a reply to a line comment that was sent, or that it is resolved or open again.
func (a *API) Answer(c echo.Context) error {
	var in answerInput
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
	if err := a.Gateway.Answer(ctx, approval.Said{RequestID: id, Thread: c.Param("comment"), Principal: caller(c).Principal, Channel: handlers.Channel(c), Act: in.Act, Text: in.Text, Seen: seen}); err != nil {
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
	return c.JSON(http.StatusAccepted, submitted{ID: t.ID, DelegationID: t.RootID, Agent: t.Agent, State: "checking"})
}
