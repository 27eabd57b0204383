package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

type entryID struct{ namespace, key string }

// runContext is the shared context as one run uses it: it holds the agent to its
// rights, and records each use in the transaction that makes it.
type runContext struct {
	r  *run
	in sharedctx.Store // reads only; writes go through the task's transaction
}

var _ sharedctx.Store = runContext{}

// context is the shared context with this run as its reader and writer.
func (r *run) context() runContext { return runContext{r, r.e.Context(r.d.To)} }

// rights are what the configuration in force lets this run's agent do.
func (r *run) rights() sharedctx.Rights {
	spec, _ := r.e.Config().Agents.Get(r.d.To)
	rights := sharedctx.Rights{Agent: r.d.To, TaskID: r.task.ID, Reads: spec.Reads}
	rights.Asked = r.d.Work.Pinned != nil
	return rights
}

// board is the namespace that is meant where none is named: the board of the run's task.
func (c runContext) board(namespace string) string {
	if namespace == "" {
		return sharedctx.Board(c.r.task.ID)
	}
	return namespace
}

// mayRead refuses namespaces that the agent is not given.
func (c runContext) mayRead(namespace string) error {
	return forbidden(c.r.rights().MayRead(namespace))
}

// mayWrite refuses what belongs to somebody else.
func (c runContext) mayWrite(namespace, key string) error {
	return forbidden(c.r.rights().MayWrite(namespace, key))
}

func forbidden(err error) error {
	if err == nil {
		return nil
	}
	return Errorf(CodeForbidden, "%w.", err)
}

// Get reads one value.
func (c runContext) Get(ctx context.Context, namespace, key string) (sharedctx.Entry, error) {
	namespace = c.board(namespace)
	if err := errors.Join(c.r.live(), c.mayRead(namespace)); err != nil {
		return sharedctx.Entry{}, err
	}
	if c.r.pins(namespace) {
		for _, e := range c.r.asked(key) {
			if e.Key == key {
				return e, nil
			}
		}
		return sharedctx.Entry{}, ErrNotFound
	}
	e, err := c.in.Get(ctx, namespace, key)
	if err != nil {
		return e, err
	}
	return e, c.r.read(ctx, "asked", []sharedctx.Entry{e})
}

// Prefix reads what begins with prefix.
func (c runContext) Prefix(ctx context.Context, namespace, prefix string, limit int) ([]sharedctx.Entry, error) {
	namespace = c.board(namespace)
	if err := errors.Join(c.r.live(), c.mayRead(namespace)); err != nil {
		return nil, err
	}
	if c.r.pins(namespace) {
		found := c.r.asked(prefix)
		if limit > 0 {
			found = found[:min(len(found), limit)]
		}
		return found, nil
	}
	found, err := c.in.Prefix(ctx, namespace, prefix, limit)
	if err != nil {
		return nil, err
	}
	return found, c.r.read(ctx, "asked", found)
}

// Uses are who used an entry that the agent may read.
func (c runContext) Uses(ctx context.Context, namespace, key string, before int64, limit int) ([]sharedctx.Use, error) {
	namespace = c.board(namespace)
	if err := errors.Join(c.r.live(), c.mayRead(namespace)); err != nil {
		return nil, err
	}
	return c.in.Uses(ctx, namespace, key, before, limit)
}

// Topics are the namespaces; that there is one is no secret, what is in it may be.
func (c runContext) Topics(ctx context.Context, prefix, after string, limit int) ([]sharedctx.Topic, error) {
	return c.in.Topics(ctx, prefix, after, limit)
}

// Set writes one value.
func (c runContext) Set(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	e.Agent = c.r.d.To
	var kept sharedctx.Entry
	err := c.write(ctx, e, func(tx Tx, d *Delegation) error {
		var err error
		kept, err = putEntry(ctx, tx, d.ID, e.At(tx.Now()))
		return err
	})
	return kept, err
}

// Extend writes one value and moves its expiry only forward.
func (c runContext) Extend(ctx context.Context, e sharedctx.Entry) (sharedctx.Entry, error) {
	var kept sharedctx.Entry
	e.Agent = c.r.d.To
	err := c.write(ctx, e, func(tx Tx, d *Delegation) error {
		var err error
		if kept, err = tx.ExtendEntry(ctx, e.At(tx.Now())); err != nil {
			return err
		}
		return noteWrite(ctx, tx, d.ID, kept)
	})
	return kept, err
}

