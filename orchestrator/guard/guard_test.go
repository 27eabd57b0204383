package guard

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
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
		{"depth comes before the hand-off limit", "X1", func(h *Hop) { *h = hop("b", "c"); h.Chain = along(1, "a", "b"); h.Handoffs = 5 },
			"depth", CodeMaxDepth, nil},
		{"a sixth hand-over", "H9 H10", func(h *Hop) { h.Handoffs = 5 },
			"handoffs", CodeMaxHandoffs, []string{"Maximum handoffs reached", "5 of 5", "kik → coder"}},
		{"a simple task", "H19", func(h *Hop) { h.MaxHandoffs = 0 },
			"handoffs", CodeMaxHandoffs, []string{"0 of 0"}},
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

func TestHostileNamesStayInTheirPlace(t *testing.T) {
	hostile := map[string]string{
		"a newline and an escape": "co\nder\x1b[31m",
		"a bidi override":         "co\u202eder",
		"broken UTF-8":            "co\xff\xfeder",
		"10 kB":                   strings.Repeat("ä", 5000),
	}
	for name, evil := range hostile {
		t.Run(name, func(t *testing.T) {
			unknown := hop("kik", "coder")
			unknown.To, unknown.ToName, unknown.Known = agent.Spec{}, evil, false
			cycle := hop("reviewer", evil)
			cycle.Chain = along(3, evil, "coder", "reviewer")
			for _, h := range []Hop{unknown, cycle} {
				_, refused := Check(h)
				if refused == nil {
					t.Fatal("allowed")
				}
				if len(refused.Message) > 600 {
					t.Errorf("message of %d bytes", len(refused.Message))
				}
				if !utf8.ValidString(refused.Message) || strings.ContainsAny(refused.Message, "\n\x1b\u202e\ufffd") {
					t.Errorf("message carries the control characters on: %q", refused.Message)
				}
			}
		})
	}
}

func TestNearest(t *testing.T) {
	known := []string{"coder", "coder-go", "reviewer", "kik", "bob"}
	tests := []struct {
		asked string
		want  []string
	}{
		{"codr", []string{"coder"}},
		{"CODER", []string{"coder", "coder-go"}},
		{"review", []string{"reviewer"}},
		{"kit", []string{"kik"}},
		{"", nil},
		{"zzz", nil},
		{strings.Repeat("k", 10_000), nil},
	}
	for _, tt := range tests {
		if got := Nearest(tt.asked, known); !slices.Equal(got, tt.want) {
			t.Errorf("Nearest(%.20q) = %v, want %v", tt.asked, got, tt.want)
		}
	}
}
