package trigger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/trigger"
)

// What is wrong with a trigger is told when the configuration is read, at its place.
func TestMistakesAreToldAtTheirPlace(t *testing.T) {
	hook := func(change func(*trigger.Spec)) trigger.Spec {
		s := trigger.Spec{Name: "x", Kind: trigger.Webhook, Source: trigger.GitHub, Secrets: []string{secret}, Task: "Look"}
		change(&s)
		return s
	}
	clock := func(change func(*trigger.Spec)) trigger.Spec {
		s := trigger.Spec{Name: "x", Kind: trigger.Schedule, Cron: "0 2 * * *", Task: "Look"}
		change(&s)
		return s
	}
	for _, c := range []struct {
		name         string
		spec         trigger.Spec
		field        string
		line, column int
		says         string
	}{
		{"no kind", hook(func(s *trigger.Spec) { s.Kind = "hook" }), "kind", 0, 0, "webhook or schedule"},
		{"no source", hook(func(s *trigger.Spec) { s.Source = "" }), "source", 0, 0, "github, gitlab, standard or hmac"},
		{"an unknown source", hook(func(s *trigger.Spec) { s.Source = "gitea" }), "source", 0, 0, `"gitea" is unknown`},
		{"no secret", hook(func(s *trigger.Spec) { s.Secrets = nil }), "secret", 0, 0, "anybody could start tasks"},
		{"an empty secret", hook(func(s *trigger.Spec) { s.Secrets = []string{secret, " "} }), "secret", 0, 0, "A secret is empty"},
		{"a secret that was copied by halves", hook(func(s *trigger.Spec) { s.Source, s.Secrets = trigger.Standard, []string{"whsec_abc$"} }), "secret", 0, 0, "not base64"},
		{"a header where there is none", hook(func(s *trigger.Spec) { s.Header = "X-A" }), "header", 0, 0, "webhook of github has no header"},
		{"an impossible header", hook(func(s *trigger.Spec) { s.Source, s.Header = trigger.HMAC, "X A" }), "header", 0, 0, "no name of a header"},
		{"an impossible encoding", hook(func(s *trigger.Spec) { s.Source, s.Encoding = trigger.HMAC, "octal" }), "encoding", 0, 0, "hex or base64"},
		{"a webhook with times", hook(func(s *trigger.Spec) { s.Cron = "@daily" }), "cron", 0, 0, "A webhook has no cron"},
		{"no task", hook(func(s *trigger.Spec) { s.Task = " " }), "task", 0, 0, "has no task"},
		{"a template that does not end", hook(func(s *trigger.Spec) { s.Task = "Fix\n it {{.a" }), "task", 2, 5, "unclosed action"},
		{"a function that there is not", hook(func(s *trigger.Spec) { s.Task = `{{printf "%9999999d" 1}}` }), "task", 1, 3, "no function printf"},
		{"a function deep inside", hook(func(s *trigger.Spec) { s.Task = "a\nb{{if (eq .a (html .b))}}x{{end}}" }), "task", 2, 15, "no function html"},
		{"a template in a template", hook(func(s *trigger.Spec) { s.Task = `{{define "a"}}x{{template "a"}}{{end}}{{template "a"}}` }), "task", 1, 1, "defines no others"},
		{"a range in a range", hook(func(s *trigger.Spec) { s.Task = `{{range .a}}{{range .b}}x{{end}}{{end}}` }), "task", 1, 21, "no other range"},
		{"an endless template", hook(func(s *trigger.Spec) { s.Task = strings.Repeat("x", 20_000) }), "task", 0, 0, "16384 is the limit"},
		{"a key that is no template", hook(func(s *trigger.Spec) { s.Key = "{{end}}" }), "key", 1, 1, "unexpected {{end}}"},
		{"a condition that is none", hook(func(s *trigger.Spec) { s.When = "event.action = 'x'" }), "when", 1, 14, "not understood"},
		{"a condition about something else", hook(func(s *trigger.Spec) { s.When = "true &&\n action == 'x'" }), "when", 2, 2, "there is no action here. A condition knows event"},
		{"a condition with a typing error", hook(func(s *trigger.Spec) { s.When = "events.action == 'x'" }), "when", 1, 1, "did you mean event?"},
		{"a condition that is a number", hook(func(s *trigger.Spec) { s.When = "len(name)" }), "when", 1, 1, "bool"},
		{"a type that never fits", hook(func(s *trigger.Spec) { s.When = "name == 3" }), "when", 1, 6, "mismatched types"},
		{"a condition that grows", hook(func(s *trigger.Spec) { s.When = "event.a + event.b == 'x'" }), "when", 1, 9, "one is written out"},
		{"a condition with a range", hook(func(s *trigger.Spec) { s.When = "any(1..100000000, # == 1)" }), "when", 1, 6, "makes no ranges"},
		{"a pattern from outside", hook(func(s *trigger.Spec) { s.When = "name matches event.pattern" }), "when", 1, 6, "pattern"},
		{"a function that is off", hook(func(s *trigger.Spec) { s.When = "reduce(event.a, #acc + 1) == 1" }), "when", 1, 1, "reduce"},
		{"a list made of lists", hook(func(s *trigger.Spec) { s.When = "len(map(event.a, event)) == 1" }), "when", 1, 5, "map"},
		{"an endless condition", hook(func(s *trigger.Spec) { s.When = strings.Repeat("(", 9000) }), "when", 0, 0, "8192 is the limit"},
		{"a deep condition", hook(func(s *trigger.Spec) { s.When = strings.Repeat("(", 8000) }), "when", 0, 0, ""},
		{"no times", clock(func(s *trigger.Spec) { s.Cron = "" }), "cron", 0, 0, "has no times"},
		{"times that are none", clock(func(s *trigger.Spec) { s.Cron = "61 * * * *" }), "cron", 0, 0, "above maximum"},
		{"four fields", clock(func(s *trigger.Spec) { s.Cron = "* * * *" }), "cron", 0, 0, "5 fields"},
		{"a day that never comes", clock(func(s *trigger.Spec) { s.Cron = "0 0 31 2 *" }), "cron", 0, 0, "never comes"},
		{"an interval", clock(func(s *trigger.Spec) { s.Cron = "@every 1h" }), "cron", 0, 0, "begins anew"},
		{"a zone among the times", clock(func(s *trigger.Spec) { s.Cron = "TZ=Europe/Berlin 0 2 * * *" }), "cron", 0, 0, "Write it as timezone"},
		{"an unknown policy", clock(func(s *trigger.Spec) { s.Overlap = "wait" }), "overlap", 0, 0, "skip or queue or allow"},
		{"an unknown way with missed times", clock(func(s *trigger.Spec) { s.Missed = "all" }), "missed", 0, 0, "skip or run"},
		{"a schedule with a secret", clock(func(s *trigger.Spec) { s.Secrets = []string{secret} }), "secret", 0, 0, "A schedule has no secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := trigger.Compile(c.spec)
			if len(problems) == 0 {
				t.Fatal("nothing was told")
			}
			p := problems[0]
			if p.Field != c.field || c.says != "" && (p.Line != c.line || p.Column != c.column) || !strings.Contains(p.Message, c.says) {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestSecretsThatCanBeGuessedAreNoticed(t *testing.T) {
	for secret, weak := range map[string]bool{"short": true, "sixteen letters!": false, "whsec_c2hvcnQ=": true, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": false} {
		if got := (trigger.Spec{Secrets: []string{"a secret of good length", secret}}).Weak(); got != weak {
			t.Errorf("%s: %t", secret, got)
		}
	}
}

// Clocks that are turned neither lose a time nor run it twice; what runs every hour runs
// in every hour that there really is.
func TestTimesWhereClocksAreTurned(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	spring, autumn := time.Date(2026, 3, 8, 0, 30, 0, 0, zone), time.Date(2026, 11, 1, 0, 30, 0, 0, zone)
	for _, c := range []struct {
		name, cron string
		from       time.Time
		want       []string
	}{
		{"forward: half past two does not exist and runs an hour later", "30 2 * * *", spring, []string{"08 03:30 -04", "09 02:30 -04", "10 02:30 -04"}},
		{"forward: three o'clock is once", "0 2,3 * * *", spring, []string{"08 03:00 -04", "09 02:00 -04", "09 03:00 -04"}},
		{"forward: every hour that there is", "0 * * * *", spring, []string{"08 01:00 -05", "08 03:00 -04", "08 04:00 -04"}},
		{"back: half past one is twice and runs once", "30 1 * * *", autumn, []string{"01 01:30 -04", "02 01:30 -05", "03 01:30 -05"}},
		{"back: each hour runs, also the one that is twice", "0 * * * *", autumn, []string{"01 01:00 -04", "01 01:00 -05", "01 02:00 -05"}},
		{"back: hours that are written out are once", "*/30 1-2 * * *", autumn, []string{"01 01:00 -04", "01 01:30 -04", "01 02:00 -05", "01 02:30 -05"}},
		{"back: two o'clock", "0 2 * * *", autumn, []string{"01 02:00 -05", "02 02:00 -05"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := made(t, trigger.Spec{Kind: trigger.Schedule, Cron: c.cron, Zone: zone})
			var got []string
			for _, at := range s.Next(c.from, len(c.want)) {
				got = append(got, at.Format("02 15:04 -07"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	sydney, err := time.LoadLocation("Australia/Lord_Howe") // by half an hour
	if err != nil {
		t.Fatal(err)
	}
	s := made(t, trigger.Spec{Kind: trigger.Schedule, Cron: "45 1 * * *", Zone: sydney})
	if got := s.Next(time.Date(2026, 4, 4, 12, 0, 0, 0, sydney), 2); len(got) != 2 || got[1].Sub(got[0]) < 24*time.Hour {
		t.Errorf("a time that comes twice within half an hour: %v", got)
	}
}

func TestTimesThatPassed(t *testing.T) {
	nightly := made(t, trigger.Spec{Kind: trigger.Schedule, Cron: "0 2 * * *"})
	minutely := made(t, trigger.Spec{Kind: trigger.Schedule, Cron: "* * * * *"})
	yearly := made(t, trigger.Spec{Kind: trigger.Schedule, Cron: "@yearly"})
	at := func(s string) time.Time {
		when, err := time.Parse("2006-01-02 15:04:05", s)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		name       string
		s          *trigger.Trigger
		since, now string
		latest     string
		passed     int
	}{
		{"none yet", nightly, "2026-07-01 02:00:00", "2026-07-02 01:59:59", "", 0},
		{"just now", nightly, "2026-07-01 02:00:00", "2026-07-02 02:00:00", "2026-07-02 02:00:00", 1},
		{"three nights", nightly, "2026-07-01 02:00:00", "2026-07-04 11:00:00", "2026-07-04 02:00:00", 3},
		{"nothing twice", nightly, "2026-07-02 02:00:00", "2026-07-02 02:00:01", "", 0},
		{"a clock that went back", nightly, "2026-07-02 02:00:00", "2026-07-01 12:00:00", "", 0},
		{"a year of minutes", minutely, "2025-07-01 00:00:00", "2026-07-01 00:00:30", "2026-07-01 00:00:00", -1},
		{"years", yearly, "2020-07-01 00:00:00", "2026-07-01 00:00:30", "2026-01-01 00:00:00", 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			latest, passed := c.s.Due(at(c.since), at(c.now))
			if c.passed >= 0 && passed != c.passed || c.passed < 0 && passed < 2000 {
				t.Errorf("%d passed, want %d", passed, c.passed)
			}
			if c.latest == "" != latest.IsZero() || c.latest != "" && !latest.Equal(at(c.latest)) {
				t.Errorf("latest %s, want %s", latest, c.latest)
			}
		})
	}
}
