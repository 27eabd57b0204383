package orchestrator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
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
		RequesterID: s.RequesterID, Requester: s.Requester, Via: s.Via, Chat: s.Chat, CreatedAt: now,
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
		return e.create(ctx, t, root, nil)
	}
	return e.create(ctx, t, root, func(tx Tx) error { return e.askRoot(ctx, tx, asks, &root, spec) })
}

// create stores a task with its root, and with what also does in the same
// transaction.
func (e *Engine) create(ctx context.Context, t Task, root Delegation, also func(Tx) error) (Task, Delegation, bool, error) {
	said := event.TaskCreatedData{Agent: t.Agent, Title: Title(t.Text), Repository: t.Repository, Via: t.Via.String(),
		Complexity: t.Complexity, Independent: root.Work.Independent, Why: t.Why}
	if t.Source != nil {
		said.Source = t.Source
	}
	stored, created, err := e.Store.NewTask(ctx, t, func(tx Tx) error {
		b := e.baton(tx, nil)
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
	if stored.Text != t.Text || stored.Agent != t.Agent {
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
	var names []string
	for _, s := range c.Agents.All() {
		names = append(names, s.Name)
	}
	return names
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
