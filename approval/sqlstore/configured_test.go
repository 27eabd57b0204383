package sqlstore_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator/record/event"
)

var configuredTests = map[string]func(*Suite){
	"rules of before come back by a word, not by a start": rulesOfBefore,
	"the same settings count, whatever is a rule in them": otherVersions,
	"what is sealed is not told":                          sealedSettings,
	"what was recorded is read once":                      readOnce,
}

// configured are settings of which the rule says how many must agree.
func configured(need string) []event.Configured {
	return []event.Configured{{Key: "engine.workers", Value: "2"}, {Key: "approval.need", Value: need, Rule: true}}
}

// need is what the rule in force says.
func (s *Suite) need() string {
	s.Helper()
	t, err := s.Store.Configuration(s.ctx)
	s.must(err)
	for _, v := range t.Settings {
		if v.Key == "approval.need" {
			return v.Value
		}
	}
	return ""
}

// changes are the events about the configuration.
func (s *Suite) changes() []event.Event {
	s.Helper()
	all, err := s.Store.Events(s.ctx, event.System, 0, 100)
	s.must(err)
	return slices.DeleteFunc(all, func(e event.Event) bool { return e.Type != event.ConfigurationChanged })
}

func rulesOfBefore(s *Suite) {
	two := s.open("two")
	takes := func(st *sqlstore.Store, node, how, need string, counts bool) {
		s.Helper()
		got, err := st.RecordConfiguration(s.ctx, event.Taken{Actor: "system", How: how, Node: node}, configured(need))
		if err != nil || got != counts {
			s.Fatalf("%s takes need %s by %s: counts %t, %v", node, need, how, got, err)
		}
	}
	in := func(need string, events int) {
		s.Helper()
		if got, n := s.need(), len(s.changes()); got != need || n != events {
			s.Errorf("in force is need %s after %d events, want %s after %d", got, n, need, events)
		}
	}
	takes(s.Store, "one", event.AtStart, "1", true)
	takes(two, "two", event.AtStart, "2", true) // new rules may come by a start
	in("2", 2)
	takes(s.Store, "one", event.AtStart, "1", false)
	in("2", 2)
	takes(s.Store, "one", "SIGHUP", "1", true)
	in("1", 3)
	if e := s.changes()[2]; !strings.Contains(string(e.Data), `"as_of":"2026-07-01T12:00:00Z"`) {
		s.Errorf("the event does not say that these were in force before: %s", e.Data)
	}
	takes(two, "two", event.AtStart, "2", false)
	s.must(s.Store.DropNode(s.ctx, "one", time.Time{})) // it has ended, and nobody works by what is in force
	takes(two, "two", event.AtStart, "2", true)
	in("2", 4)
	takes(two, "two", event.AtStart, "1", true) // alone: going back is legal
	in("1", 5)
	if s.Store.Dialect() == "SQLite" { // elsewhere it is the database's clock that has to go by
		takes(s.Store, "one", event.AtStart, "2", false)
		s.Clock.Add(31 * time.Second)
		takes(s.Store, "one", event.AtStart, "2", true) // the other was killed
	}
}

// otherVersions: nodes of two versions work beside each other, and one calls more of the same
// settings a rule. Each may start again and again, and nothing has changed.
func otherVersions(s *Suite) {
	more := configured("1")
	more[0].Rule = true
	for i, settings := range [][]event.Configured{configured("1"), more, configured("1"), more} {
		counts, err := s.Store.RecordConfiguration(s.ctx, event.Taken{Actor: "system", How: event.AtStart, Node: []string{"one", "two"}[i%2]}, settings)
		if err != nil || !counts {
			s.Errorf("start %d: counts %t, %v", i+1, counts, err)
		}
	}
	if n := len(s.changes()); n != 1 {
		s.Errorf("%d events", n)
	}
}

func sealedSettings(s *Suite) {
	take := func(settings ...event.Configured) {
		s.Helper()
		_, err := s.Store.RecordConfiguration(s.ctx, event.Taken{Actor: "system", How: "reload", Node: "one"}, settings)
		s.must(err)
	}
	const path, checks = "repositories.app.path", "repositories.app.checks"
	take(event.Configured{Key: path, Value: "https://host/of-before", Rule: true})
	take(event.Configured{Key: path, Value: "sha256:1", Rule: true, Sealed: true}, event.Configured{Key: checks, Value: "sha256:2", Rule: true, Sealed: true})
	take(event.Configured{Key: path, Value: "sha256:3", Rule: true, Sealed: true})
	want := [][]event.ConfiguredChange{{{Key: checks, Is: "•••"}, {Key: path, Was: "•••", Is: "•••"}}, {{Key: path, Was: "•••", Is: "•••"}, {Key: checks, Was: "•••"}}}
	for i, e := range s.changes()[1:] {
		var d struct{ Changes []event.ConfiguredChange }
		s.must(json.Unmarshal(e.Data, &d))
		if !slices.Equal(d.Changes, want[i]) {
			s.Errorf("told %+v, want %+v", d.Changes, want[i])
		}
	}
}

func readOnce(s *Suite) {
	read := func() *event.Configured {
		s.Helper()
		t, err := s.Store.Configuration(s.ctx)
		s.must(err)
		return &t.Settings[0]
	}
	take := func(need string) {
		s.Helper()
		_, err := s.open("two").RecordConfiguration(s.ctx, event.Taken{Actor: "system", How: "reload", Node: "two"}, configured(need))
		s.must(err)
	}
	take("1")
	first := read()
	if read() != first {
		s.Error("nothing has changed, and it was decoded again")
	}
	take("2")
	if read() == first || s.need() != "2" {
		s.Errorf("another node has changed it, and what is known is need %s", s.need())
	}
}
