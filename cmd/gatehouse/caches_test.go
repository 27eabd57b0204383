package main

import (
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
)

// cachedTeam are agents of which one leaves something for the checks of the others. The
// repository's check says what it finds, and leaves something itself: it runs what they wrote.
const cachedTeam = `
engine: {workers: 1}
repositories:
  app: {path: "REPO", branch: main, checks: ['cat "$GOCACHE/verdict" 2>/dev/null || echo nothing; cp verdict "$GOCACHE/verdict"']}
agents:
  evil: {kind: command, repository: app, command: [sh, -c, 'echo evil > verdict; echo evil > "$GOCACHE/verdict"; for f in DIR/one/caches/*/*/go-build/verdict "$HOME/.cache/verdict"; do echo evil > "$f"; done; echo done']}
  coder: {kind: command, repository: app, command: [sh, -c, 'cat "$GOCACHE/verdict" || echo coder > verdict; echo done'], delegates_to: [evil]}
  chief: {kind: command, repository: app, command: [sh, -c, 'if test -e "$XDG_CACHE_HOME/been"; then gatehouse delegate evil "Help"; fi; touch "$XDG_CACHE_HOME/been"; echo chief > verdict; echo done']}
approval: {four_eyes: false}
`

// Given an agent that writes whatever caches it reaches, then the checks of another's
// change, and of one that both wrote, find nothing of it; its own later checks do. Once it is
// out of the configuration, so are its caches, and those of checks of what it had a hand in.
func TestAChecksCachesAreThoseOfWhoWroteTheChange(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), cachedTeam)
	n := p.Start(p.Config, "")
	for i, step := range []struct{ agent, want string }{
		{"evil", "nothing"}, {"evil", "evil"}, {"coder", "nothing"}, {"coder", "coder"},
		{"chief", "nothing"}, {"chief", "nothing"}, {"chief", "chief"}, // alone, then with evil
	} {
		r := p.Asked(n.Send(step.agent, "app", step.agent+string(rune('a'+i))))
		checks := r.Revision.Checks
		if len(checks) != 1 || !checks[0].OK || strings.TrimSpace(checks[0].Output) != step.want {
			t.Errorf("step %d: the check of %s's change found %+v; want %s", i, step.agent, checks, step.want)
		}
	}
	var rest []string
	for line := range strings.Lines(cachedTeam) {
		if !strings.HasPrefix(line, "  evil:") {
			rest = append(rest, strings.Replace(line, ", delegates_to: [evil]", "", 1))
		}
	}
	cached := func(of string) int {
		found, err := filepath.Glob(filepath.Join(n.Dir, "one", "caches", "*", of))
		p.Must(err)
		return len(found)
	}
	if of := cached("*evil*"); of < 2 || cached("*") < of+4 {
		t.Fatalf("%d of %d folders of caches are evil's", of, cached("*"))
	}
	reload(n, strings.Join(rest, ""))
	p.Until("evil's caches are gone", func() bool { return cached("*evil*") == 0 })
	if of := cached("coder-*") + cached("chief-*"); of != 4 {
		t.Errorf("%d folders of the others' caches are left, want 4", of)
	}
}