// write checks an entry and runs fn in the run's transaction.
func (c runContext) write(ctx context.Context, e sharedctx.Entry, fn func(tx Tx, d *Delegation) error) error {
	if err := c.mayWrite(e.Namespace, e.Key); err != nil {
		return err
	}
	if err := e.Check(); err != nil {
		return Errorf(CodeBadRequest, "%s wrote something that the shared context does not take: %w.", c.r.d.To, err)
	}
	return c.r.write(ctx, fn)
}

// Delete removes a value.
func (c runContext) Delete(ctx context.Context, namespace, key string) error {
	namespace = c.board(namespace)
	if err := c.mayWrite(namespace, key); err != nil {
		return err
	}
	return c.r.write(ctx, func(tx Tx, d *Delegation) error {
		if err := tx.DropEntry(ctx, namespace, key); err != nil {
			return err
		}
		if _, err := tx.NoteUses(ctx, []sharedctx.Use{useOf(d, sharedctx.Delete, namespace, key)}); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(d.ID, d.To, event.ContextDeletedData{Entry: event.Entry{Namespace: namespace, Key: key}}))
	})
}

// Touch prolongs the life of a value that the agent may read.
func (c runContext) Touch(ctx context.Context, namespace, key string, ttl time.Duration) (sharedctx.Entry, error) {
	namespace = c.board(namespace)
	if err := c.mayRead(namespace); err != nil {
		return sharedctx.Entry{}, err
	}
	if ttl < 0 || ttl > sharedctx.MaxTTL {
		return sharedctx.Entry{}, Errorf(CodeBadRequest, "A life span of %s: use 1 second to 100 years, or none for 90 days.", ttl)
	}
	var touched sharedctx.Entry
	err := c.r.write(ctx, func(tx Tx, d *Delegation) error {
		var err error
		if touched, err = tx.TouchEntry(ctx, namespace, key, ttl); err != nil {
			return err
		}
		_, err = tx.NoteUses(ctx, []sharedctx.Use{useOf(d, sharedctx.Touch, namespace, key)})
		return err
	})
	return touched, err
}

// Cleanup is not for agents; the server does it by itself.
func (c runContext) Cleanup(context.Context, time.Time) (int, error) {
	return 0, Errorf(CodeForbidden, "A run token does not clean up. The server removes what has expired by itself.")
}

// ContextOf is the shared context on behalf of a running command.
func (e *Engine) ContextOf(p people.Run) (sharedctx.Store, error) {
	r := e.running(p)
	if r == nil {
		return nil, errRunOver
	}
	return r.context(), nil
}

// putEntry writes one value for a delegation whose agent is its author, with its use and
// its event.
func putEntry(ctx context.Context, tx Tx, delegationID string, e sharedctx.Entry) (sharedctx.Entry, error) {
	kept, err := tx.PutEntry(ctx, e)
	if err != nil {
		return e, err
	}
	return kept, noteWrite(ctx, tx, delegationID, kept)
}

func noteWrite(ctx context.Context, tx Tx, delegationID string, e sharedctx.Entry) error {
	use := sharedctx.Use{Namespace: e.Namespace, Key: e.Key, Kind: sharedctx.Write, Agent: e.Agent, DelegationID: delegationID}
	if _, err := tx.NoteUses(ctx, []sharedctx.Use{use}); err != nil {
		return err
	}
	var seconds int64
	if e.ExpiresAt != nil {
		seconds = int64(e.ExpiresAt.Sub(tx.Now()).Round(time.Second) / time.Second)
	}
	return tx.Append(ctx, event.Of(delegationID, e.Agent, event.ContextWrittenData{
		Entry: event.Entry{Namespace: e.Namespace, Key: e.Key}, TTLSeconds: event.Given(seconds)}))
}

func useOf(d *Delegation, kind sharedctx.Kind, namespace, key string) sharedctx.Use {
	return sharedctx.Use{Namespace: namespace, Key: key, Kind: kind, Agent: d.To, DelegationID: d.ID, TaskID: d.TaskID}
}

// maxNamed is how many entries one event of reading names.
const maxNamed = 50

