package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Request is the question "may this patch land?".
type Request struct {
	ID           string     `json:"id"`
	TaskID       string     `json:"task_id"`
	DelegationID string     `json:"delegation_id"`
	Kind         string     `json:"kind"`     // patch or handover
	Question     *Question  `json:"question"` // of a hand-over
	State        string     `json:"state"`
	Revision     int        `json:"revision"`
	Digest       string     `json:"digest"`
	Repository   string     `json:"repository"`
	Target       string     `json:"target"`
	Branch       string     `json:"branch"`
	Deliver      string     `json:"deliver"` // merge or branch
	Base         string     `json:"base"`    // the commit that the change was made on
	BaseAt       *time.Time `json:"base_at"` // when that was made, nil where it is not known
	Commit       string     `json:"commit"`
	Agent        string     `json:"agent"`
	Title        string     `json:"title"`
	Text         string     `json:"text"`
	Files        []File     `json:"files"`
	Added        int        `json:"added"`
	Removed      int        `json:"removed"`
	Warnings     []Warning  `json:"warnings"`
	Notes        []Note     `json:"notes"`
	Checks       []Checked  `json:"checks"`
	Risk         Risk       `json:"risk"`
	Rule         Rule       `json:"rule"`
	Decisions    []Decision `json:"decisions"`
	Comments     []Comment  `json:"comments"` // on lines, of all revisions; only where one request is read
	Needs        Needs      `json:"needs"`
	ExpiresAt    *time.Time `json:"expires_at"`
	CreatedAt    time.Time  `json:"created_at"`
	Made         string     `json:"made"` // how people made the revision: files, edit; "" by the agent
	Declined     []string   `json:"declined"`
	Editor       string     `json:"editor"`
	Read         HowRead    `json:"read"`
	Overtaken    Overtaken  `json:"overtaken"`
	Missed       string     `json:"missed"`  // that the newest yes of who asks landed nothing, and why
	Refused      string     `json:"refused"` // why the yes of who asks would not be taken
	May          []string   `json:"may"`     // the verdicts that they may give
	Raw          Raw        `json:"-"`
}

// HowRead is who has read the revision, where and how much, as a line; "" while nobody has.
type HowRead struct {
	Text string `json:"text"`
}

// Overtaken says that the target changed so that a yes would land nothing; "" where it may land.
type Overtaken struct {
	Message string `json:"message"`
	Brief   string `json:"brief"` // in a few words, with what to do
}

// Pushes reports whether a yes pushes the agent's branch, and the target stays as it is.
func (r Request) Pushes() bool { return r.Deliver == "branch" }

// Handover reports whether the request asks about a hand-over and not about a patch.
func (r Request) Handover() bool { return r.Kind == "handover" && r.Question != nil }

// Question is what a hand-over would hand on.
type Question struct {
	From     string            `json:"from"`
	To       string            `json:"to"`
	Text     string            `json:"text"`
	Context  map[string]string `json:"context"`
	Handover json.RawMessage   `json:"handover"` // the command object, empty without one
	// The files that travel: Tree against Branch, or Tag; "" where none do.
	Branch string `json:"branch"`
	Tag    string `json:"tag"`
	Tree   string `json:"tree"`
}

// File is one changed file.
type File struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path"`
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary"`
}

// Warning makes a request careful; Path is the raw name.
type Warning struct {
	Code string `json:"code"`
	Path string `json:"path"`
	Text string `json:"text"`
}

// Risk is how much care a request asks for, with the codes of what gave it.
type Risk struct {
	Level   string   `json:"level"` // plain or careful
	Reasons []string `json:"reasons"`
}

// Codes are the codes of what a yes has to say that it was looked at.
func (r Request) Codes() []string {
	codes := slices.Clone(r.Risk.Reasons)
	for _, w := range r.Warnings {
		if !slices.Contains(codes, w.Code) {
			codes = append(codes, w.Code)
		}
	}
	return codes
}

// Note is said, but makes nothing careful.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Checked is a check of the repository that ran on the result.
type Checked struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Output  string `json:"output"`
}

// Rule is the rule that matched.
type Rule struct {
	Name string   `json:"name"`
	Need int      `json:"need"`
	From []string `json:"from"`
}

// Decision is one verdict on one revision.
type Decision struct {
	User     string    `json:"user"`
	Channel  string    `json:"channel"`
	Verdict  string    `json:"verdict"`
	Comment  string    `json:"comment"`
	At       time.Time `json:"at"`
	Revision int       `json:"revision"`
	// StartOver: with request_changes, the agent begins from the base.
	StartOver bool `json:"start_over,omitempty"`
}

