package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// window is how many hand-overs back the guards look (H15).
const window = 3

// scene is what the guards look at beside the two agents: as it is in a transaction that
// makes a hop, or as it was read for a dry run.
type scene struct {
	task     Task
	root     *Delegation // nil where there is no task
	caller   *Delegation // nil where there is no task
	recent   []guard.Entry
	left     budget.Limits // of the caller's budget
	breaker  guard.Breaker // the target's
	breakers map[string]guard.Breaker
	now      time.Time
}

// question asks whether caller may hand to the target now.
func (e *Engine) ask(c *Config, caller, target agent.Spec, fromName, toName string, known bool, s scene) guard.Hop {
	set := c.Settings
	h := guard.Hop{
		From: caller, To: target, Planned: e.traits(caller).Planned, Elsewhere: e.traits(target).Elsewhere, FromName: fromName, ToName: toName, Known: known, Agents: c.names(),
		Handoffs: s.task.Handoffs, MaxHandoffs: set.MaxHandoffs, Cycle: set.Cycle, Capacity: set.Capacity, FreeSlots: e.slots.free(),
		Recent: s.recent, Now: s.now, RemoteHop: s.task.RemoteHops, MaxRemote: set.MaxRemote, AskFirst: target.AskFirst,
	}
	if set.Breaker.Failures > 0 {
		h.Breaker = s.breaker
	}
	if s.caller != nil {
		h.Chain, h.Independent = s.caller.Chain.Within(set.MaxDepth), s.caller.Work.Independent
		if f := s.caller.Work.Fallback; f != nil {
			h.Fallback = f.To
		}
	}
	if s.root != nil && s.root.Work.Budget != nil && s.caller.Work.Budget != nil {
		root, own := s.root.Work.Budget, s.caller.Work.Budget
		h.Budget = guard.Purse{Limits: own.Limits, Left: s.left, Hops: own.Hops, Team: len(root.Team), Known: root.Has(agent.Key(target.Name)),
			Task: budget.Limits{Handoffs: root.Limits.Handoffs, Agents: root.Limits.Agents}}
	}
	return h
}

// question is what the guards are asked about a hop that d makes in tx.
func (e *Engine) question(ctx context.Context, tx Tx, d *Delegation, target agent.Spec, known bool, p planned) (guard.Hop, error) {
	c := e.Config()
	caller, _ := c.Agents.Get(d.To)
	s := scene{task: *tx.Task(), caller: d, now: tx.Now()}
	var err error
	if s.root, err = tx.Delegation(ctx, s.task.RootID); err != nil {
		return guard.Hop{}, err
	}
	if s.task.Handoffs > 0 {
		made, err := tx.Recent(ctx, window)
		if err != nil {
			return guard.Hop{}, err
		}
		for _, m := range made {
			s.recent = append(s.recent, guard.Entry{From: m.From, To: m.To, Hash: m.ContextHash})
		}
	}
	if s.left, err = (ledger{tx}).pool(ctx, d); err != nil {
		return guard.Hop{}, err
	}
	if known && c.Settings.Breaker.Failures > 0 {
		if s.breaker, err = tx.Breaker(ctx, target.Name); err == nil && s.breaker.Resting() {
			s.breaker, err = tx.LockBreaker(ctx, target.Name) // one of many that ask at once is the probe
		}
		if err != nil {
			return guard.Hop{}, err
		}
	}
	h := e.ask(c, caller, target, d.To, p.To, known, s)
	h.Text = p.Text
	content := guard.Content{Text: p.Text, Context: p.Context, Handover: p.Handover, Round: p.Round, Epoch: d.Work.Epoch + d.Work.Runs, Anew: p.anew}
	if p.snapshot != nil {
		content.Tree = p.snapshot.tree
	}
	h.Hash, err = guard.Hash(content)
	return h, err
}

