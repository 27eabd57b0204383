package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// Submit makes a task with its root delegation, or returns the first task that
// this requester made with the same key (created false). With DryRun nothing is
// stored and the answer is what would be.
func (e *Engine) Submit(ctx context.Context, s Submission) (Task, Delegation, bool, error) {
	if err := s.check(); err != nil {
		return Task{}, Delegation{}, false, err
	}
	c := e.Config()
	spec, err := c.find(s.Agent, s.Capability)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	attached, err := s.attach()
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	if spec.Role == agent.CLI {
		return Task{}, Delegation{}, false, Errorf(guard.CodeNotAllowed, "%s has the role cli, which takes no work. Send the task to another agent.", spec.Name)
	}
	if most := c.Settings.MaxRemote; e.traits(spec).Elsewhere && most > 0 && s.RemoteHops >= most {
		return Task{}, Delegation{}, false, Errorf(guard.CodeMaxDepth, "Maximum delegation depth reached between systems: %d of %d such hand-overs led here, and %s works elsewhere again. Send the task to an agent of this system.", s.RemoteHops, most, spec.Name)
	}
	repo, err := c.workplace(spec, s.Repository)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	if err := e.checkRef(ctx, s, repo); err != nil {
		return Task{}, Delegation{}, false, err
	}
	limits, class := c.limits(s, spec)
	now := e.Now().UTC()
	t := Task{
		ID: NewID(TaskPrefix, now), RootID: NewID(DelegationPrefix, now), Agent: spec.Name, Text: s.Text,
		Repository: repo, Ref: s.Ref, Key: s.Key, Complexity: class.Tier, Budget: s.Budget, RemoteHops: s.RemoteHops, Source: s.Source, Why: class.Why,
		RequesterID: s.RequesterID, Requester: s.Requester, Via: s.Via, Chat: s.Chat, Attachments: attached, CreatedAt: now,
	}
	root := Delegation{
		ID: t.RootID, TaskID: t.ID, To: spec.Name, Text: s.Text, Chain: newChain(c),
		HopKey: "root", Repository: repo, Requester: s.Requester,
		Work: Work{Account: Account{Budget: opened(limits, spec)}, Terms: Terms{Independent: c.Settings.OptIn && !s.Handoffs}},
	}
	bornQueued(&root, now)
	asks, rule, err := e.triggered(ctx, &t, &root, spec)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	if rule.Asks != "" {
		askFirst(&root, now)
	}
	if s.DryRun {
		return t, root, false, nil
	}
	if rule.Asks == "" {
		return e.create(ctx, t, root, s.keep(ctx, &t, nil))
	}
	at, err := e.standing(ctx, &t, &root, spec)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	return e.create(ctx, t, root, s.keep(ctx, &t, func(tx Tx) error { return e.askRoot(ctx, tx, asks, &root, spec, at) }))
}

// create stores a task with its root, and with what also does in the same
// transaction.
func (e *Engine) create(ctx context.Context, t Task, root Delegation, also func(Tx) error) (Task, Delegation, bool, error) {
	said := event.TaskCreatedData{Agent: t.Agent, Title: Title(t.Text), Repository: t.Repository, Via: t.Via.String(),
		Complexity: t.Complexity, Independent: root.Work.Independent, Why: t.Why}
	if t.Source != nil {
		said.Source = t.Source
	}
	if len(t.Attachments) > 0 {
		said.Attachments = t.Attachments
	}
	stored, created, err := e.Store.NewTask(ctx, t, func(tx Tx) error {
		b := e.continuation(tx, nil)
		root.CreatedAt, root.ReadyAt, root.Since = tx.Now(), tx.Now(), tx.Now()
		row := root // what is answered is what was accepted, also where a worker has it already
		begun := b.claim(tx, &row, false)
		if err := tx.Insert(ctx, &row); err != nil {
			return err
		}
		err := tx.Append(ctx, event.Of(root.ID, t.Requester, said))
		if err == nil && !root.Work.Asked { // else it is queued by the yes
			err = tx.Append(ctx, event.Of(root.ID, t.Requester, event.QueuedData{Agent: root.To}))
		}
		if err == nil && begun {
			err = b.acknowledge(ctx, tx, &row)
		}
		if err != nil || also == nil {
			return err
		}
		return also(tx)
	})
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	if created {
		e.Trace("task committed")
		return stored, root, true, nil
	}
	if stored.Text != t.Text || stored.Agent != t.Agent || !slices.Equal(stored.Attachments, t.Attachments) {
		return Task{}, Delegation{}, false, Errorf(CodeKeyReused, "The key %q was used for another task, %s. Use a new key for a new task.", t.Key, stored.ID)
	}
	first, err := e.Store.Delegation(ctx, stored.RootID)
	return stored, first, false, err
}

