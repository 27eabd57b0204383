package overview

import (
	"net/url"
	"strconv"
	"time"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/views"
	"gatehouse/views/figures"
)

// InsightsPage is `/insights`: the figures of a stretch of days.
type InsightsPage struct {
	views.Chrome
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
	Lists    []figures.FigureList
	Breakers []insight.Breaker
	Turns    []insight.Turn
}

// csvHref is the same list as a file.
func (p InsightsPage) csvHref(by insight.Dimension) string {
	address := views.InsightsPath + "/" + string(by) + ".csv?" + url.Values{"from": {p.From}, "to": {p.To}}.Encode()
	return views.WithQuery(views.WithQuery(address, "agent", p.Agent), "repository", p.Repo)
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

// chart is one drawing made of a list by day.
type chart struct {
	ID, Title, Unit string
	Series          []string
	value           func(insight.Figures) []string
}

var charts = []chart{
	{"c-tasks", "Tasks", "", []string{"made", "ended"}, func(f insight.Figures) []string {
		return []string{figures.Num(f.Tasks), figures.Num(f.Lasted.N)}
	}},
	{"c-handoffs", "Hand-overs", "", []string{"made", "refused", "failed"}, func(f insight.Figures) []string {
		return []string{figures.Num(f.Handoffs), figures.Num(figures.Sum(f.Refusals)), figures.Num(figures.Sum(f.Failures))}
	}},
	{"c-lasted", "From a task to its end", "s", []string{"half", "95 of 100"}, func(f insight.Figures) []string {
		return []string{figures.Plain(f.Lasted.P50), figures.Plain(f.Lasted.P95)}
	}},
	{"c-latency", "Hand-over to acknowledgement", "s", []string{"half", "95 of 100"}, func(f insight.Figures) []string {
		return []string{figures.Plain(f.Accepted.P50), figures.Plain(f.Accepted.P95)}
	}},
	{"c-tokens", "Tokens", "", []string{"in", "out"}, func(f insight.Figures) []string {
		return []string{figures.Num(f.InputTokens), figures.Num(f.OutputTokens)}
	}},
	{"c-money", "Money", "$", []string{"reported"}, func(f insight.Figures) []string {
		if f.USD == nil {
			return []string{""}
		}
		return []string{strconv.FormatFloat(*f.USD, 'f', 4, 64)}
	}},
	{"c-approvals", "Approvals", "", []string{"asked", "by a rule", "rejected"}, func(f insight.Figures) []string {
		s := f.Shares()
		return []string{figures.Num(f.Asked), figures.Num(s.ByRule), figures.Num(s.Rejected)}
	}},
	{"c-decided", "From a request to its decision", "s", append(figures.Interactive(), "API and command line"), func(f insight.Figures) []string {
		cli, api := f.ByChannel[string(origin.CLI)], f.ByChannel[string(origin.API)]
		if cli.N < api.N {
			cli = api // the one that more people use speaks for both
		}
		var took []string
		for _, c := range figures.Interactive() {
			took = append(took, figures.Plain(f.ByChannel[c].P50))
		}
		return append(took, figures.Plain(cli.P50))
	}},
	{"c-refusals", "Refusals", "", []string{"cycle, repeat, self", "depth, hand-overs", "budget, capacity", "other"}, func(f insight.Figures) []string {
		circle := f.Deadlocks + f.Refusals["self"]
		limits := f.Refusals["max_depth"] + f.Refusals["max_handoffs"]
		means := f.Refusals["budget_exceeded"] + f.Refusals["no_capacity"]
		return []string{figures.Num(circle), figures.Num(limits), figures.Num(means), figures.Num(figures.Sum(f.Refusals) - circle - limits - means)}
	}},
	{"c-breakers", "Breakers", "", []string{"opened", "closed"}, func(f insight.Figures) []string {
		return []string{figures.Num(f.Opened), figures.Num(f.Closed)}
	}},
}
