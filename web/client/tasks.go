package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/wire"
)

// pageSize is the most that the server puts on one page.
const pageSize = 200

func set(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}

// pages reads a list page by page until limit items are there; 0 reads all of it.
// A list that fits one page keeps the server's document.
func pages[T any](ctx context.Context, c *Client, at string, q url.Values, limit int) (List[T], error) {
	all := wire.List[json.RawMessage]{Items: []json.RawMessage{}}
	for first := true; ; first = false {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(all.Items))
		}
		q.Set("limit", strconv.Itoa(size))
		page, err := ask[wire.List[json.RawMessage]](ctx, c, http.MethodGet, at, q, nil)
		if err != nil {
			return List[T]{}, err
		}
		next := string(page.Value.Next)
		all.Items, all.Next = append(all.Items, page.Value.Items...), page.Value.Next
		if next == "" || next == q.Get("after") || limit > 0 && len(all.Items) >= limit {
			if first {
				return listed[T](page.Raw)
			}
			joined, err := json.Marshal(all)
			if err != nil {
				return List[T]{}, fmt.Errorf("join the pages of a list: %w", err)
			}
			return listed[T](joined)
		}
		q.Set("after", next)
	}
}

// Submit makes a task.
func (c *Client) Submit(ctx context.Context, s wire.Submission) (Answer[wire.Submitted], error) {
	return ask[wire.Submitted](ctx, c, http.MethodPost, path("tasks"), nil, s)
}

// Delegation reads one delegation; a task's id names its root.
func (c *Client) Delegation(ctx context.Context, id string) (Answer[wire.Delegation], error) {
	return ask[wire.Delegation](ctx, c, http.MethodGet, path("delegations", id), nil, nil)
}

// Tree reads every delegation of a task, oldest first.
func (c *Client) Tree(ctx context.Context, taskID string) (List[wire.Delegation], error) {
	return list[wire.Delegation](ctx, c, path("tasks", taskID, "tree"), nil)
}

// Filter chooses delegations; zero values choose everything.
type Filter struct {
	State string
	Agent string
	Query string
	Limit int // 0: all
}

// Delegations lists delegations, newest first.
func (c *Client) Delegations(ctx context.Context, f Filter) (List[wire.Delegation], error) {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "agent", f.Agent)
	set(q, "q", f.Query)
	return pages[wire.Delegation](ctx, c, path("delegations"), q, f.Limit)
}

// Cancel stops a tree; reason may be "".
func (c *Client) Cancel(ctx context.Context, id, reason string) (Answer[wire.Delegation], error) {
	var body any
	if reason != "" {
		body = wire.Reason{Reason: reason}
	}
	return ask[wire.Delegation](ctx, c, http.MethodPost, path("delegations", id, "cancel"), nil, body)
}

// Pause holds the task of a delegation.
func (c *Client) Pause(ctx context.Context, id string) (Answer[wire.Delegation], error) {
	return ask[wire.Delegation](ctx, c, http.MethodPost, path("delegations", id, "pause"), nil, nil)
}

// Resume lets a paused task go on.
func (c *Client) Resume(ctx context.Context, id string) (Answer[wire.Delegation], error) {
	return ask[wire.Delegation](ctx, c, http.MethodPost, path("delegations", id, "resume"), nil, nil)
}

// Fork makes a task that goes on from a turn of a conversation; 0 is the newest turn.
func (c *Client) Fork(ctx context.Context, id string, turn int) (Answer[wire.Submitted], error) {
	return ask[wire.Submitted](ctx, c, http.MethodPost, path("delegations", id, "fork"), nil, wire.Fork{Turn: turn})
}

// Tell leaves a message for an agent that works.
func (c *Client) Tell(ctx context.Context, id string, w wire.Words) (Answer[wire.Message], error) {
	return ask[wire.Message](ctx, c, http.MethodPost, path("delegations", id, "messages"), nil, w)
}

// Retry runs what failed again.
func (c *Client) Retry(ctx context.Context, id string) (Answer[wire.Delegation], error) {
	return ask[wire.Delegation](ctx, c, http.MethodPost, path("delegations", id, "retry"), nil, nil)
}

// Children lists what the present run of a delegation has handed on, oldest first.
func (c *Client) Children(ctx context.Context, id string) (List[wire.Delegation], error) {
	return list[wire.Delegation](ctx, c, path("delegations", id, "children"), nil)
}

// Delegate hands work on; the client's token is the run's. The same hop again gives
// the delegation that exists.
func (c *Client) Delegate(ctx context.Context, h wire.Hop) (Answer[wire.Delegation], error) {
	return ask[wire.Delegation](ctx, c, http.MethodPost, path("delegations"), nil, h)
}

// Await waits for a child of the client's run, at most about 30 s. True means that
// it has ended and the run may go on; else ask again.
func (c *Client) Await(ctx context.Context, id string) (Answer[wire.Delegation], bool, error) {
	held := *c
	held.calls = 30*time.Second + Timeout // the server holds the answer for 30 s
	d, status, err := askStatus[wire.Delegation](ctx, &held, http.MethodPost, path("delegations", id, "await"), nil, nil)
	return d, status == http.StatusOK, err
}