// find returns the agent of that name, or the first one with the capability (P13).
func (c *Config) find(name, capability string) (agent.Spec, error) {
	if name != "" {
		if spec, ok := c.Agents.Get(name); ok {
			return spec, nil
		}
		_, v := guard.Check(guard.Hop{ToName: name, Agents: c.names()})
		return agent.Spec{}, &Error{Code: v.Code, Message: v.Message}
	}
	if able := c.Agents.ByCapability(capability); len(able) > 0 {
		return able[0], nil
	}
	return agent.Spec{}, Errorf(guard.CodeUnknown, "No agent has the capability %q. Name an agent, or add the capability to one.", capability)
}

// names lists the agents, for "did you mean".
func (c *Config) names() []string {
	return each.Of(c.Agents.All(), func(s agent.Spec) string { return s.Name })
}

// workplace is the repository of a task: the agent's own, else the one that was asked
// for. A task for another repository than the agent's is refused: whoever picked one
// would read of a change somewhere else.
func (c *Config) workplace(spec agent.Spec, asked string) (string, error) {
	if _, err := c.bind(asked); err != nil {
		return "", err
	}
	if asked != "" && spec.Repository != "" && asked != spec.Repository {
		return "", Errorf(CodeBadRequest, "%s works in %s, and this task is for %s. Leave the repository out, or send the task to an agent that works in %s.", spec.Name, spec.Repository, asked, asked)
	}
	return c.bind(spec.Repository, asked)
}

// bind decides on which repository a delegation works: the agent's binds, else the
// task's, else the caller's. "" is none.
func (c *Config) bind(choices ...string) (string, error) {
	i := slices.IndexFunc(choices, func(s string) bool { return s != "" })
	if i < 0 {
		return "", nil
	}
	if _, err := c.repository(choices[i]); err != nil {
		return "", Errorf(CodeNotFound, "There is no repository %.80q. Known repositories: %s.", choices[i],
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(c.Repositories)), ", "), "none"))
	}
	return choices[i], nil
}

// Fork asks for a new task that goes on from a turn of a conversation.
type Fork struct {
	DelegationID string // or the task's id: its root
	Turn         int    // the last turn that is kept; 0 is the newest
	RequesterID  string
	Requester    string
	Via          origin.Origin
}

type forkPoint struct {
	task  Task
	d     Delegation
	turns []agent.Turn // kept ones
	files *Checkpoint  // nil: the checkout was as its base
	data  []byte       // bundle of files
}

// Fork makes a task of the same agent and text whose conversation, files and remaining
// budget are those of a turn. The first task goes on, or stays ended, as it is. A cut
// between a model's calls and their results is moved to before the calls. Turns that are
// taken over cost the new task nothing.
func (e *Engine) Fork(ctx context.Context, f Fork) (Task, Delegation, error) {
	o, err := e.origin(ctx, f)
	if err != nil {
		return Task{}, Delegation{}, err
	}
	now := e.Now().UTC()
	t := Task{ID: NewID(TaskPrefix, now), RootID: NewID(DelegationPrefix, now), Agent: o.d.To, Text: o.d.Text, Repository: o.d.Repository,
		Ref: o.task.Ref, Complexity: o.task.Complexity, RequesterID: f.RequesterID, Requester: f.Requester, Via: f.Via, Chat: o.task.Chat, Source: o.task.Source, ForkOf: o.d.ID, CreatedAt: now}
	if t.Budget, err = e.leftAt(ctx, o); err != nil {
		return Task{}, Delegation{}, err
	}
	root := Delegation{ID: t.RootID, TaskID: t.ID, To: o.d.To, Text: o.d.Text, Chain: chain.New(e.Config().Settings.MaxDepth),
		HopKey: "root", Repository: o.d.Repository, Requester: f.Requester, Work: Work{
			Terms: Terms{Handover: o.d.Work.Handover, Independent: o.d.Work.Independent}, Session: Session{Feedback: o.d.Work.Feedback}}}
	bornQueued(&root, now)
	root.Work.Budget, root.Work.Lineage = e.budgetAnew(&t), o.d.goesOn(&o.task, ForFork)
	if err := e.forkFiles(ctx, &o, &root); err != nil {
		return Task{}, Delegation{}, err
	}
	files, err := e.handOnAttachments(ctx, &o.task, &t)
	if err != nil {
		return Task{}, Delegation{}, err
	}
	upTo := len(o.turns)
	t, root, _, err = e.create(ctx, t, root, files.keep(ctx, &t, func(tx Tx) error {
		kept := ""
		if k := root.Work.Checkpoint; k != nil {
			kept = k.Commit + " " + k.Tree
			if err := tx.PutBlob(ctx, k.Bundle, "bundle", o.data); err != nil {
				return err
			}
		}
		if _, err := tx.CopyTurns(ctx, &root, o.d.ID, o.d.Work.Runs, upTo, kept); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(root.ID, f.Requester, event.ForkedData{Agent: root.To, FromTask: o.task.ID, From: o.d.ID, Turn: upTo}))
	}))
	if err != nil {
		return Task{}, Delegation{}, err
	}
	err = e.Store.InTask(ctx, o.task.ID, func(tx Tx) error {
		return tx.Append(ctx, event.Of(o.d.ID, f.Requester, event.ForkedData{Agent: o.d.To, Task: t.ID, Delegation: root.ID, Turn: upTo}))
	})
	return t, root, err
}

