package views

import (
	"fmt"
	"slices"
	"time"

	"gatehouse/orchestrator/badge"
)

// Section names the entry of the top bar that a page belongs to.
type Section string

// The sections that have a page.
const (
	SectionNone        Section = ""
	SectionOverview    Section = "overview"
	SectionApprovals   Section = "approvals"
	SectionDelegations Section = "delegations"
	SectionChat        Section = "chat"
	SectionAgents      Section = "agents"
	SectionContext     Section = "context"
	SectionInsights    Section = "insights"
	SectionTriggers    Section = "triggers"
	SectionAudit       Section = "audit"
	SectionSettings    Section = "settings"
)

// Person is who looks at the page.
type Person struct {
	Name   string
	Roles  []string
	Rights []string // the scopes of contract.md that they have, such as audit:read
}

// Problem is something wrong with the system itself, shown on top of every page.
type Problem struct {
	Text string
	Href string // the page that fixes it; may be empty
	Link string // the words of that link
}

// Flash says once what the last form did: after a redirect, or beside a form that was refused.
type Flash struct {
	Bad  bool
	Text string
	Href string // where the result is; may be empty
	Link string
}

// Crumb is one step of the way back on a detail page.
type Crumb struct {
	Text string
	Href string
}

// Chrome is what surrounds every page.
type Chrome struct {
	Title     string  // what matters first, without "· Gatehouse"
	State     string  // the state that the tab's icon carries; empty for none
	Section   Section // which link of the top bar is the current one
	Path      string  // address of this page with its query: live parts ask it again
	Person    *Person // nil when signed out
	CanSend   bool    // a role that may send tasks
	ToDecide  int     // requests that this person can decide
	Demo      bool    // the demo's strip and examples
	StreamURL string  // where the live connection is; empty: this page is not live
	Now       time.Time
	Problems  []Problem
	Flash     *Flash
	Search    string // what stands in the search box
	Zone      string // time zone that the reader chose, "" for that of the browser
	Session   string // names the session and is no secret: tabs of one session share a stream
}

// PageTitle is the text of the browser's tab, with how much waits for the reader.
func (c Chrome) PageTitle() string {
	title := c.Title
	if c.State != "" {
		title = badge.Of(c.State).Mark + " " + title
	}
	if title == "" {
		title = "Gatehouse"
	} else {
		title += " · Gatehouse"
	}
	if c.ToDecide > 0 {
		title = fmt.Sprintf("(%d) %s", c.ToDecide, title)
	}
	return title
}

// navItem is one link of the top bar.
type navItem struct {
	Section Section
	Text    string
	Href    string
	Key     string   // what goes there after g; "" where no key does
	Rights  []string // any of them; none: whoever is signed in
}

// navItems are all links, in their order.
var navItems = []navItem{
	{SectionOverview, "Overview", "/", "o", []string{"delegations:read"}},
	{SectionApprovals, "Approvals", "/approvals", "a", []string{"approvals:read"}},
	{SectionDelegations, "Delegations", "/delegations", "d", []string{"delegations:read"}},
	{SectionChat, "Chat", ChatPath, "c", []string{"tasks:write", "approvals:decide"}},
	{SectionAgents, "Agents", "/agents", "", []string{"delegations:read"}},
	{SectionContext, "Context", ContextPath, "", []string{"context:read"}},
	{SectionInsights, "Insights", InsightsPath, "", []string{"delegations:read"}},
	{SectionTriggers, "Triggers", TriggersPath, "", []string{"delegations:read"}},
	{SectionAudit, "Audit", AuditPath, "u", []string{"audit:read"}},
	{SectionSettings, "Settings", "/settings", "", nil},
}

// nav lists the links that the person can use: those of the bar, and those under More. An
// auditor who sends nothing has Audit in the bar, in place of Chat.
func (c Chrome) nav() (bar, more []navItem) {
	if c.Person == nil {
		return nil, nil
	}
	inBar := []Section{SectionOverview, SectionApprovals, SectionDelegations, SectionChat}
	if slices.Contains(c.Person.Roles, "auditor") && !slices.Contains(c.Person.Roles, "operator") {
		inBar[3] = SectionAudit
	}
	for _, n := range navItems {
		switch {
		case !c.Person.may(n.Rights):
		case slices.Contains(inBar, n.Section):
			bar = append(bar, n)
		default:
			more = append(more, n)
		}
	}
	return bar, more
}

// may says whether the person has any of the rights.
func (p *Person) may(rights []string) bool {
	return len(rights) == 0 || slices.ContainsFunc(rights, func(r string) bool { return slices.Contains(p.Rights, r) })
}

// Reads says whether the person may open the pages that ask for the right: a link to one that
// they may not open is left out.
func (c Chrome) Reads(right string) bool {
	return c.Person != nil && c.Person.may([]string{right})
}

// inMore says whether the page that is shown is one of those under More.
func (c Chrome) inMore() bool {
	_, more := c.nav()
	return slices.ContainsFunc(more, func(n navItem) bool { return n.Section == c.Section })
}
