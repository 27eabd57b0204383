package orchestrator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Delegate makes a hop on behalf of a running command that shows its run token. A
// guard's refusal is an *Error with the guard's code.
func (e *Engine) Delegate(ctx context.Context, p people.Run, hop agent.Hop) (Delegation, error) {
	r := e.running(p)
	if r == nil {
		return Delegation{}, errRunOver
	}
	hop.Ref = "" // the n-th of its kind; only kinds of agents name their hops
	c, err := r.handOn(ctx, hop)
	switch {
	case err != nil:
		return Delegation{}, err
	case c.State == agent.Refused:
		return Delegation{}, &Error{Code: c.Error.Code, Message: c.Error.Message}
	}
	return e.Store.Delegation(ctx, c.ID)
}

// errRunOver answers a run token whose attempt this node does not work on.
var errRunOver = &Error{Code: CodeForbidden, Message: "This run is over, or it runs on another node. Its token works only there and only while it runs."}

// planned is one hop with what has to be known before the transaction.
type planned struct {
	agent.Hop
	key          string
	target       agent.Spec // whom it would be handed to
	known        bool       // there is such an agent
	snapshot     *base      // set when the caller has a checkout
	stands       *base      // what a child that shares no files is asked about
	repo         string
	asks         Handovers     // nil: nobody is asked
	continuation *continuation // of the transaction
	passes       bool          // d waits for the child, so that its slot is free
	// least and whole are what one call of the target may cost, in tokens; see Engine.need.
	least, whole int64
	anew         string // what tells a spawn from the same one before, "" where nothing does
	toCome       int    // hops that the same turn still makes, this one included; 0 is 1
}

// hopKey makes the key of the n-th hop with this target and text.
func hopKey(to, text string, n int) string {
	sum := sha256.Sum256([]byte(agent.Key(to) + "\x00" + text))
	return fmt.Sprintf("%s#%d", hex.EncodeToString(sum[:12]), n)
}

// hop makes one hop of d inside a transaction: the child that exists under the key,
// a refusal, or a new child. What it costs does not grow with the children that there
// are, nor with the task.
func (e *Engine) hop(ctx context.Context, tx Tx, d *Delegation, p planned) (agent.Child, error) {
	child, err := e.madeBefore(ctx, tx, d, &p)
	if errors.Is(err, ErrNotFound) {
		p.To = cmp.Or(p.To, p.target.Name)
		child, err = e.makeChild(ctx, tx, d, p)
	}
	if refused, ok := errors.AsType[*guard.Verdict](err); ok {
		return e.refuse(ctx, tx, d, p, refused)
	}
	if err != nil {
		return agent.Child{}, err
	}
	return childOf(child), nil
}

// makeChild asks the guards about a hop and makes its child. A refusal is the guard's
// *guard.Verdict, and has changed nothing.
func (e *Engine) makeChild(ctx context.Context, tx Tx, d *Delegation, p planned) (*Delegation, error) {
	q, err := e.question(ctx, tx, d, p.target, p.known, p)
	if err != nil {
		return nil, err
	}
	verdicts, refused := guard.Check(q)
	if refused != nil {
		return nil, refused
	}
	if err := e.spawnLimit(ctx, tx, d, p); err != nil {
		return nil, err
	}
	grant, err := e.afford(ctx, tx, d, &p)
	if err != nil {
		return nil, err
	}
	if err := p.unapproved(); err != nil {
		return nil, err
	}
	child := e.newChild(tx, d, p)
	child.ContextHash = q.Hash
	handed := p.handed(child)
	handed.Attachments = tx.Task().Attachments
	rule := ruled(p.asks, tx.Now(), tx.Task(), child, handed, p.target.AskFirst)
	if verdicts, refused = human(verdicts, rule, d.To, p.target.Name); refused != nil {
		return nil, refused
	}
	if rule.Asks != "" {
		askFirst(child, tx.Now())
		if p.stands != nil {
			p.stands.stand(child)
			handed.on(child, p.stands)
		}
	}
	if err := (ledger{tx}).reserve(ctx, d, child, grant); err != nil {
		return nil, err
	}
	if err := probe(ctx, tx, q.Breaker, child, p.target); err != nil {
		return nil, err
	}
	if err := e.insertChild(ctx, tx, d, child, p, verdicts); err != nil {
		return nil, err
	}
	if child.Work.Asked {
		if err := p.asks.Ask(ctx, tx, child, handed, p.target.AskFirst); err != nil {
			return nil, err
		}
	}
	tx.Task().Handoffs++
	if child.Spawned {
		d.OpenSpawned++
	} else {
		d.OpenChildren++
	}
	return child, nil
}