// Check runs all guards for a hop that nobody makes. With a task the hop is made by
// its newest delegation to from, else by from at the root of a new task. Guards behind
// a refusal are listed as not asked.
func (e *Engine) Check(ctx context.Context, from, to, taskID string) ([]guard.Verdict, *guard.Verdict, error) {
	c := e.Config()
	caller, ok := c.Agents.Get(from)
	if !ok {
		return nil, nil, Errorf(CodeNotFound, "There is no agent %q. See the list of agents.", from)
	}
	target, known := c.Agents.Get(to)
	s, err := e.imagine(ctx, c, caller, taskID)
	if err != nil {
		return nil, nil, err
	}
	s.breaker = s.breakers[target.Name]
	h := e.ask(c, caller, target, from, to, known, s)
	verdicts, refused := guard.Explain(h)
	if refused != nil {
		return verdicts, refused, nil
	}
	return e.wouldAsk(ctx, verdicts, s.task, &Delegation{From: caller.Name, To: target.Name, Depth: h.Chain.Depth() + 1,
		Chain: h.Chain.With(chainStep(caller.Name, target.Name, ""))}, target)
}

// imagine is the scene of a hop that from would make: in a task as it stands, or at the
// root of a new one.
func (e *Engine) imagine(ctx context.Context, c *Config, from agent.Spec, taskID string) (scene, error) {
	s := scene{now: e.Now().UTC()}
	var err error
	if s.breakers, err = e.breakers(ctx); err != nil {
		return s, err
	}
	if taskID == "" {
		limits, _ := c.limits(Submission{}, from)
		s.root = &Delegation{To: from.Name, Chain: newChain(c), Work: Work{Account: Account{Budget: opened(limits, from)}, Terms: Terms{Independent: c.Settings.OptIn}}}
		s.caller, s.left = s.root, s.root.Work.Budget.Remaining()
		return s, nil
	}
	if s.task, err = e.Store.Task(ctx, taskID); err != nil {
		return s, err
	}
	tree, err := e.Store.Tree(ctx, taskID)
	if err != nil {
		return s, err
	}
	for i := range tree {
		d := &tree[i]
		if d.ParentID == "" {
			s.root = d
		} else {
			s.recent = append(s.recent, guard.Entry{From: d.From, To: d.To, Hash: d.ContextHash})
		}
		if agent.Key(d.To) == agent.Key(from.Name) {
			s.caller = d
		}
	}
	s.recent = s.recent[max(0, len(s.recent)-window):]
	if s.caller == nil {
		s.caller = s.root // it takes no part yet; the root's view is the widest
	}
	s.left = left(s.caller, tree)
	return s, nil
}

// left is the pool of d as read: see ledger.pool.
func left(d *Delegation, tree []Delegation) budget.Limits {
	l := d.Work.Budget.Remaining()
	for i := range tree {
		if c := &tree[i]; c.ParentID == d.ID && !c.State.Ended() && c.Work.Budget != nil && c.Work.Budget.Elastic {
			l = l.Plus(c.Work.Budget.Returnable(left(c, tree).Amount()))
		}
	}
	return l
}

// Roster lists all agents, each with the guard that would refuse handing work to it now
// (P10, P14); see agent.Host.
func (r *run) Roster(ctx context.Context) ([]agent.Member, error) {
	if err := r.live(); err != nil {
		return nil, err
	}
	d, err := r.e.Store.Delegation(ctx, r.id)
	if err != nil {
		return nil, err
	}
	s := scene{caller: &d, now: r.e.Now().UTC(), left: d.Work.Budget.Remaining()}
	if s.task, err = r.e.Store.Task(ctx, r.task.ID); err != nil {
		return nil, err
	}
	root, err := r.e.Store.Delegation(ctx, s.task.RootID)
	if err != nil {
		return nil, err
	}
	s.root = &root
	if s.breakers, err = r.e.breakers(ctx); err != nil {
		return nil, err
	}
	c := r.e.Config()
	caller, _ := c.Agents.Get(d.To)
	var members []agent.Member
	for _, spec := range c.Agents.All() {
		m := agent.Member{Name: spec.Name, Role: string(spec.Role), Capabilities: spec.Capabilities, About: Title(spec.Prompt)}
		s.breaker = s.breakers[spec.Name]
		if _, refused := guard.Check(r.e.ask(c, caller, spec, d.To, spec.Name, true, s)); refused != nil {
			m.Refused = refused.Code
		}
		members = append(members, m)
	}
	return members, nil
}