// Comment is what somebody said about a line, with what was said and done under it.
type Comment struct {
	User     string    `json:"user"`
	Revision int       `json:"revision"` // on which it was written
	Path     string    `json:"path"`
	Line     int       `json:"line"` // of that revision; 0 is the whole file
	Side     string    `json:"side"` // L: the old file
	Text     string    `json:"text"`
	Resolved bool      `json:"resolved"`
	Answers  []Answer  `json:"answers"`
	At       time.Time `json:"at"`
}

// Answer is one act under a comment: reply, resolve or reopen.
type Answer struct {
	Act  string    `json:"act"`
	User string    `json:"user"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Needs says how many yeses there are and who can still give one.
type Needs struct {
	Count   int      `json:"count"`
	Have    int      `json:"have"`
	From    []string `json:"from"`
	Missing Names    `json:"missing"`
	// Problem says that there are too few people for a yes, and what to do; "" else.
	Problem string `json:"problem"`
}

// Names is a list that may also come as one sentence.
type Names []string

// UnmarshalJSON takes a list, a sentence or null.
func (n *Names) UnmarshalJSON(b []byte) error {
	var many []string
	if json.Unmarshal(b, &many) == nil {
		*n = many
		return nil
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	if *n = nil; one != "" {
		*n = Names{one}
	}
	return nil
}

// UnmarshalJSON keeps the document.
func (r *Request) UnmarshalJSON(b []byte) error {
	type plain Request
	return keep(b, (*plain)(r), &r.Raw)
}

// MarshalJSON returns the document as it came.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	return r.Raw.encode(plain(r))
}

// Request reads one request.
func (c *Client) Request(ctx context.Context, id string) (Request, error) {
	r, _, err := ask[Request](ctx, c, http.MethodGet, path("approvals", id), nil, nil)
	return r, err
}

// RequestFilter chooses requests; zero values choose everything.
type RequestFilter struct {
	State  string
	TaskID string
	Limit  int // 0: all
}

// Requests lists requests, newest first, over as many pages as the limit asks for.
func (c *Client) Requests(ctx context.Context, f RequestFilter) (List[Request], error) {
	q := url.Values{}
	set(q, "state", f.State)
	set(q, "task_id", f.TaskID)
	return pages[Request](ctx, c, path("approvals"), q, f.Limit)
}

// Patch writes the unified diff of the current revision to w and returns the digest
// of the revision that it belongs to, "" where the server does not say.
func (c *Client) Patch(ctx context.Context, id string, w io.Writer) (string, error) {
	h, err := c.stream(ctx, path("approvals", id)+"/patch", nil, w, "text/x-diff, application/problem+json")
	if err != nil {
		return "", err
	}
	return h.Get("Gatehouse-Digest"), nil
}

// Revert asks for a new task whose change undoes what a request has landed.
func (c *Client) Revert(ctx context.Context, id string) (Submitted, error) {
	out, _, err := ask[Submitted](ctx, c, http.MethodPost, path("approvals", id, "revert"), nil, nil)
	return out, err
}

// Verdict is a decision to send.
type Verdict struct {
	Verdict string `json:"verdict"` // approve, reject, request_changes or withdraw
	Digest  string `json:"digest"`
	// Revision is the one that was read; 0: the server takes a digest that one revision only had.
	Revision int    `json:"revision,omitempty"`
	Comment  string `json:"comment,omitempty"`
	// Ticked are, with approve, the codes of what was looked at.
	Ticked []string `json:"ticked,omitempty"`
	// Files are the only ones that are approved; none: all.
	Files    []string      `json:"files,omitempty"`
	Comments []LineComment `json:"comments,omitempty"` // with request_changes
	// StartOver has, with request_changes, the agent begin from the base.
	StartOver bool `json:"start_over,omitempty"`
}

// LineComment is a remark on a line of the new file; line 0 is the whole file.
type LineComment struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Decide sends a verdict and returns the request as it is then.
func (c *Client) Decide(ctx context.Context, id string, v Verdict) (Request, error) {
	if v.Digest == "" {
		return Request{}, fmt.Errorf("a verdict on %s names no digest", id)
	}
	r, _, err := ask[Request](ctx, c, http.MethodPost, path("approvals", id, "decision"), nil, v)
	return r, err
}
