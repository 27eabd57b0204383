package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gatehouse/orchestrator/record/event"
)

// configurations are the events of the history about the configuration.
func (p *place) configurations() []event.Event {
	p.Helper()
	all, err := p.store.Events(p.Context(), event.System, 0, 1000)
	p.must(err)
	return slices.DeleteFunc(all, func(e event.Event) bool { return e.Type != event.ConfigurationChanged })
}

// TestChangesOfTheConfigurationAreInTheHistory: who changed the rules, when and how is the
// first question of an auditor. A start with the same file says nothing; no secret is told.
func TestChangesOfTheConfigurationAreInTheHistory(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		p := newPlace(t, database, settled("", ""))
		key := filepath.Join(p.dir, "key")
		p.must(os.WriteFile(key, []byte("a-secret-of-ours\n"), 0o600))
		n := p.start(p.config, "")
		n.stop()
		n = p.start(p.config, "")
		if all := p.configurations(); len(all) != 1 || all[0].Actor != "system" {
			t.Fatalf("two starts with one file left %v", all)
		}
		n.reload(settled(", protect: [\"core/**\"]", "approval: {four_eyes: false}\nproviders: {openai: {api_key: \"${file:"+key+"}\"}}\n"))
		all := p.configurations()
		if len(all) != 2 || all[1].Actor != "ann" {
			t.Fatalf("the reload of ann left %v", all)
		}
		var d struct {
			Was, Is string
			Changes []event.ConfiguredChange
		}
		p.must(json.Unmarshal(all[1].Data, &d))
		for _, want := range []event.ConfiguredChange{{Key: "approval.four_eyes", Was: "true", Is: "false"}, {Key: "repositories.app.protect", Is: "core/**"}} {
			if !slices.Contains(d.Changes, want) {
				t.Errorf("%v is not in %v", want, d.Changes)
			}
		}
		if d.Was == "" || d.Is == "" || d.Was == d.Is || strings.Contains(string(all[1].Data), "a-secret") {
			t.Errorf("the event is %s", all[1].Data)
		}
		p.configure("one", settled("", ""))
		p.must(n.cmd.Process.Signal(syscall.SIGHUP))
		p.until("the third configuration", func() bool { return len(p.configurations()) >= 3 })
		if all := p.configurations(); len(all) != 3 || !strings.Contains(string(all[2].Data), "SIGHUP") {
			t.Errorf("SIGHUP left %v", all)
		}
		var page strings.Builder
		if code, err := n.text("/audit?list=events&q=type:configuration.changed", n.asker, &page); err != nil || code != http.StatusOK {
			t.Errorf("the audit page: %d %v", code, err)
		}
	})
}
