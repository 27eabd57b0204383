package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

// put writes one value as a person.
func (w *world) put(namespace, key, value string, ttl time.Duration) sharedctx.Entry {
	w.t.Helper()
	e, err := sharedctx.New(time.Now(), namespace, key, value, "ann", ttl)
	if err != nil {
		w.t.Fatal(err)
	}
	if e, err = w.store.Context("ann").Set(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) entry(namespace, key string) sharedctx.Entry {
	w.t.Helper()
	e, err := w.store.Context("").Get(w.t.Context(), namespace, key)
	if err != nil {
		w.t.Fatalf("%s/%s: %v", namespace, key, err)
	}
	return e
}

// uses lists who used an entry, oldest first.
func (w *world) uses(namespace, key string) (lines []string) {
	w.t.Helper()
	found, err := w.store.Context("").Uses(w.t.Context(), namespace, key, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, u := range slices.Backward(found) {
		lines = append(lines, string(u.Kind)+" "+u.Agent)
	}
	return lines
}

// asks is a script that works with the shared context and answers.
func asks(do func(ctx context.Context, s agent.Shared) error) agenttest.Script {
	return func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		return agenttest.Done("done"), do(ctx, host.Shared())
	}
}

// refusedWith is the sentence of a refusal; anything else is an error.
func refusedWith(err error, words ...string) error {
	var f *agent.Failure
	if !errors.As(err, &f) || f.Code != orchestrator.CodeForbidden {
		return fmt.Errorf("not refused: %w", err)
	}
	for _, word := range words {
		if !strings.Contains(f.Message, word) {
			return fmt.Errorf("%q lacks %q", f.Message, word)
		}
	}
	return nil
}

// P7: the tool and the prompt see the same store. P6, P21b: the snapshot carries authors.
func TestWhatOneAgentWritesByToolIsInTheNextOnesSnapshot(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder", "reviewer")...)
		w.script("coder", asks(func(ctx context.Context, s agent.Shared) error {
			if e, ok, err := s.Get(ctx, "codebase", "module:auth"); ok || err != nil {
				return fmt.Errorf("an empty board has %+v %v", e, err)
			}
			if list, err := s.Prefix(ctx, "codebase", "", 10); list == nil || len(list) != 0 || err != nil { // P5
				return fmt.Errorf("listing an empty board gives %v, %v", list, err)
			}
			err := s.Set(ctx, agent.ContextWrite{Namespace: "codebase", Key: "module:auth", Value: "fragile"})
			if e, ok, get := s.Get(ctx, "codebase", "module:auth"); !ok || e.Value != "fragile" || e.Agent != "coder" || e.UpdatedAt.IsZero() {
				return fmt.Errorf("the board after the write: %+v %v", e, get)
			}
			return err
		}))
		given := make(chan []agent.ContextEntry, 1)
		w.script("reviewer", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			given <- job.Context
			return agenttest.Done("read"), nil
		})
		w.start()
		writer := w.state(w.send("coder", "learn").ID, orchestrator.Completed)
		reader := w.state(w.send("reviewer", "use it").ID, orchestrator.Completed)
		if got := <-given; len(got) != 1 || got[0].Key != "module:auth" || got[0].Value != "fragile" || got[0].Agent != "coder" {
			t.Errorf("given %+v", got)
		}
		if got := w.uses("codebase", "module:auth"); fmt.Sprint(got) != "[write coder read coder read reviewer]" {
			t.Errorf("history %q", got)
		}
		if n := w.count(writer.TaskID, event.ContextWritten); n != 1 {
			t.Errorf("%d events of one write", n)
		}
		if !strings.Contains(w.history(reader.TaskID), `context.read reviewer {"count":1,"entries":[{"key":"module:auth","namespace":"codebase"}],"how":"given"}`) {
			t.Errorf("no event of the read\n%s", w.history(reader.TaskID))
		}
	})
}

