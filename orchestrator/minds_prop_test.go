package orchestrator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"

	"pgregory.net/rapid"
)

// contest is a match of models: two nodes, of which the second may be killed.
type contest struct {
	*match
	brains *brains
	dying  *mortal
	losses int // nodes killed
}

func newContest(t *testing.T, url string) *contest {
	w := newWorld(t, url, teamOfMinds()...)
	s := &w.config.Settings
	s.MaxHandoffs, s.MaxAttempts, s.Spawn.Children, s.KillAfter = 8, 20, 2, time.Minute
	s.Breaker = orchestrator.BreakerSettings{Failures: 3, Cooldown: 30 * time.Millisecond}
	p := newPlayers()
	c := &contest{brains: &brains{p: p, store: w.store, works: map[string]string{}}}
	c.match = w.match(p, c.brains.on("first"))
	c.halt()
	c.second.Kinds = c.brains.on("second")
	c.halt = nil
	c.begin()
	return c
}

// begin starts the second node with a store that can be taken from it.
func (c *contest) begin() {
	c.dying = &mortal{Store: referee{c.store, c.p}, killed: make(chan struct{})}
	c.second.Store = c.dying
	c.restart()
}

// crash kills the second node at one of its next transactions, and starts it again.
func (c *contest) crash(which int) {
	c.dying.doom(which%12+1, which%2 == 0)
	select {
	case <-c.dying.killed:
	case <-time.After(100 * time.Millisecond): // it has nothing to do
		c.dying.end()
	}
	c.losses++
	c.halt()
	c.halt = nil
	c.begin()
}

// step is one thing that people do, or that happens, in the middle of a game.
func (c *contest) step(a act, root orchestrator.Delegation) (forked *orchestrator.Delegation, err error) {
	ctx := c.t.Context()
	c.see(a.after, root.TaskID)
	tree, err := c.store.Tree(ctx, root.TaskID)
	if err != nil {
		return nil, err
	}
	some := tree[a.any%len(tree)]
	switch a.what {
	case "crash":
		c.crash(a.any)
	case "cancel":
		_, err = c.engine.Cancel(ctx, root.TaskID, "ann")
	case "cancel part":
		_, err = c.engine.Cancel(ctx, some.ID, "ann")
	case "pause":
		_, err = c.engine.Pause(ctx, root.TaskID, "ann")
	case "resume":
		_, err = c.engine.Unpause(ctx, root.TaskID, "ann")
	case "retry":
		_, err = c.engine.Retry(ctx, root.TaskID, c.ann)
	case "fork":
		_, d, forkErr := c.engine.Fork(ctx, orchestrator.Fork{DelegationID: some.ID, Turn: a.any % 4, RequesterID: c.ann.ID, Requester: "ann", Via: origin.From(origin.Web)})
		if err = forkErr; err == nil {
			forked = &d
		}
	default:
		err = c.answer(root.TaskID, approval.Verdict(a.what))
	}
	if err != nil && orchestrator.CodeOf(err) == "" {
		return nil, fmt.Errorf("%s: %w", a.what, err)
	}
	return forked, nil
}

// answer gives bob's verdict on the first open question of a task, if there is one.
func (c *contest) answer(taskID string, v approval.Verdict) error {
	ids, err := c.store.PendingOf(c.t.Context(), taskID)
	if err != nil || len(ids) == 0 {
		return err
	}
	r, err := c.store.Request(c.t.Context(), ids[0])
	if err != nil {
		return err
	}
	if v == approval.RequestChanges && r.IsHandover() {
		v = approval.Reject
	}
	_, err = c.gateway.Decide(c.t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(c.bob, nil), Channel: "web",
		Verdict: v, Digest: r.Revision.Digest, Revision: r.Revision.N, Comment: "because", Seen: approval.Seen{WarningsTicked: approval.Ticks(r)}})
	return err
}

// finish lets a task go on and answers its questions until all have ended.
func (c *contest) finish(root orchestrator.Delegation, v approval.Verdict) error {
	if _, err := c.engine.Unpause(c.t.Context(), root.TaskID, "ann"); err != nil && orchestrator.CodeOf(err) == "" {
		return err
	}
	for range 50 {
		if err := c.settle(root.TaskID); err != nil {
			return err
		}
		ids, err := c.store.PendingOf(c.t.Context(), root.TaskID)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return c.ended(root.TaskID)
		}
		if err := c.answer(root.TaskID, v); err != nil && orchestrator.CodeOf(err) == "" {
			return err
		}
	}
	return errors.New("people are asked again and again")
}