// Events lists the events of a task or delegation after number n, all pages.
func (c *Client) Events(ctx context.Context, id string, n int64) (List[Event], error) {
	q := url.Values{}
	if n > 0 {
		q.Set("after", strconv.FormatInt(n, 10))
	}
	found, err := pages[json.RawMessage](ctx, c, path("delegations", id, "events"), q, 0)
	all := List[Event]{Raw: found.Raw}
	for _, raw := range found.Items {
		e, err := eventOf(raw)
		if err != nil {
			return all, fmt.Errorf("read an event: %w", err)
		}
		all.Items = append(all.Items, e)
	}
	return all, err
}

// Agents lists the registry.
func (c *Client) Agents(ctx context.Context) (List[wire.Agent], error) {
	return list[wire.Agent](ctx, c, path("agents"), nil)
}

// CheckHop asks whether from may hand to to, in a task as it stands or, without its id, in
// a new one; nothing is sent to an agent.
func (c *Client) CheckHop(ctx context.Context, from, to, taskID string) (Answer[wire.HopAnswer], error) {
	return ask[wire.HopAnswer](ctx, c, http.MethodPost, path("agents", "check"), nil, wire.HopQuestion{From: from, To: to, TaskID: taskID})
}

// Entry reads one value of the shared context; a structured one has to be JSON.
func (c *Client) Entry(ctx context.Context, ns, key string, structured bool) (Answer[sharedctx.Entry], error) {
	q := url.Values{}
	if structured {
		q.Set("structured", "true")
	}
	return ask[sharedctx.Entry](ctx, c, http.MethodGet, path("context", ns, key), q, nil)
}

// PutEntry writes one value.
func (c *Client) PutEntry(ctx context.Context, ns, key, value string, life Life) (Answer[sharedctx.Entry], error) {
	in := wire.NewEntry{Value: &value, TTLSeconds: seconds(life.TTL), Extend: life.Extend}
	if never := "never"; life.Never {
		in.TTL = &never
	}
	return ask[sharedctx.Entry](ctx, c, http.MethodPut, path("context", ns, key), nil, in)
}

// seconds is a length of time as the API takes it; nil for none.
func seconds(d time.Duration) *int64 {
	n := int64(d / time.Second)
	if n == 0 {
		return nil
	}
	return &n
}

// TouchEntry prolongs one value; without a ttl it is 90 days.
func (c *Client) TouchEntry(ctx context.Context, ns, key string, ttl time.Duration) (Answer[sharedctx.Entry], error) {
	in := wire.Life{TTLSeconds: seconds(ttl)}
	return ask[sharedctx.Entry](ctx, c, http.MethodPost, path("context", ns, key, "touch"), nil, in)
}

// Uses lists who used an entry, newest first, at most 200.
func (c *Client) Uses(ctx context.Context, ns, key string) (List[sharedctx.Use], error) {
	return list[sharedctx.Use](ctx, c, path("context", ns, key, "uses"), url.Values{"limit": {strconv.Itoa(pageSize)}})
}

// Topics lists the namespaces that have entries, all pages.
func (c *Client) Topics(ctx context.Context) (List[sharedctx.Topic], error) {
	return pages[sharedctx.Topic](ctx, c, path("context"), url.Values{}, 0)
}

// CleanUp removes what has expired and returns how many.
func (c *Client) CleanUp(ctx context.Context) (int, error) {
	answer, err := ask[struct {
		Removed int `json:"removed"`
	}](ctx, c, http.MethodPost, path("context", "cleanup"), nil, nil)
	return answer.Value.Removed, err
}

// Entries lists a namespace, newest first, at most 200 (one page is all there is).
func (c *Client) Entries(ctx context.Context, ns, prefix string) (List[sharedctx.Entry], error) {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	set(q, "prefix", prefix)
	return list[sharedctx.Entry](ctx, c, path("context", ns), q)
}

// DeleteEntry removes one value; one that is gone is no error.
func (c *Client) DeleteEntry(ctx context.Context, ns, key string) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, path("context", ns, key), nil, nil)
	return err
}

// Export streams the history to w. format is jsonl or csv; empty times mean all of it.
func (c *Client) Export(ctx context.Context, format, from, to string, w io.Writer) error {
	q := url.Values{}
	set(q, "format", format)
	set(q, "from", from)
	set(q, "to", to)
	_, err := c.stream(ctx, path("audit", "export"), q, w, "application/jsonl, text/csv, application/problem+json")
	return err
}

// Live asks whether the server is up and says so with nil.
func (c *Client) Live(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Second, errNoAnswer)
	defer cancel()
	res, err := c.do(ctx, http.MethodGet, "/healthz", nil, nil, "*/*")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// StopAll cancels everything that runs or waits, or one agent's work.
func (c *Client) StopAll(ctx context.Context, s wire.Stop) (Answer[wire.Stopped], error) {
	return ask[wire.Stopped](ctx, c, http.MethodPost, path("delegations", "cancel"), nil, s)
}

// Waits reads who waits for whom in one task, or everywhere when id is "".
func (c *Client) Waits(ctx context.Context, id string, limit int) (Answer[wire.Waits], error) {
	q := url.Values{}
	set(q, "task", id)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return ask[wire.Waits](ctx, c, http.MethodGet, path("waits"), q, nil)
}