// K27: an agent reads what its reads name; its own memory always; another's memory and
// another task's hand-overs never by chance.
func TestAnAgentReadsAndWritesOnlyWhatItMay(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Reads: []string{"codebase"}}, agent.Spec{Name: "kik"}, agent.Spec{Name: "lead", Reads: []string{"memory:coder"}})
		for _, ns := range []string{"codebase", "secrets", "memory:coder", "memory:kik", "handoff:tsk_other"} {
			w.put(ns, "k", "v", 0)
		}
		read := func(ctx context.Context, s agent.Shared, ns string) error {
			_, ok, err := s.Get(ctx, ns, "k")
			if err == nil && !ok {
				err = fmt.Errorf("nothing in %s", ns)
			}
			return err
		}
		w.script("coder", asks(func(ctx context.Context, s agent.Shared) error {
			_, _, secret := s.Get(ctx, "secrets", "k")
			_, query := s.Prefix(ctx, "secrets", "", 5)
			_, touch := s.Touch(ctx, "secrets", "k", 60)
			_, prefix := s.Prefix(ctx, "memory:kik", "", 5)
			return errors.Join(read(ctx, s, "codebase"), read(ctx, s, "memory:coder"),
				refusedWith(secret, `not given the namespace "secrets"`, "codebase", "reads"), refusedWith(query, "secrets"), refusedWith(touch, "secrets"),
				refusedWith(prefix, `"memory:kik" is another agent's memory`),
				s.Set(ctx, agent.ContextWrite{Namespace: "memory:coder", Key: "project:<1>", Value: "mine"}),
				refusedWith(s.Set(ctx, agent.ContextWrite{Namespace: "memory:kik", Key: "k", Value: "planted"}), "another agent's memory", `"memory:coder"`),
				refusedWith(s.Delete(ctx, "memory:kik", "k"), "another agent's memory"),
				refusedWith(s.Set(ctx, agent.ContextWrite{Namespace: "handoff:tsk_other", Key: "k", Value: "planted"}), "another task"),
				refusedWith(s.Set(ctx, agent.ContextWrite{Namespace: "kik", Key: "delegation:coder:1-x", Value: "planted"}), "record of delegations"))
		}))
		w.script("kik", asks(func(ctx context.Context, s agent.Shared) error {
			_, _, memory := s.Get(ctx, "memory:coder", "k")
			_, _, handoff := s.Get(ctx, "handoff:tsk_other", "k")
			return errors.Join(read(ctx, s, "secrets"), read(ctx, s, "memory:kik"), refusedWith(memory, "memory:coder", "reads of kik"), refusedWith(handoff, "another task"))
		}))
		w.script("lead", asks(func(ctx context.Context, s agent.Shared) error { return read(ctx, s, "memory:coder") }))
		w.start()
		for _, name := range []string{"coder", "kik", "lead"} {
			d := w.until(w.send(name, "look").ID, "over", func(d orchestrator.Delegation) bool { return d.State.Ended() })
			if d.State != orchestrator.Completed {
				t.Errorf("%s: %+v", name, d.Error)
			}
		}
		if e := w.entry("memory:kik", "k"); e.Value != "v" || e.Agent != "ann" {
			t.Errorf("kik's memory is %+v", e)
		}
	})
}

// K43: memory that is read lives on; a finding of 24 h does not (K35), and a person who
// looks keeps nothing alive.
func TestReadingKeepsMemoryAlive(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		asked, given := w.put("memory:coder", "asked", "v", time.Hour), w.put("memory:coder", "given", "v", time.Hour)
		finding := w.put("performance", "n1", "v", sharedctx.PerformanceTTL)
		longer := w.put("memory:coder", "longer", "v", 200*24*time.Hour)
		w.script("coder", asks(func(ctx context.Context, s agent.Shared) error {
			_, _, err := s.Get(ctx, "memory:coder", "asked")
			_, prefix := s.Prefix(ctx, "performance", "n1", 5)
			return errors.Join(err, prefix)
		}))
		w.start()
		w.entry("memory:coder", "asked")
		if e := w.entry("memory:coder", "asked"); !e.ExpiresAt.Equal(*asked.ExpiresAt) {
			t.Errorf("a person's look moved the expiry to %s", e.ExpiresAt)
		}
		before := time.Now()
		w.state(w.send("coder", "remember").ID, orchestrator.Completed)
		for _, was := range []sharedctx.Entry{asked, given} {
			e := w.entry(was.Namespace, was.Key)
			if left := e.ExpiresAt.Sub(before); left < 90*24*time.Hour-time.Second || !e.UpdatedAt.Equal(was.UpdatedAt) {
				t.Errorf("%s lives %s more after the read: %+v", e.Key, left, e)
			}
		}
		for _, was := range []sharedctx.Entry{finding, longer} {
			if e := w.entry(was.Namespace, was.Key); !e.ExpiresAt.Equal(*was.ExpiresAt) {
				t.Errorf("%s/%s: expiry moved from %s to %s", e.Namespace, e.Key, was.ExpiresAt, e.ExpiresAt)
			}
		}
	})
}

