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
	Repository   string    `json:"repository"`
	For          string    `json:"waits_for"`
	People       []string  `json:"people"`
	Says         string    `json:"says"`
	Since        time.Time `json:"since"`
}

// Queue is how landing stands in one repository.
type Queue struct {
	Repository string  `json:"repository"`
	Waiting    int     `json:"waiting"`
	HeldUp     int     `json:"held_up"`
	Landed     int     `json:"landed"`
	Pace       float64 `json:"pace_seconds"` // of the last Landed ones, each
	Says       string  `json:"says"`
}

// Waits is who waits for whom, newest first.
type Waits struct {
	Items    []Wait  `json:"items"`
	Next     string  `json:"next"`
	Landings []Queue `json:"landings"` // of the repositories in which approved changes wait
	Note     string  `json:"note"`     // why nobody waits in a circle
	Slots    Slots   `json:"slots"`
	Raw      Raw     `json:"-"`
}

// Slots are the workers of the node that answers.
type Slots struct {
	Used int `json:"used"`
	Size int `json:"size"`
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
