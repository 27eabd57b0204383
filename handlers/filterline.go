package handlers

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// DefaultPeriod is the filter that an auditor's list begins with. It stands in the line,
// so that nobody takes a month for everything.
const DefaultPeriod = "time:30d"

// zoneCookie has the browser's time zone; its script sets it.
const zoneCookie = "gatehouse_zone"

// ReaderZone is the zone of the reader's days: the one of their settings, else the
// browser's, else the server's.
func (p *Site) ReaderZone(c echo.Context) *time.Location {
	who, _ := Who(c)
	if zone, ok := Zone(who.User.Zone); ok {
		return zone
	}
	if cookie, err := c.Cookie(zoneCookie); err == nil {
		if zone, ok := Zone(cookie.Value); ok {
			return zone
		}
	}
	return cmp.Or(p.Gateway.Config().Location, time.UTC)
}

// Zone is the time zone of that name; the zone of the server's machine has none.
func Zone(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || len(name) > 64 {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// FilterLine is a list's line of filters as the address has it, and what it means.
type FilterLine struct {
	path    string // of the page
	List    history.List
	keep    []views.FilterParam
	Line    string
	Query   history.Query
	Problem *views.FilterProblem
}

// ReadLine parses the line; one that is not understood is a problem for the page to show.
func ReadLine(path string, list history.List, line string, now time.Time, zone *time.Location, keep ...views.FilterParam) FilterLine {
	f := FilterLine{path: path, List: list, keep: keep, Line: line}
	var err error
	f.Query, err = history.Parse(list, line, now, zone)
	f.failed(err)
	return f
}

// failed notes why the line cannot be answered; nil notes nothing.
func (f *FilterLine) failed(err error) {
	var bad *history.Error
	switch {
	case err == nil:
	case errors.As(err, &bad):
		f.Problem = &views.FilterProblem{Part: bad.Part, Text: bad.Text}
	default:
		f.Problem = &views.FilterProblem{Text: err.Error()}
	}
}

// Href is the address of the list with another line.
func (f FilterLine) Href(line string) string {
	q := url.Values{"filter": {line}}
	for _, k := range f.keep {
		q.Set(k.Name, k.Value)
	}
	return f.path + "?" + q.Encode()
}

// pickPrefix begins the fields of the picker.
const pickPrefix = "p."

// Picked leads from the picker's fields to the address with the line that they make; ""
// when nothing was picked or the line has to be mended first.
func (f FilterLine) Picked(q url.Values) string {
	next, any := f.Query, false
	for _, key := range history.KeysOf(f.List) {
		values, ok := q[pickPrefix+string(key)]
		if !ok || len(values) == 0 {
			continue
		}
		any = true
		value := strings.TrimSpace(values[0])
		if value == views.FilterOther || value == pickedValue(f.Query, key) {
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
	if !any || f.Problem != nil {
		return ""
	}
	return f.Href(next.String())
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

// Bar is the line for the page. suggest has what is there for keys of any text.
func (f FilterLine) Bar(suggest map[history.Key][]string) views.FilterBar {
	b := views.FilterBar{Path: f.path, List: f.List, Line: f.Line, Problem: f.Problem, Keep: f.keep, Clear: f.Href(""), Hint: hints[f.List]}
	if f.Problem == nil {
		b.Chips = f.chips()
	}
	for _, key := range history.KeysOf(f.List) {
		pick := views.FilterPick{Key: string(key), Label: labels[key], Options: history.ValuesOf(f.List, key), Suggest: suggest[key], Hint: pickHints[key], Value: pickedValue(f.Query, key)}
		if key == history.Time {
			pick.Options = views.Periods
		}
		pick.Other = says(f.Query, key) && (pick.Value == "" || len(pick.Options) > 0 && !slices.Contains(pick.Options, pick.Value))
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
func (f FilterLine) chips() []views.FilterChip {
	var chips []views.FilterChip
	for i, t := range f.Query.Terms {
		rest := f.Query
		rest.Terms = slices.Delete(slices.Clone(rest.Terms), i, i+1)
		chips = append(chips, views.FilterChip{Text: t.String(), Href: f.Href(rest.String())})
	}
	if says(f.Query, history.Time) {
		only := history.Query{From: f.Query.From, To: f.Query.To, Last: f.Query.Last}
		chips = append(chips, views.FilterChip{Text: only.String(), Href: f.Href(f.Query.Without(history.Time).String())})
	}
	for i, w := range f.Query.Words {
		rest := f.Query
		rest.Words = slices.Delete(slices.Clone(rest.Words), i, i+1)
		chips = append(chips, views.FilterChip{Text: history.Query{Words: []string{w}}.String(), Href: f.Href(rest.String())})
	}
	return chips
}

// Asks reports whether the line has the term.
func (f FilterLine) Asks(t history.Term) bool {
	return f.Problem == nil && slices.ContainsFunc(f.Query.Terms, func(o history.Term) bool { return o.String() == t.String() })
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

// Suggestions are what there is of the keys of any text, as far as the configuration says.
func (p *Site) Suggestions() map[history.Key][]string {
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
	}
	for _, kind := range event.Stored() {
		all[history.Type] = append(all[history.Type], string(kind))
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

// RedirectTo leads to the address that the picker made.
func RedirectTo(c echo.Context, href string) error { return c.Redirect(http.StatusSeeOther, href) }

// channels are those in which people decide.
func channels() []string {
	names := each.Of(origin.Deciding(), each.String)
	return names
}

func NextHref(path, next string) string {
	if next == "" {
		return ""
	}
	return WithParam(path, "after", next)
}

// UnknownPlace refuses a cursor that no page of ours gave.
var UnknownPlace = Refuse(orchestrator.CodeBadRequest, "That place in the list is not known. Start at the first page.")

// CountUpTo is where lists stop to count: more rows are told as "500+". The page before an
// export counts all.
const CountUpTo = 500

// SoleWord is the one word of the line where it has nothing else, which may be an id.
func (f FilterLine) SoleWord() string {
	rest := f.Query.Without(history.Is)
	if f.Problem != nil || len(rest.Terms) > 0 || len(rest.Words) != 1 || says(rest, history.Time) {
		return ""
	}
	return rest.Words[0]
}
