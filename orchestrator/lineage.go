package orchestrator

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// Lineage is who has a part in a tree, beside the person who asked for its task. It is a
// union that only grows as facts move: from the caller to the child that starts with its
// tree, from the child to the caller that takes its tree over, from one revision to the
// next, from a task to its forks and to what undoes it. A part that may be gone from the
// text again stays in it: what is too much asks another person, what is missing asks the
// wrong one. The order is that of arrival, and nothing is twice in it.
type Lineage struct {
	Authors []Author `json:"authors,omitempty"` // agents that worked on the tree
	Callers []string `json:"callers,omitempty"` // agents that handed the work on, of earlier tasks too
	Askers  []Asker  `json:"askers,omitempty"`  // people who asked for earlier tasks, or for this one again
	Editors []Editor `json:"editors,omitempty"` // people who edited earlier revisions
	// Answerers are agents whose answers those who made the tree were given. They have not
	// worked on it themselves, so rules do not see them.
	Answerers []string `json:"answerers,omitempty"`
	// Owned are the owners as they were when agents took part: names change hands later. Rows of
	// before that was kept have none.
	Owned []Owned `json:"owned,omitempty"`
}

// Owned is an agent with its owner by name.
type Owned struct {
	Agent string `json:"agent"`
	Owner string `json:"owner"`
}

// Author is an agent that worked on a tree, and what confined it; "" where it did not say.
type Author struct {
	Agent   string `json:"agent"`
	Sandbox string `json:"sandbox,omitempty"`
}

// Unconfined is what confines an agent that ran without a sandbox.
const Unconfined = "none"

// Confined is what confined the author. One that did not say counts as one without.
func (a Author) Confined() string {
	return cmp.Or(a.Sandbox, Unconfined)
}

// Asker is a person who asked for an earlier task whose work this goes on from or undoes.
type Asker struct {
	ID   string        `json:"id"`
	Name string        `json:"name"`
	Via  origin.Origin `json:"via,omitzero"` // as Task.Via, which names the trigger
	For  string        `json:"for"`          // one of those below
}

// What became of an earlier task.
const (
	ForFork   = "fork"   // this goes on from it
	ForRevert = "revert" // this undoes it
	ForEdit   = "edit"   // this undoes what the person wrote into it
	ForRetry  = "retry"  // this is the same task, which the person had run again
	ForAnswer = "answer" // the person edited what an agent was shown that answered here
	ForWords  = "words"  // the person said something to an agent while it worked on this
)

