package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/passive"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"

	"pgregory.net/rapid"
)

// play is what an agent does with a task; it is the task's text.
type play struct {
	Park bool   `json:"park,omitempty"` // make all hops and park; else one after the other
	Hops []hop  `json:"hops,omitempty"`
	Work int    `json:"work,omitempty"` // ms that it takes, so that people come in the middle
	End  string `json:"end"`            // answer, fail, own (a file of its own) or shared (one that all write)
}

type hop struct {
	To    string `json:"to"`
	Leave bool   `json:"leave,omitempty"` // do not wait for it
	Play  play   `json:"play"`
}

func (p play) text() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings always encodes
	}
	return string(b)
}

var team = []string{"a", "b", "c", "d", "reader"}

// drawPlay draws a play whose hops go at most depth deep; guards refuse some of them.
func drawPlay(t *rapid.T, depth int) play {
	p := play{End: rapid.SampledFrom([]string{"answer", "answer", "answer", "fail", "own", "shared"}).Draw(t, "end")}
	if rapid.Bool().Draw(t, "takes its time") {
		p.Work = rapid.IntRange(10, 80).Draw(t, "ms")
	}
	if depth == 0 {
		return p
	}
	p.Park = rapid.Bool().Draw(t, "park")
	for range rapid.SampledFrom([]int{1, 2, 1, 0}).Draw(t, "hops") {
		p.Hops = append(p.Hops, hop{To: rapid.SampledFrom(append(team, "nobody")).Draw(t, "to"),
			Leave: rapid.IntRange(0, 4).Draw(t, "leave") == 0, Play: drawPlay(t, depth-1)})
	}
	return p
}

// players are the whole team. They note which attempts ran: none may run twice.
type players struct {
	mu   sync.Mutex
	seen map[string]bool
	lost map[string]int64 // tokens of calls in flight that may have been charged, by delegation
	bad  []string
}

func newPlayers() *players { return &players{seen: map[string]bool{}, lost: map[string]int64{}} }

// lostBy is the most that a delegation was charged for calls of runs that were lost.
func (p *players) lostBy(id string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost[id]
}

func (p *players) wrong(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = append(p.bad, fmt.Sprintf(format, args...))
}

func (p *players) wrongs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bad)
}

func (*players) Traits() agent.Traits { return command.Traits }

func (p *players) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	var how play
	if err := json.Unmarshal([]byte(job.Text), &how); err != nil {
		return agent.Outcome{}, err
	}
	p.mu.Lock()
	key := fmt.Sprint(job.DelegationID, " at attempt ", job.Attempt)
	if p.seen[key] && !how.Park { // a parked agent is called again in the same attempt when no hop is open
		p.bad = append(p.bad, key+" ran twice")
	}
	p.seen[key] = true
	p.mu.Unlock()

	if how.Park && len(how.Hops) > 0 && len(job.Children) == 0 {
		park := &agent.Park{}
		for i, h := range how.Hops {
			park.Hops = append(park.Hops, agent.Hop{Ref: fmt.Sprint(i), To: h.To, Text: h.Play.text()})
		}
		return agent.Outcome{Park: park}, nil
	}
	for _, h := range how.Hops {
		if how.Park {
			break
		}
		c, err := host.Delegate(ctx, agent.Hop{To: h.To, Text: h.Play.text()})
		if err == nil && !c.Ended && !h.Leave {
			_, err = host.Await(ctx, c.ID)
		}
		if err != nil {
			return agent.Outcome{}, err
		}
	}
	select {
	case <-ctx.Done():
		return agent.Outcome{}, ctx.Err()
	case <-time.After(time.Duration(how.Work) * time.Millisecond):
	}
	switch file := job.DelegationID + ".txt"; {
	case how.End == "fail":
		return agent.Outcome{}, agent.Fail("exit", "I could not")
	case job.Dir != "" && how.End == "shared":
		file = "core/shared.txt"
		fallthrough
	case job.Dir != "" && how.End == "own":
		err := writeFile(job.Dir, file, fmt.Sprint(job.DelegationID, job.Attempt))
		if how.End == "own" {
			err = errors.Join(err, writeFile(job.Dir, "more/"+file, "so that people can choose"))
		}
		if err != nil {
			return agent.Outcome{}, err
		}
	}
	return agenttest.Done("done"), nil
}

