package review

import (
	"strings"

	"gatehouse/views"
)

// ApprovalsPage is `/approvals`.
type ApprovalsPage struct {
	views.Chrome
	State        string // filter; empty is all
	Repository   string
	Agent        string
	Rule         string
	Mine         bool // only what the reader may approve
	Oldest       bool // the oldest come first
	Repositories []string
	Agents       []string
	Rules        []string
	Counts       map[string]int // by tab; more than 1000 are shown as 1,000+
	Rows         []views.ApprovalRow
	Total        int // without any filter
	NextHref     string
	Later        bool
	Running      int // live tasks, for "Nothing needs you. 4 tasks are running."
}

var approvalTabs = []struct{ State, Text string }{
	{"pending", "Pending"}, {"landed", "Landed"}, {"rejected", "Rejected"},
	{"changes_requested", "Changes requested"}, {"stale", "Stale"}, {"expired", "Expired"}, {"", "All"},
}

// ApprovalTabs are the states that have a tab; "" is all.
func ApprovalTabs() []string {
	var states []string
	for _, t := range approvalTabs {
		states = append(states, t.State)
	}
	return states
}

// Filtered reports whether more than the state narrows the list.
func (p ApprovalsPage) Filtered() bool {
	return p.Repository != "" || p.Agent != "" || p.Rule != "" || p.Mine
}

// tabHref is the list in another state, with the same filter.
func (p ApprovalsPage) tabHref(state string) string {
	href := views.WithQuery("/approvals", "state", approvalTabValue(state))
	for _, f := range p.filters() {
		if f.key != "mine" || state == "pending" {
			href = views.WithQuery(href, f.key, f.value)
		}
	}
	return href
}

// approvalFilter is one condition of the list as the address has it.
type approvalFilter struct{ key, value string }

func (p ApprovalsPage) filters() []approvalFilter {
	var all []approvalFilter
	for _, f := range []approvalFilter{{"repository", p.Repository}, {"agent", p.Agent}, {"rule", p.Rule}} {
		if f.value != "" {
			all = append(all, f)
		}
	}
	if p.Mine {
		all = append(all, approvalFilter{"mine", "1"})
	}
	return all
}

// filterWords repeats the filter: repository:app rule:core.
func (p ApprovalsPage) filterWords() string {
	s := ""
	for _, f := range p.filters() {
		s += f.key + ":" + f.value + " "
	}
	return strings.TrimSpace(s)
}

// countWords is how many requests a tab has.
func countWords(n int) string {
	if n > 1000 {
		return "1,000+"
	}
	return views.Thousands(n)
}
