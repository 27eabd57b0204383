package approval

import (
	"encoding/json"
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

// Part is what somebody has to do with a change.
type Part string

// The parts. Who owns an agent, or a trigger, owns the one that the Party names.
const (
	AskedForIt    Part = "asked"
	AskedBefore   Part = "asked_before"   // for the task that it goes on from
	AskedUndone   Part = "asked_undone"   // for the change that it undoes
	OwnsAgent     Part = "owns_agent"     // whose patch it is, or that handed the work to it
	OwnsWorker    Part = "owns_worker"    // that worked on the tree beside these
	OwnsAnswerer  Part = "owns_answerer"  // whose answer was given to one of these
	OwnsTrigger   Part = "owns_trigger"   // that made one of the tasks
	EditedIt      Part = "edited"         // this revision
	EditedEarlier Part = "edited_earlier" // an earlier one
	EditedUndone  Part = "edited_undone"  // the change that it undoes
	AskedAgain    Part = "asked_again"    // for the same task, after it had ended
	EditedAnswer  Part = "edited_answer"  // what an agent was shown whose answer was given
	SteeredIt     Part = "steered"        // by telling an agent something while it worked on it
)

// phrases are the parts behind a person's name: before and after stand around the name of the
// agent or the trigger, where there is one.
var phrases = map[Part]struct{ before, after string }{
	AskedForIt:    {before: "asked for it"},
	AskedBefore:   {before: "asked for the task that it goes on from"},
	AskedUndone:   {before: "asked for the change that it undoes"},
	OwnsTrigger:   {before: "owns the trigger "},
	OwnsAgent:     {before: "owns "},
	OwnsWorker:    {before: "owns ", after: ", which worked on it"},
	OwnsAnswerer:  {before: "owns ", after: ", whose answer went into it"},
	EditedIt:      {before: "edited it"},
	EditedEarlier: {before: "edited an earlier revision"},
	EditedUndone:  {before: "edited the change that it undoes"},
	AskedAgain:    {before: "had it run again"},
	EditedAnswer:  {before: "edited what an agent was shown whose answer went into it"},
	SteeredIt:     {before: "told an agent something while it worked on it"},
}

// Party is a person with a part in a change that keeps them from approving it.
type Party struct {
	UserID  string
	User    string
	Part    Part
	Agent   string // that the person owns, where that is their part
	Trigger string // the same
	// Before is who had the same part earlier: who edited what this editor edited.
	Before *Party
}

// Why is the part behind the person's name: "asked for it", "owns coder".
func (p Party) Why() string {
	words := phrases[p.Part]
	return words.before + p.Agent + p.Trigger + words.after
}

// storedParty is a Party as rows have it. Rows of before Part was kept have only Why, and
// programs of that time read nothing else.
type storedParty struct {
	UserID  string `json:"user_id"`
	User    string `json:"user"`
	Why     string `json:"why"`
	Part    Part   `json:"part,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Trigger string `json:"trigger,omitempty"`
	Before  *Party `json:"before,omitempty"`
}

// MarshalJSON writes the row.
func (p Party) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedParty{p.UserID, p.User, p.Why(), p.Part, p.Agent, p.Trigger, p.Before})
}

// UnmarshalJSON reads a row of any version.
func (p *Party) UnmarshalJSON(row []byte) error {
	var s storedParty
	if err := json.Unmarshal(row, &s); err != nil {
		return err
	}
	*p = Party{s.UserID, s.User, s.Part, s.Agent, s.Trigger, s.Before}
	if p.Part == "" {
		p.readWhy(s.Why)
	}
	return nil
}

// readWhy takes the part from the words of a row that has nothing else.
func (p *Party) readWhy(why string) {
	trigger, hasTrigger := strings.CutPrefix(why, phrases[OwnsTrigger].before)
	agent, hasAgent := strings.CutPrefix(why, phrases[OwnsAgent].before)
	worker, worked := strings.CutSuffix(agent, phrases[OwnsWorker].after)
	switch {
	case hasTrigger:
		p.Part, p.Trigger = OwnsTrigger, trigger
	case hasAgent && worked:
		p.Part, p.Agent = OwnsWorker, worker
	case hasAgent:
		p.Part, p.Agent = OwnsAgent, agent
	default:
		for part, words := range phrases {
			if words.before == why {
				p.Part = part
			}
		}
	}
}

// asked says what somebody did who asked for an earlier task, by orchestrator.Asker.For.
var asked = map[string]Part{orchestrator.ForFork: AskedBefore, orchestrator.ForRevert: AskedUndone, orchestrator.ForEdit: EditedUndone,
	orchestrator.ForRetry: AskedAgain, orchestrator.ForAnswer: EditedAnswer, orchestrator.ForWords: SteeredIt}

// lineage is everybody with a part in r before people are asked: who asked for the task,
// which for a token is its owner, and for those that it goes on from or undoes; who owns a
// trigger that made one of them; who owns an agent that worked on the tree, that handed
// the work on, that answered, or that r is about; and who edited an earlier revision. l is
// what the engine knows of them. Whoever had a part in the revision before, or by before in
// what r undoes, keeps it, whatever is configured by now. An owner is configured by name; one
// who has no user yet is known by that name alone.
func (c Config) lineage(e Electorate, r *Request, l orchestrator.Lineage, before ...Party) []Party {
	parts := append(slices.Clone(r.Lineage), Party{UserID: r.RequesterID, User: r.Requester, Part: AskedForIt})
	parts = append(parts, before...)
	parts = append(parts, c.hook(r.Via, r.Requester)...)
	for _, a := range l.Askers {
		parts = append(parts, Party{UserID: a.ID, User: a.Name, Part: asked[a.For]})
		parts = append(parts, c.hook(a.Via, a.Name)...)
	}
	named := map[string]bool{}
	for _, of := range []struct {
		part   Part
		agents []string
	}{{OwnsAgent, append(slices.Clone(l.Callers), r.Agent)}, {OwnsWorker, l.Agents()}, {OwnsAnswerer, l.Answerers}} {
		for _, agent := range of.agents {
			if named[agent] {
				continue
			}
			named[agent] = true
			for _, owner := range append(l.Owners(agent), c.Agents[agent].Owner) {
				parts = append(parts, Party{User: owner, Part: of.part, Agent: agent})
			}
		}
	}
	for _, p := range l.Editors {
		parts = append(parts, Party{UserID: p.ID, User: p.Name, Part: EditedEarlier})
	}
	all := []Party{}
	for _, p := range parts {
		if p.UserID == "" && p.User == "" || p.Part == AskedForIt && p.UserID == "" {
			continue
		}
		for _, u := range e.users {
			if p.UserID == "" && p.is(u) {
				p.UserID = u.ID
			}
		}
		if !slices.Contains(all, p) {
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
	return []Party{{User: c.Triggers[name], Part: OwnsTrigger, Trigger: name}}
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

func (p Party) is(u people.User) bool {
	if p.UserID != "" {
		return p.UserID == u.ID
	}
	return p.User != "" && strings.EqualFold(p.User, u.Name)
}

// did is Why after the name of somebody else, or after "You".
func (p Party) did(you bool) string {
	owns := "owns "
	if you {
		owns = "own "
	}
	switch p.Part {
	case OwnsTrigger:
		return owns + "the trigger " + p.Trigger
	case OwnsAgent, OwnsWorker, OwnsAnswerer:
		return owns + "the agent " + p.Agent + phrases[p.Part].after
	case EditedIt:
		return "edited this revision"
	case AskedForIt, "":
		return "asked for this task"
	}
	return p.Why()
}

// wrote reports whether the party's own text may be in the change.
func (p Party) wrote() bool { return p.Part == EditedIt || p.Part == EditedEarlier }

// edited reports whether text of a person may be in the current revision.
func (r *Request) edited() bool {
	return r.Revision.Editor != nil || slices.ContainsFunc(r.Lineage, Party.wrote)
}

// parts is the stored lineage. Requests of before it was kept know who asked.
func (r Request) parts() []Party {
	if len(r.Lineage) > 0 || r.RequesterID == "" {
		return r.Lineage
	}
	return []Party{{UserID: r.RequesterID, User: r.Requester, Part: AskedForIt}}
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
			return &Party{UserID: u.ID, User: u.Name, Part: EditedIt}
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
	if absent == "" && p.Part == AskedForIt {
		why = orchestrator.ReasonAsked
	}
	others := e.missing(r)
	if len(others) == 0 {
		return orchestrator.Errorf(orchestrator.CodeFourEyes, "%s, so another person must approve it, and there is nobody else who can. %s",
			who, r.remedy()).Because(why)
	}
	return orchestrator.Errorf(orchestrator.CodeFourEyes, "%s, so another person must approve it. Ask one of: %s.",
		who, strings.Join(Names(others), ", ")).Because(why)
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
