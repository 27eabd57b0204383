package main

import (
	"fmt"
	"html"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/record/event"
)

// refusedTeam are models that hand on to one another; ill cannot be asked at first.
const refusedTeam = `
engine: {workers: 8, lease: 10m, max_depth: 3, max_handoffs: 5, cycle: strict, budget: {tokens: 1000000, agents: 9}, breaker: {failures: 3, cooldown: COOLDOWN}}
providers:
  PROVIDER: {api_keys: [test-key], base_url: "BASE"}
agents:
  ann: {kind: llm, model: PROVIDER/one}
  ben: {kind: llm, model: PROVIDER/one}
  cyd: {kind: llm, model: PROVIDER/one}
  dot: {kind: llm, model: PROVIDER/one}
  eve: {kind: llm, model: PROVIDER/one}
  ill: {kind: llm, model: PROVIDER/one}
  weak: {kind: llm, model: PROVIDER/one}
`

// plays are what each model of refusedTeam does with a task, turn after turn: whom it
// hands what. Behind them it repeats what it was told last.
var plays = map[string][]string{
	"Do circle":   {"ben: circle back"},
	"circle back": {"ANN: circle on"},
	"Do deep":     {"ben: one deep"},
	"one deep":    {"cyd: two deep"},
	"two deep":    {"dot: three deep"},
	"three deep":  {"eve: four deep"},
	"Do six":      {"ben: part 1", "ben: part 2", "cyd: part 3", "ben: part 4", "cyd: part 5", "ben: part 6"},
	"Do repeat":   {"ben: the same", "ben: the same"},
	"Do rest":     {"ill: now"},
	"Do rest on":  {"ill: now"},
}

// clinic is the service of models: it plays, lets ill and weak fail while they shall, and
// holds back the probe until everybody else was refused.
type clinic struct {
	sick    atomic.Bool
	refused atomic.Int64 // callers that read that weak rests
	once    sync.Once
	all     chan struct{} // closed when all but one did
}

const callers = 50

func (c *clinic) answer(a modeltest.Ask) modeltest.Answer {
	if strings.Contains(a.System, "You are the agent ill") || strings.Contains(a.System, "You are the agent weak") {
		if c.sick.Load() {
			return modeltest.Fail(http.StatusBadRequest, "invalid_request_error", "this model is ill")
		}
		return modeltest.Answer{Text: "mended", Until: c.all}
	}
	steps := plays[a.Conversation]
	if strings.HasPrefix(a.Conversation, "Do probe") {
		steps = []string{"weak: " + a.Conversation}
	}
	if a.Turn <= len(steps) {
		to, task, _ := strings.Cut(steps[a.Turn-1], ": ")
		return modeltest.Use("delegate_to_agent", map[string]any{"agent": to, "task": task})
	}
	told := a.Result("delegate_to_agent")
	if strings.HasPrefix(a.Conversation, "Do probe") && strings.Contains(told, guard.CodeBreaker+": ") && c.refused.Add(1) == callers-1 {
		c.once.Do(func() { close(c.all) })
	}
	return modeltest.Say("told: " + told)
}

// stops are the stories: what the first agent's model reads at the end, on whose
// delegation the refusal stands, and how often which conversation was asked.
var stops = []struct {
	task, code string
	says       []string
	asked      map[string]int
}{
	// O8, K9, P18: A→B→A under another spelling costs no call of A's model.
	{"circle", guard.CodeCycle, []string{"Agent 'ann' already in delegation chain", "ann → ben → ann"}, map[string]int{"Do circle": 2, "circle back": 2, "circle on": 0}},
	// K10, K16, O7: three hops, and no fourth; the advice is on the page, too.
	{"deep", guard.CodeMaxDepth, []string{"Maximum delegation depth reached", "ann → ben → cyd → dot → eve", "Split the task"}, map[string]int{"Do deep": 2, "one deep": 2, "two deep": 2, "three deep": 2, "four deep": 0}},
	// H9: five hand-overs, and no sixth.
	{"six", guard.CodeMaxHandoffs, []string{"Maximum handoffs reached"}, map[string]int{"Do six": 7, "part 1": 1, "part 5": 1, "part 6": 0}},
	// H15: the same to the same.
	{"repeat", guard.CodeRepeat, []string{"Circular handoff: ann → ben"}, map[string]int{"Do repeat": 3, "the same": 1}},
}

// TestRefusalsOfModels: each guard stops a hand-over of a model at the first attempt,
// before any model is asked; the calling model reads why as the result of its call, and
// people read it on the delegation's page. An agent that failed three times rests, also
// after the server was killed; when the rest is over, one of fifty hops at once is the
// probe (K9–K11, K16, O7–O9, H9, H11–H15).
func TestRefusalsOfModels(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		c := &clinic{all: make(chan struct{})}
		c.sick.Store(true)
		fake := modeltest.Start(c.answer)
		t.Cleanup(fake.Close)
		provider, base := "anthropic", fake.Anthropic()
		if !strings.HasPrefix(database, "sqlite:") {
			provider, base = "openai", fake.OpenAI()
		}
		text := strings.NewReplacer("PROVIDER", provider, "BASE", base).Replace(refusedTeam)
		p := placetest.New(t, database, strings.ReplaceAll(text, "COOLDOWN", "1h"))
		n := p.Start(p.Config, "")
		for _, r := range stops {
			root := n.Through(n.Send("ann", "", r.task))
			isRefused(n, root, r.code, r.says...)
			for conversation, want := range r.asked {
				if got := fake.Asked(conversation); got != want {
					t.Errorf("%s: %q was asked %d times, want %d", r.task, conversation, got, want)
				}
			}
		}
		n = resting(p, n, fake)
		n.Stop()
		short, _ := p.Configure("one", strings.ReplaceAll(text, "COOLDOWN", "1ms"))
		probed(p, p.Start(short, ""), c, fake)
	})
}

