package handlers

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// DefaultPeriod is the filter that an auditor's list begins with. It stands in the line,
// so that nobody takes a month for everything.
const DefaultPeriod = "time:30d"

// zoneCookie has the browser's time zone; its script sets it.
const zoneCookie = "gatehouse_zone"

// readerZone is the zone of the reader's days: the one of their settings, else the
// browser's, else the server's.
func (p *Pages) readerZone(c echo.Context) *time.Location {
	who, _ := Who(c)
	if zone, ok := Zone(who.User.Zone); ok {
		return zone
	}
	if cookie, err := c.Cookie(zoneCookie); err == nil {
		if zone, ok := Zone(cookie.Value); ok {
			return zone
		}
	}
	if server := p.Gateway.Config().Location; server != nil {
		return server
	}
	return time.UTC
}

// Zone is the time zone of that name; the zone of the server's machine has none.
func Zone(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// filterLine is a list's line of filters as the address has it, and what it means.
type filterLine struct {
	path    string // of the page
	list    history.List
	keep    []views.FilterParam
	line    string
	query   history.Query
	problem *views.FilterProblem
}

// readLine parses the line; one that is not understood is a problem for the page to show.
func readLine(path string, list history.List, line string, now time.Time, zone *time.Location, keep ...views.FilterParam) filterLine {
	f := filterLine{path: path, list: list, keep: keep, line: line}
	var err error
	f.query, err = history.Parse(list, line, now, zone)
	f.failed(err)
	return f
}

// failed notes why the line cannot be answered; nil notes nothing.
func (f *filterLine) failed(err error) {
	var bad *history.Error
	switch {
	case err == nil:
	case errors.As(err, &bad):
		f.problem = &views.FilterProblem{Part: bad.Part, Text: bad.Text}
	default:
		f.problem = &views.FilterProblem{Text: err.Error()}
	}
}

// href is the address of the list with another line.
func (f filterLine) href(line string) string {
	q := url.Values{"filter": {line}}
	for _, k := range f.keep {
		q.Set(k.Name, k.Value)
	}
	return f.path + "?" + q.Encode()
}

// pickPrefix begins the fields of the picker.
const pickPrefix = "p."

// picked leads from the picker's fields to the address with the line that they make; ""
// when nothing was picked or the line has to be mended first.
func (f filterLine) picked(q url.Values) string {
	next, any := f.query, false
	for _, key := range history.KeysOf(f.list) {
		values, ok := q[pickPrefix+string(key)]
		if !ok || len(values) == 0 {
			continue
		}
		any = true
		value := strings.TrimSpace(values[0])
		if value == views.FilterOther || value == pickedValue(f.query, key) {
			continue
		}
		next = next.Without(key)
		if value == "" {
			continue
		}
		if key == history.Time {
			next.From, next.To, next.Last = time.Time{}, time.Time{}, ""
		}
		next = next.With(history.Term{Key: key, Values: []string{value}})
	}
	if !any || f.problem != nil {
		return ""
	}
	return f.href(next.String())
}

// pickedValue is the one value that the picker can show of a key, "" for none.
func pickedValue(q history.Query, key history.Key) string {
	if key == history.Time {
		return q.Last
	}
	if values := q.Values(key); len(values) == 1 {
		return values[0]
	}
	return ""
}

// bar is the line for the page. suggest has what is there for keys of any text.
func (f filterLine) bar(suggest map[history.Key][]string) views.FilterBar {
	b := views.FilterBar{Path: f.path, List: f.list, Line: f.line, Problem: f.problem, Keep: f.keep, Clear: f.href(""), Hint: hints[f.list]}
	if f.problem == nil {
		b.Chips = f.chips()
	}
	for _, key := range history.KeysOf(f.list) {
		pick := views.FilterPick{Key: string(key), Label: labels[key], Options: history.ValuesOf(f.list, key), Suggest: suggest[key], Hint: pickHints[key], Value: pickedValue(f.query, key)}
		if key == history.Time {
			pick.Options = views.Periods
		}
		pick.Other = says(f.query, key) && (pick.Value == "" || len(pick.Options) > 0 && !slices.Contains(pick.Options, pick.Value))
		b.Picks = append(b.Picks, pick)
	}
	return b
}

// says reports whether the line says anything of the key.
func says(q history.Query, key history.Key) bool {
	if key == history.Time {
		return q.Last != "" || !q.From.IsZero() || !q.To.IsZero()
	}
	return slices.ContainsFunc(q.Terms, func(t history.Term) bool { return t.Key == key })
}

// chips are the filters of the line, each with the address of the list without it.
func (f filterLine) chips() []views.FilterChip {
	var chips []views.FilterChip
	for i, t := range f.query.Terms {
		rest := f.query
		rest.Terms = slices.Delete(slices.Clone(rest.Terms), i, i+1)
		chips = append(chips, views.FilterChip{Text: t.String(), Href: f.href(rest.String())})
	}
	if says(f.query, history.Time) {
		only := history.Query{From: f.query.From, To: f.query.To, Last: f.query.Last}
		chips = append(chips, views.FilterChip{Text: only.String(), Href: f.href(f.query.Without(history.Time).String())})
	}
	for i, w := range f.query.Words {
		rest := f.query
		rest.Words = slices.Delete(slices.Clone(rest.Words), i, i+1)
		chips = append(chips, views.FilterChip{Text: history.Query{Words: []string{w}}.String(), Href: f.href(rest.String())})
	}
	return chips
}

// asks reports whether the line has the term.
func (f filterLine) asks(t history.Term) bool {
	return f.problem == nil && slices.ContainsFunc(f.query.Terms, func(o history.Term) bool { return o.String() == t.String() })
}

var hints = map[history.List]string{
	history.Requests:    "approver:bob repository:app time:30d, or words",
	history.Delegations: "words, the last 6 of an id, or state:failed agent:coder",
	history.Events:      "type:approval.decided time:7d, or words",
}

var labels = map[history.Key]string{
	history.State: "State", history.Agent: "Agent", history.Repository: "Repository", history.Requester: "Who asked", history.Via: "Asked through",
	history.Approver: "Decided by", history.Channel: "Decided on", history.Rule: "Rule", history.Code: "Code", history.Time: "Time", history.Cost: "Cost in $",
	history.Task: "Task", history.Type: "Event", history.FourEyes: "Four eyes", history.Viewed: "All files viewed", history.Fast: "Within 10 s of opening",
	history.Warnings: "Warnings", history.Checks: "Failed checks", history.Is: "Is",
}

var pickHints = map[history.Key]string{history.Cost: ">0.5", history.Task: "the last 6", history.Code: "cycle", history.Approver: "bob, or rule:docs"}

// suggestions are what there is of the keys of any text, as far as the configuration says.
func (p *Pages) suggestions() map[history.Key][]string {
	conf, gate := p.Engine.Config(), p.Gateway.Config()
	people := map[string]bool{}
	for _, names := range gate.Groups {
		for _, name := range names {
			people[name] = true
		}
	}
	all := map[history.Key][]string{
		history.Repository: slices.Sorted(maps.Keys(conf.Repositories)),
		history.Approver:   slices.Sorted(maps.Keys(people)),
		history.Requester:  slices.Sorted(maps.Keys(people)),
		history.Via:        {"web", "cli", "api", "chat", "webhook", "schedule"},
		history.Channel:    channels(),
		history.Code: {"unknown_agent", "self", "not_allowed", "cycle", "max_depth", "max_handoffs", "repeat", "breaker_open", "budget_exceeded", "no_capacity", "human_refused",
			"analysis_only", "path_outside", "path_protected", "symlink", "too_large", "secret"},
		history.Type: {"task.created", "delegation.refused", "approval.requested", "approval.decided", "approval.expired", "patch.landed", "patch.reverted", "patch.rejected", "audit.exported"},
	}
	for _, s := range conf.Agents.All() {
		all[history.Agent] = append(all[history.Agent], s.Name)
	}
	if gate.Policy != nil {
		for _, r := range gate.Policy.Rules() {
			all[history.Rule] = append(all[history.Rule], r.Name)
		}
	}
	return all
}

// redirectTo leads to the address that the picker made.
func redirectTo(c echo.Context, href string) error { return c.Redirect(http.StatusSeeOther, href) }

// channels are those in which people decide.
func channels() []string {
	var names []string
	for _, c := range origin.Deciding() {
		names = append(names, string(c))
	}
	return names
}
