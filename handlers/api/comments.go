package api

import (
	"encoding/json"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"

	"github.com/labstack/echo/v4"
)

// commentShape is a line comment that was sent, with what was said under it.
type commentShape struct {
	ID       string        `json:"id"` // the decision's id, a dot, and the comment's number in it
	User     string        `json:"user"`
	Revision int           `json:"revision"` // on which it was written
	Path     string        `json:"path"`
	Line     int           `json:"line"` // of that revision
	Side     string        `json:"side"`
	Code     string        `json:"code,omitempty"`
	Text     string        `json:"text"`
	Resolved bool          `json:"resolved"`
	Answers  []answerShape `json:"answers"`
	At       time.Time     `json:"at"`
}

type answerShape struct {
	Act  approval.Act `json:"act"`
	User string       `json:"user"`
	Text string       `json:"text,omitempty"`
	At   time.Time    `json:"at"`
}

// comments are the line comments of all decisions on a request.
func (a *API) comments(c echo.Context, r approval.Request) ([]commentShape, error) {
	threads, err := a.Gateway.Threads(c.Request().Context(), r)
	if err != nil {
		return nil, err
	}
	var all []commentShape
	for _, t := range threads {
		one := commentShape{ID: t.ID, User: t.Decision.User, Revision: t.Revision, Path: t.Comment.Path, Line: t.Comment.Line, Side: t.Comment.Side,
			Code: t.Comment.Code, Text: mask.Text(t.Comment.Text), Resolved: t.Resolved(), Answers: []answerShape{}, At: t.Decision.At.UTC()}
		for _, x := range t.Answers {
			one.Answers = append(one.Answers, answerShape{x.Act, x.User, mask.Text(x.Text), x.At.UTC()})
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
