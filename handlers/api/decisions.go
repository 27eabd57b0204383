package api

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// notSaid is the revision of a verdict that names none: one that names 0 is refused.
const notSaid = math.MinInt

// Decide answers POST /approvals/{id}/decision with the request as it is then.
func (a *API) Decide(c echo.Context) error {
	in := wire.Verdict{Revision: notSaid}
	if err := read(c, &in); err != nil {
		return err
	}
	switch {
	case in.Revision == notSaid:
		in.Revision = 0
	case in.Revision < 1:
		return bad("There is no revision %d. Send the number of the revision that was read, from 1.", in.Revision)
	}
	if in.Verdict != string(approval.Respond) {
		if err := caller(c).Require([]handlers.Right{handlers.ApprovalsDecide}); err != nil {
			handlers.TurnedAway(c, a.Ids, a.Gateway, err)
			return err
		}
	}
	if in.Scope != "" && in.Scope != "once" && in.Scope != "task" {
		return bad("There is no scope %q. Use once, or task for the rest of the task.", in.Scope)
	}
	id, err := a.requestID(c)
	if err != nil {
		return err
	}
	channel := handlers.Channel(c)
	edits := each.Of(in.Edits, func(e wire.Edit) patch.FileEdit { return patch.FileEdit(e) })
	r, err := a.Gateway.Decide(c.Request().Context(), approval.Ballot{
		RequestID: id, Principal: caller(c).Principal, Channel: channel, Verdict: approval.Verdict(in.Verdict), Digest: in.Digest, Revision: in.Revision,
		Comment: in.Comment, Comments: in.Comments, LeaveDrafts: in.TakeDrafts != nil && !*in.TakeDrafts, StartOver: in.StartOver, Files: in.Files, Edits: edits, Patch: in.Patch, ForTask: in.Scope == "task", Input: in.Input, Choice: in.Choice, Seen: approval.Seen{Surface: string(channel), WarningsTicked: in.Ticked},
	})
	if err != nil {
		return err
	}
	return a.answer(c, r)
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
	return send(c, http.StatusAccepted, wire.Submitted{ID: t.ID, DelegationID: t.RootID, Agent: t.Agent,
		State: "checking"}, err)
}

// comments are the line comments of all decisions on a request.
func (a *API) comments(c echo.Context, r approval.Request) ([]wire.Comment, error) {
	threads, err := a.Gateway.Threads(c.Request().Context(), r)
	if err != nil {
		return nil, err
	}
	var all []wire.Comment
	for _, t := range threads {
		one := wire.Comment{ID: t.ID, User: t.Decision.User, Revision: t.Revision, Path: t.Comment.Path, Line: t.Comment.Line, Side: t.Comment.Side,
			Code: t.Comment.Code, Text: mask.Text(t.Comment.Text), Resolved: t.Resolved(), Answers: []wire.Reply{}, At: t.Decision.At.UTC()}
		for _, x := range t.Answers {
			one.Answers = append(one.Answers, wire.Reply{Act: string(x.Act), User: x.User, Text: mask.Text(x.Text), At: x.At.UTC()})
		}
		all = append(all, one)
	}
	return all, nil
}

// maskedComments are line comments whose texts have no secrets.
func maskedComments(all []agent.LineComment) []agent.LineComment {
	all = slices.Clone(all)
	for i := range all {
		all[i].Text = mask.Text(all[i].Text)
	}
	return all
}

// maskedQuestion is a question none of whose texts has a secret, whatever fields it has.
func maskedQuestion(q *orchestrator.HandoverQuestion) *orchestrator.HandoverQuestion {
	if q == nil {
		return nil
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return q // it came from JSON
	}
	shown := &orchestrator.HandoverQuestion{}
	if err := json.Unmarshal(mask.JSON(raw), shown); err != nil {
		return q
	}
	return shown
}

// questionOf is what is published of a question.
func questionOf(q *orchestrator.HandoverQuestion) *wire.Question {
	if q == nil {
		return nil
	}
	q = maskedQuestion(q)
	shape := &wire.Question{
		From: q.From, To: q.To, Text: q.Text, Context: q.Context, Repository: q.Repository, Branch: q.Branch, Tag: q.Tag, Base: q.BaseCommit,
		BaseTree: q.BaseTree, Tree: q.Tree, FilesHash: q.FilesHash, Steering: q.Steering, Trusted: q.Trusted, Attachments: q.Attachments,
	}
	if q.Handover != nil {
		shape.Handover, _ = json.Marshal(q.Handover) // it came from JSON
	}
	return shape
}
