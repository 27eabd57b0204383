package web_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
)

// An admin who wants one more agent sees which of the known programs this machine has, what
// to paste for one of them, and whether its key is there. Nobody else learns that.
func TestTheAgentsPageSaysHowToAddOne(t *testing.T) {
	h := open(t)
	folder := t.TempDir()
	h.must(os.WriteFile(filepath.Join(folder, "codex"), []byte("#!/bin/sh\n"), 0o755))
	t.Setenv("PATH", folder)
	t.Setenv("CODEX_API_KEY", "codex-secret")
	b := h.signIn(h.user("ann", people.Admin))
	for path, want := range map[string][]string{
		"/agents": {">Add an agent<", "The server finds it: <code>" + folder + "/codex", "  codex:\n    kind: command\n    repository: &#34;app&#34;\n",
			`href="/agents?add=claude#add"`, "has <code>CODEX_API_KEY</code>", "gatehouse config check", "gatehouse send codex"},
		"/agents?add=aider": {"does not find <code>aider</code>", "--message-file", "Its key is missing: set <code>ANTHROPIC_API_KEY</code>", "aider --help"},
		"/agents?add=<x>":   {"  claude:\n"},
	} {
		a := b.get(path)
		for _, w := range want {
			if a.StatusCode != http.StatusOK || !strings.Contains(a.body, w) {
				t.Errorf("%s is %d and lacks %q", path, a.StatusCode, w)
			}
		}
		if strings.Contains(a.body, "codex-secret") || strings.Contains(a.body, "<x>") {
			t.Errorf("%s has a secret or foreign markup", path)
		}
	}
	if a := h.signIn(h.user("dora", people.Operator)).get("/agents?add=codex"); a.StatusCode != http.StatusOK || (strings.Contains(a.body, folder) || strings.Contains(a.body, "gatehouse.yaml")) {
		t.Errorf("an operator sees %d and what the server has\n%.2000s", a.StatusCode, a.body)
	}
}

// What an agent did last and how often it failed today stand on its card and its page.
func TestAnAgentsFailuresOfTheDayAreShown(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	b := h.signIn(dora)
	if a := b.get("/agents"); !strings.Contains(a.body, "has not worked yet") || strings.Contains(a.body, "failed today") {
		t.Errorf("before any work: %.2000s", a.body)
	}
	_, _, child := h.failedTask(dora)
	_, err := h.store.CountInsight(h.ctx, 1000)
	h.must(err)
	for path, want := range map[string]string{"/agents": "1 failed today", "/agents/" + child.To: "agent%3Acoder+state%3Afailed"} {
		if a := b.get(path); !strings.Contains(a.body, want) || !strings.Contains(a.body, "last run failed:") || !strings.Contains(a.body, "exit code 3: claude: not signed in") {
			t.Errorf("%s lacks %q or the reason: %.3000s", path, want, a.body)
		}
	}
	if list := b.get("/delegations?filter=agent:coder+state:failed"); list.StatusCode != http.StatusOK || !strings.Contains(list.body, "not signed in") {
		t.Errorf("the list behind the figure: %d", list.StatusCode)
	}
}
