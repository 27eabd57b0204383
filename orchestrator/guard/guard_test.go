package guard

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
)

// hop is a hand-over that every guard allows; tests spoil one thing each.
func hop(from, to string) Hop {
	return Hop{
		From: agent.Spec{Name: from}, FromName: from, To: agent.Spec{Name: to}, ToName: to, Known: true,
		Agents: []string{"kik", "coder", "reviewer", "tester"}, Chain: chain.New(3),
		MaxHandoffs: 5, Cycle: Strict, Capacity: Queue, FreeSlots: 1,
	}
}

// along is the chain that leads through the names.
func along(maxDepth int, names ...string) chain.Chain {
	c := chain.New(maxDepth)
	for i := 1; i < len(names); i++ {
		c = c.With(chain.Step{From: names[i-1], To: names[i], Task: "t"})
	}
	return c
}

func TestPipelineOrder(t *testing.T) {
	// The design's order; K8, O4 and O8 agree that cycle comes before depth and
	// depth before the pool.
	want := []string{"unknown", "self", "role", "allow_list", "cycle", "depth", "remote_hops", "handoffs", "repeat", "breaker", "budget", "capacity", "human"}
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
}

func TestAllowedHopKeepsEveryVerdict(t *testing.T) {
	verdicts, refused := Check(hop("kik", "coder"))
	if refused != nil {
		t.Fatalf("refused: %+v", refused)
	}
	for i, v := range verdicts {
		if v.Guard != Names()[i] || !v.Allowed || v.Code != "" || v.Message == "" {
			t.Errorf("verdict %d = %+v", i, v)
		}
	}
	if len(verdicts) != len(Names()) {
		t.Errorf("%d verdicts for %d guards", len(verdicts), len(Names()))
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name, ids string
		spoil     func(*Hop)
		guard     string
		code      string
		says      []string
	}{
		{"a slip of the pen", "O6", func(h *Hop) { h.To, h.ToName, h.Known = agent.Spec{}, "codr", false },
			"unknown", CodeUnknown, []string{`No agent is named "codr"`, "Did you mean coder?"}},
		{"a name nobody has", "O6", func(h *Hop) { h.To, h.ToName, h.Known = agent.Spec{}, "zebra", false },
			"unknown", CodeUnknown, []string{"Known agents: coder, kik, reviewer, tester."}},
		{"no name", "P13", func(h *Hop) { h.To, h.ToName, h.Known = agent.Spec{}, " ", false },
			"unknown", CodeUnknown, []string{"No agent was named."}},
		{"a capability nobody has", "P13", func(h *Hop) { h.To, h.ToName, h.Known = agent.Spec{}, "capability:fly", false },
			"unknown", CodeUnknown, []string{`No agent has the capability "fly"`}},
		{"oneself, spelled otherwise", "O5 P18", func(h *Hop) { *h = hop("kik", "kik"); h.ToName = "КІK" },
			"self", CodeSelf, []string{"kik cannot hand work to itself"}},
		{"self comes before cycle", "O4", func(h *Hop) { *h = hop("coder", "coder"); h.Chain = along(3, "kik", "coder") },
			"self", CodeSelf, nil},
		{"a higher role", "A17", func(h *Hop) { h.From.Role, h.To.Role = agent.Developer, agent.Admin },
			"role", CodeNotAllowed, []string{"kik (developer)", "coder (admin)"}},
		{"a cli seat", "A17", func(h *Hop) { h.To.Role = agent.CLI },
			"role", CodeNotAllowed, []string{"coder is a cli seat"}},
		{"not on the allow-list", "P19", func(h *Hop) { h.From.Restricted, h.From.DelegatesTo = true, []string{"reviewer"} },
			"allow_list", CodeNotAllowed, []string{"kik may not hand work to coder", "names reviewer"}},
		{"an empty allow-list", "P19", func(h *Hop) { h.From.Restricted = true },
			"allow_list", CodeNotAllowed, []string{"delegates_to is empty"}},
		{"A→B→A", "K6 K9 O7", func(h *Hop) { *h = hop("coder", "kik"); h.Chain = along(3, "kik", "coder") },
			"cycle", CodeCycle, []string{"Agent 'kik' already in delegation chain", "kik → coder → kik"}},
		{"A→B→C→A", "K5 K6", func(h *Hop) { *h = hop("reviewer", "kik"); h.Chain = along(3, "kik", "coder", "reviewer") },
			"cycle", CodeCycle, []string{"kik → coder → reviewer → kik"}},
		{"a target in the middle", "K4", func(h *Hop) { *h = hop("reviewer", "coder"); h.Chain = along(3, "kik", "coder", "reviewer") },
			"cycle", CodeCycle, []string{"kik → coder → reviewer → coder"}},
		{"cycle comes before depth", "K8 O8", func(h *Hop) { *h = hop("tester", "kik"); h.Chain = along(3, "kik", "coder", "reviewer", "tester") },
			"cycle", CodeCycle, nil},
		{"a fourth step", "K7 K10 K16 X3", func(h *Hop) { *h = hop("c", "d"); h.Chain = along(3, "kik", "a", "b", "c") },
			"depth", CodeMaxDepth, []string{"Maximum delegation depth reached", "kik → a → b → c → d would be 4 hops", "limit is 3", "Split the task"}},
		{"depth comes before the hand-over limit", "X1", func(h *Hop) { *h = hop("b", "c"); h.Chain = along(1, "a", "b"); h.Handoffs = 5 },
			"depth", CodeMaxDepth, nil},
		{"a sixth hand-over", "H9 H10", func(h *Hop) { h.Handoffs = 5 },
			"handoffs", CodeMaxHandoffs, []string{"Maximum handoffs reached", "5 of 5", "kik → coder"}},
		{"a simple task", "H19", func(h *Hop) { h.MaxHandoffs = 0 },
			"handoffs", CodeMaxHandoffs, []string{"0 of 0"}},
		{"too far through other systems", "K7", func(h *Hop) { h.Elsewhere, h.MaxRemote, h.RemoteHop = true, 3, 3 },
			"remote_hops", CodeMaxDepth, []string{"3 of 3", "kik → coder", "Split the task"}},
		{"the same again", "H15 H16", func(h *Hop) {
			h.Hash, h.Recent = "x", []Entry{{From: "kik", To: "CODER", Hash: "x"}, {From: "a", To: "b"}, {From: "a", To: "c"}}
		},
			"repeat", CodeRepeat, []string{"Circular handoff: kik → coder", "change what you ask for"}},
		{"the hand-over limit comes before repeat", "X1", func(h *Hop) { h.Handoffs, h.Hash, h.Recent = 5, "x", []Entry{{From: "kik", To: "coder", Hash: "x"}} },
			"handoffs", CodeMaxHandoffs, nil},
		{"an agent that rests", "H12", func(h *Hop) { h.Now, h.Breaker = noon, opened() },
			"breaker", CodeBreaker, []string{"Agent handoffs temporarily disabled", "coder failed 3 times", "1m0s more", "12:00:00 UTC", `"no key"`}},
		{"a second probe", "H14", func(h *Hop) {
			h.Now, h.Breaker = noon.Add(time.Hour), opened().Try(noon, "dlg_1", noon.Add(2*time.Hour))
		},
			"breaker", CodeBreaker, []string{"probe under way"}},
		{"no hand-over is left", "H19 H22", func(h *Hop) { h.Budget = purse(0, 0); h.Budget.Task.Handoffs = new(int) },
			"budget", CodeBudget, []string{"Handoff limit reached", "0 of 0", "kik → coder"}},
		{"a child may hand on once only", "H22", func(h *Hop) { h.Budget = purse(100, 10); one := 1; h.Budget.Limits.Handoffs, h.Budget.Hops = &one, 1 },
			"budget", CodeBudget, []string{"Handoff limit reached", "kik has made 1 of 1"}},
		{"no token is left", "H22 O15 X6", func(h *Hop) { h.Budget = purse(150_000, 0) },
			"budget", CodeBudget, []string{"Token budget exceeded", "0 tokens are left of 150,000", "budget.tokens"}},
		{"no money is left", "H22", func(h *Hop) {
			h.Budget = purse(100, 10)
			zero, all := int64(0), int64(5_000_000)
			h.Budget.Limits.MicroUSD, h.Budget.Left.MicroUSD = &all, &zero
		},
			"budget", CodeBudget, []string{"$0 is left of $5.00"}},
		{"one agent too many", "H23", func(h *Hop) { h.Budget = purse(100, 10); one := 1; h.Budget.Task.Agents, h.Budget.Team = &one, 1 },
			"budget", CodeBudget, []string{"Agent limit reached", "1 of 1", "coder is not one"}},
		{"the breaker comes before the budget", "X1", func(h *Hop) { h.Now, h.Breaker, h.Budget = noon, opened(), purse(10, 0) },
			"breaker", CodeBreaker, nil},
		{"a full pool that refuses", "O10 O11", func(h *Hop) { h.Capacity, h.FreeSlots = Refuse, 0 },
			"capacity", CodeNoCapacity, []string{"no free concurrency slot", "would block for ever", "engine.workers", "kik → coder"}},
	}
	for _, tt := range tests {
		t.Run(tt.ids+" "+tt.name, func(t *testing.T) {
			h := hop("kik", "coder")
			tt.spoil(&h)
			verdicts, refused := Check(h)
			if refused == nil {
				t.Fatalf("allowed: %+v", verdicts)
			}
			if refused.Guard != tt.guard || refused.Code != tt.code || refused.Allowed {
				t.Errorf("refused = %+v, want guard %s code %s", refused, tt.guard, tt.code)
			}
			if last := verdicts[len(verdicts)-1]; last != *refused || len(verdicts) != slices.Index(Names(), tt.guard)+1 {
				t.Errorf("verdicts end with %+v after %d", last, len(verdicts))
			}
			for _, s := range tt.says {
				if !strings.Contains(refused.Message, s) {
					t.Errorf("message %q lacks %q", refused.Message, s)
				}
			}
		})
	}
}

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// opened is a breaker that three failures opened at noon, for a minute.
func opened() Breaker {
	b := Breaker{Agent: "coder"}
	for range 3 {
		b = b.Fail(noon, "no key", 3, time.Minute)
	}
	return b
}

