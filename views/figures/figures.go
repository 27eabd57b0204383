package figures

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
)

// TaskFigures are the figures of one task.
type TaskFigures struct {
	Total insight.Figures
	Lists []FigureList
}

// FigureList are the figures by one dimension.
type FigureList struct {
	By    insight.Dimension
	Title string
	Rows  []insight.Row
}

// rowHref leads to what a row is about, where there is a page of it.
func (l FigureList) rowHref(name string) string {
	switch {
	case name == "":
		return ""
	case l.By == insight.ByAgent:
		return views.AgentHref(name)
	case l.By == insight.ByRepository:
		return views.WithQuery("/delegations", "repository", name)
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

func Num(n int64) string { return strconv.FormatInt(n, 10) }

func Plain(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 3, 64)
}

func Sum(m map[string]int64) int64 {
	n := int64(0)
	for _, v := range m {
		n += v
	}
	return n
}

// Seconds reads a measured time; nothing measured is no zero.
func Seconds(v *float64) string {
	if v == nil {
		return "–"
	}
	return views.Duration(time.Duration(*v * float64(time.Second)))
}

func waited(w insight.Waited) string {
	if w.N == 0 {
		return "–"
	}
	return views.Duration(time.Duration(w.Seconds * float64(time.Second)))
}

// cost is what was reported; reports without a price are said beside it.
func cost(f insight.Figures) string {
	switch {
	case f.USD == nil && f.Unpriced == 0:
		return "–"
	case f.USD == nil:
		return "not reported"
	case f.Unpriced > 0:
		return views.Usd(f.USD) + " and more"
	}
	return views.Usd(f.USD)
}

// Share is a part in percent with its numbers; of nothing it is nothing.
func Share(n, all int64) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", insight.Part(n, all))
}

// Interactive are the channels in which people decide with a mouse or a finger.
func Interactive() []string {
	names := []string{string(origin.Web)}
	for _, c := range origin.Cards() {
		names = append(names, string(c))
	}
	return names
}

// ChannelName is where verdicts came from, as a title.
func ChannelName(channel string) string {
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

// ByCount lists codes, the most frequent first.
func ByCount(m map[string]int64) []codeCount {
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
	"asked", "decided", "decided_by_rule", "rejected", "decided_p50", "decided_p95", "lasted_p50", "lasted_p95", "denied_calls", "answered"}

// CSVRow is one line under CSVHead. A name that a spreadsheet would take for a formula gets
// an apostrophe before it.
func CSVRow(r insight.Row) []string {
	ends := r.Shares()
	money := ""
	if r.USD != nil {
		money = strconv.FormatFloat(*r.USD, 'f', 6, 64)
	}
	return []string{cell(r.Name), Num(r.Tasks), Num(r.Handoffs), Num(r.Runs), Num(r.ModelCalls), Num(r.InputTokens), Num(r.OutputTokens), money, Num(r.Unpriced), Num(Sum(r.Failures)), Num(Sum(r.Refusals)),
		Num(r.Deadlocks), Plain(r.Accepted.Mean), Plain(r.Accepted.P50), Plain(r.Accepted.P95), Plain(r.Done.Mean), Plain(r.Done.P50), Plain(r.Done.P95),
		fmt.Sprintf("%.3f", r.ForSlot.Seconds), fmt.Sprintf("%.3f", r.ForChildren.Seconds), fmt.Sprintf("%.3f", r.ForPeople.Seconds), Num(r.Opened),
		Num(r.Asked), Num(ends.Decided), Num(ends.ByRule), Num(ends.Rejected), Plain(r.Decided.P50), Plain(r.Decided.P95), Plain(r.Lasted.P50), Plain(r.Lasted.P95), Num(Sum(r.Denied)), Num(ends.Answered)}
}

// cell is text that no spreadsheet takes for a formula.
func cell(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@' || text[0] < ' ') {
		return "'" + text
	}
	return text
}

// ChannelHead and ChannelLine are the file of decisions by channel; times are seconds.
var ChannelHead = []string{"channel", "approved", "rejected", "changes_requested", "withdrawn", "expired", "decided_p50", "decided_p95", "answered"}

// ChannelLine is one line under ChannelHead.
func ChannelLine(r insight.ChannelRow) []string {
	return []string{cell(r.Channel), Num(r.Approved), Num(r.Rejected), Num(r.ChangesRequested), Num(r.Withdrawn), Num(r.Expired), Plain(r.Took.P50), Plain(r.Took.P95), Num(r.Answered)}
}
