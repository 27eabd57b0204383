package house

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// The tests here compare lists that must agree although they stand in different rooms: what
// the domain declares, and what pages, the command line and the README say about it. They
// read the source and run nothing.

// has fails for each of want that is not in got. of and in say what the lists are.
func has(t *testing.T, of string, want []string, in string, got []string) {
	t.Helper()
	if len(want) == 0 || len(got) == 0 {
		t.Fatalf("%s: %d, %s: %d; the lists are not where this test looks for them", of, len(want), in, len(got))
	}
	for _, one := range want {
		if !slices.Contains(got, one) {
			t.Errorf("%s: %q is missing in %s", of, one, in)
		}
	}
}

// same is has both ways.
func same(t *testing.T, of string, want []string, in string, got []string) {
	t.Helper()
	has(t, of, want, in, got)
	has(t, in, got, of, want)
}

func TestListsOfStatesAgree(t *testing.T) {
	s := newSources(t)
	works, requests := s.typed("orchestrator", "State"), s.typed("approval", "State")
	both := slices.Concat(works, requests)
	same(t, "states of delegations", works, "orchestrator.States", s.table("orchestrator", "States"))
	same(t, "states of requests", requests, "handlers.RequestStates", s.table("handlers", "RequestStates"))
	some := []string{"pushed"} // stands for some of those that landed
	same(t, "states of requests", slices.Concat(requests, some), "the history's filter state:", s.table("orchestrator/record/history", "fixed", "requests", "state"))
	several := []string{"live", "wrong"} // stand for several
	same(t, "states of delegations", slices.Concat(works, several), "the history's filter state:", s.table("orchestrator/record/history", "fixed", "delegations", "state"))
	breakers := s.typed("orchestrator/guard", "BreakerState")
	has(t, "states", slices.Concat(both, breakers), "the badges", keys(s.rows("orchestrator/badge", "looks")))
	ended := s.table("orchestrator", "Ended")
	alive := slices.DeleteFunc(slices.Clone(works), func(state string) bool { return slices.Contains(ended, state) })
	same(t, "live states", append(alive, "pending", "approved"), "the badges that live", s.table("orchestrator/badge", "Live"))
	same(t, "states of deliveries", s.typed("orchestrator/trigger", "DeliveryState"), "trigger.States", s.table("orchestrator/trigger", "States"))
}

// passive is the name of a channel with nothing to send.
func passive(s *sources, which string) []string {
	return s.texts("approval/passive", func(name string, _ sourceConst) bool { return name == which })
}

