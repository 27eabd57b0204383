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

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/record/event"
)

// configurations are the events of the history about the configuration.
func configurations(p *placetest.Place) []event.Event {
	p.Helper()
	all, err := p.Store.Events(p.Context(), event.System, 0, 1000)
	p.Must(err)
	return slices.DeleteFunc(all, func(e event.Event) bool { return e.Type != event.ConfigurationChanged })
}

// TestChangesOfTheConfigurationAreInTheHistory: who changed the rules, when and how is the
// first question of an auditor. A start with the same file says nothing; no secret is told.
func TestChangesOfTheConfigurationAreInTheHistory(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, settled("", ""))
		key := filepath.Join(p.Dir, "key")
		p.Must(os.WriteFile(key, []byte("a-secret-of-ours\n"), 0o600))
		n := p.Start(p.Config, "")
		n.Stop()
		n = p.Start(p.Config, "")
		if all := configurations(p); len(all) != 1 || all[0].Actor != "system" {
			t.Fatalf("two starts with one file left %v", all)
		}
		reload(n, settled(", protect: [\"core/**\"]", "approval: {four_eyes: false}\nproviders: {openai: {api_key: \"${file:"+key+"}\"}}\n"))
		all := configurations(p)
		if len(all) != 2 || all[1].Actor != "ann" {
			t.Fatalf("the reload of ann left %v", all)
		}
		var d struct {
			Was, Is string
			Changes []event.ConfiguredChange
		}
		p.Must(json.Unmarshal(all[1].Data, &d))
		for _, want := range []event.ConfiguredChange{{Key: "approval.four_eyes", Was: "true", Is: "false"}, {Key: "repositories.app.protect", Is: "core/**"}} {
			if !slices.Contains(d.Changes, want) {
				t.Errorf("%v is not in %v", want, d.Changes)
			}
		}
		if d.Was == "" || d.Is == "" || d.Was == d.Is || strings.Contains(string(all[1].Data), "a-secret") {
			t.Errorf("the event is %s", all[1].Data)
		}
		p.Configure("one", settled("", ""))
		p.Must(n.Cmd.Process.Signal(syscall.SIGHUP))
		p.Until("the third configuration", func() bool { return len(configurations(p)) >= 3 })
		if all := configurations(p); len(all) != 3 || !strings.Contains(string(all[2].Data), "SIGHUP") {
			t.Errorf("SIGHUP left %v", all)
		}
		var page strings.Builder
		if code, err := n.Text("/audit?list=events&q=type:configuration.changed", n.Asker, &page); err != nil || code != http.StatusOK {
			t.Errorf("the audit page: %d %v", code, err)
		}
	})
}