// origin reads and checks what is to be forked.
func (e *Engine) origin(ctx context.Context, f Fork) (forkPoint, error) {
	d, err := e.lookUp(ctx, f.DelegationID)
	if err != nil {
		return forkPoint{}, err
	}
	o := forkPoint{d: d}
	if spec, ok := e.Config().Agents.Get(d.To); !ok || !e.traits(spec).Conversation {
		return o, Errorf(CodeConflict, "%s is no model agent, so there is no conversation to go on from. Send a new task.", d.To)
	}
	if o.task, err = e.Store.Task(ctx, d.TaskID); err != nil {
		return o, err
	}
	if err := stillHere(&o.task); err != nil {
		return o, err
	}
	if err := badRef(o.task.Ref); err != nil {
		return o, err
	}
	all, err := e.Store.Turns(ctx, d.ID, d.Work.Runs)
	if err != nil {
		return o, err
	}
	last := f.Turn
	if last == 0 {
		last = len(all)
	}
	if last < 1 || last > len(all) {
		return o, Errorf(CodeBadRequest, "There is no turn %d: this conversation has %d. Name one of them.", f.Turn, len(all))
	}
	o.turns = whole(all[:last])
	if len(o.turns) == 0 {
		return o, nil
	}
	commit, tree, err := e.Store.KeptAt(ctx, d.ID, d.Work.Runs, len(o.turns))
	if err == nil && commit != "" {
		o.files = &Checkpoint{Commit: commit, Tree: tree}
	}
	return o, err
}

// whole cuts turns so that every call among them has its result (O18).
func whole(turns []agent.Turn) []agent.Turn {
	if n := len(turns); n > 0 && len(turns[n-1].Message.Calls()) > 0 {
		return turns[:n-1]
	}
	return turns
}

// forkFiles gives root the checkout that its conversation knows, on the commit that the
// first one began on. The change is shown against that commit, also where the first
// delegation worked on its caller's snapshot.
func (e *Engine) forkFiles(ctx context.Context, o *forkPoint, root *Delegation) error {
	w := o.d.Work
	if o.d.Repository == "" || w.BaseCommit == "" || len(o.turns) == 0 {
		return nil
	}
	m, _, err := e.mirror(o.d.Repository)
	if err != nil {
		return Errorf(CodeUnavailable, "The repository %q is not configured any more, so the fork would have no files. Add it back to gatehouse.yaml. (%w)", o.d.Repository, err)
	}
	files, bundle, holder := w.BaseTree, w.BaseBundle, w.BaseSaved
	if o.files != nil {
		files, bundle, holder = o.files.Tree, "", o.files.Commit
		if w.Checkpoint != nil {
			bundle, holder = w.Checkpoint.Bundle, w.Checkpoint.Commit
		}
	}
	if err := e.fetchTree(ctx, m, files, bundle, holder, w.BaseCommit); err != nil {
		return err
	}
	base, err := m.TreeOf(ctx, w.BaseCommit)
	if err != nil {
		return err
	}
	root.Work.Stand = w.Stand
	root.Work.BaseTree = base
	if files == base && o.files == nil {
		return nil
	}
	k := &Checkpoint{Tree: files}
	var earlier []string
	if o.files != nil {
		earlier = []string{o.files.Commit}
	}
	k.Commit, o.data, err = m.SaveTree(ctx, root.ID+"-kept-0", w.BaseCommit, files, o.d.CreatedAt, earlier...)
	k.Bundle = bundleID("kept", root.ID, "-", k.Commit)
	root.Work.Checkpoint = k
	return err
}

// fetchTree makes sure that the mirror has a tree, from a bundle in the store.
func (e *Engine) fetchTree(ctx context.Context, m *patch.Mirror, tree, blob, commit, base string) error {
	if m.Has(ctx, tree) && m.Has(ctx, base) {
		return nil
	}
	if blob == "" {
		if err := m.Fetch(ctx); err != nil {
			return err
		}
	} else {
		bundle, err := e.Store.Blob(ctx, blob)
		if err == nil {
			err = m.Import(ctx, bundle, commit)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	if !m.Has(ctx, tree) {
		return Errorf(CodeConflict, "The files of that turn are no longer kept. Fork from a later turn, or send a new task.")
	}
	return nil
}

// leftAt is what the budget of the first delegation had left at the turn: its limits
// without what the kept turns, and the children that they tell of, have used.
func (e *Engine) leftAt(ctx context.Context, o forkPoint) (*budget.Limits, error) {
	if o.d.Work.Budget == nil {
		return o.task.Budget, nil
	}
	account := budget.Account{Limits: o.d.Work.Budget.Limits}
	for _, t := range o.turns {
		account.Charge(amountOf(t.Usage))
		account.Used.Time += t.Took
		for _, id := range t.Children {
			c, err := e.Store.Delegation(ctx, id)
			if err != nil {
				return nil, fmt.Errorf("what %s has used: %w", id, err)
			}
			account.Charge(amountOf(c.Usage))
		}
	}
	return new(account.Remaining()), nil
}
