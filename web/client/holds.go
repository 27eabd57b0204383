package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Hold is a legal hold.
type Hold struct {
	ID         string     `json:"id"`
	Kind       string     `json:"kind"` // task, repository or everything
	Subject    string     `json:"subject"`
	RequestID  string     `json:"request_id"`
	Reason     string     `json:"reason"`
	By         string     `json:"by"`
	At         time.Time  `json:"at"`
	LiftedBy   string     `json:"lifted_by"`
	LiftedAt   *time.Time `json:"lifted_at"`
	LiftReason string     `json:"lift_reason"`
	Raw        Raw        `json:"-"`
}

// NewHold says what is held; one of the first four.
type NewHold struct {
	Task       string `json:"task,omitempty"`
	Request    string `json:"request,omitempty"`
	Repository string `json:"repository,omitempty"`
	Everything bool   `json:"everything,omitempty"`
	Reason     string `json:"reason"`
}

// Holds lists legal holds, newest first.
func (c *Client) Holds(ctx context.Context, lifted bool) (List[Hold], error) {
	q := url.Values{}
	if lifted {
		q.Set("lifted", "true")
	}
	l, _, err := ask[List[Hold]](ctx, c, http.MethodGet, path("holds"), q, nil)
	return l, err
}

// SetHold sets one.
func (c *Client) SetHold(ctx context.Context, h NewHold) (Hold, error) {
	made, _, err := ask[Hold](ctx, c, http.MethodPost, path("holds"), nil, h)
	return made, err
}

// LiftHold ends one, with the reason.
func (c *Client) LiftHold(ctx context.Context, id, reason string) (Hold, error) {
	h, _, err := ask[Hold](ctx, c, http.MethodDelete, path("holds", id), nil, map[string]string{"reason": reason})
	return h, err
}

// UnmarshalJSON keeps the document.
func (h *Hold) UnmarshalJSON(b []byte) error {
	type plain Hold
	return keep(b, (*plain)(h), &h.Raw)
}

// MarshalJSON gives the document as the server sent it.
func (h Hold) MarshalJSON() ([]byte, error) {
	type plain Hold
	return h.Raw.encode(plain(h))
}
