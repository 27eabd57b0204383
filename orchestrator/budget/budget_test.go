package budget_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/budget"

	"pgregory.net/rapid"
)

func ptr[T any](v T) *T { return &v }

// node is one delegation of a random tree.
type node struct {
	account  *budget.Account
	parent   *node
	children []*node
	ended    bool
}

func (n *node) live() []*node {
	var live []*node
	for _, c := range n.children {
		if !c.ended {
			live = append(live, c)
		}
	}
	return live
}

func (n *node) end() {
	for _, c := range n.live() {
		c.end()
	}
	n.ended = true
	if n.parent != nil {
		n.parent.account.Settle(n.account)
	}
}

// TestRandomTrees reserves, charges, takes back and settles at random. No figure is ever
// below 0; what a tree used is never above its limit by more than one call for each run
// that had one in flight (O15, O16, H22); and once all has ended, what moved up is exactly
// what was used, with nothing reserved.
func TestRandomTrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 1000).Draw(t, "limit")
		root := &node{account: &budget.Account{Limits: budget.Limits{Tokens: &limit}}}
		all, used, over := []*node{root}, int64(0), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := all[rapid.IntRange(0, len(all)-1).Draw(t, "who")]
			if n.ended {
				continue
			}
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0, 1: // a hop
				left := n.account.Remaining()
				if *left.Tokens <= 0 {
					continue
				}
				var ask budget.Limits
				if rapid.Bool().Draw(t, "asks") {
					ask.Tokens = ptr(rapid.Int64Range(1, 500).Draw(t, "ask"))
				}
				child := &node{account: n.account.Grant(ask, left.Amount().Share(rapid.IntRange(1, 4).Draw(t, "sharers"))), parent: n}
				n.children = append(n.children, child)
				all = append(all, child)
			case 2: // a call, which is only made while the budget lasts
				if n.account.Over() != "" || *n.account.Remaining().Tokens == 0 {
					continue
				}
				call := rapid.Int64Range(0, 100).Draw(t, "call")
				if beyond := call - *n.account.Remaining().Tokens; beyond > 0 {
					over += beyond
				}
				n.account.Charge(budget.Amount{Tokens: call})
				used += call
			case 3:
				if live := n.live(); len(live) > 0 && rapid.Bool().Draw(t, "take back") {
					got := live[0].account.GiveBack(budget.Amount{Tokens: rapid.Int64Range(0, 200).Draw(t, "want")})
					n.account.Returned(got)
				} else if n != root {
					n.end()
				}
			}
			for _, n := range all {
				holds(t, n)
			}
			if used > limit+over {
				t.Fatalf("%d tokens used of %d, %d of them by calls in flight", used, limit, over)
			}
		}
		root.end()
		if spent := root.account.Spent().Tokens; spent != used || root.account.Reserved.Tokens != 0 {
			t.Fatalf("settled at %d with %d reserved; %d were used", spent, root.account.Reserved.Tokens, used)
		}
	})
}

func holds(t *rapid.T, n *node) {
	a := n.account
	if a.Used.Tokens < 0 || a.Settled.Tokens < 0 || a.Reserved.Tokens < 0 || *a.Limits.Tokens < 0 || *a.Remaining().Tokens < 0 {
		t.Fatalf("below 0: %+v", a)
	}
	var granted int64
	for _, c := range n.live() {
		granted += *c.account.Limits.Tokens
	}
	if granted != a.Reserved.Tokens {
		t.Fatalf("%d reserved, %d granted to children that live", a.Reserved.Tokens, granted)
	}
}

func TestOver(t *testing.T) {
	limits := budget.Limits{Tokens: ptr[int64](100), MicroUSD: ptr[int64](50), Time: ptr(time.Minute)}
	tests := []struct {
		name, ids string
		used      budget.Amount
		reserved  budget.Amount
		want      string
	}{
		{"at the limit a run goes on", "O16 X6", budget.Amount{Tokens: 100, MicroUSD: 50, Time: time.Minute}, budget.Amount{}, ""},
		{"one token more", "O16", budget.Amount{Tokens: 101}, budget.Amount{}, budget.Tokens},
		{"what live children reserve counts", "O15", budget.Amount{Tokens: 50}, budget.Amount{Tokens: 51}, budget.Tokens},
		{"money", "O16", budget.Amount{MicroUSD: 51}, budget.Amount{}, budget.USD},
		{"running time", "O16", budget.Amount{Time: time.Minute + 1}, budget.Amount{}, budget.Time},
		{"a caller waits while the time of its child runs", "O15", budget.Amount{Time: 30 * time.Second}, budget.Amount{Time: time.Minute}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.ids+" "+tt.name, func(t *testing.T) {
			a := budget.Account{Limits: limits, Used: tt.used, Reserved: tt.reserved}
			got := a.Over()
			if got != tt.want {
				t.Fatalf("Over() = %q, want %q", got, tt.want)
			}
			if says := a.Sentence("coder", got); got != "" && (!strings.Contains(says, "budget exceeded") || !strings.Contains(says, "Raise `budget."+got)) {
				t.Errorf("it says: %s", says)
			}
		})
	}
}