// channelsOf are the channels of approval by their names, those that only tell apart.
func channelsOf(s *sources) (decide, tell []string) {
	folders, err := filepath.Glob(filepath.Join(s.root, "approval", "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	tell, decide = passive(s, "Inbox"), passive(s, "Chat")
	for _, folder := range folders {
		dir, _ := filepath.Rel(s.root, folder)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() || dir == "approval/approvaltest" {
			continue
		}
		switch name := s.named(dir, "Name"); {
		case slices.Contains(name, "webhook"):
			tell = append(tell, name...)
		default:
			decide = append(decide, name...)
		}
	}
	return append(decide, s.returned("handlers", "Channel")...), tell
}

func TestListsOfChannelsAgree(t *testing.T) {
	s := newSources(t)
	decide, tell := channelsOf(s)
	const of = "channels in which people decide"
	var deciding, cards, told []string
	for _, c := range origin.Deciding() {
		deciding = append(deciding, string(c))
		if c.Title() == string(c) || c.Said() == "" || c.Shown() == "" || c.Read() == "" || c.HasCards() && c.About() == "" {
			t.Errorf("the table of channels does not say all of %s", c)
		}
	}
	for _, c := range origin.Cards() {
		cards = append(cards, string(c))
	}
	for _, name := range tell {
		if c := origin.Channel(name); c.Title() == name || c.About() == "" {
			told = append(told, name)
		}
	}
	same(t, of, decide, "the table of channels", deciding)
	same(t, "channels of Settings", slices.DeleteFunc(slices.Clone(decide), func(one string) bool {
		return slices.Contains(s.returned("handlers", "Channel"), one)
	}), "those with cards", cards)
	if len(told) > 0 || len(tell) == 0 || origin.Rule.Said() != "" || origin.Rule.Title() != "A rule" {
		t.Errorf("the table of channels does not say what these are for: %q", told)
	}
	came := slices.Concat(s.returned("handlers", "Channel"), passive(s, "Chat"), s.typed("orchestrator/trigger", "Kind"))
	same(t, "how a task comes in", came, "the suggestions of via:", s.table("handlers", "Suggestions", "via"))
}

func TestListsOfWarningsAgree(t *testing.T) {
	s := newSources(t)
	table := s.table("orchestrator/patch", "warningWords")
	looked := slices.DeleteFunc(s.given("orchestrator/patch", "add", 0), func(one string) bool { return strings.ToLower(one) != one }) // the others are trailers
	has(t, "warnings that a review looks for", slices.Concat(looked, s.named("orchestrator/patch", "Risk"), s.named("orchestrator/patch", "Warn")), "patch's warningWords", table)
	var warnings, notes []string
	for _, dir := range []string{"orchestrator", "orchestrator/patch", "approval", "approval/policy"} {
		warnings = slices.Concat(warnings, s.coded(dir, "Warning"), s.given(dir, "WithWarning", 1))
		notes = append(notes, s.coded(dir, "Note")...)
	}
	careful := s.named("approval", "Careful") // notes that settings make warnings of
	reasons := slices.Concat(table, warnings, careful, s.given("approval", "appendOnce", 1))
	all := slices.Concat(reasons, notes, s.named("approval", "TickUnviewed"))
	same(t, "warnings and notes", all, "views' warningNames", keys(s.rows("views", "warningNames")))
	titles := slices.Concat(table, s.cases("orchestrator/patch", "WarningTitle"), s.named("approval", "ReasonCut")) // which cards say in their own words
	has(t, "what makes a request careful", reasons, "patch.WarningTitle", titles)
}

func TestListsOfCodesAgree(t *testing.T) {
	s := newSources(t)
	readme := s.read("README.md")
	refusals := s.named("orchestrator/guard", "Code")
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| [a-z_]+ \\|.*\\| `([a-z_]+)` \\|[^|]*\\|$").FindAllStringSubmatch(section(readme, "## What stops a hand-over"), -1) {
		told = append(told, row[1])
	}
	same(t, "codes of guards", refusals, "the README's table", told)
	same(t, "codes of guards", refusals, "the series of refusals", s.table("handlers/metrics", "refusalCodes"))
	has(t, "codes of guards", refusals, "the suggestions of code:", s.table("handlers", "Suggestions", "code"))

	// Only models read it; only the log has it.
	unseen := []string{"action_refused", "stuck"}
	failures := slices.DeleteFunc(slices.Concat(s.named("orchestrator/agent", "Code"), s.named("orchestrator/patch", "Code")),
		func(code string) bool { return slices.Contains(unseen, code) })
	has(t, "codes of failures", failures, "the series of failures", s.table("handlers/metrics", "failureCodes"))
	known := slices.Concat(refusals, failures, unseen)
	has(t, "the series of failures", s.table("handlers/metrics", "failureCodes"), "the codes of failures", known)
	has(t, "the suggestions of code:", s.table("handlers", "Suggestions", "code"), "the codes", known)

	ends := []string{"rejected", "expired"} // nextStep says what to do by their state
	steps := slices.Concat(keys(s.rows("views", "steps")), ends)
	same(t, "codes of refusals and failures", slices.DeleteFunc(known, func(code string) bool { return slices.Contains(unseen, code) }), "views' steps", steps)

	answers := slices.Concat(s.named("orchestrator", "Code"), s.named("handlers", "Code"), s.named("orchestrator/patch", "Source"))
	has(t, "codes of the API", answers, "the statuses of web", keys(s.rows("handlers", "statuses")))
}

// TestListsOfEventsAgree: whoever names a type names one that the table has. That each of the
// table has its sentence is shown beside it.
func TestListsOfEventsAgree(t *testing.T) {
	s := newSources(t)
	dotted := regexp.MustCompile(`^(task|delegation|message|tool|context|usage|approval|patch|breaker|configuration)\.[a-z_]+$`)
	all := s.typed("orchestrator/record/event", "Type")
	if len(all) < 60 {
		t.Fatalf("%d types of events; the constants are not where this test looks for them", len(all))
	}
	for _, dir := range []string{"orchestrator", "orchestrator/store", "orchestrator/trigger/intake", "approval", "approval/policy", "handlers", "handlers/task", "handlers/stream", "cmd/gatehouse", "cmd/gatehouse/cli"} {
		if elsewhere := s.typed(dir, "Type"); len(elsewhere) > 0 {
			t.Errorf("%s has types of events of its own: %q", dir, elsewhere)
		}
	}
	passing := []string{string(event.MessageDelta), string(event.Gap)} // shown and never stored
	for _, kind := range event.Stored() {
		passing = append(passing, string(kind))
	}
	same(t, "the types of events", all, "the suggestions of type:, and what is not stored", passing)
	for _, dir := range []string{"cmd/gatehouse", "cmd/gatehouse/cli", "web/client", "handlers/stream"} {
		for _, one := range s.cases(dir, "") {
			if dotted.MatchString(one) && !slices.Contains(all, one) {
				t.Errorf("%s knows an event %s, which there is not", dir, one)
			}
		}
	}
	scripts, err := filepath.Glob(filepath.Join(s.root, "static", "*.js"))
	if err != nil || len(scripts) == 0 {
		t.Fatal(len(scripts), err)
	}
	for _, script := range scripts {
		name := strings.TrimPrefix(script, s.root+"/")
		for _, quoted := range regexp.MustCompile(`'[a-z]+\.[a-z_]+'`).FindAllString(s.read(name), -1) {
			if one := strings.Trim(quoted, "'"); dotted.MatchString(one) && !slices.Contains(all, one) {
				t.Errorf("%s knows an event %s, which there is not", name, one)
			}
		}
	}
}

// TestListsOfVerdictsAgree: each verdict has its words wherever somebody reads what was decided.
func TestListsOfVerdictsAgree(t *testing.T) {
	s := newSources(t)
	const of = "verdicts"
	all := s.typed("approval", "Verdict")
	renew := s.texts("approval", func(name string, _ sourceConst) bool { return name == "Renew" }) // stored as what it stands for
	has(t, "what stands for another verdict", renew, of, all)
	stored := slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(renew, one) })
	for function, dir := range map[string]string{"Did": "orchestrator/badge", "noun": "approval", "VerdictWord": "views"} {
		same(t, of, stored, dir+"'s "+function, s.cases(dir, function))
	}
	same(t, of, stored, "views' verdictWords", keys(s.rows("views/evidence", "verdictWords")))
	same(t, of, stored, "the command line's words", keys(s.rows("cmd/gatehouse/cli", "said")))
	same(t, "verdicts and what ends without one", append(slices.Clone(stored), "expired"), "the figures of channels", s.cases("orchestrator/record/insight", "Channels"))
	has(t, "verdicts that a page takes", all, "what it answers", keys(s.rows("handlers", "said")))
}

