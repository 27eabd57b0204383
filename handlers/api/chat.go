package api

import (
	"context"
	"net/http"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// chatTask is one message of a conversation with what came of it.
type chatTask struct {
	ID           string                 `json:"id"`     // of the task
	Thread       string                 `json:"thread"` // of the task that began its thread
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
// next of the page before, ?thread= is one thread alone.
func (a *API) Chat(c echo.Context) error {
	ctx, who := c.Request().Context(), caller(c)
	q := asked(c, "before", "limit", "thread")
	limit := q.limit()
	if q.err != nil {
		return q.err
	}
	before := q.Get("before")
	if before != "" && !handlers.IsID(before, orchestrator.DelegationPrefix) {
		return bad("The cursor %.40q is not one of ours. Use next of the page before.", before)
	}
	f := orchestrator.Filter{Conversation: who.User.ID, After: before, Limit: limit}
	if id := q.Get("thread"); id != "" {
		t, err := a.Ids.Thread(ctx, who, id)
		if err != nil {
			return err
		}
		f.Thread = t.ThreadID()
	}
	page, err := a.Reader.List(ctx, f)
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
	out := chatTask{ID: t.ID, Thread: t.ThreadID(), DelegationID: root.ID, Agent: t.Agent, Repository: t.Repository, Text: mask.Text(t.Text), State: root.State,
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

// chatThread is a thread of a conversation in a list.
type chatThread struct {
	ID        string             `json:"id"` // of the task that began it
	Title     string             `json:"title"`
	Agent     string             `json:"agent"` // of the newest task
	State     orchestrator.State `json:"state"` // of the newest task
	Count     int                `json:"count"` // tasks
	UpdatedAt time.Time          `json:"updated_at"`
}

// ChatThreads answers GET /chat/threads: the caller's own, the one written to last first.
// ?before= takes next of the page before.
func (a *API) ChatThreads(c echo.Context) error {
	q := asked(c, "before", "limit")
	limit := q.limit()
	if q.err != nil {
		return q.err
	}
	before := q.Get("before")
	if before != "" && !handlers.IsID(before, orchestrator.DelegationPrefix) {
		return bad("The cursor %.40q is not one of ours. Use next of the page before.", before)
	}
	all, err := a.Reader.Threads(c.Request().Context(), caller(c).User.ID, before, limit+1)
	if err != nil {
		return err
	}
	next := ""
	if len(all) > limit {
		all = all[:limit]
		next = all[limit-1].RootID
	}
	return c.JSON(http.StatusOK, wire.ListOf(each.Of(all, func(t orchestrator.Thread) chatThread {
		return chatThread{ID: t.ID, Title: t.Title, Agent: t.Agent, State: t.State, Count: t.Count, UpdatedAt: t.UpdatedAt.UTC()}
	}), next))
}