// probeTime is how long a probe is waited for beyond its agent's own time limit. A probe
// is a delegation and ends some day; this only frees the agent where the row is stuck.
const probeTime = 5 * time.Minute

// probe makes a child the one probe of an agent that rests; the guards let it pass. One
// that people are asked about first is none yet: nobody else could try while they think.
func probe(ctx context.Context, tx Tx, b guard.Breaker, child *Delegation, target agent.Spec) error {
	if !b.Resting() || child.State == AwaitingApproval {
		return nil
	}
	return tx.PutBreaker(ctx, b.Try(tx.Now(), child.ID, tx.Now().Add(target.Timeout+probeTime)))
}

// probeAsked makes a hand-over that people said yes to the probe when it is first worked
// on. It works in any case, for people decided it; another probe that is under way stays.
func (e *Engine) probeAsked(ctx context.Context, tx Tx, d *Delegation) error {
	if !d.Work.Asked || d.State != Running || d.Attempt != 1 {
		return nil
	}
	b, err := tx.Breaker(ctx, d.To)
	if err != nil || !b.Resting() {
		return err
	}
	if b, err = tx.LockBreaker(ctx, d.To); err != nil || !b.MayProbe(tx.Now()) {
		return err
	}
	spec, _ := e.Config().Agents.Get(d.To)
	return probe(ctx, tx, b, d, spec)
}

// tellBreaker counts an end that says something about the agent (H11–H14): a failure, but
// not one of the budget nor of a plan's step, which counts for who did it, or a success. What people decided or stopped says nothing; a
// probe that ended so is given to the next. Events belong to the task that caused them.
func tellBreaker(ctx context.Context, tx Tx, d *Delegation) error {
	if d.Work.Reverts != "" {
		return nil // no agent ran
	}
	failed := d.State == Failed && d.Work.Breaker != nil && (d.Error == nil || d.Error.Code != agent.CodeBudget && d.Error.Code != agent.CodeStep)
	b, err := tx.Breaker(ctx, d.To)
	if err != nil || !failed && b.Probe != d.ID && (d.State != Completed || !b.Resting() && b.Failures == 0) {
		return err
	}
	if b, err = tx.LockBreaker(ctx, d.To); err != nil {
		return err
	}
	next := b.Drop(tx.Now(), d.ID)
	switch {
	case failed:
		reason := ""
		if d.Error != nil {
			reason = d.Error.Message
		}
		next = b.Fail(tx.Now(), reason, d.Work.Breaker.Failures, d.Work.Breaker.Cooldown)
	case d.State == Completed:
		next = b.Succeed(tx.Now())
	}
	if err := tx.PutBreaker(ctx, next); err != nil {
		return err
	}
	return breakerEvent(ctx, tx, d, b, next)
}

// breakerEvent writes that a breaker opened, again after a probe too, or closed.
func breakerEvent(ctx context.Context, tx Tx, d *Delegation, was, is guard.Breaker) error {
	switch {
	case is.State == guard.Open && was.State != guard.Open:
		said := event.BreakerOpenedData{Agent: d.To, Failures: is.Failures, Until: is.Until, Reason: is.Reason}
		return tx.Append(ctx, event.Of(d.ID, "gatehouse", said))
	case is.State == guard.Closed && was.Resting():
		return tx.Append(ctx, event.Of(d.ID, "gatehouse", event.BreakerClosedData{Agent: d.To}))
	}
	return nil
}

// breakers returns the breakers of all agents that ever failed, by the agent's name.
func (e *Engine) breakers(ctx context.Context) (map[string]guard.Breaker, error) {
	all, err := e.Store.BreakerStates(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]guard.Breaker, len(all))
	for _, b := range all {
		byName[b.Agent] = b
	}
	return byName, nil
}

// AskSettings bound how often people are asked; a 0 is the default.
type AskSettings struct {
	PerRun      int // by one run, over all its attempts; one more is a loop
	OpenPerTask int // at once by one task
	PerMinute   int // by one run
}

// The defaults of engine.asks.
const defaultAsks, defaultOpenAsks, defaultAsksAMinute = 100, 20, 60

func (s AskSettings) orDefaults() AskSettings {
	return AskSettings{PerRun: cmp.Or(s.PerRun, defaultAsks), OpenPerTask: cmp.Or(s.OpenPerTask, defaultOpenAsks), PerMinute: cmp.Or(s.PerMinute, defaultAsksAMinute)}
}