// insertChild writes a new child with all that belongs to it.
func (e *Engine) insertChild(ctx context.Context, tx Tx, d, child *Delegation, p planned, verdicts []guard.Verdict) error {
	if err := rememberSpawn(ctx, tx, d, child); err != nil {
		return err
	}
	begun := p.continuation.claim(tx, child, p.passes)
	if err := tx.Insert(ctx, child); err != nil {
		return err
	}
	if err := e.announce(ctx, tx, d, child, p, verdicts); err != nil {
		return err
	}
	if begun {
		return p.continuation.acknowledge(ctx, tx, child)
	}
	return nil
}

func firstAble(c *Config, capability string) (agent.Spec, bool) {
	if able := c.Agents.ByCapability(capability); len(able) > 0 {
		return able[0], true
	}
	return agent.Spec{Name: "capability:" + capability}, false
}

// refuse records a refusal; it is data for the caller (K11).
func (e *Engine) refuse(ctx context.Context, tx Tx, d *Delegation, p planned, v *guard.Verdict) (agent.Child, error) {
	err := tx.Append(ctx, event.Of(d.ID, d.To, event.DelegationRefusedData{
		To: p.To, Code: v.Code, Reason: string(v.Reason), Message: v.Message, Guard: v.Guard, Chain: d.Chain.String()}))
	return agent.Child{Ref: p.Ref, To: p.To, Text: cut(p.Text), State: agent.Refused, Ended: true,
		Error: &agent.Failure{Code: v.Code, Message: v.Message}}, err
}

// newChild is the row of an accepted hop.
func (e *Engine) newChild(tx Tx, d *Delegation, p planned) *Delegation {
	now, target := tx.Now(), p.target
	child := &Delegation{
		ID: NewID(DelegationPrefix, now), TaskID: d.TaskID, ParentID: d.ID, From: d.To, To: target.Name, Text: p.Text,
		Depth: d.Depth + 1, Chain: d.Chain.With(chainStep(d.To, target.Name, p.Text)), HopKey: p.key,
		Generation: d.Work.Runs, Repository: p.repo, Requester: d.Requester, Spawned: p.Spawn,
	}
	bornQueued(child, now)
	child.Work.Record = e.Config().Settings.RecordEnds
	if s := p.snapshot; s != nil && p.repo == d.Repository {
		child.Work.Base = Base{Stand: Stand{s.branch, s.tag, s.commit, s.tree}, Shares: true, BaseSaved: s.saved, BaseBundle: bundleID("base", child.ID),
			Steering: s.steering[:min(len(s.steering), maxSteering)], Trusted: s.trusted, Steered: steered(target)}
	}
	child.inherit(d, p.snapshot)
	child.Work.Handover = carried(p.Handover, p.Context)
	child.Work.Independent = d.Work.Independent
	child.Work.Epoch = d.Work.Epoch + d.Work.Runs + p.Round
	return child
}