// TestListsOfChoicesAgree: the tag of a key that takes one of a few words is what the configuration checks and what config
// schema offers. Where its room has these words, too, they are the same, and a key that is only offered is checked there.
func TestListsOfChoicesAgree(t *testing.T) {
	s := newSources(t)
	checked, offered := map[string][]string{}, map[string][]string{}
	choicesIn(reflect.TypeFor[config.File](), "", checked, offered)
	checks := s.checks("cmd/gatehouse/internal/config", "oneOf")
	if len(checks) < 4 || len(checked) < 12 || len(offered) < 12 {
		t.Fatalf("%d checks, %d and %d keys; the lists are not where this test looks for them", len(checks), len(checked), len(offered))
	}
	named := func(dir string, names ...string) []string {
		return s.texts(dir, func(name string, _ sourceConst) bool { return slices.Contains(names, name) })
	}
	encodings := []string{"hex", "base64"}
	rooms := map[string][]string{
		"repositories.*.deliver":        s.named("orchestrator/patch", "Deliver"),
		"approval.on_no":                named("approval/policy", "TellCaller", "EndTask"),
		"approval.handovers.*.on_no":    named("approval/policy", "TellCaller", "EndTask"),
		"approval.careful":              s.named("approval", "Careful"),
		"channels.webhooks.*.events":    named("approval/webhook", "AllRequests", "AllTasks", "TaskCompleted", "TaskFailed", "TaskCancelled"),
		"channels.webhooks.*.format":    named("approval/webhook", "Slack", "Standard"),
		"providers.*.kind":              named("orchestrator/agent/llm/model/providers", "Anthropic", "OpenAI"),
		"agents.*.role":                 s.typed("orchestrator/agent", "Role"),
		"agents.*.network":              s.named("orchestrator/agent", "Network"),
		"agents.*.sandbox":              s.named("orchestrator/agent", "Sandbox"),
		"engine.agent_defaults.network": s.named("orchestrator/agent", "Network"),
		"triggers.*.complexity":         named("orchestrator/budget", "Simple", "Medium", "Complex", "Auto"),
		"triggers.*.kind":               s.typed("orchestrator/trigger", "Kind"),
		"triggers.*.source":             s.typed("orchestrator/trigger", "Source"),
		"triggers.*.encoding":           encodings,
		"triggers.*.overlap":            s.named("orchestrator/trigger", "Overlap"),
		"triggers.*.missed":             s.named("orchestrator/trigger", "Missed"),
	}
	same(t, "kinds that are run", keys(s.rows("cmd/gatehouse", "kinds")), "config.Kinds", config.Kinds())
	for key, list := range rooms {
		same(t, "what "+key+" takes", list, "the file's tag", slices.Concat(checked[key], offered[key]))
	}
	for _, c := range checks {
		fits := func(key string) bool { return c.is(key) && alike(c.words, offered[key]) }
		if c.at != "engine.tiers.*" && !slices.ContainsFunc(keys(offered), fits) { // there words are keys, and no values
			t.Errorf("%s takes %q; no tag offers these words there", c.at, c.words)
		}
	}
	for key, words := range offered {
		fits := func(c check) bool { return c.is(key) && alike(c.words, words) }
		if rooms[key] == nil && !slices.ContainsFunc(checks, fits) {
			t.Errorf("the tag of %s offers %q; no check of the configuration takes these words there", key, words)
		}
	}
}

// choicesIn lists the words that the tags of a type name, by key: those that are checked by them, and those that are
// only offered.
func choicesIn(of reflect.Type, at string, checked, offered map[string][]string) {
	switch of.Kind() {
	case reflect.Pointer:
		choicesIn(of.Elem(), at, checked, offered)
	case reflect.Map, reflect.Slice:
		if of.Elem() != reflect.TypeFor[config.Step]() { // a step has steps, and none of them takes a few words
			choicesIn(of.Elem(), at+".*", checked, offered)
		}
	case reflect.Struct:
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			key := strings.TrimPrefix(at+"."+name, ".")
			if words := strings.Fields(f.Tag.Get("words")); len(words) > 0 {
				checked[key] = words
			}
			if words := strings.Fields(f.Tag.Get("offers")); len(words) > 0 {
				offered[key] = words
			}
			choicesIn(f.Type, key, checked, offered)
		}
	}
}

// alike reports whether two lists have the same words, in any order.
func alike(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// section is the part of a text below a heading, up to the next one.
func section(text, heading string) string {
	_, rest, _ := strings.Cut(text, heading+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}