// tooMany says why nobody is asked once more: a run that asks without end goes in circles.
func (e *Engine) tooMany(ctx context.Context, tx Tx, d *Delegation) (string, error) {
	most := e.Config().Settings.Asks.orDefaults()
	if d.Work.AskedInAll >= most.PerRun {
		return "", agent.Fail(agent.CodeLoop, "%s asked people %d times in one run, and %d is the limit (engine.asks.per_run). Give it narrower work, or rules that pass what is harmless.",
			d.To, d.Work.AskedInAll, most.PerRun)
	}
	if d.Work.askedSince(tx.Now()) >= most.PerMinute {
		return fmt.Sprintf("%s asked people %d times within a minute, and %d is the limit (engine.asks.per_minute). Nobody was asked. Wait a minute before you ask again.", d.To, d.Work.AskedLately, most.PerMinute), nil
	}
	tree, err := tx.Tree(ctx)
	if err != nil {
		return "", err
	}
	open := 0
	for _, other := range tree {
		open += other.Work.OpenAsks()
	}
	if open >= most.OpenPerTask {
		return fmt.Sprintf("%d calls and questions of this task wait for people already, and %d is the limit (engine.asks.open_per_task). Wait for an answer before you ask again.", open, most.OpenPerTask), nil
	}
	return "", nil
}

// askedSince is how often people were asked in the minute that is running.
func (w *Session) askedSince(now time.Time) int {
	if now.Sub(w.AskedFrom) >= time.Minute {
		w.AskedFrom, w.AskedLately = now, 0
	}
	return w.AskedLately
}

// countAsk notes that people are asked once more.
func (w *Session) countAsk(now time.Time) {
	w.AskedLately = w.askedSince(now) + 1
	w.AskedInAll++
}

// denied leaves a trace of a call that the rule of that name denies, "" for none. Beyond
// engine.asks.per_minute there is none, so that a loop floods no history.
func (r *run) denied(ctx context.Context, a agent.Ask, rule string) error {
	if rule == "" {
		return nil
	}
	return r.write(ctx, func(tx Tx, d *Delegation) error {
		if d.Work.askedSince(tx.Now()) >= r.e.Config().Settings.Asks.orDefaults().PerMinute {
			return nil
		}
		d.Work.AskedLately++
		if err := tx.Append(ctx, deniedEvent(d, *a.Action, rule)); err != nil {
			return err
		}
		return save(ctx, tx, d)
	})
}

func deniedEvent(d *Delegation, a agent.Action, rule string) event.Event {
	return event.Of(d.ID, d.To, event.DeniedData{About: event.About{Kind: event.KindAction}, Rule: rule, Tool: a.Tool, Server: a.Server, Brief: mask.Text(a.Brief())})
}

// askedInAnyCase reports whether no rule lets the call pass without a person: its agent only
// analyses, and nobody says that it changes nothing.
func (e *Engine) askedInAnyCase(d *Delegation, a agent.Action) bool {
	spec, known := e.Config().Agents.Get(d.To)
	return !known || spec.AnalysisOnly && (a.Hints.ReadOnly == nil || !*a.Hints.ReadOnly)
}

// takes is where an agent works on a task; it refuses one for an agent that takes none, or not
// this one.
func (e *Engine) takes(ctx context.Context, c *Config, spec agent.Spec, s Submission) (repository string, err error) {
	if spec.Role == agent.CLI {
		return "", Errorf(guard.CodeNotAllowed, "%s has the role cli, which takes no work. Send the task to another agent.", spec.Name)
	}
	if most := c.Settings.MaxRemote; e.traits(spec).Elsewhere && most > 0 && s.RemoteHops >= most {
		return "", Errorf(guard.CodeMaxDepth, "Maximum delegation depth reached between systems: %d of %d such hand-overs led here, and %s works elsewhere again. Send the task to an agent of this system.", s.RemoteHops, most, spec.Name)
	}
	if repository, err = c.workplace(spec, s.Repository); err != nil {
		return "", err
	}
	return repository, e.checkRef(ctx, s, repository)
}