// purse is a budget of tokens of which so many are left.
func purse(limit, left int64) Purse {
	return Purse{Limits: budget.Limits{Tokens: &limit}, Left: budget.Limits{Tokens: &left}}
}

func TestBreaker(t *testing.T) {
	b := Breaker{Agent: "coder"}.Fail(noon, "one", 3, time.Minute).Fail(noon, "two", 3, time.Minute)
	if b.Resting() || b.Failures != 2 {
		t.Fatalf("H11: open after two: %+v", b)
	}
	if ok := b.Succeed(noon); ok.Failures != 0 || ok.State != Closed {
		t.Errorf("H13: a success leaves %+v", ok)
	}
	b = b.Fail(noon, "three", 3, time.Minute)
	if b.State != Open || b.MayProbe(noon.Add(59*time.Second)) || !b.MayProbe(noon.Add(time.Minute)) || b.OpenedAt != noon || b.Reason != "three" {
		t.Fatalf("H13 H14: %+v", b)
	}
	probing := b.Try(noon.Add(time.Minute), "dlg_1", noon.Add(time.Hour))
	if probing.MayProbe(noon.Add(59 * time.Minute)) {
		t.Error("H14: two probes at once")
	}
	if !probing.MayProbe(noon.Add(time.Hour)) || !probing.Drop(noon, "dlg_1").MayProbe(noon) || probing.Drop(noon, "dlg_2").MayProbe(noon) {
		t.Error("H14: a probe that is gone holds the agent for ever, or another's end frees it")
	}
	if again := probing.Fail(noon.Add(2*time.Minute), "four", 3, time.Minute); again.State != Open || again.MayProbe(noon.Add(2*time.Minute)) || again.Probe != "" || again.OpenedAt != noon {
		t.Errorf("H14: after a failed probe %+v", again)
	}
	if yesterday := noon.AddDate(0, 0, -1); !b.MayProbe(yesterday) || !probing.MayProbe(yesterday) || b.MayProbe(noon.Add(-time.Minute)) {
		t.Error("H14: a clock that was set back makes an agent rest for as long, or clocks that differ a little do not let it rest")
	}
	if off := (Breaker{}).Fail(noon, "x", 0, time.Minute); off.Failures != 0 {
		t.Errorf("a breaker that is off counted: %+v", off)
	}
	if long := (Breaker{}).Fail(noon, strings.Repeat("ä", 500), 3, time.Minute); len(long.Reason) > 2*maxReason || !utf8.ValidString(long.Reason) {
		t.Errorf("kept %d bytes", len(long.Reason))
	}
}