// read records that this run has read entries, each once, and prolongs memory (K43).
// How is "given" at the start of a run, or "asked".
func (r *run) read(ctx context.Context, how string, entries []sharedctx.Entry) error {
	var uses []sharedctx.Use
	var memory []sharedctx.Entry
	r.mu.Lock()
	for _, e := range entries {
		if r.seen[entryID{e.Namespace, e.Key}] {
			continue
		}
		uses = append(uses, useOf(&r.d, sharedctx.Read, e.Namespace, e.Key))
		if sharedctx.Prolongs(e.Namespace) && e.ExpiresAt != nil {
			memory = append(memory, e)
		}
	}
	r.mu.Unlock()
	if len(uses) == 0 {
		return nil
	}
	err := r.write(ctx, func(tx Tx, d *Delegation) error {
		fresh, err := tx.NoteUses(ctx, uses)
		if err != nil {
			return err
		}
		if err := tx.Prolong(ctx, memory, tx.Now().Add(sharedctx.ExtensionTTL)); err != nil || len(fresh) == 0 {
			return err
		}
		return tx.Append(ctx, readEvent(d, how, fresh))
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	for _, u := range uses {
		r.seen[entryID{u.Namespace, u.Key}] = true
	}
	r.mu.Unlock()
	return nil
}

// readEvent is one event for all that was read at once.
func readEvent(d *Delegation, how string, fresh []sharedctx.Use) event.Event {
	named := make([]event.Entry, 0, maxNamed)
	for _, u := range fresh[:min(len(fresh), maxNamed)] {
		named = append(named, event.Entry{Namespace: u.Namespace, Key: u.Key})
	}
	return event.Of(d.ID, d.To, event.ContextReadData{How: how, Count: len(fresh), Entries: named})
}

// How much of the shared context a run is given at its start. A model reads it as a
// part of its prompt, a program as a file.
const (
	givenEntries = 200
	givenPrompt  = 48 << 10
	givenFile    = 1 << 20
)

// given is what the agent is given of the shared context, recorded as read.
func (r *run) given(spec agent.Spec) ([]agent.ContextEntry, error) {
	var entries []sharedctx.Entry
	if r.ahead == nil || !r.ahead.none() {
		var err error
		if entries, err = r.e.Store.Given(r.ctx, r.rights(), givenEntries); err != nil {
			return nil, err
		}
	}
	room := givenFile
	if r.e.traits(spec).Prompted {
		room = givenPrompt
	}
	var all []agent.ContextEntry
	entries = r.askedOnly(entries)
	fitted := sharedctx.Fit(entries, room)
	for _, g := range fitted {
		e := entryOf(g.Entry)
		if g.Whole > 0 {
			e.Whole = g.Whole
			e.Value += fmt.Sprintf("… (cut here: the value has %d bytes; read %s %s for all of it)", g.Whole, e.Namespace, e.Key)
		}
		all = append(all, e)
	}
	return all, r.read(r.ctx, "given", entries[:len(fitted)])
}

func entryOf(e sharedctx.Entry) agent.ContextEntry {
	return agent.ContextEntry{Namespace: e.Namespace, Key: e.Key, Value: e.Value, Agent: e.Agent, Scope: e.Scope, UpdatedAt: e.UpdatedAt}
}

// Pinned is what people said yes to before work was handed on, as the run is given it. The
// shared context is anybody's: whoever handed the work on could write there after the yes,
// and nobody would have read it. So such a run has the context of its question in place of
// the task's namespace, its own memory, and of the rest only what its reads name.
type Pinned struct {
	Context map[string]string `json:"context,omitempty"`
}

// pins reports whether this run has the namespace as it was asked.
func (r *run) pins(namespace string) bool {
	return r.d.Work.Pinned != nil && namespace == sharedctx.Handoff(r.task.ID)
}

// asked are the entries of the question that begin with prefix.
func (r *run) asked(prefix string) []sharedctx.Entry {
	found := []sharedctx.Entry{}
	for _, key := range slices.Sorted(maps.Keys(r.d.Work.Pinned.Context)) {
		if strings.HasPrefix(key, prefix) {
			found = append(found, sharedctx.Entry{Namespace: sharedctx.Handoff(r.task.ID), Key: key, Value: r.d.Work.Pinned.Context[key],
				Agent: r.d.From, CreatedAt: r.d.CreatedAt, UpdatedAt: r.d.CreatedAt})
		}
	}
	return found
}

// askedOnly replaces what the shared context holds for a run by what it may be given of it.
func (r *run) askedOnly(entries []sharedctx.Entry) []sharedctx.Entry {
	if r.d.Work.Pinned == nil {
		return entries
	}
	rights := r.rights()
	return append(r.asked(""), slices.DeleteFunc(entries, func(e sharedctx.Entry) bool {
		return r.pins(e.Namespace) || rights.MayRead(e.Namespace) != nil
	})...)
}
