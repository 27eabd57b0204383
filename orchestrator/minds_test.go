package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/llm"
	llmodel "gatehouse/orchestrator/agent/llm/model"

	"pgregory.net/rapid"
)

// mind is what a model says, answer after answer; it is the task's text. Past the last
// thought the model says that it is done.
type mind struct {
	ID       int       `json:"id"` // no two are alike, and so are the files that they write
	Thoughts []thought `json:"thoughts,omitempty"`
}

// thought is one answer of a model.
type thought struct {
	Deeds  []deed `json:"deeds,omitempty"`
	Tokens int64  `json:"tokens"`          // -1: the service reports none
	Ends   string `json:"ends,omitempty"`  // refusal, max_tokens, empty, or a kind of failure
	Work   int    `json:"work,omitempty"`  // ms that it takes
	Twins  bool   `json:"twins,omitempty"` // all calls have the same id
}

// deed is one call of a tool.
type deed struct {
	Tool  string `json:"tool"`
	To    string `json:"to,omitempty"`
	Mind  *mind  `json:"mind,omitempty"`  // what is handed on
	Limit int64  `json:"limit,omitempty"` // tokens that go with it
	File  int    `json:"file,omitempty"`  // of the mind, or of the one that was handed on
	Of    int    `json:"of,omitempty"`    // the mind whose file it is
}

func (m mind) text() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // structs of strings and numbers always encode
	}
	return string(b)
}

// mindOf finds the mind in a text; what people asked for may stand behind it.
func mindOf(text string) (m mind, err error) {
	err = json.NewDecoder(strings.NewReader(text)).Decode(&m)
	return m, err
}

// file is the n-th file of a mind, and content what it holds.
func file(id, n int) string    { return fmt.Sprintf("made/%d-%d.txt", id, n) }
func content(id, n int) string { return fmt.Sprintf("file %d of mind %d\n", n, id) }

// The team: four models, before one of which people are asked, one that changes nothing,
// and a program.
var (
	models  = []string{"ada", "ben", "cyd", "dot", "reader"}
	targets = []string{"ada", "ben", "cyd", "dot", "reader", "tool", "ada", "ben", "tool", "BEN", "nobody"}
)

func teamOfMinds() []agent.Spec {
	all := []agent.Spec{{Name: "tool", Kind: agent.Command}}
	for _, n := range models {
		all = append(all, agent.Spec{Name: n, Kind: agent.LLM, AnalysisOnly: n == "reader", AskFirst: n == "dot", MaxTurns: 12})
	}
	return all
}

// dreamer draws minds with numbers that no other has.
type dreamer struct{ last int }

func (d *dreamer) mind(t *rapid.T, depth int) mind {
	d.last++
	m := mind{ID: d.last}
	var there [][2]int // files that may be there: of this mind, and of those it waited for
	for range rapid.SampledFrom([]int{3, 2, 4, 1, 0}).Draw(t, "thoughts") {
		m.Thoughts = append(m.Thoughts, d.thought(t, m.ID, depth, &there))
	}
	return m
}

func (d *dreamer) thought(t *rapid.T, id, depth int, there *[][2]int) thought {
	th := thought{Tokens: rapid.SampledFrom([]int64{100, 10, 700, 0, -1}).Draw(t, "tokens"), Twins: rapid.IntRange(0, 9).Draw(t, "twins") == 9}
	if rapid.Bool().Draw(t, "takes its time") {
		th.Work = rapid.IntRange(10, 60).Draw(t, "ms")
	}
	if rapid.IntRange(0, 11).Draw(t, "odd") == 11 {
		th.Ends = rapid.SampledFrom([]string{llmodel.StopRefusal, llmodel.StopMaxTokens, "empty", string(llmodel.Server)}).Draw(t, "ends")
	}
	var come [][2]int
	for range rapid.SampledFrom([]int{1, 2, 3, 1}).Draw(t, "calls") {
		e := deed{Tool: rapid.SampledFrom([]string{"delegate_to_agent", "spawn_agent", "write_file", "delegate_to_agent", "read_file", "handoff_to_agent", "list_agents", "shared_context", "nonsense", "broken"}).Draw(t, "tool")}
		switch e.Tool {
		case "delegate_to_agent", "spawn_agent", "handoff_to_agent":
			if depth == 0 {
				e.Tool = "list_agents"
				break
			}
			child := d.mind(t, depth-1)
			e.To, e.Mind = rapid.SampledFrom(targets).Draw(t, "to"), &child
			e.Limit = rapid.SampledFrom([]int64{0, 0, 150, 1000}).Draw(t, "limit")
			come = append(come, [2]int{child.ID, 1}, [2]int{child.ID, 2})
		case "write_file":
			e.Of, e.File = id, rapid.IntRange(1, 2).Draw(t, "file")
			come = append(come, [2]int{id, e.File})
		case "read_file":
			at := append([][2]int{{id, 1}, {id, 2}}, *there...)
			which := rapid.SampledFrom(at).Draw(t, "which")
			e.Of, e.File = which[0], which[1]
		}
		th.Deeds = append(th.Deeds, e)
	}
	*there = append(*there, come...)
	return th
}

