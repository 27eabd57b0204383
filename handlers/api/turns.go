package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// Turn is one stored message of a conversation as it is published.
type Turn struct {
	N        int         `json:"n"`
	Run      int         `json:"run"`  // a retry and a new revision begin another one
	Role     string      `json:"role"` // user, assistant or tool
	Blocks   []Block     `json:"blocks"`
	Model    string      `json:"model,omitempty"`
	Stop     string      `json:"stop,omitempty"`
	Usage    agent.Usage `json:"usage"`
	Children []string    `json:"children,omitempty"` // delegations whose outcome it carries
	At       time.Time   `json:"at"`
	TookMS   int64       `json:"took_ms,omitempty"`
}

// Block is one part of a message: text, thinking, tool_use or tool_result.
type Block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	ID      string          `json:"id,omitempty"` // of the call
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// Turns answers GET /delegations/{id}/turns?run=&after=&limit=: the conversation of a
// delegation with its model, oldest first. Without run it is that of the newest run.
func (a *API) Turns(c echo.Context) error {
	ctx, q := c.Request().Context(), asked(c, "after", "limit", "run")
	after, limit := q.number(), q.limit()
	if q.err != nil {
		return q.err
	}
	d, err := a.Ids.Delegation(ctx, caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	run, err := handlers.RunOf(q.Get("run"), d.Work.Runs)
	if err != nil {
		return err
	}
	found, err := a.Reader.TurnPage(ctx, d.ID, run, int(after), limit+1)
	if err != nil {
		return err
	}
	next := ""
	if len(found) > limit {
		found = found[:limit]
		next = strconv.Itoa(found[limit-1].N)
	}
	items := each.Of(found, func(t agent.Turn) Turn { return turnShape(t, run) })
	return c.JSON(http.StatusOK, wire.ListOf(items, next))
}

func turnShape(t agent.Turn, run int) Turn {
	shape := Turn{N: t.N, Run: run + 1, Role: t.Message.Role, Blocks: []Block{}, Model: t.Model, Stop: t.Stop, Usage: t.Usage, Children: t.Children,
		At: t.At.UTC(), TookMS: t.Took.Milliseconds()}
	for _, b := range t.Message.Blocks {
		if b.Type == agent.OpaqueBlock { // a provider's own: only what it says is published
			if text := handlers.Thinking(b); text != "" {
				shape.Blocks = append(shape.Blocks, Block{Type: "thinking", Text: mask.Text(text)})
			}
			continue
		}
		shape.Blocks = append(shape.Blocks, Block{Type: b.Type, Text: mask.Text(b.Text), ID: b.ID, Name: b.Name, Input: mask.JSON(b.Input), IsError: b.IsError})
	}
	return shape
}