// judge checks all that must hold of a task: the tree, the log, the budgets, the
// conversations and their files.
func (c *contest) judge(root orchestrator.Delegation) error {
	_, err := c.review(root.TaskID)
	if err = errors.Join(err, c.audit(root.TaskID)); err != nil {
		return err
	}
	tree, err := c.store.Tree(c.t.Context(), root.TaskID)
	if err != nil {
		return err
	}
	book := &ledgers{contest: c, tree: tree, over: map[string]int64{}}
	for _, d := range slices.Backward(tree) { // children before their callers
		err = errors.Join(err, book.check(d))
		if d.To != "tool" {
			_, wrong := c.files(d)
			err = errors.Join(err, wrong)
		}
	}
	return errors.Join(err, c.landed(root.ID))
}

var (
	happenings = []string{"crash", "crash", "crash", "cancel", "cancel part", "pause", "resume", "fork", "retry", "retry", "approve", "approve", "reject", "request_changes"}
	inTheEnd   = []string{"approve", "approve", "reject"}
)

func drawHappenings(t *rapid.T, tasks int) []act {
	var acts []act
	for range rapid.SampledFrom([]int{2, 1, 3, 5, 0}).Draw(t, "happenings") {
		acts = append(acts, act{after: rapid.SampledFrom([]int{2, 1, 4, 8, 12}).Draw(t, "after"), what: rapid.SampledFrom(happenings).Draw(t, "what"),
			task: rapid.IntRange(0, tasks-1).Draw(t, "of task"), any: rapid.IntRange(0, 99).Draw(t, "which")})
	}
	return acts
}

// mindTime bounds the games on one database.
const mindTime = 6 * time.Second

// TestRandomModels: random teams of models that say anything at all, on two nodes of
// which one is killed in between, while people decide, cancel, pause, fork and retry.
// Whatever happens: every delegation ends or is parked, and every move is one of the
// diagram; no two runs work on one delegation; no stored turn is asked for again;
// conversations have no gap and every call its result; files are those that the
// conversation tells of; budgets are what was used, never below 0 and never passed by more
// than each run's last call; events are numbered without gaps and their hashes hold
// (O15–O18, O22, P37, P50, P54, H19–H24).
func TestRandomModels(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		c := newContest(t, url)
		dreams := &dreamer{}
		games, until := 0, time.Now().Add(mindTime)
		states := map[orchestrator.State]int{}
		rapid.Check(t, func(rt *rapid.T) {
			minds := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) mind { return dreams.mind(rt, 2) }), 3, 7).Draw(rt, "minds")
			withFiles := rapid.IntRange(0, 2).Draw(rt, "files") == 0
			limit := rapid.SampledFrom([]int64{0, 400, 2000, 10_000}).Draw(rt, "tokens")
			acts := drawHappenings(rt, len(minds))
			verdict := approval.Verdict(rapid.SampledFrom(inTheEnd).Draw(rt, "in the end"))
			if time.Now().After(until) {
				return
			}
			games++
			var roots []orchestrator.Delegation
			for i, m := range minds {
				s := orchestrator.Submission{Agent: models[i%len(models)], Text: m.text(), Via: origin.From(origin.Web), RequesterID: c.ann.ID, Requester: "ann"}
				if withFiles && i < 2 { // git is slow
					s.Repository = "app"
				}
				if limit > 0 {
					s.Budget = &budget.Limits{Tokens: &limit}
				}
				_, root, _, err := c.engine.Submit(t.Context(), s)
				if err != nil {
					rt.Fatal(err)
				}
				roots = append(roots, root)
			}
			for _, a := range acts {
				forked, err := c.step(a, roots[a.task])
				if err = errors.Join(err, c.audit(roots[a.task].TaskID)); err != nil {
					rt.Fatalf("%v\n%s", err, c.story(roots[a.task].TaskID))
				}
				if forked != nil {
					roots = append(roots, *forked)
				}
			}
			for _, root := range roots {
				if err := c.finish(root, verdict); err != nil {
					rt.Fatalf("%v\n%s", err, c.story(root.TaskID))
				}
				if err := c.judge(root); err != nil {
					rt.Fatalf("%v\n%s", err, c.story(root.TaskID))
				}
				tree, err := c.store.Tree(t.Context(), root.TaskID)
				for _, d := range tree {
					states[d.State]++
				}
				if bad := c.p.wrongs(); err != nil || len(bad) > 0 {
					rt.Fatalf("%v, %s\n%s", err, strings.Join(bad, "\n"), c.story(root.TaskID))
				}
			}
		})
		t.Logf("%d games with %d minds, %d calls of models, %d nodes killed, %v", games, dreams.last, c.brains.asks, c.losses, states)
	})
}

// said is the conversation of a delegation's newest generation.
func (c *contest) said(d orchestrator.Delegation) ([]agent.Turn, error) {
	return c.store.Turns(c.t.Context(), d.ID, d.Work.Runs)
}