// isRefused checks that a task completed with an answer that repeats the refusal, and
// that the page of whoever was refused says the same.
func isRefused(n *placetest.Node, root orchestrator.Delegation, code string, says ...string) {
	n.Helper()
	if root.Result == nil {
		n.Fatalf("%s is %s: %v", root.Text, root.State, root.Error)
	}
	var refusal event.Event
	for _, e := range n.Events(root.TaskID) {
		if e.Type == event.DelegationRefused {
			refusal = e
		}
	}
	if placetest.Count(n.Events(root.TaskID), event.DelegationRefused, "") != 1 || !strings.Contains(string(refusal.Data), strconv.Quote(code)) {
		n.Errorf("%s: the history has the refusal %s", root.Text, refusal.Data)
	}
	page := html.UnescapeString(n.Page(n.Browser("bob"), "/delegations/"+refusal.DelegationID))
	for _, part := range append(says, code) {
		if !strings.Contains(root.Result.Text, part) {
			n.Errorf("%s: the model read %q, which lacks %q", root.Text, root.Result.Text, part)
		}
		if !strings.Contains(page, part) {
			n.Errorf("%s: the page of %s lacks %q", root.Text, refusal.DelegationID, part)
		}
	}
	d, err := n.Store.Delegation(n.Context(), refusal.DelegationID)
	n.Must(err)
	turns, err := n.Store.Turns(n.Context(), d.ID, 0)
	n.Must(err)
	for _, turn := range turns {
		for _, b := range turn.Message.Blocks {
			if b.Name == "delegate_to_agent" && strings.HasPrefix(b.Text, code+": ") && !b.IsError {
				n.Errorf("%s: the result of the refused call is no error", root.Text)
			}
		}
	}
}

// resting has ill fail until it rests, and checks that it still does after kill -9. It
// returns the new process.
func resting(p *placetest.Place, n *placetest.Node, fake *modeltest.Server) *placetest.Node {
	p.Helper()
	for i := range 3 {
		root := n.Through(n.Send("ill", "", fmt.Sprint("ill ", i)))
		if root.State != orchestrator.Failed || placetest.Count(p.Events(root.TaskID), event.BreakerOpened, "") != i/2 {
			p.Fatalf("after %d failures: %s, %d breakers opened", i+1, root.State, placetest.Count(p.Events(root.TaskID), event.BreakerOpened, ""))
		}
	}
	says := []string{"Agent handoffs temporarily disabled", "ill failed 3 times", "this model is ill"}
	isRefused(n, n.Through(n.Send("ann", "", "rest")), guard.CodeBreaker, says...)
	n.Kill()
	n = p.Start(p.Config, "")
	isRefused(n, n.Through(n.Send("ann", "", "rest on")), guard.CodeBreaker, says...)
	if got := fake.Asked("now"); got != 0 {
		p.Errorf("ill was asked %d times while it rests", got)
	}
	return n
}

// probed has weak rest for a moment, and fifty callers hand work to it at once.
func probed(p *placetest.Place, n *placetest.Node, c *clinic, fake *modeltest.Server) {
	p.Helper()
	for i := range 3 {
		n.Through(n.Send("weak", "", fmt.Sprint("weak ", i)))
	}
	c.sick.Store(false)
	tasks := make([]string, callers)
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			s, err := n.Submit("ann", "", fmt.Sprint("probe ", i))
			if err != nil {
				p.Error(err)
			}
			tasks[i] = s.ID
		})
	}
	all.Wait()
	told := map[string]int{}
	for _, id := range tasks {
		root := n.Through(id)
		if root.Result == nil {
			p.Fatalf("%s is %s: %v", root.Text, root.State, root.Error)
		}
		what := root.Result.Text
		if strings.Contains(what, guard.CodeBreaker+": ") {
			what = guard.CodeBreaker
		}
		told[what]++
	}
	asked := 0
	for _, a := range fake.Asks() {
		if strings.Contains(a.System, "You are the agent weak") && strings.HasPrefix(a.Conversation, "Do probe") {
			asked++
		}
	}
	if told[guard.CodeBreaker] != callers-1 || told["told: mended"] != 1 || asked != 1 {
		p.Errorf("%d callers were told %v; weak was asked %d times", callers, told, asked)
	}
	if root := n.Through(n.Send("ann", "", "probe again")); !strings.Contains(root.Result.Text, "mended") {
		p.Errorf("after the probe ann is told %q", root.Result.Text)
	}
}
