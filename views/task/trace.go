package task

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
)

// Below counts what hides under a closed row.
type Below struct {
	N, Live, People, Failed, Rejected, Expired, Cancelled int
}

// Count adds one delegation of this state.
func (b *Below) Count(state string) {
	b.N++
	if badge.Live(state) {
		b.Live++
	}
	switch state {
	case "awaiting_approval":
		b.People++
	case "failed":
		b.Failed++
	case "rejected":
		b.Rejected++
	case "expired":
		b.Expired++
	case "cancelled":
		b.Cancelled++
	}
}

// Add adds what another row hides.
func (b *Below) Add(o Below) {
	b.N, b.Live, b.People = b.N+o.N, b.Live+o.Live, b.People+o.People
	b.Failed, b.Rejected, b.Expired, b.Cancelled = b.Failed+o.Failed, b.Rejected+o.Rejected, b.Expired+o.Expired, b.Cancelled+o.Cancelled
}

// hidden is one kind of what a closed row hides.
type hidden struct {
	N     int
	State string
}

// worst lists what a closed row must not hide, the worst first, at most two kinds.
func (b Below) worst() []hidden {
	all := []hidden{{b.Failed, "failed"}, {b.Rejected, "rejected"}, {b.Expired, "expired"}, {b.People, "awaiting_approval"}, {b.Live - b.People, "running"}}
	all = slices.DeleteFunc(all, func(h hidden) bool { return h.N <= 0 })
	return all[:min(len(all), 2)]
}

// words is the same for readers aloud.
func (b Below) words() string {
	words := views.Thousands(b.N) + " below"
	for _, h := range b.worst() {
		words += fmt.Sprintf(", %s %s", views.Thousands(h.N), views.StateWord(h.State))
	}
	return words
}

// Meter is one part of the budget: what was used, and what work under way may still use.
type Meter struct {
	Name     string
	Words    string  // "9.4k used · 20k reserved · of 150k"
	Used     float64 // per cent of the limit
	Reserved float64
	Over     bool // the limit was passed
}

// NewMeter measures against a limit of more than 0.
func NewMeter(name, words string, used, reserved, limit float64) Meter {
	m := Meter{Name: name, Words: words, Over: used > limit}
	if limit > 0 {
		m.Used = min(100*used/limit, 100)
		m.Reserved = min(100*reserved/limit, 100-m.Used)
	}
	return m
}

// ContextPiece is one entry of the shared context that a task read or wrote.
type ContextPiece struct {
	Namespace, Key string
	Read, Written  bool
	Value          string    // as it is now, cut
	Bytes          int       // of the whole value where Value is only its beginning
	Author         string    // who wrote it last
	UpdatedAt      time.Time // zero: it is gone
	ExpiresAt      *time.Time
	Uses           []sharedctx.Use // of this task, newest first
}

// how says in a word what the task did with it.
func (c ContextPiece) how() string {
	switch {
	case c.Read && c.Written:
		return "read and written"
	case c.Written:
		return "written"
	}
	return "read"
}

// href is the address of a delegation of this task on a tab, with what stays of this one.
func (p DelegationPage) href(id string, t Tab) string {
	q := url.Values{}
	maps.Copy(q, p.Keep)
	if t != TabTree {
		q.Set("tab", string(t))
	}
	if p.Plain {
		q.Set("plain", "on")
	}
	if len(q) == 0 {
		return views.DelegationHref(id)
	}
	return views.DelegationHref(id) + "?" + q.Encode()
}

func (p DelegationPage) tabHref(t Tab) string { return p.href(p.ID, t) }

// rowHref selects a row and keeps the tab; a refusal is its event.
func (p DelegationPage) rowHref(r TreeRow) string {
	if r.Refused() {
		return p.eventHref(r.N)
	}
	return p.href(r.ID, p.Tab)
}

// eventHref is the permalink of an event: its page, and its place there.
func (p DelegationPage) eventHref(n int64) string {
	return fmt.Sprintf("%s?at=%d&tab=%s#e-%d", views.DelegationHref(p.TaskID), n, TabEvents, n)
}

// foldHref opens or closes what is below a row.
func (p DelegationPage) foldHref(r TreeRow) string {
	keys := strings.FieldsFunc(p.Keep.Get("fold"), func(c rune) bool { return c == '.' })
	if i := slices.Index(keys, r.FoldKey); i >= 0 {
		keys = slices.Delete(keys, i, i+1)
	} else {
		keys = append(keys, r.FoldKey)
	}
	return views.WithQuery(p.Path, "fold", strings.Join(keys, "."))
}

// gapOpen says whether a gap is drawn in full: all are, or it was opened by itself.
func (p DelegationPage) gapOpen(key string) bool {
	return p.Open || slices.Contains(strings.Split(p.Keep.Get("gap"), "."), key)
}

// gapHref opens or pinches one gap of a timeline and leaves the others as they are.
func (p DelegationPage) gapHref(g gap, all []gap) string {
	var keys []string
	for _, o := range all {
		if o.Open != (o.Key == g.Key) {
			keys = append(keys, o.Key)
		}
	}
	return views.WithQuery(views.WithQuery(p.Path, "pinch", ""), "gap", strings.Join(keys, "."))
}

// pinchHref draws all gaps in full, or pinches all of them.
func (p DelegationPage) pinchHref(value string) string {
	return views.WithQuery(views.WithQuery(p.Path, "gap", ""), "pinch", value)
}

// moreHref shows one more piece of the long texts of this page.
func (p DelegationPage) moreHref() string {
	return views.WithQuery(p.Path, "more", fmt.Sprint(p.Selected.More+1))
}

// rawHref is the event alone, as JSON.
func (p DelegationPage) rawHref(n int64) string {
	return fmt.Sprintf("/api/v1/delegations/%s/events?after=%d&limit=1", url.PathEscape(p.TaskID), n-1)
}

// big says that the tree needs a search.
func (p DelegationPage) big() bool { return p.TreeN > 20 || p.Find != "" }

// levelWords say where a row stands, for readers aloud.
func levelWords(r TreeRow) string { return fmt.Sprintf("level %d ", r.Depth+1) }

// HasTree says that the tab shows the tree, if only at its left.
func (p DelegationPage) HasTree() bool {
	return p.Tab != TabContext && p.Tab != TabFlow && p.Tab != TabFigures
}

// skips leads past the head to the tree, where the tab has one.
func (p DelegationPage) skips() []views.SkipLink {
	if !p.HasTree() {
		return nil
	}
	return []views.SkipLink{{Href: "#tree", Text: "Skip to the tree"}}
}

// HasPane says that the tab shows the selected delegation in full.
func (p DelegationPage) HasPane() bool {
	return p.Tab == TabTree || p.Tab == TabTimeline || p.Tab == TabResult
}

// long says that the rows get a box of their own to scroll in, so that the selected
// delegation stays in reach below them.
func (p DelegationPage) long() bool { return len(p.Tree) > 30 }

// pace is how many milliseconds lie between two renewals at least: reading a large tree
// costs the server more than a small one.
func (p DelegationPage) pace() string {
	if p.TreeN > 500 || p.Heavy {
		return "3000"
	}
	return "0"
}
