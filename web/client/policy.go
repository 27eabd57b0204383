package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// PolicyRule is a rule to be tried, with the keys of gatehouse.yaml.
type PolicyRule struct {
	Name    string   `json:"name"`
	When    string   `json:"when"`
	Need    *int     `json:"need,omitempty"`
	From    []string `json:"from,omitempty"`
	Deny    bool     `json:"deny,omitempty"`
	Shadow  bool     `json:"shadow,omitempty"`
	Expires string   `json:"expires,omitempty"`
}

// PolicyTrial is what rules would have said of past requests.
type PolicyTrial struct {
	Since    time.Time      `json:"since"`
	Version  string         `json:"version"`
	Requests int            `json:"requests"`
	Same     int            `json:"same"`
	Effects  map[string]int `json:"effects"`
	Changes  []PolicyChange `json:"changes"`
	Raw      Raw            `json:"-"`
}

// PolicyChange is one request that would have gone otherwise.
type PolicyChange struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Title      string    `json:"title"`
	Agent      string    `json:"agent"`
	Repository string    `json:"repository"`
	State      string    `json:"state"`
	Was        Ruled     `json:"was"`
	Would      Ruled     `json:"would"`
	Effect     string    `json:"effect"`
}

// Ruled is what a rule asks for.
type Ruled struct {
	Rule
	Deny bool `json:"deny"`
}

// PolicyTest tries rules on the requests of that length of time, such as 30d; nil are
// the rules that the server has in force.
func (c *Client) PolicyTest(ctx context.Context, since string, rules []PolicyRule) (PolicyTrial, error) {
	method, q, body := http.MethodGet, url.Values{}, any(nil)
	if rules != nil {
		method, body = http.MethodPost, map[string]any{"since": since, "rules": rules}
	} else {
		set(q, "since", since)
	}
	t, _, err := ask[PolicyTrial](ctx, c, method, path("policy", "test"), q, body)
	return t, err
}

// UnmarshalJSON keeps the document.
func (t *PolicyTrial) UnmarshalJSON(b []byte) error {
	type plain PolicyTrial
	return keep(b, (*plain)(t), &t.Raw)
}