func TestGrantIsTheLeast(t *testing.T) {
	// Of what is asked for, what the agent may use, and the remainder.
	a := budget.Account{Limits: budget.Limits{Tokens: ptr[int64](100), Handoffs: ptr(3)}, Used: budget.Amount{Tokens: 40}}
	ask := budget.Least(&budget.Limits{Tokens: ptr[int64](80)}, &budget.Limits{Tokens: ptr[int64](70), Handoffs: ptr(1)}, nil)
	child := a.Grant(ask, budget.Amount{Tokens: 60})
	if *child.Limits.Tokens != 60 || *child.Limits.Handoffs != 1 || a.Reserved.Tokens != 60 || child.Elastic {
		t.Errorf("granted %+v, reserved %+v", child.Limits, a.Reserved)
	}
	if got := child.GiveBack(budget.Amount{Tokens: 10}); !got.Zero() {
		t.Errorf("a child that asked gave back %+v", got)
	}
}

func TestClassify(t *testing.T) {
	// H24: the classifier is explained, and the same text always gives the same tier.
	tests := []struct {
		text, tier, why string
	}{
		{"What does the retry loop do?", budget.Simple, "short"},
		{"Fix the typo in README.md", budget.Simple, "short"},
		{"", budget.Simple, "short"},
		{"Fix the retry loop in upload/retry.go and add a test in upload/retry_test.go", budget.Medium, "files named"},
		{"Refactor the uploader", budget.Medium, "wide changes"},
		{"Redesign the whole store:\n1. research what others do\n2. implement it in store.go, tx.go and claim.go\n3. then review and document it", budget.Complex, "parts"},
		{strings.Repeat("A long story about a thing. ", 100), budget.Medium, "characters long"},
		{"\xff\xfe" + strings.Repeat("-", 1<<20), budget.Medium, "characters long"},
	}
	for _, tt := range tests {
		got := budget.Classify(tt.text)
		if got.Tier != tt.tier || !strings.Contains(got.Why, tt.why) {
			t.Errorf("Classify(%.40q) = %+v, want %s because of %q", tt.text, got, tt.tier, tt.why)
		}
		if again := budget.Classify(tt.text); again != got {
			t.Errorf("Classify(%.40q) changed its mind: %+v", tt.text, again)
		}
	}
}

func TestParse(t *testing.T) {
	l, err := budget.Parse("tokens=20000, usd=1.5,handoffs=2,agents=3,time=10m")
	if err != nil || *l.Tokens != 20000 || *l.MicroUSD != 1_500_000 || *l.Handoffs != 2 || *l.Agents != 3 || *l.Time != 10*time.Minute {
		t.Fatalf("Parse = %+v, %v", l, err)
	}
	for _, bad := range []string{"", "tokens", "tokens=", "tokens=ten", "tokens=-1", "token=5", "time=10", "time=-1s", "usd=NaN", "usd=-0.1", "usd=1e300", "agents=0", "handoffs=1.5", "tokens=1e30", "tokens=0x10"} {
		if l, err := budget.Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %+v", bad, l)
		}
	}
	for _, bad := range []string{`[]`, `{"tokens":"5"}`, `{"token":5}`, `{"tokens":-1}`, `{"usd":-1}`, `"5"`, `{"time":5}`} {
		if l, err := budget.Read(json.RawMessage(bad)); err == nil {
			t.Errorf("Read(%s) = %+v", bad, l)
		}
	}
	if text, err := json.Marshal(l.Published()); err != nil || string(text) != `{"tokens":20000,"usd":1.5,"handoffs":2,"agents":3,"time":"10m0s"}` {
		t.Errorf("published as %s, %v", text, err)
	}
}

// Whatever is claimed, and however often, nothing wraps into a budget anew (O15).
func TestNoClaimWraps(t *testing.T) {
	limit := int64(1000)
	a := budget.Account{Limits: budget.Limits{Tokens: &limit, MicroUSD: &limit}}
	for range 3 {
		a.Charge(budget.Amount{Tokens: math.MaxInt64 / 2, MicroUSD: math.MaxInt64 - 1, Time: math.MaxInt64})
		if s := a.Spent(); s.Tokens < limit || s.MicroUSD < limit || s.Time < 0 || a.Over() != budget.Tokens || !a.Remaining().Amount().Zero() {
			t.Fatalf("spent %+v, left %+v", s, a.Remaining())
		}
	}
	if up := a.Limits.Plus(budget.Amount{Tokens: math.MaxInt64, MicroUSD: math.MaxInt64}); *up.Tokens != math.MaxInt64 || *up.MicroUSD != math.MaxInt64 {
		t.Errorf("limits became %d and %d", *up.Tokens, *up.MicroUSD)
	}
}
