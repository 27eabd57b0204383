package views

import (
	"fmt"
	"slices"
	"time"
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
	Name  string
	Roles []string
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
}

// PageTitle is the text of the browser's tab.
func (c Chrome) PageTitle() string {
	title := c.Title
	if c.State != "" {
		title = stateOf(c.State).Mark + " " + title
	}
	if c.Section == SectionApprovals && c.ToDecide > 0 && c.State == "" {
		title = fmt.Sprintf("(%d) %s", c.ToDecide, title)
	}
	if title == "" {
		return "Gatehouse"
	}
	return title + " · Gatehouse"
}

// navItem is one link of the top bar.
type navItem struct {
	Section Section
	Text    string
	Href    string
	Count   int
	Key     string
}

// mayChat says whether the chat has something for this person: they send, or decide.
func (c Chrome) mayChat() bool {
	return c.CanSend || c.Person != nil && slices.Contains(c.Person.Roles, "approver")
}

func (c Chrome) nav() []navItem {
	if c.Person == nil {
		return nil
	}
	all := []navItem{
		{SectionOverview, "Overview", "/", 0, "o"},
		{SectionApprovals, "Approvals", "/approvals", c.ToDecide, "a"},
		{SectionDelegations, "Delegations", "/delegations", 0, "d"},
		{SectionChat, "Chat", ChatPath, 0, "c"},
		{SectionAgents, "Agents", "/agents", 0, ""},
		{SectionContext, "Context", ContextPath, 0, ""},
		{SectionInsights, "Insights", InsightsPath, 0, ""},
		{SectionSettings, "Settings", "/settings", 0, ""},
	}
	return slices.DeleteFunc(all, func(n navItem) bool { return n.Section == SectionChat && !c.mayChat() })
}