// call is the deed as a model says it.
func (e deed) call(id string) agent.Block {
	input := map[string]any{}
	switch e.Tool {
	case "delegate_to_agent", "spawn_agent", "handoff_to_agent":
		input["agent"], input["task"] = e.To, e.Mind.text()
		if e.Limit > 0 {
			input["budget"] = map[string]any{"tokens": e.Limit}
		}
	case "write_file":
		input["path"], input["content"] = file(e.Of, e.File), content(e.Of, e.File)
	case "read_file":
		input["path"] = file(e.Of, e.File)
	case "shared_context":
		input["action"], input["key"], input["value"] = "set", "word", id
	}
	b := agent.Block{Type: agent.CallBlock, ID: id, Name: e.Tool}
	b.Input, _ = json.Marshal(input) //nolint:errcheck // maps of texts always encode
	if e.Tool == "broken" {
		b.Name, b.Input = "delegate_to_agent", json.RawMessage(`{"agent":`)
	}
	return b
}

// brains run the team, and watch that one run at a time works on a delegation and that
// no stored turn is asked for again.
type brains struct {
	p     *players
	store orchestrator.Reader
	mu    sync.Mutex
	works map[string]string // the node and attempt that works on a delegation
	asks  int
}

// on is the team as one node runs it.
func (b *brains) on(node string) map[agent.Kind]agent.Runner {
	return map[agent.Kind]agent.Runner{agent.LLM: agenttest.Like{Runner: seat{b, node}, Of: llm.Traits}, agent.Command: seat{b, node}}
}

type seat struct {
	*brains
	node string
}

func (seat) Traits() agent.Traits { return command.Traits }

func (s seat) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	me := fmt.Sprintf("attempt %d on %s", job.Attempt, s.node)
	s.mu.Lock()
	if other, taken := s.works[job.DelegationID]; taken {
		s.p.wrong("%s is worked on by %s and by %s", job.DelegationID, other, me)
	}
	s.works[job.DelegationID] = me
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.works, job.DelegationID)
		s.mu.Unlock()
	}()
	if job.Agent.Kind == agent.Command {
		return program(ctx, job, host)
	}
	r := llm.New(llm.Options{Models: func(agent.Spec) (llmodel.Client, error) { return voice{s.brains, job}, nil }})
	return r.Run(ctx, job, host)
}

// voice is the model of one run.
type voice struct {
	*brains
	job agent.Job
}

func (v voice) Complete(ctx context.Context, r llmodel.Request, delta func(agent.Delta)) (llmodel.Response, error) {
	m, err := mindOf(r.Messages[0].Text())
	if err != nil {
		return llmodel.Response{}, err
	}
	v.notAgain(ctx, len(r.Messages)+1)
	n := 0
	for _, msg := range r.Messages {
		if msg.Role == agent.FromModel {
			n++
		}
	}
	if n >= len(m.Thoughts) {
		return reply(thought{Tokens: 5}, agent.Message{Role: agent.FromModel, Blocks: []agent.Block{{Type: agent.TextBlock, Text: fmt.Sprint("done by ", m.ID)}}}), nil
	}
	th := m.Thoughts[n]
	delta(agent.Delta{Kind: agent.DeltaText, Text: "I think"})
	select {
	case <-ctx.Done():
		return llmodel.Response{}, ctx.Err()
	case <-time.After(time.Duration(th.Work) * time.Millisecond):
	}
	said := agent.Message{Role: agent.FromModel}
	switch llmodel.Kind(th.Ends) {
	case "empty":
		return reply(th, said), nil
	case llmodel.Server:
		return llmodel.Response{}, &llmodel.Error{Kind: llmodel.Kind(th.Ends), Provider: "fake", Message: "no"}
	case llmodel.StopRefusal, llmodel.StopMaxTokens:
		said.Blocks = append(said.Blocks, agent.Block{Type: agent.TextBlock, Text: "I"})
		return reply(th, said), nil
	}
	for i, e := range th.Deeds {
		id := fmt.Sprintf("c%d_%d", n, i)
		if th.Twins {
			id = "same"
		}
		said.Blocks = append(said.Blocks, e.call(id))
	}
	return reply(th, said), nil
}