// announce writes what belongs to a new child: its base, its context, its events.
func (e *Engine) announce(ctx context.Context, tx Tx, d, child *Delegation, p planned, verdicts []guard.Verdict) error {
	if child.Work.Shares {
		if err := tx.PutBlob(ctx, child.Work.BaseBundle, "bundle", p.snapshot.bundle); err != nil {
			return err
		}
	}
	if child.Work.pinned() {
		if err := tx.PutBlob(ctx, child.Work.BaseBundle, "bundle", p.stands.bundle); err != nil {
			return err
		}
	}
	if err := handContext(ctx, tx, child, d.To, p.Context); err != nil {
		return err
	}
	passed := make([]string, 0, len(verdicts))
	for _, v := range verdicts {
		passed = append(passed, v.Guard)
	}
	said := event.DelegatedData{To: child.To, Child: child.ID, Title: Title(child.Text), Guards: passed}
	if len(child.Work.Steering) > 0 {
		said.Steering, said.TrustCheckout = child.Work.Steering, event.Given(child.Work.Trusted)
	}
	if err := tx.Append(ctx, event.Of(d.ID, d.To, said)); err != nil {
		return err
	}
	if child.Work.Asked {
		return nil // it is queued by the yes
	}
	return tx.Append(ctx, event.Of(child.ID, d.To, event.QueuedData{Agent: child.To, From: event.Given(d.To)}))
}

// childOf is a delegation as its caller sees it.
func childOf(d *Delegation) agent.Child {
	c := agent.Child{ID: d.ID, Ref: d.HopKey, To: d.To, Text: d.Text, State: string(d.State), Ended: d.State.Ended(),
		Spawn: d.Spawned, Usage: d.Usage, Result: d.Result, Error: d.Error}
	if d.Result != nil && len(d.Result.Declined) > 0 {
		told := *d.Result
		told.Text += fmt.Sprintf("\n\nPeople declined the changes of these files, which did not land: %s.", strings.Join(told.Declined, ", "))
		c.Result = &told
	}
	if c.Ended && d.State != Completed && c.Error == nil {
		c.Error = &agent.Failure{Code: string(d.State), Message: fmt.Sprintf("%s ended as %s.", d.To, d.State)}
	}
	return c
}

// What holds where the configuration says nothing (X6b: the figures of picoclaw today).
const (
	defaultSpawned      = 5
	defaultSpawnTimeout = 5 * time.Minute
)

func (s SpawnSettings) children() int {
	return cmp.Or(max(s.Children, 0), defaultSpawned)
}

func (s SpawnSettings) timeout() time.Duration {
	return cmp.Or(max(s.Timeout, 0), defaultSpawnTimeout)
}

// spawnKey makes spawning idempotent: the same task for the same agent, spawned again by
// the same run, is the child that exists, also once it has ended (P50), until that is forgotten;
// see madeBefore. One that is meant to be made again has a key of its own. to is "" where the
// agent is not known.
func spawnKey(to string, h agent.Hop) string {
	to = cmp.Or(to, h.To)
	if h.Again {
		return "spawn-" + hopKey(to, h.Text+"\x00"+h.Ref, 0)
	}
	return "spawn-" + hopKey(to, h.Text, 0)
}

// spawnLimit refuses a child too many of those that d does not wait for (P44), and one too
// many of those that all runs of d's agent have spawned together (P45). The first count is of
// the locked row, and the store keeps other runs of the agent from counting until the
// transaction ends, so that both are exact (P54).
func (e *Engine) spawnLimit(ctx context.Context, tx Tx, d *Delegation, p planned) error {
	set := e.Config().Settings.Spawn
	if !p.Spawn {
		return nil
	}
	if limit := set.children(); d.OpenSpawned >= limit {
		return noCapacity("%s has %d spawned agents at work, and %d at once is the limit. "+
			"Wait until one of them has ended, or do this without one.", d.To, d.OpenSpawned, limit)
	}
	if set.PerAgent <= 0 {
		return nil
	}
	n, err := tx.SpawnedBy(ctx, d.To)
	if err != nil || n < set.PerAgent {
		return err
	}
	return noCapacity("%s has %d spawned agents at work in all its runs together, and %d at once is the limit of one agent "+
		"(engine.spawn.per_agent). Wait until one of them has ended, or do this without one.", d.To, n, set.PerAgent)
}

