package views

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/insight"
)

// InsightsPath is the page of figures.
const InsightsPath = "/insights"

// InsightsPage is `/insights`: the figures of a stretch of days.
type InsightsPage struct {
	Chrome
	From, To string // days, both included
	Agent    string // only what this agent did; empty: all
	Repo     string // only in this repository; empty: all
	Agents   []string
	Repos    []string
	MayAudit bool // numbers lead into the history
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
}

// csvHref is the same list as a file.
func (p InsightsPage) csvHref(by insight.Dimension) string {
	address := InsightsPath + "/" + string(by) + ".csv?" + url.Values{"from": {p.From}, "to": {p.To}}.Encode()
	return withQuery(withQuery(address, "agent", p.Agent), "repository", p.Repo)
}

// filtered says whether only a part is shown.
func (p InsightsPage) filtered() bool { return p.Agent != "" || p.Repo != "" }

// history leads from a number to what it counts, for those who may read the history.
func (p InsightsPage) history(list, term string) string {
	if !p.MayAudit {
		return ""
	}
	line := term
	if line != "" {
		line += " "
	}
	line += "time:" + p.From + ".." + p.To
	for _, part := range [][2]string{{"agent", p.Agent}, {"repository", p.Repo}} {
		if part[1] != "" {
			line += " " + part[0] + ":" + strconv.Quote(part[1])
		}
	}
	return "/audit?" + url.Values{"list": {list}, "filter": {line}}.Encode()
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
	{"c-tasks", "Tasks", "", []string{"made", "ended"}, func(f insight.Figures) []string {
		return []string{num(f.Tasks), num(f.Lasted.N)}
	}},
	{"c-handoffs", "Hand-overs", "", []string{"made", "refused", "failed"}, func(f insight.Figures) []string {
		return []string{num(f.Handoffs), num(sum(f.Refusals)), num(sum(f.Failures))}
	}},
	{"c-lasted", "From a task to its end", "s", []string{"half", "95 of 100"}, func(f insight.Figures) []string {
		return []string{plain(f.Lasted.P50), plain(f.Lasted.P95)}
	}},
	{"c-latency", "Hand-over to acknowledgement", "s", []string{"half", "95 of 100"}, func(f insight.Figures) []string {
		return []string{plain(f.Accepted.P50), plain(f.Accepted.P95)}
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
	{"c-approvals", "Approvals", "", []string{"asked", "by a rule", "rejected"}, func(f insight.Figures) []string {
		s := f.Shares()
		return []string{num(f.Asked), num(s.ByRule), num(s.Rejected)}
	}},
	{"c-decided", "From a request to its decision", "s", append(interactive(), "API and command line"), func(f insight.Figures) []string {
		cli, api := f.ByChannel[string(origin.CLI)], f.ByChannel[string(origin.API)]
		if cli.N < api.N {
			cli = api // the one that more people use speaks for both
		}
		var took []string
		for _, c := range interactive() {
			took = append(took, plain(f.ByChannel[c].P50))
		}
		return append(took, plain(cli.P50))
	}},
	{"c-refusals", "Refusals", "", []string{"cycle, repeat, self", "depth, hand-overs", "budget, capacity", "other"}, func(f insight.Figures) []string {
		circle := f.Deadlocks + f.Refusals["self"]
		limits := f.Refusals["max_depth"] + f.Refusals["max_handoffs"]
		means := f.Refusals["budget_exceeded"] + f.Refusals["no_capacity"]
		return []string{num(circle), num(limits), num(means), num(sum(f.Refusals) - circle - limits - means)}
	}},
	{"c-breakers", "Breakers", "", []string{"opened", "closed"}, func(f insight.Figures) []string {
		return []string{num(f.Opened), num(f.Closed)}
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

// share is a part in percent with its numbers; of nothing it is nothing.
func share(n, all int64) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", insight.Part(n, all))
}

// interactive are the channels in which people decide with a mouse or a finger.
func interactive() []string {
	names := []string{string(origin.Web)}
	for _, c := range origin.Cards() {
		names = append(names, string(c))
	}
	return names
}

// channelName is where verdicts came from, as a title.
func channelName(channel string) string {
	if channel == "" {
		return "Nobody: the time ran out"
	}
	return origin.Channel(channel).Title()
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
	"accepted_mean", "accepted_p50", "accepted_p95", "done_mean", "done_p50", "done_p95", "waited_for_slot", "waited_for_children", "waited_for_people", "breaker_opened",
	"asked", "decided", "decided_by_rule", "rejected", "decided_p50", "decided_p95", "lasted_p50", "lasted_p95"}

// CSVRow is one line under CSVHead. A name that a spreadsheet would take for a formula gets
// an apostrophe before it.
func CSVRow(r insight.Row) []string {
	ends := r.Shares()
	money := ""
	if r.USD != nil {
		money = strconv.FormatFloat(*r.USD, 'f', 6, 64)
	}
	return []string{cell(r.Name), num(r.Tasks), num(r.Handoffs), num(r.Runs), num(r.ModelCalls), num(r.InputTokens), num(r.OutputTokens), money, num(r.Unpriced), num(sum(r.Failures)), num(sum(r.Refusals)),
		num(r.Deadlocks), plain(r.Accepted.Mean), plain(r.Accepted.P50), plain(r.Accepted.P95), plain(r.Done.Mean), plain(r.Done.P50), plain(r.Done.P95),
		fmt.Sprintf("%.3f", r.ForSlot.Seconds), fmt.Sprintf("%.3f", r.ForChildren.Seconds), fmt.Sprintf("%.3f", r.ForPeople.Seconds), num(r.Opened),
		num(r.Asked), num(ends.Decided), num(ends.ByRule), num(ends.Rejected), plain(r.Decided.P50), plain(r.Decided.P95), plain(r.Lasted.P50), plain(r.Lasted.P95)}
}

// cell is text that no spreadsheet takes for a formula.
func cell(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@' || text[0] < ' ') {
		return "'" + text
	}
	return text
}

// ChannelHead and ChannelLine are the file of decisions by channel; times are seconds.
var ChannelHead = []string{"channel", "approved", "rejected", "changes_requested", "withdrawn", "expired", "decided_p50", "decided_p95"}

// ChannelLine is one line under ChannelHead.
func ChannelLine(r insight.ChannelRow) []string {
	return []string{cell(r.Channel), num(r.Approved), num(r.Rejected), num(r.ChangesRequested), num(r.Withdrawn), num(r.Expired), plain(r.Took.P50), plain(r.Took.P95)}
}