func TestHashIsCanonical(t *testing.T) {
	// H17: the order of keys does not matter, everything else does.
	hash := func(c Content) string {
		t.Helper()
		h, err := Hash(c)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	base := Content{Text: "t", Context: map[string]string{"a": "1", "b": "2"}, Tree: "x"}
	if hash(base) != hash(Content{Text: "t", Context: map[string]string{"b": "2", "a": "1"}, Tree: "x"}) || hash(Content{}) != hash(Content{Context: map[string]string{}}) {
		t.Error("the same content has two hashes")
	}
	seen := map[string]string{hash(base): "base"}
	for name, c := range map[string]Content{
		"text": {Text: "u", Context: base.Context, Tree: "x"}, "context": {Text: "t", Context: map[string]string{"a": "1", "b": "3"}, Tree: "x"},
		"files": {Text: "t", Context: base.Context, Tree: "y"}, "round": {Text: "t", Context: base.Context, Tree: "x", Round: 1},
		"epoch": {Text: "t", Context: base.Context, Tree: "x", Epoch: 1}, "command": {Text: "t", Context: base.Context, Tree: "x", Handover: &agent.Handover{Goto: "coder"}},
	} {
		h := hash(c)
		if other, dup := seen[h]; dup {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[h] = name
	}
	more := agent.Handover{Goto: "coder"}
	more.Update.Metrics.TokensUsed = 5
	if hash(Content{Handover: &more}) != hash(Content{Handover: &agent.Handover{Goto: "coder"}}) {
		t.Error("H6: figures that grow by themselves hide a repetition")
	}
}

func TestExplainListsEveryGuard(t *testing.T) {
	h := hop("coder", "kik")
	h.Chain = along(3, "kik", "coder")
	verdicts, refused := Explain(h)
	if refused == nil || refused.Code != CodeCycle || len(verdicts) != len(Names()) {
		t.Fatalf("%+v", verdicts)
	}
	for i, v := range verdicts {
		if after := i > slices.Index(Names(), "cycle"); v.Skipped != after || after && (v.Message != "not asked" || v.Allowed) {
			t.Errorf("verdict %d: %+v", i, v)
		}
	}
}

func TestAllowed(t *testing.T) {
	tests := []struct {
		name, ids string
		h         func() Hop
	}{
		{"three hops", "K2 K7 X3", func() Hop { h := hop("b", "c"); h.Chain = along(3, "kik", "a", "b"); return h }},
		{"a person asks, whatever the limits", "H19 K5", func() Hop { h := hop("", "kik"); h.MaxHandoffs = 0; return h }},
		{"a full pool that queues", "O10", func() Hop { h := hop("kik", "coder"); h.FreeSlots = 0; return h }},
		{"on the allow-list under another spelling", "P19", func() Hop {
			h := hop("kik", "coder")
			h.From.Restricted, h.From.DelegatesTo = true, []string{"CODER"}
			return h
		}},
		{"a sibling with another text", "H15 H27", func() Hop {
			h := hop("kik", "coder")
			h.Hash, h.Recent = "x", []Entry{{From: "kik", To: "coder", Hash: "y"}}
			return h
		}},
		{"the same again after three others", "H15", func() Hop {
			h := hop("kik", "coder")
			h.Hash, h.Recent = "x", []Entry{{From: "kik", To: "coder", Hash: "x"}, {From: "a", To: "b"}, {From: "a", To: "c"}, {From: "a", To: "d"}}
			return h
		}},
		{"a person asks an agent that rests", "H12", func() Hop { h := hop("", "coder"); h.Now, h.Breaker = noon, opened(); return h }},
		{"the one probe", "H14", func() Hop { h := hop("kik", "coder"); h.Now, h.Breaker = noon.Add(time.Minute), opened(); return h }},
		{"an agent of the task, at the limit of agents", "H23", func() Hop {
			h := hop("kik", "coder")
			one := 1
			h.Budget = Purse{Task: budget.Limits{Agents: &one}, Team: 1, Known: true}
			return h
		}},
		{"a remote agent within the limit", "K7", func() Hop {
			h := hop("kik", "coder")
			h.Elsewhere, h.MaxRemote, h.RemoteHop = true, 3, 2
			return h
		}},
		{"a person is asked, which refuses nothing by itself", "H18", func() Hop { h := hop("kik", "coder"); h.AskFirst = true; return h }},
		{"the same agent beside itself", "H27", func() Hop {
			h := hop("kik", "coder")
			h.Recent = []Entry{{From: "kik", To: "coder"}, {From: "kik", To: "coder"}}
			return h
		}},
		{"the same again in a workflow's loop, bounded", "H26", func() Hop {
			h := hop("kik", "coder")
			h.Cycle, h.Recent = Bounded, []Entry{{From: "kik", To: "coder"}}
			return h
		}},
		{"a return, bounded", "H26 X2", func() Hop {
			h := hop("coder", "kik")
			h.Chain, h.Cycle, h.Recent = along(3, "kik", "coder"), Bounded, []Entry{{From: "kik", To: "coder"}}
			return h
		}},
		{"the same return four hand-overs apart, bounded", "H15 X2", func() Hop {
			h := hop("a", "b")
			h.Chain, h.Cycle = along(9, "a", "b", "c", "d", "a"), Bounded
			h.Recent = []Entry{{From: "a", To: "b"}, {From: "b", To: "c"}, {From: "c", To: "d"}, {From: "d", To: "a"}}
			return h
		}},
	}
	for _, tt := range tests {
		t.Run(tt.ids+" "+tt.name, func(t *testing.T) {
			if _, refused := Check(tt.h()); refused != nil {
				t.Errorf("refused: %+v", refused)
			}
		})
	}
}

func TestBoundedForbidsTheSameReturnAtOnce(t *testing.T) {
	// H15, X2: a→b, b→a, and a→b again is the ping-pong that the last 3 entries show.
	h := hop("a", "b")
	h.Cycle = Bounded
	for name, recent := range map[string][]Entry{
		"the task's log":                   {{From: "a", To: "b"}, {From: "b", To: "a"}},
		"the third entry back":             {{From: "a", To: "b"}, {From: "b", To: "c"}, {From: "c", To: "a"}},
		"a log that other branches filled": {{From: "x", To: "1"}, {From: "x", To: "2"}, {From: "x", To: "3"}},
	} {
		h.Recent = recent
		h.Chain = along(9, "a", "b", "a")
		if name == "the third entry back" {
			h.Chain = along(9, "a", "b", "c", "a")
		}
		_, refused := Check(h)
		if refused == nil || refused.Code != CodeCycle || !strings.Contains(refused.Message, "Circular handoff: a → b") {
			t.Errorf("%s: %+v", name, refused)
		}
	}
}

func TestWorkedExample(t *testing.T) {
	// K14: after KIK→VajbCoder→ReviewAgent, ReviewAgent may go to neither of them.
	c := along(3, "KIK", "VajbCoder", "ReviewAgent")
	for _, to := range []string{"KIK", "VajbCoder", "vajbcoder", "kiK"} {
		h := hop("ReviewAgent", to)
		h.Chain = c
		if _, refused := Check(h); refused == nil || refused.Code != CodeCycle {
			t.Errorf("to %s: %+v", to, refused)
		}
	}
	h := hop("ReviewAgent", "DocsAgent")
	h.Chain = c
	if _, refused := Check(h); refused != nil {
		t.Errorf("to DocsAgent: %+v", refused)
	}
}
