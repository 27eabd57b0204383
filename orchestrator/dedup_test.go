package orchestrator_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
)

// P50: the same spawn is the child that there is, for a while after its end, and then a new
// one, whether or not the sweep was there; one that is asked for again is made at once. An
// end is announced once, under a key that follows from who is told of whom.
func TestASpawnIsRememberedForAWhile(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := spawning(t, url, 5)
		w.config.Settings.Lease, w.config.Settings.Spawn.Remember = 240*time.Hour, time.Hour
		w.engine.SetConfig(w.config)
		w.script("worker", agenttest.Answer("did it"))
		var made []string
		var twice error
		w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			spawn := func(again bool) {
				c, err := host.Delegate(ctx, agent.Hop{Ref: "call", To: "worker", Text: "x", Spawn: true, Again: again})
				if err != nil {
					t.Error(err)
				}
				made = append(made, c.ID)
			}
			park := agent.Outcome{Park: &agent.Park{ForSpawned: true}}
			ended, err := host.Ended(ctx)
			if err != nil {
				return park, err
			}
			switch n := len(job.Turns); n {
			case 0:
				spawn(false)
				spawn(false)
				return park, host.SaveTurn(ctx, calls(1), false)
			case 1: // the first has ended, and is told
				if err := host.SaveTurn(ctx, announces(2, ended), false); err != nil {
					return park, err
				}
				twice = host.SaveTurn(ctx, announces(3, ended), false)
				w.pass(59 * time.Minute)
				spawn(false)
				w.pass(2 * time.Minute)
				spawn(false)
				return park, nil
			case 2:
				spawn(true)
				spawn(true)
				return park, host.SaveTurn(ctx, announces(3, ended), false)
			}
			return agenttest.Done("all told"), host.SaveTurn(ctx, announces(len(job.Turns)+1, ended), false)
		})
		w.start()
		root := w.state(w.sendTo("boss", "go").ID, orchestrator.Completed)
		if len(made) != 6 || made[0] != made[1] || made[2] != made[0] || made[3] == made[0] || made[4] == made[3] || made[5] != made[4] {
			t.Fatalf("made %q", made)
		}
		if orchestrator.CodeOf(twice) != orchestrator.CodeConflict || !strings.Contains(twice.Error(), "announced to boss before") {
			t.Errorf("announced twice: %v", twice)
		}
		var keys []string
		for _, e := range w.events(root.TaskID) {
			if e.Type == event.Announced {
				keys = append(keys, string(e.Data))
			}
		}
		if len(keys) != 3 || !strings.Contains(keys[0], `"keys":["announce/`+root.ID+`/0/`+made[0]+`"]`) {
			t.Errorf("announced %q", keys)
		}

		purge := func(ended time.Time) int64 {
			n, err := w.store.PurgeDedup(t.Context(), ended)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		if n := purge(w.now().Add(-time.Hour)); n != 1 { // the announcement of the first; its spawn was forgotten
			t.Errorf("%d keys of the first were swept", n)
		}
		w.pass(2 * time.Hour)
		if n := purge(w.now().Add(-time.Hour)); n != 4 || purge(w.now()) != 0 {
			t.Errorf("%d keys of the others were swept", n)
		}
	})
}

// P45: all runs of one agent together have so many spawned children at work at most, however
// many a single one may have, and also when many ask at the same moment.
func TestOneAgentsSpawnsAreBounded(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := spawning(t, url, 5)
		w.config.Settings.Spawn.PerAgent = 2
		w.engine.SetConfig(w.config)
		gate, all := agenttest.NewGate(), agenttest.NewGate()
		w.script("worker", gate.Then(agenttest.Answer("did it")))
		boss := w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if len(job.Turns) > 0 {
				return agenttest.Done("done"), nil
			}
			if _, err := all.Then(agenttest.Answer("go"))(ctx, job, host); err != nil {
				return agent.Outcome{}, err
			}
			c, err := host.Delegate(ctx, agent.Hop{To: "worker", Text: "x", Spawn: true})
			if err == nil && c.State == agent.Refused {
				return agenttest.Done(c.Error.Error()), nil
			}
			return agent.Outcome{Park: &agent.Park{ForSpawned: true}}, errors.Join(err, host.SaveTurn(ctx, calls(1), false))
		})
		w.start()
		var roots []orchestrator.Delegation
		for range 4 {
			roots = append(roots, w.sendTo("boss", "go"))
			<-boss.Started()
		}
		all.Open()
		let := 0
		for _, root := range roots {
			d := w.until(root.ID, "spawned or refused", func(d orchestrator.Delegation) bool {
				return d.State == orchestrator.Waiting || d.State == orchestrator.Completed
			})
			switch {
			case d.State == orchestrator.Waiting:
				let++
			case !strings.HasPrefix(d.Result.Text, "no_capacity: boss has 2 spawned agents at work in all its runs together, and 2 at once is the limit of one agent (engine.spawn.per_agent)"),
				w.count(d.TaskID, event.DelegationRefused) != 1:
				t.Errorf("one was told %q", d.Result.Text)
			}
		}
		if let != 2 {
			t.Errorf("%d of 4 spawned, and 2 is the limit", let)
		}
		gate.Open()
		for _, root := range roots {
			w.state(root.ID, orchestrator.Completed)
		}
		w.state(w.sendTo("boss", "go").ID, orchestrator.Completed)
	})
}

// While nodes are brought up one by one, one that has not heard of the keys may have made a
// spawn: its row has the plain hop key, and no key is noted. The same spawn on this node is
// that child, until it has been forgotten like any other.
func TestASpawnOfANodeOfBeforeTheKeysIsFound(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := spawning(t, url, 5)
		w.config.Settings.Spawn.Remember = time.Hour
		w.engine.SetConfig(w.config)
		w.script("worker", agenttest.Answer("did it"))
		before := func(ctx context.Context, job agent.Job, text string, ended *time.Time) string {
			sum := sha256.Sum256([]byte("worker\x00" + text)) // as every version made it
			child := &orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, w.now()), ParentID: job.DelegationID, From: "boss", To: "worker", Text: text, State: orchestrator.Queued,
				HopKey: fmt.Sprintf("spawn-%s#0", hex.EncodeToString(sum[:12])), Spawned: true, Depth: 1, Requester: "ann", ReadyAt: w.now().Add(time.Hour), EndedAt: ended}
			if ended != nil {
				child.State = orchestrator.Completed
			}
			if err := w.store.InTask(ctx, job.TaskID, func(tx orchestrator.Tx) error { return tx.Insert(ctx, child) }); err != nil {
				t.Error(err)
			}
			return child.ID
		}
		w.script("boss", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			long := w.now().Add(-61 * time.Minute)
			for text, old := range map[string]string{"lives": before(ctx, job, "lives", nil), "ended long ago": before(ctx, job, "ended long ago", &long)} {
				var made [2]string
				for i := range made {
					c, err := host.Delegate(ctx, agent.Hop{Ref: "call", To: "worker", Text: text, Spawn: true})
					if err != nil || c.State == agent.Refused {
						t.Errorf("%s: %v %v", text, c.Error, err)
					}
					made[i] = c.ID
				}
				if made[0] != made[1] || (made[0] == old) != (text == "lives") {
					t.Errorf("what %s is %s, and the same spawn made %q", text, old, made)
				}
			}
			return agenttest.Done("done"), nil
		})
		w.start()
		w.state(w.sendTo("boss", "go").ID, orchestrator.Completed)
	})
}
