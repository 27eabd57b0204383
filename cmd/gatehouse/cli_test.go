package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/config"

	"github.com/alecthomas/kong"
)

func grammar(t *testing.T) *kong.Application {
	t.Helper()
	var cli CLI
	k, err := kong.New(&cli, kong.Name("gatehouse"), kong.Vars{"url": defaultURL})
	if err != nil {
		t.Fatal(err)
	}
	return k.Model
}

func TestHelpOfEveryCommandHasTwoExamples(t *testing.T) {
	known := map[string]bool{"": true}
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, child := range n.Children {
			walk(child)
		}
		path := strings.TrimSpace(pathOf(n))
		if n.Hidden {
			return
		}
		known[path] = true
		if examples[path][0] == "" || examples[path][1] == "" {
			t.Errorf("%q has no two examples", path)
		}
		for _, example := range examples[path] {
			if path != "" && !strings.Contains(example, "gatehouse "+path) {
				t.Errorf("%q does not show %q", example, path)
			}
		}
	}
	walk(grammar(t).Node)
	for path := range examples {
		if !known[path] {
			t.Errorf("there are examples for %q, which is no command", path)
		}
	}
}

func TestFlagsMayStandAnywhere(t *testing.T) {
	app := grammar(t)
	for _, c := range []struct{ give, want string }{
		{"--json status x", "status --json -- x"},
		{"status x --json", "status --json -- x"},
		{"--repo app send kik hello", "send --repo=app -- kik hello"},
		{"send kik hello --repo=app --wait", "send --repo=app --wait -- kik hello"},
		{"send kik -", "send -- kik -"},
		{"send kik -- --repo app", "send -- kik --repo app"},
		{"context set ns set value", "context set -- ns set value"},
		{"agents check a b", "agents check -- a b"},
		{"reject x --reason --no", "reject --reason=--no -- x"},
		{"complete send --re", "complete send --re"},
	} {
		got, err := arrange(app, strings.Fields(c.give))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s becomes %q, %v; want %q", c.give, got, err, c.want)
		}
	}
	got, err := arrange(app, []string{"send", "kik", "--help me, it is broken"})
	if err != nil || !slices.Equal(got, []string{"send", "--", "kik", "--help me, it is broken"}) {
		t.Errorf("a text that begins with dashes becomes %q, %v", got, err)
	}
}

func TestForeignTextIsHarmless(t *testing.T) {
	for give, want := range map[string]string{
		"plain ü 漢字 🎉 \t tab":      "plain ü 漢字 🎉 \t tab",
		"\x1b[31mred":              "⟦U+001B⟧[31mred",
		"\u202ereversed":           "⟦U+202E⟧reversed",
		"zero\u200bwidth":          "zero⟦U+200B⟧width",
		"over\rwritten":            "over⟦U+000D⟧written",
		"\u009b31m":                "⟦U+009B⟧31m",
		"bad \xff byte":            "bad ⟦0xFF⟧ byte",
		"tag\U000E0041":            "tag⟦U+E0041⟧",
		"soft\u00adhyphen":         "soft⟦U+00AD⟧hyphen",
		"\ufeffmark\u2028line":     "⟦U+FEFF⟧mark⟦U+2028⟧line",
		"hangul\u3164filler\u2003": "hangul⟦U+3164⟧filler⟦U+2003⟧",
	} {
		if got := block(give); got != want {
			t.Errorf("%q is shown as %q, want %q", give, got, want)
		}
	}
	if got := line("two\nlines  and\ttabs"); got != "two lines and tabs" {
		t.Errorf("line gives %q", got)
	}
	if got := brief("\n \nfirst that says something\nsecond", 10); got != "first tha…" {
		t.Errorf("brief gives %q", got)
	}
}

func FuzzForeignText(f *testing.F) {
	f.Add("a\x1b]0;title\x07b\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range block(s) {
			if risky(r) {
				t.Fatalf("%q shows %U", s, r)
			}
		}
	})
}

func TestTheSchemaHasEveryKeyOfTheFile(t *testing.T) {
	b, err := json.Marshal(schemaOf(reflect.TypeFor[config.File](), ""))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := json.Marshal(structSchema(reflect.TypeFor[config.Step](), ""))
	if err != nil {
		t.Fatal(err)
	}
	all := string(b) + string(steps)
	// As the contract shows them; four of them stand at the deepest places.
	for _, key := range []string{"server", "public_url", "max_handoffs", "tiers", "cooldown", "protect", "credential", "api_keys",
		"delegates_to", "analysis_only", "goto", "parallel", "four_eyes", "remind", "when", "chats", "webhook_secret", "cron", "groups"} {
		if !strings.Contains(all, `"`+key+`":`) {
			t.Errorf("the schema does not have %s", key)
		}
	}
	for at := range choices {
		key, isList := strings.CutSuffix(at, ".[]")
		enum := `":{"enum"`
		if isList {
			enum = `":{"items":{"enum"`
		}
		if !strings.Contains(all, `"`+key[strings.LastIndex(key, ".")+1:]+enum) {
			t.Errorf("the choices of %s are at no key", at)
		}
	}
}

func TestLengthsHaveTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 ms", 40 * time.Millisecond: "40 ms", 59 * time.Second: "59 s", 372 * time.Second: "6 min 12 s",
		time.Hour: "1 h", 71 * time.Hour: "2 d 23 h", 24 * 90 * time.Hour: "90 d",
	} {
		if got := length(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 9400: "9.4k", 150000: "150k", 2_500_000: "2.5M"} {
		if got := tokens(n); got != want {
			t.Errorf("%d tokens are %q, want %q", n, got, want)
		}
	}
}

func TestVersionsOfGit(t *testing.T) {
	for version, old := range map[string]bool{"2.39.5": true, "2.43.7": false, "2.43.6": true, "2.50.1 (Apple Git-155)": false, "2.43.7.rc1": false, "3": false} {
		if got := slices.Compare(numbers(version), gitFixed) < 0; got != old {
			t.Errorf("%s is old: %v, want %v", version, got, old)
		}
	}
}
