package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// What a Party has done. owns is followed by the agent's name, and by alsoWorked where that
// agent is neither the one whose patch it is nor one that handed the work to it.
const (
	askedForIt    = "asked for it"
	askedBefore   = "asked for the task that it goes on from"
	askedUndone   = "asked for the change that it undoes"
	owns          = "owns "
	alsoWorked    = ", which worked on it"
	ownsHook      = "owns the trigger " // followed by the trigger's name
	editedIt      = "edited it"
	editedEarlier = "edited an earlier revision"
	editedUndone  = "edited the change that it undoes"
)

// wished says what somebody did who asked for an earlier task, by orchestrator.Asker.For.
var wished = map[string]string{orchestrator.ForFork: askedBefore, orchestrator.ForRevert: askedUndone, orchestrator.ForEdit: editedUndone}

// lineage is everybody with a part in r before people are asked: who asked for the task,
// which for a token is its owner, and for those that it goes on from or undoes; who owns a
// trigger that made one of them; who owns an agent that worked on the tree, that handed
// the work on, or that r is about; and who edited an earlier revision. l is what the engine
// knows of them. An owner is configured by name; one who has no user yet is known by that
// name alone.
func (c Config) lineage(e Electorate, r *Request, l orchestrator.Lineage) []Party {
	asked := []Party{{UserID: r.RequesterID, User: r.Requester, Why: askedForIt}}
	parts := c.hook(r.Via, r.Requester)
	for _, a := range l.Askers {
		parts = append(parts, Party{UserID: a.ID, User: a.Name, Why: wished[a.For]})
		parts = append(parts, c.hook(a.Via, a.Name)...)
	}
	through := append(slices.Clone(l.Callers), r.Agent)
	for _, agent := range through {
		parts = append(parts, Party{User: c.Agents[agent].Owner, Why: owns + agent, Agent: agent})
	}
	for _, agent := range l.Agents() {
		if !slices.Contains(through, agent) {
			parts = append(parts, Party{User: c.Agents[agent].Owner, Why: owns + agent + alsoWorked, Agent: agent})
		}
	}
	for _, p := range l.Editors {
		parts = append(parts, Party{UserID: p.ID, User: p.Name, Why: editedEarlier})
	}
	all := []Party{}
	for _, p := range append(asked, parts...) {
		if p.UserID == "" && p.User == "" || p.Why == askedForIt && p.UserID == "" {
			continue
		}
		for _, u := range e.users {
			if p.UserID == "" && p.is(u) {
				p.UserID = u.ID
			}
		}
		if !slices.ContainsFunc(all, func(o Party) bool { return o.UserID == p.UserID && o.User == p.User && o.Why == p.Why }) {
			all = append(all, p)
		}
	}
	return all
}

// hook is the owner of the trigger that made a task. Who asked for it by name is no second
// party.
func (c Config) hook(via origin.Origin, requester string) []Party {
	name := via.Trigger()
	if name == "" || c.Triggers[name] == requester {
		return nil
	}
	return []Party{{User: c.Triggers[name], Why: ownsHook + name}}
}

// rule is what the rules say of r now; one that names no groups wants to hear the
// approvers of the repository.
func (c Config) rule(r *Request, now time.Time) policy.Ruling {
	ruling := c.Policy.Strictest(factsOf(r, now.In(c.Location)))
	if r.edited() && ruling.Pass() {
		// A rule passes what an agent made; what a person wrote needs a second pair of eyes.
		ruling = c.byPeople(ruling, fmt.Sprintf("Rule %q passes no change that a person edited, so another person decides.", ruling.Rule.Name))
	}
	ruling.Rule.From = c.from(ruling.Rule, r.Repository)
	if ruling.Shadow != nil {
		ruling.Shadow.From = c.from(*ruling.Shadow, r.Repository)
	}
	return ruling
}

// byPeople is what holds in place of a rule that would pass a change, but must not.
func (c Config) byPeople(passes policy.Ruling, why string) policy.Ruling {
	asks := policy.Ruling{Rule: policy.Default(), Notes: append(passes.Notes, patch.Note{Code: "rule_not_applied", Text: why})}
	asks.Rule.Version = c.Policy.Version()
	return asks
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
	hook, ofHook := strings.CutPrefix(p.Why, ownsHook)
	agent, owner := strings.CutPrefix(p.Why, owns)
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
	case p.Why == askedForIt, p.Why == "":
		return "asked for this task"
	default:
		return p.Why
	}
}

// wrote reports whether the party's own text may be in the change.
func (p Party) wrote() bool { return p.Why == editedIt || p.Why == editedEarlier }

// edited reports whether text of a person may be in the current revision.
func (r *Request) edited() bool {
	return r.Revision.Editor != nil || slices.ContainsFunc(r.Lineage, Party.wrote)
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
	for _, p := range r.parts() {
		if (e.fourEyes || p.wrote()) && p.is(u) {
			return &p
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
	var why orchestrator.Reason
	if absent == "" && p.Why == askedForIt {
		why = orchestrator.ReasonAsked
	}
	others := e.missing(r)
	if len(others) == 0 {
		return orchestrator.Errorf(orchestrator.CodeFourEyes, "%s, so another person must approve it, and there is nobody else who can. %s",
			who, r.remedy()).Because(why)
	}
	return orchestrator.Errorf(orchestrator.CodeFourEyes, "%s, so another person must approve it. Ask one of: %s.",
		who, strings.Join(others, ", ")).Because(why)
}

// strictestMode is where a yes may be given to a change of these agents: only where each
// of them lets it in. The page, the command line and programs always are let in.
func (c Config) strictestMode(agents []string) string {
	mode := ""
	for i, name := range agents {
		switch m := c.Agents[name].Mode; {
		case i == 0:
			mode = m
		case m == "" || m == "any" || m == mode:
		case mode == "" || mode == "any":
			mode = m
		default:
			mode = "web" // the one lets in what the other keeps out
		}
	}
	return mode
}

// agents are the names of those that worked on the revision, own first; of revisions of
// before that was kept it is known of own alone.
func (v Revision) agents(own string) []string {
	return orchestrator.Lineage{Authors: append([]orchestrator.Author{{Agent: own}}, v.Authors...)}.Agents()
}

// sandboxes are what confined them.
func (v Revision) sandboxes() []string {
	authors := v.Authors
	if len(authors) == 0 {
		authors = []orchestrator.Author{{Sandbox: v.Sandbox}}
	}
	return orchestrator.Lineage{Authors: authors}.Sandboxes()
}

// owners are the people who own an agent that worked on the current revision.
func (r *Request) owners() []string {
	names, agents := []string{}, r.Revision.agents(r.Agent)
	for _, p := range r.Lineage {
		if p.Agent != "" && slices.Contains(agents, p.Agent) {
			names = appendOnce(names, p.User)
		}
	}
	return names
}