// notAgain notes a call for a turn that is on record.
func (v voice) notAgain(ctx context.Context, turn int) {
	v.mu.Lock()
	v.asks++
	v.mu.Unlock()
	d, err := v.store.Delegation(ctx, v.job.DelegationID)
	if err != nil || d.Attempt != v.job.Attempt || d.State.Ended() {
		return // it has been told to end
	}
	last, err := v.store.LastTurn(ctx, d.ID, d.Work.Runs)
	if after, readErr := v.store.Delegation(ctx, d.ID); readErr != nil || after.Attempt != v.job.Attempt || after.Work.Runs != d.Work.Runs {
		return
	}
	if err == nil && last != turn-1 {
		v.p.wrong("%s (%s) is asked for turn %d when %d are stored", d.To, d.ID, turn, last)
	}
}

func reply(th thought, said agent.Message) llmodel.Response {
	r := llmodel.Response{Message: said, Stop: llmodel.StopEnd, Model: "fake/one", Usage: agent.Usage{InputTokens: th.Tokens}, Reported: th.Tokens >= 0}
	switch {
	case th.Ends == llmodel.StopRefusal || th.Ends == llmodel.StopMaxTokens:
		r.Stop = th.Ends
	case len(said.Calls()) > 0:
		r.Stop = llmodel.StopTools
	}
	if th.Tokens < 0 {
		r.Usage = agent.Usage{}
	}
	return r
}

// program is the command of the team: it hands on what its mind delegates, one after the
// other, reports what it used, and writes its files.
func program(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	m, err := mindOf(job.Text)
	if err != nil {
		return agent.Outcome{}, err
	}
	for _, th := range m.Thoughts {
		if err := host.Usage(ctx, agent.Usage{OutputTokens: max(th.Tokens, 0)}); err != nil {
			return agent.Outcome{}, err
		}
		for _, e := range th.Deeds {
			switch {
			case e.Tool == "write_file" && job.Dir != "":
				err = writeFile(job.Dir, file(e.Of, e.File), content(e.Of, e.File))
			case e.Tool == "delegate_to_agent":
				var c agent.Child
				if c, err = host.Delegate(ctx, agent.Hop{To: e.To, Text: e.Mind.text()}); err == nil && !c.Ended {
					_, err = host.Await(ctx, c.ID)
				}
			}
			if err != nil {
				return agent.Outcome{}, err
			}
		}
		if th.Ends != "" {
			return agent.Outcome{}, agent.Fail(agent.CodeExit, "I could not")
		}
	}
	return agenttest.Done(fmt.Sprint("done by ", m.ID)), nil
}

// errDead is what a node's store answers once the node is dead.
var errDead = errors.New("this node was killed")

// mortal is the store of a node that dies: nothing that it does afterwards is stored,
// nothing that it did is given back.
type mortal struct {
	orchestrator.Store
	mu     sync.Mutex
	left   int  // transactions until it dies; 0 is never
	told   bool // the last one is committed, and only the node does not learn it
	gone   bool
	killed chan struct{}
}

func (s *mortal) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	dies, dead := s.count()
	if dead || dies && !s.told {
		return errDead
	}
	err := s.Store.InTask(ctx, id, fn)
	if dies || s.dead() {
		return errDead
	}
	return err
}

func (s *mortal) Renew(ctx context.Context, node string, held []orchestrator.Ref, until time.Time) ([]orchestrator.Ref, error) {
	if s.dead() {
		return nil, errDead
	}
	return s.Store.Renew(ctx, node, held, until)
}

func (s *mortal) dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// count counts one transaction down.
func (s *mortal) count() (dies, dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.left == 0 {
		return false, s.gone
	}
	s.left--
	if s.left == 0 {
		s.kill()
	}
	return s.gone, false
}

// kill ends it; the caller holds mu.
func (s *mortal) kill() {
	if !s.gone {
		s.gone = true
		close(s.killed)
	}
}

// doom has it die at its n-th transaction from now.
func (s *mortal) doom(n int, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.told = n, told
}

// end kills it now, if it still lives.
func (s *mortal) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
}