// referee lets only moves of the diagram pass unnoticed.
type referee struct {
	orchestrator.Store
	p *players
}

func (r referee) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	return r.Store.InTask(ctx, id, func(tx orchestrator.Tx) error {
		both, ok := tx.(approval.Tx) // people are asked in the transactions of hops, too
		if !ok {
			return fmt.Errorf("%T is no transaction of the gate", tx)
		}
		return fn(refereedTx{both, r.p})
	})
}

// gateReferee is the referee of what people decide.
type gateReferee struct {
	approval.Store
	p *players
}

func (r gateReferee) InGate(ctx context.Context, id string, fn func(approval.Tx) error) error {
	return r.Store.InGate(ctx, id, func(tx approval.Tx) error { return fn(refereedTx{tx, r.p}) })
}

type refereedTx struct {
	approval.Tx
	p *players
}

func (t refereedTx) Move(ctx context.Context, d *orchestrator.Delegation, from orchestrator.State, attempt int) error {
	judge(t.p, d, from)
	if from == orchestrator.Running && d.State == from && d.Attempt != attempt && d.Work.Budget != nil {
		t.p.mu.Lock()
		t.p.lost[d.ID] += d.Work.Budget.Call.Tokens
		t.p.mu.Unlock()
	}
	return t.Tx.Move(ctx, d, from, attempt)
}

func judge(p *players, d *orchestrator.Delegation, from orchestrator.State) {
	if d.State != from && !orchestrator.MayMove(from, d.State) {
		p.wrong("%s went from %s to %s", d.ID, from, d.State)
	}
}

// match is a world of two nodes on one database whose whole team plays.
type match struct {
	*world
	p      *players
	second orchestrator.Options
	editor people.User
	halt   func() // stops the second node
}

func newMatch(t *testing.T) *match {
	var all []agent.Spec
	for _, n := range team {
		all = append(all, agent.Spec{Name: n, AnalysisOnly: n == "reader"})
	}
	w := newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), all...)
	w.config.Settings.MaxHandoffs = 4
	p := newPlayers()
	return w.match(p, map[agent.Kind]agent.Runner{agent.Command: p})
}

// match starts two nodes whose every move is watched.
func (w *world) match(p *players, kinds map[agent.Kind]agent.Runner) *match {
	t, m := w.t, &match{world: w, p: p}
	o := m.engine.Options
	m.gateway = approval.New(approval.Options{Store: gateReferee{m.store, m.p}, Users: m.store, Logger: o.Log,
		Diff: func(context.Context, approval.Request) (string, error) { return "the diff", nil }},
		approval.Config{FourEyes: true, Expires: time.Hour, Channels: []approval.Channel{passive.Inbox}})
	o.Store, o.Gate, o.Kinds = referee{o.Store, m.p}, m.gateway, kinds
	m.engine = orchestrator.New(o, m.config)
	m.gateway.SetReviser(m.engine)
	m.editor = m.user("eve", people.Approver)
	m.start()
	o.Node, o.Data = "second", t.TempDir()
	o.Mirrors = patch.NewMirrors(filepath.Join(o.Data, "mirrors"), patch.Options{Logger: o.Log})
	m.second = o
	m.restart()
	t.Cleanup(func() { m.halt() })
	return m
}

