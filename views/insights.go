package views

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"gatehouse/orchestrator/insight"
)

// InsightsPath is the page of figures.
const InsightsPath = "/insights"

// InsightsPage is `/insights`: the figures of a stretch of days.
type InsightsPage struct {
	Chrome
	From, To string // days, both included
	AsOf     time.Time
	Behind   int64
	Error    string // why the range was not taken
	Any      bool   // something was counted
	Total    insight.Figures
	Lists    []FigureList
	Breakers []insight.Breaker
	Turns    []insight.Turn
}

// FigureList are the figures by one dimension.
type FigureList struct {
	By    insight.Dimension
	Title string
	Rows  []insight.Row
}

// TaskFigures are the figures of one task.
type TaskFigures struct {
	Total insight.Figures
	Lists []FigureList
	Cut   bool // it has more events than were counted
}

// csvHref is the same list as a file.
func (p InsightsPage) csvHref(by insight.Dimension) string {
	return InsightsPath + "/" + string(by) + ".csv?" + url.Values{"from": {p.From}, "to": {p.To}}.Encode()
}

// rowHref leads to what a row is about, where there is a page of it.
func (l FigureList) rowHref(name string) string {
	switch {
	case name == "":
		return ""
	case l.By == insight.ByAgent:
		return AgentHref(name)
	case l.By == insight.ByRepository:
		return withQuery("/delegations", "repository", name)
	}
	return ""
}

func (l FigureList) name(name string) string {
	switch {
	case name != "":
		return name
	case l.By == insight.ByModel:
		return "no model named"
	case l.By == insight.ByRepository:
		return "no repository"
	}
	return "–"
}

// chart is one drawing made of a list by day.
type chart struct {
	ID, Title, Unit string
	Series          []string
	value           func(insight.Figures) []string
}

var charts = []chart{
	{"c-handoffs", "Hand-overs", "", []string{"made", "refused", "failed"}, func(f insight.Figures) []string {
		return []string{num(f.Handoffs), num(sum(f.Refusals)), num(sum(f.Failures))}
	}},
	{"c-tokens", "Tokens", "", []string{"in", "out"}, func(f insight.Figures) []string {
		return []string{num(f.InputTokens), num(f.OutputTokens)}
	}},
	{"c-money", "Money", "$", []string{"reported"}, func(f insight.Figures) []string {
		if f.USD == nil {
			return []string{""}
		}
		return []string{strconv.FormatFloat(*f.USD, 'f', 4, 64)}
	}},
	{"c-latency", "Hand-over to acknowledgement", "s", []string{"half", "95 of 100"}, func(f insight.Figures) []string {
		return []string{plain(f.Accepted.P50), plain(f.Accepted.P95)}
	}},
}

func num(n int64) string { return strconv.FormatInt(n, 10) }

func plain(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 3, 64)
}

func sum(m map[string]int64) int64 {
	n := int64(0)
	for _, v := range m {
		n += v
	}
	return n
}

// seconds reads a measured time; nothing measured is no zero.
func seconds(v *float64) string {
	if v == nil {
		return "–"
	}
	return Duration(time.Duration(*v * float64(time.Second)))
}

func waited(w insight.Waited) string {
	if w.N == 0 {
		return "–"
	}
	return Duration(time.Duration(w.Seconds * float64(time.Second)))
}

// cost is what was reported; reports without a price are said beside it.
func cost(f insight.Figures) string {
	switch {
	case f.USD == nil && f.Unpriced == 0:
		return "–"
	case f.USD == nil:
		return "not reported"
	case f.Unpriced > 0:
		return usd(f.USD) + " and more"
	}
	return usd(f.USD)
}

// codeCount is one code with how often it came.
type codeCount struct {
	Code string
	N    int64
}

// byCount lists codes, the most frequent first.
func byCount(m map[string]int64) []codeCount {
	var all []codeCount
	for _, code := range slices.Sorted(maps.Keys(m)) {
		all = append(all, codeCount{code, m[code]})
	}
	slices.SortStableFunc(all, func(a, b codeCount) int { return cmp.Compare(b.N, a.N) })
	return all
}

// CSVHead and CSVRow are the file of a list; times are seconds, money dollars, and a cell
// without a value was not measured.
var CSVHead = []string{"name", "tasks", "handoffs", "runs", "model_calls", "input_tokens", "output_tokens", "usd", "reports_without_price", "failures", "refusals", "deadlocks",
	"accepted_mean", "accepted_p50", "accepted_p95", "done_mean", "done_p50", "done_p95", "waited_for_slot", "waited_for_children", "waited_for_people", "breaker_opened"}

// CSVRow is one line under CSVHead. A name that a spreadsheet would take for a formula gets
// an apostrophe before it.
func CSVRow(r insight.Row) []string {
	name := r.Name
	if name != "" && (name[0] == '=' || name[0] == '+' || name[0] == '-' || name[0] == '@' || name[0] < ' ') {
		name = "'" + name
	}
	money := ""
	if r.USD != nil {
		money = strconv.FormatFloat(*r.USD, 'f', 6, 64)
	}
	return []string{name, num(r.Tasks), num(r.Handoffs), num(r.Runs), num(r.ModelCalls), num(r.InputTokens), num(r.OutputTokens), money, num(r.Unpriced), num(sum(r.Failures)), num(sum(r.Refusals)),
		num(r.Deadlocks), plain(r.Accepted.Mean), plain(r.Accepted.P50), plain(r.Accepted.P95), plain(r.Done.Mean), plain(r.Done.P50), plain(r.Done.P95),
		fmt.Sprintf("%.3f", r.ForSlot.Seconds), fmt.Sprintf("%.3f", r.ForChildren.Seconds), fmt.Sprintf("%.3f", r.ForPeople.Seconds), num(r.Opened)}
}
