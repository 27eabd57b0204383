package audit

import (
	"strconv"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/views"
)

// AuditPage is `/audit`.
type AuditPage struct {
	views.Chrome
	Filters  views.FilterBar
	List     history.List
	Tabs     []AuditTab
	Columns  []AuditColumn // all of the list
	Requests []history.Row
	Tasks    []views.DelegationRow
	Events   []AuditEvent
	Count    history.Count // that the filter takes
	All      history.Count // without any filter
	NextHref string
	LookedTo time.Time // a search that ended before it had found a page full; zero: none
	Later    bool
	Zone     string // whose days and times these are
	Loc      *time.Location
	Ready    []AuditQuestion
	Views    []AuditView
	MayShare bool // an admin may show a view to everybody
	MaySave  bool // a person looks, not a token without one
	SaveName string
	SaveBad  string // why the view was not saved
	Proof    AuditProof
	Live     bool
	LiveHref string // the address with live on or off
}

// AuditTab leads to one of the lists.
type AuditTab struct {
	List history.List
	Href string
}

// AuditColumn is a column that can be shown.
type AuditColumn struct {
	Key  string
	Text string
	On   bool
	Num  bool
}

// AuditQuestion is a ready question; On: the line asks it.
type AuditQuestion struct {
	Text string
	Href string
	On   bool
}

// AuditView is a saved view.
type AuditView struct {
	ID     string
	Name   string // foreign
	Owner  string
	Mine   bool
	Shared bool
	Href   string
	Delete bool // the reader may remove it
}

// AuditEvent is one event of the log with what it says.
type AuditEvent struct {
	history.Found
	Text string // one line of what happened; foreign
}

// AuditProof is how far the history is sealed and what the last verification found.
type AuditProof struct {
	SealedAt time.Time           // zero: nothing is sealed
	Last     *proof.Verification // nil: nobody has verified yet
}

// AuditVerifyPage is `/audit/verify`.
type AuditVerifyPage struct {
	views.Chrome
	Proof   AuditProof
	Keys    []proof.Key
	Problem string // why no verification was started; "" else
}

// columnSets are the columns of each list: those that are shown unless others are chosen
// have a star.
var columnSets = map[history.List][]AuditColumn{
	history.Requests: {
		{Key: "time", Text: "Time", On: true}, {Key: "title", Text: "Request", On: true}, {Key: "who", Text: "Who asked", On: true}, {Key: "chain", Text: "Chain", On: true},
		{Key: "repository", Text: "Repository", On: true}, {Key: "rule", Text: "Rule", On: true}, {Key: "decided", Text: "Decided by", On: true},
		{Key: "outcome", Text: "Outcome", On: true}, {Key: "findings", Text: "To look at", On: true}, {Key: "size", Text: "Size", Num: true},
		{Key: "warnings", Text: "Warnings"}, {Key: "took", Text: "Took", Num: true}, {Key: "cost", Text: "Cost", Num: true}, {Key: "id", Text: "Id"}},
	history.Delegations: {
		{Key: "time", Text: "Time", On: true}, {Key: "state", Text: "State", On: true}, {Key: "title", Text: "Task", On: true}, {Key: "chain", Text: "Chain", On: true},
		{Key: "repository", Text: "Repository", On: true}, {Key: "who", Text: "Who asked", On: true}, {Key: "code", Text: "Code", On: true}, {Key: "usage", Text: "Usage", Num: true, On: true}, {Key: "id", Text: "Id"}},
	history.Events: {
		{Key: "time", Text: "Time", On: true}, {Key: "type", Text: "Event", On: true}, {Key: "who", Text: "By", On: true}, {Key: "text", Text: "What", On: true},
		{Key: "task", Text: "Task", On: true}, {Key: "n", Text: "n", Num: true}, {Key: "hash", Text: "Hash"}, {Key: "id", Text: "Id"}},
}