// K28, K29, K39, K40: writes, life spans and deletes of a run are stored with their events.
func TestWritesOfARun(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		config := *w.engine.Config()
		config.Lifespans = sharedctx.Lifespans{"performance": sharedctx.PerformanceTTL, "memory:*": sharedctx.ExtensionTTL}
		w.engine.SetConfig(config)
		w.put("notes", "expiring", "v", time.Hour)
		w.script("coder", asks(func(ctx context.Context, s agent.Shared) error {
			set := func(ns, key, value string, ttl int64, extend bool) error {
				return s.Set(ctx, agent.ContextWrite{Namespace: ns, Key: key, Value: value, TTLSeconds: ttl, Extend: extend})
			}
			err := errors.Join(set("notes", "expiring", "stays", 0, false), set("notes", "day", "v", 86_400, false), set("notes", "hour", "v", 3600, false), set("notes", "hour2", "v", 3600, false),
				set("notes", "hour2", "extended", 0, true), set("performance", "n1", "slow", 0, false), set("memory:coder", "m", "v", 0, false),
				set("notes", "gone", "v", 0, false), s.Delete(ctx, "notes", "gone"), s.Delete(ctx, "notes", "never was"))
			if ok, touch := s.Touch(ctx, "notes", "hour", 0); !ok || touch != nil {
				err = errors.Join(err, fmt.Errorf("touch: %t %w", ok, touch))
			}
			if ok, touch := s.Touch(ctx, "notes", "never was", 0); ok || touch != nil {
				err = errors.Join(err, fmt.Errorf("a touch of nothing: %t %w", ok, touch))
			}
			return err
		}))
		w.start()
		now := time.Now()
		d := w.until(w.send("coder", "write").ID, "over", func(d orchestrator.Delegation) bool { return d.State.Ended() })
		if d.State != orchestrator.Completed {
			t.Fatalf("%+v", d.Error)
		}
		for _, c := range []struct {
			namespace, key, value string
			lives                 time.Duration
		}{
			{"notes", "expiring", "stays", 0}, {"notes", "day", "v", 24 * time.Hour}, {"notes", "hour", "v", 90 * 24 * time.Hour}, {"notes", "hour2", "extended", 90 * 24 * time.Hour},
			{"performance", "n1", "slow", 24 * time.Hour}, {"memory:coder", "m", "v", 90 * 24 * time.Hour},
		} {
			e := w.entry(c.namespace, c.key)
			if e.Value != c.value || e.Agent != "coder" || (e.ExpiresAt == nil) != (c.lives == 0) || c.lives > 0 && e.ExpiresAt.Sub(now).Round(time.Minute) != c.lives {
				t.Errorf("%+v, want %q for %s", e, c.value, c.lives)
			}
		}
		if got := w.uses("notes", "gone"); fmt.Sprint(got) != "[write coder delete coder]" {
			t.Errorf("the history of what is gone: %q", got)
		}
		if got := w.uses("notes", "hour"); fmt.Sprint(got) != "[write coder touch coder]" {
			t.Errorf("the history of a touch: %q", got)
		}
		if written, deleted := w.count(d.TaskID, event.ContextWritten), w.count(d.TaskID, event.ContextDeleted); written != 8 || deleted != 1 {
			t.Errorf("%d written and %d deleted\n%s", written, deleted, w.history(d.TaskID))
		}
	})
}

// What an agent writes is hostile; what is refused changes nothing and says why.
func TestHostileWritesToTheSharedContext(t *testing.T) {
	tests := []struct {
		name, ids string
		write     agent.ContextWrite
		says      string
	}{
		{"a NUL in the value", "K20", agent.ContextWrite{Namespace: "n", Key: "k", Value: "a\x00"}, "NUL"},
		{"10 MB", "K20", agent.ContextWrite{Namespace: "n", Key: "k", Value: strings.Repeat("x", 10<<20)}, "limit"},
		{"a bidi override in the key", "K19", agent.ContextWrite{Namespace: "n", Key: "a\u202eb", Value: "v"}, "invisible"},
		{"a long namespace", "K18", agent.ContextWrite{Namespace: strings.Repeat("n", 65), Key: "k", Value: "v"}, "65 characters"},
		{"a long key", "K19", agent.ContextWrite{Namespace: "n", Key: strings.Repeat("k", 129), Value: "v"}, "129 characters"},
		{"no key", "K19", agent.ContextWrite{Namespace: "n", Value: "v"}, "empty"},
		{"a life span below zero", "K28", agent.ContextWrite{Namespace: "n", Key: "k", Value: "v", TTLSeconds: -1}, "life span"},
		{"the least life span", "K28", agent.ContextWrite{Namespace: "n", Key: "k", Value: "v", TTLSeconds: -1 << 63}, "life span"},
		{"a life span past all time", "K28", agent.ContextWrite{Namespace: "n", Key: "k", Value: "v", TTLSeconds: 1<<63 - 1}, "life span"},
		{"an extension past all time", "K39", agent.ContextWrite{Namespace: "n", Key: "k", Value: "v", TTLSeconds: 1<<63 - 1, Extend: true}, "life span"},
	}
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		answers := make([]error, len(tests))
		var touched error
		w.script("coder", asks(func(ctx context.Context, s agent.Shared) error {
			for i, tt := range tests {
				answers[i] = s.Set(ctx, tt.write)
			}
			_, touched = s.Touch(ctx, "n", "k", -5)
			_, err := s.Prefix(ctx, "n\x00", "%_\\", -1)
			return err
		}))
		w.start()
		d := w.state(w.send("coder", "attack").ID, orchestrator.Completed)
		for i, tt := range tests {
			var f *agent.Failure
			if !errors.As(answers[i], &f) || !strings.Contains(f.Message, tt.says) {
				t.Errorf("%s %s: %v lacks %q", tt.ids, tt.name, answers[i], tt.says)
			}
		}
		if touched == nil {
			t.Error("a touch with a life span below zero was taken (K40)")
		}
		if n := w.count(d.TaskID, event.ContextWritten); n != 0 {
			t.Errorf("%d of the writes are in the history", n)
		}
	})
}

