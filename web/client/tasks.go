package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
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
	var all List[T]
	for first := true; ; first = false {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(all.Items))
		}
		q.Set("limit", strconv.Itoa(size))
		page, _, err := ask[List[T]](ctx, c, http.MethodGet, at, q, nil)
		if err != nil {
			return all, err
		}
		stop := page.Next == "" || page.Next == q.Get("after")
		if all.Items = append(all.Items, page.Items...); limit > 0 && len(all.Items) >= limit {
			stop = true
		}
		all.Next = page.Next
		if stop {
			if first {
				return page, nil
			}
			return all, nil
		}
		q.Set("after", page.Next)
	}
}

// Submit makes a task.
func (c *Client) Submit(ctx context.Context, s Submission) (Submitted, error) {
	out, _, err := ask[Submitted](ctx, c, http.MethodPost, path("tasks"), nil, s)
	return out, err
}

// Delegation reads one delegation; a task's id names its root.
func (c *Client) Delegation(ctx context.Context, id string) (Delegation, error) {
	d, _, err := ask[Delegation](ctx, c, http.MethodGet, path("delegations", id), nil, nil)
	return d, err
}

// Tree reads every delegation of a task, oldest first.
func (c *Client) Tree(ctx context.Context, taskID string) (List[Delegation], error) {
	l, _, err := ask[List[Delegation]](ctx, c, http.MethodGet, path("tasks", taskID, "tree"), nil, nil)
	return l, err
}

// Filter chooses delegations; zero values choose everything.
type Filter struct {
	State string
	Agent string
	Query string
	Limit int // 0: all
}

// Delegations lists delegations, newest first.
func (c *Client) Delegations(ctx context.Context, f Filter) (List[Delegation], error) {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "agent", f.Agent)
	set(q, "q", f.Query)
	return pages[Delegation](ctx, c, path("delegations"), q, f.Limit)
}

// Cancel stops a tree; reason may be "".
func (c *Client) Cancel(ctx context.Context, id, reason string) (Delegation, error) {
	var body any
	if reason != "" {
		body = map[string]string{"reason": reason}
	}
	d, _, err := ask[Delegation](ctx, c, http.MethodPost, path("delegations", id, "cancel"), nil, body)
	return d, err
}

// Pause holds the task of a delegation.
func (c *Client) Pause(ctx context.Context, id string) (Delegation, error) {
	d, _, err := ask[Delegation](ctx, c, http.MethodPost, path("delegations", id, "pause"), nil, nil)
	return d, err
}

// Resume lets a paused task go on.
func (c *Client) Resume(ctx context.Context, id string) (Delegation, error) {
	d, _, err := ask[Delegation](ctx, c, http.MethodPost, path("delegations", id, "resume"), nil, nil)
	return d, err
}

// Fork makes a task that goes on from a turn of a conversation; 0 is the newest turn.
func (c *Client) Fork(ctx context.Context, id string, turn int) (Submitted, error) {
	s, _, err := ask[Submitted](ctx, c, http.MethodPost, path("delegations", id, "fork"), nil, map[string]int{"turn": turn})
	return s, err
}

// Retry runs what failed again.
func (c *Client) Retry(ctx context.Context, id string) (Delegation, error) {
	d, _, err := ask[Delegation](ctx, c, http.MethodPost, path("delegations", id, "retry"), nil, nil)
	return d, err
}

// Hop is what a run hands on.
type Hop struct {
	To         string `json:"to,omitempty"`
	Capability string `json:"capability,omitempty"`
	Text       string `json:"text"`

	Context   map[string]string  `json:"context,omitempty"`
	Spawn     bool               `json:"spawn,omitempty"`     // go on without waiting
	Handoff   bool               `json:"handoff,omitempty"`   // the run ends with the child's answer
	Artifacts map[string]*string `json:"artifacts,omitempty"` // of a hand-over: where each is; null is not made yet
}

// Children lists what the present run of a delegation has handed on, oldest first.
func (c *Client) Children(ctx context.Context, id string) (List[Delegation], error) {
	l, _, err := ask[List[Delegation]](ctx, c, http.MethodGet, path("delegations", id, "children"), nil, nil)
	return l, err
}

// Delegate hands work on; the client's token is the run's. The same hop again gives
// the delegation that exists.
func (c *Client) Delegate(ctx context.Context, h Hop) (Delegation, error) {
	d, _, err := ask[Delegation](ctx, c, http.MethodPost, path("delegations"), nil, h)
	return d, err
}

