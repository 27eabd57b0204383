package agent

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeyOfSpellings(t *testing.T) {
	// Identity is the name after NFKC, case folding and confusables.
	same := map[string][]string{
		"coder":    {"Coder", "CODER", " coder\t", "сoder", "cоdеr", "ｃｏｄｅｒ", "co\u200bder", "\u200b coder", "co\u00adder", "c0der"},
		"kik":      {"KIK", "кік", "КІК", "κικ"},
		"reviewer": {"rеvіewеr", "Reviewer\u2060"},
		"josé":     {"jose\u0301", "JOSÉ"},
		"Ꭰ":        {"ꭰ"}, // Cherokee
		"tool1":    {"tooll", "t00l1", "TOOL1"},
	}
	for name, spellings := range same {
		for _, s := range spellings {
			if Key(s) != Key(name) {
				t.Errorf("Key(%q) = %q, want that of %q: %q", s, Key(s), name, Key(name))
			}
		}
	}
	for _, pair := range [][2]string{{"coder", "coder2"}, {"coder", "coders"}, {"a-b", "ab"}, {"jose", "josé"}, {"coder", "c\u0301oder"}} {
		if Key(pair[0]) == Key(pair[1]) {
			t.Errorf("%q and %q have one key", pair[0], pair[1])
		}
	}
}

func TestKeyOfAKeyIsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := Key(rapid.String().Draw(t, "name"))
		if again := Key(key); again != key {
			t.Fatalf("Key(%q) = %q", key, again)
		}
	})
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"kik", "coder-2", "go.bot", "a_b", "Prüfer", "編集者", "7", strings.Repeat("a", MaxName)} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", "-a", ".a", "_a", "a b", "a/b", "a:b", "a\nb", "a\x00", "a\u202eb", "a\xff", "<b>", "a→b", strings.Repeat("a", MaxName+1)} {
		if CheckName(bad) == nil {
			t.Errorf("%q taken", bad)
		}
	}
}

func names(specs []Spec) []string {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}

func TestRegistry(t *testing.T) {
	r, err := NewRegistry([]Spec{
		{Name: "reviewer", Capabilities: []string{"review", "go"}, Role: Specialist},
		{Name: "Coder", Capabilities: []string{"go"}, Role: Developer, Repository: "app"},
		{Name: "kik", Capabilities: []string{"planning", "developer"}, Role: Admin},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(r.All()); !slices.Equal(got, []string{"Coder", "kik", "reviewer"}) { // P10
		t.Errorf("All() = %v", got)
	}
	for _, spelling := range []string{"Coder", "coder", "СОDER"} {
		if s, ok := r.Get(spelling); !ok || s.Name != "Coder" {
			t.Errorf("Get(%q) = %+v, %t", spelling, s, ok)
		}
	}
	if _, ok := r.Get("ghost"); ok {
		t.Error("an agent that nobody declared was found")
	}
	// P11: one match, several, none. A20: a role and a project lead to their agents, too,
	// but who says that it can do it comes before who has the role.
	for capability, want := range map[string][]string{"planning": {"kik"}, "go": {"Coder", "reviewer"}, "cooking": nil, "": nil,
		"admin": {"kik"}, "specialist": {"reviewer"}, "app": {"Coder"}, "developer": {"kik"}} {
		if got := names(r.ByCapability(capability)); !slices.Equal(got, want) {
			t.Errorf("ByCapability(%q) = %v, want %v", capability, got, want)
		}
	}
}

func TestNoRegistryHasNoAgents(t *testing.T) {
	var none *Registry // P11: nil-safe
	if _, ok := none.Get("kik"); ok || none.All() != nil || none.ByCapability("go") != nil {
		t.Error("a nil registry has agents")
	}
}

func TestRegistryRefuses(t *testing.T) {
	tests := []struct {
		name  string
		specs []Spec
		says  string
	}{
		{"one name twice", []Spec{{Name: "kik"}, {Name: "kik"}}, "cannot be told apart"},
		{"an accent", []Spec{{Name: "coder"}, {Name: "cöder"}}, "cannot be told apart"},
		{"a dot at the end", []Spec{{Name: "coder"}, {Name: "coder."}}, "cannot be told apart"},
		{"another separator", []Spec{{Name: "go-coder"}, {Name: "go_coder"}}, "cannot be told apart"},
		{"the Kelvin sign", []Spec{{Name: "kik"}, {Name: "\u212Aik"}}, "cannot be told apart"},
		{"an i without its dot", []Spec{{Name: "kik"}, {Name: "k\u0131k"}}, "cannot be told apart"},
		{"a role", []Spec{{Name: "Admin"}}, "reads like admin"},
		{"a role with an accent", []Spec{{Name: "hümán_"}}, "reads like human"},
		{"the one who decides", []Spec{{Name: "ru1e"}}, "reads like rule"},
		{"names that differ in case", []Spec{{Name: "kik"}, {Name: "KIK"}}, `"kik" and "KIK"`},
		{"names that look alike", []Spec{{Name: "coder"}, {Name: "соder"}}, "rename one"},
		{"a name that is none", []Spec{{Name: "a b"}}, "use letters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewRegistry(tt.specs); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v lacks %q", err, tt.says)
			}
		})
	}
}

