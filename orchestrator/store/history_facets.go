package store

import (
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/record/history"
)

// hasty is the time from opening a page to a yes below which nobody has read it.
const hasty = 10 * time.Second

// facet is one thing that lists filter requests by. Values are in lower case.
type facet struct {
	key   history.Key
	value string
}

// facets collects them, each once.
type facets []facet

func (f *facets) add(key history.Key, value string) {
	one := facet{key, facetValue(value)}
	if one.value != "" && !slices.Contains(*f, one) {
		*f = append(*f, one)
	}
}

func (f *facets) when(holds bool, key history.Key, value string) {
	if holds {
		f.add(key, value)
	}
}

// facetValue is a value as it is stored and asked for.
func facetValue(s string) string { return strings.ToLower(clean(s)) }

// facetsOf is everything that r is found by, but for its codes, which the log brings.
func facetsOf(r *approval.Request) facets {
	var f facets
	f.add(history.State, string(r.State))
	f.add(history.Agent, r.Agent)
	f.add(history.Repository, r.Repository)
	f.add(history.Requester, r.Requester)
	f.add(history.Via, r.Via.String())
	if r.Via.Trigger() != "" {
		f.add(history.Via, string(r.Via.Kind)) // "webhook ci-failed" is found by either
	}
	f.add(history.Rule, r.Rule.Name)
	for _, d := range r.Decisions {
		f.add(history.Approver, d.User)
		f.add(history.Channel, string(d.Channel))
	}
	f.when(r.State == approval.Landed, history.Is, "landed")
	f.when(r.State == approval.Rejected, history.Is, "refused")
	f.when(r.State == approval.Expired, history.Is, "expired")
	f.when(r.State == approval.Reverted, history.Is, "reverted")
	f.when(r.RevertOf != "", history.Is, "revert")
	f.when(r.Revision.Made == approval.MadeByEdit, history.Is, "edited")
	f.when(r.IsHandover(), history.Is, "handover")
	if r.State == approval.Approved || r.State == approval.Landed || r.State == approval.Reverted {
		f.approved(r)
	}
	return f
}

// approved adds how the yes to r came about.
func (f *facets) approved(r *approval.Request) {
	byRule, people := false, 0
	alone, unread, fast, slow := false, false, false, false
	for _, d := range r.Yes() {
		if d.OfRule() {
			byRule = true
			continue
		}
		people++
		alone = alone || hasPart(r, d)
		unread = unread || !d.Seen.All(len(r.Revision.Files))
		if d.Seen.OpenedAt != nil {
			quick := d.At.Sub(*d.Seen.OpenedAt) < hasty
			fast, slow = fast || quick, slow || !quick
		}
	}
	f.when(byRule, history.Is, "auto")
	f.when(people > 0 && alone, history.FourEyes, "no")
	f.when(people > 0 && !alone, history.FourEyes, "yes")
	f.when(people > 0 && unread, history.Viewed, "no")
	f.when(people > 0 && !unread, history.Viewed, "yes")
	f.when(fast, history.Fast, "yes")
	f.when(slow && !fast, history.Fast, "no")
	f.when(len(r.Revision.Warnings) > 0, history.Warnings, "overruled")
	for _, c := range r.Revision.Checks {
		f.when(!c.OK, history.Checks, "overruled")
	}
}

// hasPart reports whether whoever decided asked for r or made a part of it.
func hasPart(r *approval.Request, d approval.Decision) bool {
	is := func(id, name string) bool {
		if id != "" && d.UserID != "" {
			return id == d.UserID
		}
		return name != "" && strings.EqualFold(name, d.User)
	}
	parties := r.Lineage
	if r.Revision.Editor != nil {
		parties = append(slices.Clone(parties), *r.Revision.Editor)
	}
	for i := range parties {
		for p := &parties[i]; p != nil; p = p.Before {
			if is(p.UserID, p.User) {
				return true
			}
		}
	}
	return is(r.RequesterID, r.Requester)
}

// plain are the facets that are no remark: most requests have one of them.
var plain = facets{{history.FourEyes, "yes"}, {history.Viewed, "yes"}, {history.Fast, "no"}, {history.Is, "landed"}}

// flags are the ready questions that the facets answer.
func (f facets) flags() []string {
	out := []string{}
	for _, one := range f {
		switch one.key {
		case history.FourEyes, history.Viewed, history.Fast, history.Warnings, history.Checks, history.Is:
			if !slices.Contains(plain, one) {
				out = append(out, string(one.key)+":"+one.value)
			}
		}
	}
	return out
}

// rowOf is r as the list shows it, but for the money, which its task goes on spending.
func rowOf(r *approval.Request, f facets) history.Row {
	row := history.Row{ID: r.ID, TaskID: r.TaskID, At: r.CreatedAt, Title: r.Title, State: string(r.State), Requester: r.Requester, Via: r.Via, Agent: r.Agent,
		Chain: r.Chain, Repository: r.Repository, Target: r.Revision.Base.Branch, Rule: r.Rule.Name, Need: r.Rule.Need, Files: len(r.Revision.Files),
		Added: r.Revision.Added, Removed: r.Revision.Removed, Warnings: []string{}, Flags: f.flags(), Deciders: []history.Decider{}, DecidedAt: r.DecidedAt, Landed: r.Landed, Read: r.HowRead()}
	if d := r.Revision.Delivery(); r.Landed != "" && d.Pushes() {
		row.Pushed = d.Branch
	}
	for _, w := range r.Revision.Warnings {
		if !slices.Contains(row.Warnings, string(w.Code)) {
			row.Warnings = append(row.Warnings, string(w.Code))
		}
	}
	for _, d := range r.Decisions {
		row.Deciders = append(row.Deciders, history.Decider{Name: d.User, Channel: d.Channel, Verdict: string(d.Verdict), At: d.At})
	}
	return row
}