// Await waits for a child of the client's run, at most about 30 s. True means that
// it has ended and the run may go on; else ask again.
func (c *Client) Await(ctx context.Context, id string) (Delegation, bool, error) {
	held := *c
	held.calls = 30*time.Second + Timeout // the server holds the answer for 30 s
	d, status, err := ask[Delegation](ctx, &held, http.MethodPost, path("delegations", id, "await"), nil, nil)
	return d, status == http.StatusOK, err
}

// Events lists the events of a task or delegation after number n, all pages.
func (c *Client) Events(ctx context.Context, id string, n int64) (List[Event], error) {
	q := url.Values{}
	if n > 0 {
		q.Set("after", strconv.FormatInt(n, 10))
	}
	return pages[Event](ctx, c, path("delegations", id, "events"), q, 0)
}

// AllEvents is one page of the events of all tasks after a cursor ("" for the start).
func (c *Client) AllEvents(ctx context.Context, after string) (List[Event], error) {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	set(q, "after", after)
	l, _, err := ask[List[Event]](ctx, c, http.MethodGet, path("events"), q, nil)
	return l, err
}

// Agents lists the registry.
func (c *Client) Agents(ctx context.Context) (List[Agent], error) {
	l, _, err := ask[List[Agent]](ctx, c, http.MethodGet, path("agents"), nil, nil)
	return l, err
}

// CheckHop asks whether from may hand to to, in a task as it stands or, without its id, in
// a new one; nothing is sent to an agent.
func (c *Client) CheckHop(ctx context.Context, from, to, taskID string) (Check, error) {
	a, _, err := ask[Check](ctx, c, http.MethodPost, path("agents", "check"), nil, map[string]string{"from": from, "to": to, "task_id": taskID})
	return a, err
}

// Entry reads one value of the shared context; a structured one has to be JSON.
func (c *Client) Entry(ctx context.Context, ns, key string, structured bool) (Entry, error) {
	q := url.Values{}
	if structured {
		q.Set("structured", "true")
	}
	e, _, err := ask[Entry](ctx, c, http.MethodGet, path("context", ns, key), q, nil)
	return e, err
}

// PutEntry writes one value.
func (c *Client) PutEntry(ctx context.Context, ns, key, value string, life Life) (Entry, error) {
	in := struct {
		Value      string `json:"value"`
		TTLSeconds int64  `json:"ttl_seconds,omitempty"`
		TTL        string `json:"ttl,omitempty"`
		Extend     bool   `json:"extend,omitempty"`
	}{Value: value, TTLSeconds: int64(life.TTL / time.Second), Extend: life.Extend}
	if life.Never {
		in.TTL = "never"
	}
	e, _, err := ask[Entry](ctx, c, http.MethodPut, path("context", ns, key), nil, in)
	return e, err
}

// TouchEntry prolongs one value; without a ttl it is 90 days.
func (c *Client) TouchEntry(ctx context.Context, ns, key string, ttl time.Duration) (Entry, error) {
	in := struct {
		TTLSeconds int64 `json:"ttl_seconds,omitempty"`
	}{int64(ttl / time.Second)}
	e, _, err := ask[Entry](ctx, c, http.MethodPost, path("context", ns, key, "touch"), nil, in)
	return e, err
}

// Uses lists who used an entry, newest first, at most 200.
func (c *Client) Uses(ctx context.Context, ns, key string) (List[Use], error) {
	l, _, err := ask[List[Use]](ctx, c, http.MethodGet, path("context", ns, key, "uses"), url.Values{"limit": {strconv.Itoa(pageSize)}}, nil)
	return l, err
}

// Topics lists the namespaces that have entries, all pages.
func (c *Client) Topics(ctx context.Context) (List[Topic], error) {
	return pages[Topic](ctx, c, path("context"), url.Values{}, 0)
}

// CleanUp removes what has expired and returns how many.
func (c *Client) CleanUp(ctx context.Context) (int, error) {
	answer, _, err := ask[struct {
		Removed int `json:"removed"`
	}](ctx, c, http.MethodPost, path("context", "cleanup"), nil, nil)
	return answer.Removed, err
}

// Entries lists a namespace, newest first, at most 200 (one page is all there is).
func (c *Client) Entries(ctx context.Context, ns, prefix string) (List[Entry], error) {
	q := url.Values{"limit": {strconv.Itoa(pageSize)}}
	set(q, "prefix", prefix)
	l, _, err := ask[List[Entry]](ctx, c, http.MethodGet, path("context", ns), q, nil)
	return l, err
}

// DeleteEntry removes one value; one that is gone is no error.
func (c *Client) DeleteEntry(ctx context.Context, ns, key string) error {
	_, _, err := ask[struct{}](ctx, c, http.MethodDelete, path("context", ns, key), nil, nil)
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