// P1: many agents write at once; the last write wins and all are on record.
func TestParallelWritersAreAllOnRecord(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		const each = 10
		w := newWorld(t, url, specs("one", "two", "three")...)
		var together sync.WaitGroup
		together.Add(3)
		for _, name := range []string{"one", "two", "three"} {
			w.script(name, asks(func(ctx context.Context, s agent.Shared) error {
				together.Done()
				together.Wait()
				for i := range each {
					if err := s.Set(ctx, agent.ContextWrite{Namespace: "board", Key: "k", Value: fmt.Sprint(name, i)}); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		w.start()
		var ids []string
		for _, name := range []string{"one", "two", "three"} {
			ids = append(ids, w.send(name, "write").ID)
		}
		for _, id := range ids {
			w.state(id, orchestrator.Completed)
		}
		history := w.uses("board", "k")
		if len(history) != 3*each {
			t.Fatalf("%d writes are on record", len(history))
		}
		e := w.entry("board", "k")
		if !strings.HasPrefix(e.Value, e.Agent) || !strings.HasSuffix(e.Value, fmt.Sprint(each-1)) {
			t.Errorf("value %q by %s: not the last write of anybody", e.Value, e.Agent)
		}
	})
}

// P12, H8: what comes with a hop is the task's own, and is there when its child begins.
func TestTheContextOfAHopIsTheTasksOwn(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "kik"}, agent.Spec{Name: "coder", Reads: []string{}})
		w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			c, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "go", Context: map[string]string{"brief": "be quick"}})
			if err == nil {
				_, err = host.Await(ctx, c.ID)
			}
			return agenttest.Done("done"), err
		})
		given := make(chan []agent.ContextEntry, 1)
		w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
			given <- job.Context
			return agenttest.Done("quick"), nil
		})
		w.start()
		d := w.state(w.send("kik", "lead").ID, orchestrator.Completed)
		if got := <-given; len(got) != 1 || got[0].Value != "be quick" || got[0].Agent != "kik" {
			t.Errorf("given %+v", got)
		}
		if got := w.uses(sharedctx.Handoff(d.TaskID), "brief"); fmt.Sprint(got) != "[write kik read coder]" {
			t.Errorf("history %q", got)
		}
	})
}

// P4: a run is given a bounded board; the largest values are cut first, with a note.
func TestALargeBoardIsCutWithANote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/gatehouse.db", specs("coder")...)
	for i := range 6 {
		w.put("big", fmt.Sprint(i), strings.Repeat("x", sharedctx.MaxValue), 0)
	}
	w.put("small", "k", "short", 0)
	given := make(chan []agent.ContextEntry, 1)
	w.script("coder", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		given <- job.Context
		return agenttest.Done("read"), nil
	})
	w.start()
	w.state(w.send("coder", "read").ID, orchestrator.Completed)
	bytes := 0
	for _, e := range <-given {
		bytes += len(e.Value)
		if cut := e.Namespace == "big"; cut != (e.Whole == sharedctx.MaxValue) || cut != strings.Contains(e.Value, "cut here: the value has 262144 bytes; read big") {
			t.Errorf("%s/%s is given in %d bytes, whole %d", e.Namespace, e.Key, len(e.Value), e.Whole)
		}
	}
	if bytes > 1<<20+6*100 || bytes < 1<<20 {
		t.Errorf("given %d bytes", bytes)
	}
}
