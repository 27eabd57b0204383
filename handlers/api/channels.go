package api

import (
	"net/http"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

// channelShape is a channel as the API shows it.
type channelShape struct {
	Name   origin.Channel `json:"name"`
	State  string         `json:"state"` // "" where there is no other side, or none has told yet
	Detail string         `json:"detail"`
	Node   string         `json:"node"`
	Since  *time.Time     `json:"since"`
	Due    int            `json:"due"`
	Dead   int            `json:"dead"`
}

// letterShape is a delivery that was given up.
type letterShape struct {
	Letter    string         `json:"letter"`
	Kind      string         `json:"kind"` // card, notice, digest or report
	Channel   origin.Channel `json:"channel"`
	Address   string         `json:"address"`
	RequestID wire.Maybe     `json:"request_id"`
	TaskID    wire.Maybe     `json:"task_id"` // of a report
	Title     string         `json:"title"`
	Error     string         `json:"error"`
	Attempts  int            `json:"attempts"`
}

// Channels answers GET /channels: how each channel does, and what was given up, of
// which next is the cursor.
func (a *API) Channels(c echo.Context) error {
	ctx, q := c.Request().Context(), asked(c, "after", "limit")
	limit := q.limit()
	if q.err != nil {
		return q.err
	}
	states, err := handlers.ChannelStates(ctx, a.Outbox, a.Places())
	if err != nil {
		return err
	}
	dead, err := a.Outbox.DeadLetters(ctx, approval.DeadFilter{After: q.Get("after"), Limit: limit})
	if err != nil {
		return err
	}
	items, letters := make([]channelShape, len(states)), make([]letterShape, len(dead.Items))
	for i, s := range states {
		items[i] = channelShape{Name: s.Name, State: s.State, Detail: s.Detail, Node: s.Node, Due: s.Due, Dead: s.Dead}
		if !s.Since.IsZero() {
			items[i].Since = utc(&s.Since)
		}
	}
	for i, l := range dead.Items {
		letters[i] = letterShape{Letter: l.Key, Kind: l.Kind, Channel: l.Channel, Address: l.Address, RequestID: wire.Maybe(l.RequestID), TaskID: wire.Maybe(l.TaskID), Title: l.Title, Error: l.Error, Attempts: l.Attempts}
	}
	return c.JSON(http.StatusOK, map[string]any{"items": items, "dead_letters": letters, "next": wire.Maybe(dead.Next)})
}

// retryBody names what to try again: one letter, all of a channel, or all.
type retryBody struct {
	Letter  string         `json:"letter"`
	Channel origin.Channel `json:"channel"`
	All     bool           `json:"all"`
}

// RetryChannels answers POST /channels/retry.
func (a *API) RetryChannels(c echo.Context) error {
	var in retryBody
	if err := read(c, &in); err != nil {
		return err
	}
	if in.Letter == "" && in.Channel == "" && !in.All {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, "Say what to try again: letter (from GET /channels), channel, or all: true.")
	}
	n, err := a.Outbox.Retry(c.Request().Context(), caller(c).User.Name, approval.DeadFilter{Key: in.Letter, Channel: in.Channel})
	return send(c, http.StatusOK, map[string]int{"retried": n}, err)
}