func TestMayTake(t *testing.T) {
	// A14–A17: the same or a lower rank takes work; a cli seat takes none.
	roles := []Role{Admin, Developer, Specialist, CLI, ""}
	want := map[Role][]Role{
		Admin:      {Admin, Developer, Specialist, ""},
		Developer:  {Developer, Specialist, ""},
		Specialist: {Specialist, ""},
		CLI:        {Admin, Developer, Specialist, ""},
		"":         {Admin, Developer, Specialist, ""},
	}
	for _, from := range roles {
		for _, to := range roles {
			if got := MayTake(from, to); got != slices.Contains(want[from], to) {
				t.Errorf("MayTake(%q, %q) = %t", from, to, got)
			}
		}
	}
}

func TestMayHandTo(t *testing.T) {
	// P19: open by default, enforced once a list is there.
	tests := []struct {
		name string
		spec Spec
		to   string
		want bool
	}{
		{"no list", Spec{}, "anyone", true},
		{"listed", Spec{Restricted: true, DelegatesTo: []string{"coder"}}, "coder", true},
		{"listed, spelled otherwise", Spec{Restricted: true, DelegatesTo: []string{"coder"}}, "CODER", true},
		{"not listed", Spec{Restricted: true, DelegatesTo: []string{"coder"}}, "kik", false},
		{"an empty list", Spec{Restricted: true}, "coder", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.spec.MayHandTo(tt.to); got != tt.want {
				t.Errorf("MayHandTo(%q) = %t", tt.to, got)
			}
		})
	}
}

func TestUsageAdd(t *testing.T) {
	usd := func(v float64) *float64 { return &v }
	tests := []struct {
		name string
		a, b *float64
		want *float64
	}{
		{"nobody reported a price", nil, nil, nil}, // never 0: unknown stays unknown
		{"one did", usd(0.25), nil, usd(0.25)},
		{"the other did", nil, usd(0.5), usd(0.5)},
		{"both did", usd(0.25), usd(0.5), usd(0.75)},
		{"for free", usd(0), nil, usd(0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Usage{InputTokens: 1, OutputTokens: 2, USD: tt.a}.Add(Usage{InputTokens: 10, OutputTokens: 20, USD: tt.b})
			if got.InputTokens != 11 || got.OutputTokens != 22 {
				t.Errorf("tokens %+v", got)
			}
			if (got.USD == nil) != (tt.want == nil) || got.USD != nil && *got.USD != *tt.want {
				t.Errorf("usd %v, want %v", got.USD, tt.want)
			}
			if tt.a != nil && got.USD == tt.a {
				t.Error("the sum shares its price with an operand")
			}
		})
	}
}
