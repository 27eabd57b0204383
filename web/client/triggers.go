package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// Trigger is what makes tasks by itself.
type Trigger struct {
	Name     string      `json:"name"`
	Kind     string      `json:"kind"`
	Source   string      `json:"source"`
	Agent    string      `json:"agent"`
	Owner    string      `json:"owner"`
	Task     string      `json:"task"`
	When     string      `json:"when"`
	URL      string      `json:"url"`
	Window   string      `json:"window"`
	Cron     string      `json:"cron"`
	Timezone string      `json:"timezone"`
	Overlap  string      `json:"overlap"`
	Missed   string      `json:"missed"`
	Next     []time.Time `json:"next"`
	Problem  string      `json:"problem"`
	Last     *Delivery   `json:"last"`
	Failures int         `json:"failures"`
	Refused  *Refused    `json:"refused"`
	Raw      Raw         `json:"-"`
}

// Refused counts the calls of a webhook that were answered 401, and tells of the last one.
type Refused struct {
	Calls   int64     `json:"calls"`
	LastAt  time.Time `json:"last_at"`
	Reason  string    `json:"reason"`
	Address string    `json:"address"`
}

// Delivery is one call of a webhook, or one time of a schedule.
type Delivery struct {
	ID         string     `json:"id"`
	Trigger    string     `json:"trigger"`
	Event      string     `json:"event"`
	State      string     `json:"state"`
	Code       string     `json:"code"`
	Message    string     `json:"message"`
	TaskID     string     `json:"task_id"`
	Of         string     `json:"redelivery_of"`
	Repeats    int        `json:"repeats"`
	Payload    string     `json:"payload"`
	ReceivedAt time.Time  `json:"received_at"`
	DoneAt     *time.Time `json:"done_at"`
	Raw        Raw        `json:"-"`
}

// Trial is what a trigger would make of a sample.
type Trial struct {
	Fires   bool   `json:"fires"`
	Agent   string `json:"agent"`
	Text    string `json:"text"`
	Asks    string `json:"asks"` // that a person is asked before the agent works, "" where nobody is
	Code    string `json:"code"`
	Message string `json:"message"`
	Raw     Raw    `json:"-"`
}

// Triggers lists the configured triggers.
func (c *Client) Triggers(ctx context.Context) (List[Trigger], error) {
	l, _, err := ask[List[Trigger]](ctx, c, http.MethodGet, path("triggers"), nil, nil)
	return l, err
}

// Trigger reads one trigger.
func (c *Client) Trigger(ctx context.Context, name string) (Trigger, error) {
	t, _, err := ask[Trigger](ctx, c, http.MethodGet, path("triggers", name), nil, nil)
	return t, err
}

// Deliveries lists what came for a trigger, newest first; a limit of 0 is all.
func (c *Client) Deliveries(ctx context.Context, name, state string, limit int) (List[Delivery], error) {
	q := url.Values{}
	set(q, "state", state)
	return pages[Delivery](ctx, c, path("triggers", name, "deliveries"), q, limit)
}

// Delivery reads a delivery with its payload, by its id alone.
func (c *Client) Delivery(ctx context.Context, id string) (Delivery, error) {
	d, _, err := ask[Delivery](ctx, c, http.MethodGet, path("deliveries", id), nil, nil)
	return d, err
}

// Redeliver has a delivery delivered again.
func (c *Client) Redeliver(ctx context.Context, id string) (Delivery, error) {
	d, _, err := ask[Delivery](ctx, c, http.MethodPost, path("deliveries", id, "redeliver"), nil, struct{}{})
	return d, err
}

// TryTrigger asks what a trigger would make of a payload.
func (c *Client) TryTrigger(ctx context.Context, name, event string, payload json.RawMessage) (Trial, error) {
	t, _, err := ask[Trial](ctx, c, http.MethodPost, path("triggers", name, "test"), nil, map[string]any{"payload": payload, "event": event})
	return t, err
}

// UnmarshalJSON keeps the document.
func (t *Trigger) UnmarshalJSON(b []byte) error {
	type plain Trigger
	return keep(b, (*plain)(t), &t.Raw)
}

// MarshalJSON returns the document as it came.
func (t Trigger) MarshalJSON() ([]byte, error) {
	type plain Trigger
	return t.Raw.encode(plain(t))
}

// UnmarshalJSON keeps the document.
func (d *Delivery) UnmarshalJSON(b []byte) error {
	type plain Delivery
	return keep(b, (*plain)(d), &d.Raw)
}

// MarshalJSON returns the document as it came.
func (d Delivery) MarshalJSON() ([]byte, error) {
	type plain Delivery
	return d.Raw.encode(plain(d))
}

// UnmarshalJSON keeps the document.
func (t *Trial) UnmarshalJSON(b []byte) error {
	type plain Trial
	return keep(b, (*plain)(t), &t.Raw)
}

// MarshalJSON returns the document as it came.
func (t Trial) MarshalJSON() ([]byte, error) {
	type plain Trial
	return t.Raw.encode(plain(t))
}
