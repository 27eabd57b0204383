package api

import (
	"encoding/json"
	"slices"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

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
func maskedQuestion(q *orchestrator.Question) *orchestrator.Question {
	if q == nil {
		return nil
	}
	raw, err := json.Marshal(q)
	if err != nil {
		return q // it came from JSON
	}
	shown := &orchestrator.Question{}
	if err := json.Unmarshal(mask.JSON(raw), shown); err != nil {
		return q
	}
	return shown
}

// questionOf is what is published of a question.
func questionOf(q *orchestrator.Question) *wire.Question {
	if q == nil {
		return nil
	}
	q = maskedQuestion(q)
	shape := &wire.Question{
		From: q.From, To: q.To, Text: q.Text, Context: q.Context, Repository: q.Repository, Branch: q.Branch, Tag: q.Tag, Base: q.BaseCommit,
		BaseTree: q.BaseTree, Tree: q.Tree, FilesHash: q.FilesHash, Steering: q.Steering, Trusted: q.Trusted,
	}
	if q.Handover != nil {
		shape.Handover, _ = json.Marshal(q.Handover) // it came from JSON
	}
	return shape
}