// AuditColumns are the columns of a list, with those on that are named; where none of
// the names is known, the usual ones.
func AuditColumns(list history.List, names []string) []AuditColumn {
	all := make([]AuditColumn, len(columnSets[list]))
	copy(all, columnSets[list])
	known := false
	for _, c := range all {
		for _, n := range names {
			known = known || n == c.Key
		}
	}
	if !known {
		return all
	}
	for i := range all {
		all[i].On = all[i].Key == "title" && list == history.Requests // the link to the evidence
		for _, n := range names {
			all[i].On = all[i].On || n == all[i].Key
		}
	}
	return all
}

// Shown are the columns that are on.
func (p AuditPage) Shown() []AuditColumn {
	var on []AuditColumn
	for _, c := range p.Columns {
		if c.On {
			on = append(on, c)
		}
	}
	return on
}

// rows is how many rows the page has.
func (p AuditPage) rows() int { return len(p.Requests) + len(p.Tasks) + len(p.Events) }

// listNames are one and many of what a list has.
var listNames = map[history.List][2]string{
	history.Requests: {"request", "requests"}, history.Delegations: {"delegation", "delegations"}, history.Events: {"event", "events"}}

// countOf is a number of rows that may have been counted only so far.
func countOf(c history.Count, list history.List) string {
	name := listNames[list][1]
	if c.N == 1 && !c.Least {
		name = listNames[list][0]
	}
	return views.CountN(c) + " " + name
}

// CountWords is "11 requests of 482", or "482 requests" where the filter takes all.
func CountWords(count, all history.Count, list history.List) string {
	if count == all {
		return countOf(count, list)
	}
	return countOf(count, list) + " of " + views.CountN(all)
}

// auditTime is a moment in the reader's zone.
func (p AuditPage) auditTime(t time.Time) string {
	if p.Loc != nil {
		t = t.In(p.Loc)
	}
	return t.Format("2006-01-02 15:04")
}

// deciders says who decided, the newest verdict of each person once.
func deciders(r history.Row) string {
	var parts []string
	for _, d := range r.Deciders {
		words := d.Name
		if rule, ok := orchestrator.ByRule(d.Name); ok {
			words = "rule " + rule + " (auto)"
		} else if d.Channel != "" {
			words += " " + string(d.Channel)
		}
		if d.Verdict != "approve" {
			words += " (" + strings.ReplaceAll(d.Verdict, "_", " ") + ")"
		}
		parts = append(parts, words)
	}
	return views.AndMore(parts, 3)
}

// flagNames are what the ready questions find, as they stand beside a request.
var flagNames = map[string]string{
	"four_eyes:no": "no four eyes", "viewed:no": "not all files viewed", "fast:yes": "within 10 s",
	"warnings:overruled": "warnings overruled", "checks:overruled": "failed checks overruled"}

// findings are the flags of a request that an auditor looks at.
func findings(r history.Row) []string {
	var names []string
	for _, f := range r.Flags {
		if n, ok := flagNames[f]; ok {
			names = append(names, n)
		}
	}
	return names
}

// tookWords is how long the decision took.
func tookWords(r history.Row) string {
	if r.DecidedAt == nil {
		return ""
	}
	return views.Duration(r.DecidedAt.Sub(r.At))
}

// ruleOf is the rule of a request and what it asked for.
func ruleOf(r history.Row) string {
	if r.Rule == "" || r.Need < 2 {
		return r.Rule
	}
	return r.Rule + ", " + strconv.Itoa(r.Need) + " needed"
}

// oldLink is what a page of older rows leads back to.
func (p AuditPage) newestHref() string { return views.WithQuery(p.Path, "after", "") }

// AuditExportPage is `/audit/export`: what a file will have, before it is made.
type AuditExportPage struct {
	views.Chrome
	List    history.List
	Line    string
	Problem *views.FilterProblem
	Count   history.Count
	Zone    string
	Back    string // the list
}

// exportHref is where the file comes from.
func (p AuditExportPage) exportHref(format string) string {
	return views.WithQuery(views.WithQuery(views.FilterHref("/api/v1/audit/export", p.List, p.Line), "format", format), "zone", p.Zone)
}