// union returns a with those of b that are not in it. Neither is changed.
func union[T comparable](a []T, b ...T) []T {
	all := slices.Clip(slices.Clone(a))
	for _, x := range b {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// With returns l with what o has beyond it.
func (l Lineage) With(o Lineage) Lineage {
	return Lineage{Authors: union(l.Authors, o.Authors...), Callers: union(l.Callers, o.Callers...),
		Askers: union(l.Askers, o.Askers...), Editors: union(l.Editors, o.Editors...),
		Answerers: union(l.Answerers, o.Answerers...), Owned: union(l.Owned, o.Owned...)}
}

// Owners are the recorded owners of an agent.
func (l Lineage) Owners(agent string) []string {
	var names []string
	for _, o := range l.Owned {
		if o.Agent == agent {
			names = union(names, o.Owner)
		}
	}
	return names
}

// Agents are the agents that worked on the tree, each once.
func (l Lineage) Agents() []string {
	var names []string
	for _, h := range l.Authors {
		names = union(names, h.Agent)
	}
	return names
}

// Sandboxes are what confined them, each once.
func (l Lineage) Sandboxes() []string {
	var names []string
	for _, h := range l.Authors {
		names = union(names, h.Confined())
	}
	return names
}

// author is d's own agent with the sandbox of its last attempt.
func (d *Delegation) author() Author { return Author{Agent: d.To, Sandbox: d.Work.Sandbox} }

// Lineage is everybody with a part in d's tree: its own agent first, then who brought
// what into it, and every agent that handed the work on.
func (d *Delegation) Lineage() Lineage {
	l := Lineage{Authors: []Author{d.author()}}.With(d.Work.Lineage)
	for _, s := range d.Chain.Steps() {
		l.Callers = union(l.Callers, s.From)
	}
	return l
}

// inherit makes the lineage of a new child of d: the wishes are those of its caller, the
// authors only where it starts with the caller's tree, as of then. What the caller was
// answered may stand in the text that it hands on.
func (child *Delegation) inherit(d *Delegation, s *base) {
	l := d.Lineage()
	l.Authors, l.Editors = nil, nil
	if child.Work.Shares {
		l.Authors, l.Editors = s.lineage.Authors, s.lineage.Editors
		l.Owned = union(l.Owned, s.lineage.Owned...)
	}
	child.Work.Lineage = l
}

// ownedBy records who owns d's agent, which begins to work.
func (d *Delegation) ownedBy(owner string) {
	if owner != "" {
		d.Work.Lineage.Owned = union(d.Work.Lineage.Owned, Owned{d.To, owner})
	}
}

// answeredBy notes that d is given the answer of its child, and with it whoever is behind that:
// an answer may become a file. Noted when the child ends, it holds however d comes to read it.
func (d *Delegation) answeredBy(child *Delegation) {
	if child.StartedAt == nil {
		return
	}
	of := child.Lineage()
	l := Lineage{Answerers: union(of.Answerers, of.Agents()...), Owned: of.Owned}
	for _, p := range of.Editors {
		l.Askers = append(l.Askers, Asker{ID: p.ID, Name: p.Name, For: ForAnswer})
	}
	for _, p := range of.Askers {
		if p.For == ForWords {
			l.Askers = append(l.Askers, p)
		}
	}
	d.Work.Lineage = d.Work.Lineage.With(l)
}

// askedAgain notes that somebody else than who asked for d's task had it run again.
func (d *Delegation) askedAgain(t *Task, by people.User) {
	if by.ID != t.RequesterID {
		d.Work.Lineage.Askers = union(d.Work.Lineage.Askers, Asker{ID: by.ID, Name: by.Name, For: ForRetry})
	}
}

// steeredBy notes that d's agent was told what these people said: they asked for what it makes.
func (d *Delegation) steeredBy(t *Task, said []Message) {
	d.Work.Lineage = d.Work.Lineage.steered(t, said)
}

// steered is l with who said these things, beside who asked for t.
func (l Lineage) steered(t *Task, said []Message) Lineage {
	for _, m := range said {
		if m.ByID != t.RequesterID {
			l.Askers = union(l.Askers, Asker{ID: m.ByID, Name: m.From, Via: m.Via, For: ForWords})
		}
	}
	return l
}

// goesOn is the lineage of what is made of d in another task: t asked for it.
func (d *Delegation) goesOn(t *Task, what string) Lineage {
	l := d.behind()
	l.Askers = union(l.Askers, Asker{ID: t.RequesterID, Name: t.Requester, Via: t.Via, For: what})
	return l
}

// behind is everybody with a part in what d made, for what is made of that.
func (d *Delegation) behind() Lineage {
	l := d.Lineage()
	if d.Work.Made != nil {
		l.Editors = union(l.Editors, d.Work.Made.Editors...)
	}
	l.Callers = union(l.Callers, d.To)
	return l
}

// retold is the lineage of what another task of the thread is told of d, which is also what
// people said too late for it: t is of who asked for the whole thread.
func (d *Delegation) retold(t *Task) Lineage {
	return d.behind().remembered().steered(t, d.Work.Unread)
}

// again is the lineage of a further run of d: the text of the runs before, and of people
// who edited it, may still be in what it makes.
func (d *Delegation) again() Lineage {
	l := d.Work.Lineage.With(Lineage{Authors: []Author{d.author()}})
	if d.Work.Made != nil {
		l.Editors = union(l.Editors, d.Work.Made.Editors...)
	}
	return l
}

// afresh is the lineage of a run from a fresh checkout: the wishes are the same, and no
// agent has worked on its tree. Who edited stays: the run before was given their text, and
// agents have memories.
func (l Lineage) afresh() Lineage {
	fresh := Lineage{Callers: l.Callers, Askers: l.Askers, Editors: l.Editors}
	for _, o := range l.Owned {
		if slices.Contains(l.Callers, o.Agent) {
			fresh.Owned = append(fresh.Owned, o)
		}
	}
	return fresh
}

// remembered is l of work that an agent remembers, or was told of, and of which its own files
// have nothing: whoever worked on it has answered, and no more.
func (l Lineage) remembered() Lineage {
	l.Answerers = union(l.Answerers, l.Agents()...)
	for _, p := range l.Editors {
		l.Askers = union(l.Askers, Asker{ID: p.ID, Name: p.Name, For: ForAnswer})
	}
	l.Authors, l.Editors = nil, nil
	return l
}

// notRun is the sandbox of a tree that git made: no agent ran for it.
const notRun = "not_run"

// undone is l of a change that a tree undoes: it has the same people and agents behind
// it, of whom none ran for it.
func (l Lineage) undone() Lineage {
	authors := l.Authors
	l.Authors = nil
	for _, h := range authors {
		l.Authors = union(l.Authors, Author{Agent: h.Agent, Sandbox: notRun})
	}
	for _, e := range l.Editors { // what they wrote is not in it any more
		l.Askers = union(l.Askers, Asker{ID: e.ID, Name: e.Name, For: ForEdit})
	}
	l.Editors = nil
	return l
}

// unconfined is the note on a tree of which some author had no sandbox; nil where none is due.
func unconfined(l Lineage) *patch.Note {
	var names []string
	for _, h := range l.Authors {
		if h.Confined() == Unconfined {
			names = union(names, h.Agent)
		}
	}
	switch {
	case len(names) == 0:
		return nil
	case len(l.Agents()) == 1:
		return &patch.Note{Code: "no_sandbox", Text: "The agent ran without a sandbox on this host."}
	default:
		return &patch.Note{Code: "no_sandbox", Text: "Of the agents that worked on this, these ran without a sandbox on this host: " + strings.Join(names, ", ") + "."}
	}
}

// lineage is who has worked on the checkout as it is now, this run's agent included.
func (r *run) lineage() Lineage {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := Lineage{Authors: []Author{r.d.author()}}
	return own.With(r.d.Work.Lineage).With(r.joined)
}

// join notes that the tree of a child came into the checkout, and with it whoever worked
// on that.
func (r *run) join(child *Delegation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := child.Lineage()
	r.joined = r.joined.With(Lineage{Authors: of.Authors, Editors: of.Editors, Owned: of.Owned})
}

// sign writes into d who has worked on what this run leaves.
func (r *run) sign(d *Delegation) { d.Work.Lineage = d.Work.Lineage.With(r.lineage()) }