func noCapacity(format string, args ...any) *guard.Verdict {
	return &guard.Verdict{Guard: "capacity", Code: guard.CodeNoCapacity, Message: fmt.Sprintf(format, args...)}
}

// What a run asks for twice by mistake is done once (P50): a spawn of the same task for the
// same agent, and the announcement of a child's end. Each has a deterministic key, which the
// store keeps with the child while that lives and for Settings.Spawn.Remember after its end;
// then a sweep forgets it.

// defaultRemember is how long that is where the configuration says nothing.
const defaultRemember = 24 * time.Hour

// Remembered is how long after a child's end its keys are known.
func (s SpawnSettings) Remembered() time.Duration {
	return cmp.Or(max(s.Remember, 0), defaultRemember)
}

// spawnedOnce is the key of a spawn: who spawns, in which generation, and what for whom.
func spawnedOnce(d *Delegation, key string) string {
	return fmt.Sprintf("spawn/%s/%d/%s", d.ID, d.Work.Runs, key)
}

// madeBefore finds the child that answers for a hop, ErrNotFound where there is none. The
// child of a spawn answers until it has been forgotten, also before the sweep comes by.
func (e *Engine) madeBefore(ctx context.Context, tx Tx, d *Delegation, p *planned) (*Delegation, error) {
	if !p.Spawn {
		return tx.Child(ctx, d.ID, d.Work.Runs, p.key)
	}
	if p.Again {
		p.anew = p.Ref
	}
	child, err := spawnOf(ctx, tx, d, p.key)
	if err != nil {
		return nil, err
	}
	if child.EndedAt == nil || tx.Now().Sub(*child.EndedAt) < e.Config().Settings.Spawn.Remembered() {
		return child, nil
	}
	p.anew = child.ID // it is no repetition of the hop that made that one
	if err := tx.Forget(ctx, spawnedOnce(d, p.key)); err != nil {
		return nil, err
	}
	return nil, ErrNotFound
}

// spawnOf finds the newest child that a spawn made. A node of before the keys, which works
// beside this one while the nodes are brought up one by one, notes none: its child is found
// by the plain hop key, as it finds it itself.
func spawnOf(ctx context.Context, tx Tx, d *Delegation, key string) (*Delegation, error) {
	id, err := tx.Remembered(ctx, spawnedOnce(d, key))
	if errors.Is(err, ErrNotFound) {
		return tx.Child(ctx, d.ID, d.Work.Runs, key)
	}
	if err != nil {
		return nil, err
	}
	return tx.Delegation(ctx, id)
}

// rememberSpawn makes child the answer for its spawn. The hop key below its caller has to be
// its own: the same spawn may be made again once this one is forgotten.
func rememberSpawn(ctx context.Context, tx Tx, d, child *Delegation) error {
	if !child.Spawned {
		return nil
	}
	key := child.HopKey
	child.HopKey += "@" + child.ID
	return tx.Remember(ctx, spawnedOnce(d, key), child.ID)
}

// announceOnce notes that a turn tells d of the ends of children, and returns the keys of
// the announcements. One that is on record is refused with the whole turn.
func announceOnce(ctx context.Context, tx Tx, d *Delegation, children []string) ([]string, error) {
	keys := make([]string, 0, len(children))
	for _, id := range children {
		key := fmt.Sprintf("announce/%s/%d/%s", d.ID, d.Work.Runs, id)
		err := tx.Remember(ctx, key, id)
		if errors.Is(err, ErrExists) {
			return nil, Errorf(CodeConflict, "The end of %s was announced to %s before. Each is announced once.", id, d.To)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// announces reports whether a turn tells the ends of spawned children, which is a message of
// its own; the outcomes of other hops come as the results of their calls.
func announces(t agent.Turn) bool { return len(t.Children) > 0 && t.Message.Role == agent.FromUser }
