package guard

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"pgregory.net/rapid"
)

// spell writes a name in another of the ways that mean the same agent.
func spell(t *rapid.T, name string) string {
	switch rapid.IntRange(0, 4).Draw(t, "spelling") {
	case 1:
		return strings.ToUpper(name)
	case 2:
		return strings.ReplaceAll(name, "o", "о") // Cyrillic
	case 3:
		return " " + name + "\u200b" // a space and a zero-width space
	case 4:
		return strings.ReplaceAll(name, "a", "ａ") // full width
	default:
		return name
	}
}

// TestRandomTeams walks random teams by whatever hops are allowed, from random
// members of random trees, under random spellings. Whatever is tried, no chain gets
// longer than its limit, under strict nobody is visited twice (K4–K7, O7, P18), under
// bounded no hand-over comes twice within 3 of its chain (H15), and the task never
// makes more hand-overs than it may (H9, H10).
func TestRandomTeams(t *testing.T) {
	team := []string{"kik", "coder", "reviewer", "ana", "go-bot", "docs"}
	rapid.Check(t, func(t *rapid.T) {
		maxDepth := rapid.IntRange(1, 5).Draw(t, "max depth")
		maxHandoffs := rapid.IntRange(0, 12).Draw(t, "max handoffs")
		cycle := rapid.SampledFrom([]string{Strict, Bounded, ""}).Draw(t, "cycle")
		type member struct {
			name  string
			chain chain.Chain
		}
		tree := []member{{rapid.SampledFrom(team).Draw(t, "root"), chain.New(maxDepth)}}
		var log []Entry
		for range rapid.IntRange(1, 30).Draw(t, "tries") {
			from := rapid.SampledFrom(tree).Draw(t, "from")
			to := rapid.SampledFrom(team).Draw(t, "to")
			h := Hop{
				From: agent.Spec{Name: from.name}, FromName: spell(t, from.name),
				To: agent.Spec{Name: spell(t, to)}, Known: true, Chain: from.chain,
				Handoffs: len(log), MaxHandoffs: maxHandoffs, Cycle: cycle, Recent: log,
			}
			h.ToName = h.To.Name
			if _, refused := Check(h); refused != nil {
				continue
			}
			next := from.chain.With(chain.Step{From: from.name, To: to})
			tree = append(tree, member{to, next})
			log = append(log, Entry{From: from.name, To: to})
			holds(t, next, cycle != Bounded)
		}
		if len(log) > maxHandoffs {
			t.Fatalf("%d hand-overs, %d allowed", len(log), maxHandoffs)
		}
	})
}

func holds(t *rapid.T, c chain.Chain, strict bool) {
	if c.Depth() > c.MaxDepth() {
		t.Fatalf("chain %s is longer than %d", c, c.MaxDepth())
	}
	steps := c.Steps()
	seen := map[string]bool{steps[0].From: true}
	for i, s := range steps {
		if strict && seen[s.To] {
			t.Fatalf("chain %s visits %s twice", c, s.To)
		}
		if s.From == s.To {
			t.Fatalf("chain %s hands to itself", c)
		}
		seen[s.To] = true
		for _, earlier := range steps[max(0, i-3):i] {
			if earlier == s {
				t.Fatalf("chain %s repeats %s → %s", c, s.From, s.To)
			}
		}
	}
}
