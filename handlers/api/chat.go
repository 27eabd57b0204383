package api

import (
	"context"
	"net/http"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/mask"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// chatTask is one message of a conversation with what came of it.
type chatTask struct {
	ID           string                 `json:"id"` // of the task
	DelegationID string                 `json:"delegation_id"`
	Agent        string                 `json:"agent"`
	Repository   string                 `json:"repository"`
	Text         string                 `json:"text"`
	State        orchestrator.State     `json:"state"`
	CreatedAt    time.Time              `json:"created_at"`
	Messages     []handlers.ChatMessage `json:"messages"`
}

// chatSaid is how many of the newest events of each task become messages.
const chatSaid = 200

// Chat answers GET /chat: the caller's own conversation, newest first. ?before= takes
// next of the page before.
func (a *API) Chat(c echo.Context) error {
	ctx, who := c.Request().Context(), caller(c)
	q := asked(c, "before", "limit")
	limit := q.limit()
	if q.err != nil {
		return q.err
	}
	before := q.Get("before")
	if before != "" && !handlers.IsID(before, orchestrator.DelegationPrefix) {
		return bad("The cursor %.40q is not one of ours. Use next of the page before.", before)
	}
	page, err := a.Reader.List(ctx, orchestrator.Filter{Conversation: who.User.ID, After: before, Limit: limit})
	if err != nil {
		return err
	}
	out := make([]chatTask, len(page.Items))
	for i, root := range page.Items {
		if out[i], err = a.chatTask(ctx, root); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, wire.ListOf(out, page.Next))
}

// chatTask reads what a message has led to so far.
func (a *API) chatTask(ctx context.Context, root orchestrator.Delegation) (chatTask, error) {
	t, err := a.Reader.Task(ctx, root.TaskID)
	if err != nil {
		return chatTask{}, err
	}
	events, err := a.Reader.Events(ctx, t.ID, max(0, t.LastN-chatSaid), chatSaid)
	if err != nil {
		return chatTask{}, err
	}
	out := chatTask{ID: t.ID, DelegationID: root.ID, Agent: t.Agent, Repository: t.Repository, Text: mask.Text(t.Text), State: root.State,
		CreatedAt: t.CreatedAt.UTC(), Messages: []handlers.ChatMessage{}}
	for _, e := range events {
		if m, ok := handlers.ChatLine(e); ok && !handlers.EndsTask(e, root.ID) {
			out.Messages = append(out.Messages, m)
		}
	}
	last, _ := handlers.ChatEnd(root, t.LastN)
	out.Messages = append(out.Messages, last...)
	return out, nil
}
