package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// What a Party has done; owns is followed by the agent's name.
const (
	askedForIt = "asked for it"
	owns       = "owns "
	ownsHook   = "owns the trigger " // followed by the trigger's name
	editedIt   = "edited it"
)

// lineage is everybody with a part in r before people are asked: who asked for the task,
// which for a token is its owner, and who owns the trigger that made it or an agent that it
// went through. An owner is configured by name; one who has no user yet is known by that name alone.
func (c Config) lineage(e Electorate, r *Request) []Party {
	all := []Party{}
	if r.RequesterID != "" {
		all = append(all, Party{UserID: r.RequesterID, User: r.Requester, Why: askedForIt})
	}
	parts := []Party{}
	// A task that a trigger made says so in its Via: webhook ci-failed, or schedule nightly.
	if kind, name, ok := strings.Cut(r.Via, " "); ok && (kind == "webhook" || kind == "schedule") {
		parts = append(parts, Party{User: c.Triggers[name], Why: ownsHook + name})
	}
	for _, agent := range append(strings.Split(r.Chain, " → "), r.Agent) {
		parts = append(parts, Party{User: c.Agents[agent].Owner, Why: owns + agent})
	}
	for _, p := range parts {
		if p.User == "" || strings.HasPrefix(p.Why, ownsHook) && p.User == r.Requester {
			continue
		}
		for _, u := range e.users {
			if p.is(u) {
				p.UserID = u.ID
			}
		}
		if !slices.ContainsFunc(all, func(o Party) bool { return o.UserID == p.UserID && o.User == p.User && o.Why == p.Why }) {
			all = append(all, p)
		}
	}
	return all
}

// rule is what the rules say of r now; one that names no groups wants to hear the
// approvers of the repository.
func (c Config) rule(r *Request, now time.Time) Ruling {
	ruling := c.Policy.Rule(factsOf(r, now.In(c.Location)))
	if r.Revision.Editor != nil && ruling.Pass() {
		// A rule passes what an agent made; what a person wrote needs a second pair of eyes.
		note := patch.Note{Code: "rule_not_applied", Text: fmt.Sprintf("Rule %q passes no change that a person edited, so another person decides.", ruling.Rule.Name)}
		ruling = Ruling{Rule: defaultRule(), Notes: append(ruling.Notes, note)}
		ruling.Rule.Version = c.Policy.Version()
	}
	ruling.Rule.From = c.from(ruling.Rule, r.Repository)
	if ruling.Shadow != nil {
		ruling.Shadow.From = c.from(*ruling.Shadow, r.Repository)
	}
	return ruling
}

// is reports whether the party is this user.
func (p Party) is(u people.User) bool {
	if p.UserID != "" {
		return p.UserID == u.ID
	}
	return p.User != "" && strings.EqualFold(p.User, u.Name)
}

// did is a Why after the name of somebody else, or after "You".
func (p Party) did(you bool) string {
	agent, owner := strings.CutPrefix(p.Why, owns)
	hook, ofHook := strings.CutPrefix(p.Why, ownsHook)
	switch {
	case ofHook && you:
		return "own the trigger " + hook
	case ofHook:
		return p.Why
	case owner && you:
		return "own the agent " + agent
	case owner:
		return "owns the agent " + agent
	case p.Why == editedIt:
		return "edited this revision"
	default:
		return "asked for this task"
	}
}

// parts is the stored lineage. Requests of before it was kept know who asked.
func (r Request) parts() []Party {
	if len(r.Lineage) > 0 || r.RequesterID == "" {
		return r.Lineage
	}
	return []Party{{UserID: r.RequesterID, User: r.Requester, Why: askedForIt}}
}

// barred returns why u may not approve the current revision of r, nil where they may:
// four eyes leave everybody out who had a part in it, and nobody ever approves what
// they have written themselves.
func (e Electorate) barred(u people.User, r Request) *Party {
	if e.fourEyes {
		for _, p := range r.parts() {
			if p.is(u) {
				return &p
			}
		}
	}
	for p := r.Revision.Editor; p != nil; p = p.Before {
		if p.is(u) {
			return &Party{UserID: u.ID, User: u.Name, Why: editedIt}
		}
	}
	return nil
}

// fourEyesError tells somebody who may not approve r whom to ask; absent is the name of
// the one whose part it is, where the reader stands in for them.
func (e Electorate) fourEyesError(r Request, p Party, absent string) *orchestrator.Error {
	who := "You " + p.did(true)
	if absent != "" {
		who = absent + ", for whom you decide, " + p.did(false)
	}
	others := e.missing(r)
	if len(others) == 0 {
		return orchestrator.Errorf(orchestrator.CodeFourEyes, "%s, so another person must approve it, and there is nobody else who can. %s", who, r.remedy())
	}
	return orchestrator.Errorf(orchestrator.CodeFourEyes, "%s, so another person must approve it. Ask one of: %s.", who, strings.Join(others, ", "))
}