// restart starts the second node, or stops it in the middle and starts it again.
func (m *match) restart() {
	if m.halt != nil {
		m.halt()
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	e := orchestrator.New(m.second, m.config)
	wg.Go(func() {
		if err := e.Run(ctx); err != nil && ctx.Err() == nil {
			m.p.wrong("the second node ended: %v", err)
		}
	})
	m.halt = func() { cancel(); wg.Wait() }
}

// act is one thing that people do in the middle.
type act struct {
	after int // events of the task that they see first
	what  string
	task  int
	any   int // chooses among what is there
}

func drawActs(t *rapid.T, tasks int) []act {
	var acts []act
	for range rapid.SampledFrom([]int{2, 1, 4, 6, 0}).Draw(t, "acts") {
		acts = append(acts, act{
			after: rapid.SampledFrom([]int{1, 2, 4, 6, 8}).Draw(t, "after"),
			what:  rapid.SampledFrom([]string{"approve", "approve", "reject", "request_changes", "withdraw", "some files", "some files", "edit", "edit", "cancel", "cancel", "cancel part", "cancel part", "retry", "retry", "restart"}).Draw(t, "act"),
			task:  rapid.IntRange(0, tasks-1).Draw(t, "of task"), any: rapid.IntRange(0, 99).Draw(t, "which"),
		})
	}
	return acts
}

// see waits until so many notices of a task came, or none comes for a while.
func (m *match) see(n int, taskID string) {
	sub := m.engine.Hub().Watch(taskID, 64)
	defer sub.Close()
	for range n {
		select {
		case <-sub.C:
		case <-time.After(30 * time.Millisecond):
			return
		}
	}
}

// do does it. People may come too late or ask for nonsense: they are told so by an
// error with a code, and any other error is a bug.
func (m *match) do(a act, root orchestrator.Delegation) error {
	ctx := m.t.Context()
	m.see(a.after, root.TaskID)
	var err error
	switch a.what {
	case "restart":
		m.restart()
	case "cancel":
		_, err = m.engine.Cancel(ctx, root.TaskID, "ann")
	case "retry":
		_, err = m.engine.Retry(ctx, root.TaskID, m.ann)
	case "cancel part":
		tree, readErr := m.store.Tree(ctx, root.TaskID)
		if readErr != nil {
			return readErr
		}
		_, err = m.engine.Cancel(ctx, tree[a.any%len(tree)].ID, "ann")
	default:
		page, readErr := m.store.Requests(ctx, approval.Filter{TaskID: root.TaskID})
		if readErr != nil || len(page.Items) == 0 {
			return readErr
		}
		r := page.Items[a.any%len(page.Items)]
		_, err = m.gateway.Decide(ctx, m.vote(r, a.what, a.any))
	}
	if err != nil && orchestrator.CodeOf(err) == "" {
		return fmt.Errorf("%s: %w", a.what, err)
	}
	return nil
}

// vote is what somebody says about r: a verdict, "some files" or "edit".
func (m *match) vote(r approval.Request, what string, which int) approval.Ballot {
	b := approval.Ballot{RequestID: r.ID, Principal: people.As(m.bob, nil), Channel: "web",
		Verdict: approval.Verdict(what), Digest: r.Revision.Digest, Revision: r.Revision.N, Comment: "because", Seen: approval.Seen{WarningsTicked: approval.Ticks(r)}}
	switch path := r.Revision.Files[which%len(r.Revision.Files)].Path; what {
	case "some files":
		b.Verdict, b.Files = approval.Approve, []string{path}
	case "edit": // by somebody else, so that bob's yes can come after it
		b.Principal, b.Edits = people.As(m.editor, nil), []patch.FileEdit{{Path: path, Text: fmt.Sprint("edited ", r.ID, which)}}
	}
	return b
}

// audit checks what must hold at every moment, in one consistent look.
func (m *match) audit(taskID string) error {
	tree, err := m.store.Tree(m.t.Context(), taskID)
	if err != nil {
		return err
	}
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	open, spawned, byID := map[string]int{}, map[string]int{}, map[string]orchestrator.Delegation{}
	for _, d := range tree {
		byID[d.ID] = d
		p, has := byID[d.ParentID]
		if !has || d.State.Ended() {
			continue
		}
		if d.Spawned {
			spawned[p.ID]++
		} else {
			open[p.ID]++
		}
		if p.State.Ended() {
			bad("%s is %s below %s, which is %s", d.To, d.State, p.To, p.State)
		}
		if p.Work.Runs != d.Generation {
			bad("%s of generation %d is live below %s, whose generation is %d", d.To, d.Generation, p.To, p.Work.Runs)
		}
	}
	for _, d := range tree {
		if d.OpenChildren != open[d.ID] || d.OpenSpawned != spawned[d.ID] {
			bad("%s (%s) counts %d and %d open children of %d and %d", d.To, d.State, d.OpenChildren, d.OpenSpawned, open[d.ID], spawned[d.ID])
		}
		parked := d.State == orchestrator.AwaitingApproval || d.State.Ended()
		if parked && (d.Holder != "" || d.TokenHash != "") || d.State == orchestrator.Running && d.Holder == "" {
			bad("%s is %s and held by %q", d.To, d.State, d.Holder)
		}
		if d.State.Ended() != (d.EndedAt != nil) || d.State == orchestrator.Waiting && open[d.ID] == 0 && !(d.Work.ForSpawned && spawned[d.ID] > 0) {
			bad("%s is %s, ended at %v, with %d open children", d.To, d.State, d.EndedAt, open[d.ID])
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// review checks the log of a task: numbers without gaps, an unbroken chain of hashes,
// attempts that rise, a hand-over counter that is its hops since the last retry, and no
// landing without a yes on that digest as the last word. It returns what landed.
func (m *match) review(taskID string) (landed []string, err error) {
	t, err := m.store.Task(m.t.Context(), taskID)
	if err != nil {
		return nil, err
	}
	var wrong []string
	prev, handoffs, last := "", 0, map[string]string{}
	attempts := map[string]int{}
	log := m.log(taskID)
	for i, e := range log {
		var data struct {
			Why, Digest, Verdict string
			Attempt              int
		}
		if err := errors.Join(e.Verify(prev), json.Unmarshal(e.Data, &data)); err != nil {
			return nil, err
		}
		prev = e.Hash
		switch {
		case e.N != int64(i+1):
			wrong = append(wrong, fmt.Sprintf("event %d has the number %d", i+1, e.N))
		case e.Type == event.Delegated:
			handoffs++
		case e.Type == event.Queued && data.Why == "run again":
			handoffs = 0
		case e.Type == event.Acknowledged && data.Attempt <= attempts[e.DelegationID]:
			wrong = append(wrong, fmt.Sprintf("attempt %d of %s was claimed after %d", data.Attempt, e.DelegationID, attempts[e.DelegationID]))
		case e.Type == event.Acknowledged:
			attempts[e.DelegationID] = data.Attempt
		case e.Type == event.Decided:
			last[data.Digest] = data.Verdict + " " + e.Actor
		case e.Type == event.PatchLanded && last[data.Digest] != "approve bob":
			wrong = append(wrong, fmt.Sprintf("%s landed after %q", data.Digest, last[data.Digest]))
		case e.Type == event.PatchLanded:
			landed = append(landed, data.Digest)
		}
	}
	if t.EndedAt == nil {
		wrong = append(wrong, "the root has ended and the task has not")
	}
	if t.LastN != int64(len(log)) || t.LastHash != prev || t.Handoffs != handoffs {
		wrong = append(wrong, fmt.Sprintf("the task counts %d events and %d hops of %d and %d", t.LastN, t.Handoffs, len(log), handoffs))
	}
	if len(wrong) > 0 {
		return nil, errors.New(strings.Join(wrong, "\n"))
	}
	return landed, nil
}

// log is a task's whole log; events returns one page.
func (m *match) log(taskID string) []event.Event {
	all, err := m.store.Events(m.t.Context(), taskID, 0, 10_000)
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// settle waits until every delegation of the task has ended or is parked, and audits
// each step on the way.
func (m *match) settle(taskID string) error {
	deadline := time.Now().Add(30 * time.Second)
	sub := m.engine.Hub().Watch(taskID, 64)
	defer sub.Close()
	for {
		tree, err := m.store.Tree(m.t.Context(), taskID)
		if err := errors.Join(err, m.audit(taskID)); err != nil {
			return err
		}
		var busy string
		for _, d := range tree {
			parked := d.State == orchestrator.AwaitingApproval || d.State == orchestrator.Waiting && (d.OpenChildren > 0 || d.Work.ForSpawned && d.OpenSpawned > 0)
			if !d.State.Ended() && !parked {
				busy += fmt.Sprintf("%s %s, held by %q, %d open, ready %s, %s\n", d.To, d.State, d.Holder, d.OpenChildren, d.ReadyAt, d.Work.Problem)
			}
		}
		if busy == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("neither ended nor parked after 30 s:\n%s", busy)
		}
		select {
		case <-sub.C:
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// close answers every open question of the task, revision after revision, until all
// have ended.
func (m *match) close(root orchestrator.Delegation, verdict string) error {
	for range 50 {
		if err := m.settle(root.TaskID); err != nil {
			return err
		}
		ids, err := m.store.PendingOf(m.t.Context(), root.TaskID)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return m.ended(root.TaskID)
		}
		r, err := m.store.Request(m.t.Context(), ids[0])
		if err != nil {
			return err
		}
		what := verdict
		if what == "edit" && r.Revision.Made != "" {
			what = "approve"
		}
		_, err = m.gateway.Decide(m.t.Context(), m.vote(r, what, len(r.Decisions)))
		if err != nil && orchestrator.CodeOf(err) == "" {
			return err
		}
	}
	return errors.New("people are asked again and again")
}

func (m *match) ended(taskID string) error {
	tree, err := m.store.Tree(m.t.Context(), taskID)
	for _, d := range tree {
		if !d.State.Ended() {
			err = errors.Join(err, fmt.Errorf("%s is %s, and nobody is asked", d.To, d.State))
		}
	}
	return err
}

// propTime bounds the random games, whatever rapid.checks says.
const propTime = 8 * time.Second

// TestRandomTeamsAndPeople lets random teams work on two nodes with a real database
// and a real repository, while people decide, cancel and retry and one node restarts
// in the middle. Whatever happens: every move is one of the diagram; everything ends
// or is parked; no attempt runs twice; counters and the log agree; nothing lands but
// what was approved, once.
func TestRandomTeamsAndPeople(t *testing.T) {
	m := newMatch(t)
	var landed []string
	games, until := 0, time.Now().Add(propTime)
	rapid.Check(t, func(rt *rapid.T) {
		plays := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) play { return drawPlay(rt, 3) }), 2, 5).Draw(rt, "plays")
		withFiles := rapid.IntRange(0, 2).Draw(rt, "files") == 0
		acts := drawActs(rt, len(plays))
		verdict := rapid.SampledFrom([]string{"approve", "some files", "edit", "reject"}).Draw(rt, "in the end")
		if time.Now().After(until) {
			return
		}
		games++
		var roots []orchestrator.Delegation
		for i, p := range plays {
			s := orchestrator.Submission{Agent: team[i], Text: p.text(), Via: origin.From(origin.Web), RequesterID: m.ann.ID, Requester: "ann"}
			if withFiles {
				s.Repository = "app"
			}
			_, root, _, err := m.engine.Submit(t.Context(), s)
			if err != nil {
				rt.Fatal(err)
			}
			roots = append(roots, root)
		}
		for _, a := range acts {
			if err := errors.Join(m.do(a, roots[a.task]), m.audit(roots[a.task].TaskID)); err != nil {
				rt.Fatalf("%v\n%s", err, m.story(roots[a.task].TaskID))
			}
		}
		for _, root := range roots {
			err := m.close(root, verdict)
			digests, wrong := m.review(root.TaskID)
			landed = append(landed, digests...)
			if err := errors.Join(err, m.audit(root.TaskID), wrong); err != nil {
				rt.Fatalf("%v\n%s", err, m.story(root.TaskID))
			}
		}
		if bad := m.p.wrongs(); len(bad) > 0 {
			rt.Fatal(strings.Join(bad, "\n"))
		}
	})
	var merged []string
	for line := range strings.Lines(m.git("log", "--merges", "--format=%(trailers:key=Gatehouse-Digest,valueonly,separator=)", "main")) {
		merged = append(merged, strings.TrimSpace(line))
	}
	slices.Sort(merged)
	slices.Sort(landed)
	if got, want := strings.TrimSpace(strings.Join(merged, "\n")), strings.Join(landed, "\n"); got != want {
		t.Errorf("main has the merges\n%s\nand the log says\n%s", got, want)
	}
	t.Logf("%d games, %d attempts, %d landings", games, len(m.p.seen), len(landed))
}

// story is a task's log for whoever reads a failure.
func (m *match) story(taskID string) string {
	var b strings.Builder
	for _, e := range m.log(taskID) {
		fmt.Fprintf(&b, "%3d %s %s %s %s\n", e.N, e.Type, e.DelegationID, e.Actor, e.Data)
	}
	return b.String()
}
