package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Wait is one delegation that lives, with what it waits for.
type Wait struct {
	TaskID       string    `json:"task_id"`
	DelegationID string    `json:"delegation_id"`
	Agent        string    `json:"agent"`
	Text         string    `json:"text"`
	State        string    `json:"state"`
	For          string    `json:"waits_for"`
	People       []string  `json:"people"`
	Says         string    `json:"says"`
	Since        time.Time `json:"since"`
}

// Waits is who waits for whom, newest first.
type Waits struct {
	Items []Wait `json:"items"`
	Next  string `json:"next"`
	Note  string `json:"note"` // why nobody waits in a circle
	Raw   Raw    `json:"-"`
}

// Waits reads who waits for whom in one task, or everywhere when id is "".
func (c *Client) Waits(ctx context.Context, id string, limit int) (Waits, error) {
	q := url.Values{}
	set(q, "task", id)
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	w, _, err := ask[Waits](ctx, c, http.MethodGet, path("waits"), q, nil)
	return w, err
}

// UnmarshalJSON keeps the document.
func (w *Waits) UnmarshalJSON(b []byte) error {
	type plain Waits
	return keep(b, (*plain)(w), &w.Raw)
}

// MarshalJSON returns the document as it came.
func (w Waits) MarshalJSON() ([]byte, error) {
	type plain Waits
	return w.Raw.encode(plain(w))
}
