package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
)

const twoPlaces = `
repositories:
  handbook: {path: "REPO", branch: main}
  ledger: {path: "DIR/ledger.git", branch: main}
agents:
  anna: {kind: command, repository: ledger, env: {PLACE: MARK}, command: [sh, -c, "cat; echo x >> x.txt"]}
  lead: {kind: workflow, steps: [{id: a, agent: anna, task: "{{.Task}}"}]}
  any:  {kind: command, env: {PLACE: MARK}, command: [sh, -c, "cat; echo x >> x.txt"]}
`

// TestTheRepositoryThatIsPickedIsWhereWorkIs: a task for another repository than the
// agent's is refused at every door with both names, and forms say where an agent works.
func TestTheRepositoryThatIsPickedIsWhereWorkIs(t *testing.T) {
	t.Parallel()
	s := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), twoPlaces)
	placetest.Git(t, "", "clone", "-q", "--bare", s.Repo, filepath.Join(s.Dir, "ledger.git"))
	n := s.Start(s.Config, "")
	says := "anna works in ledger, and this task is for handbook. Leave the repository out, or send the task to an agent that works in handbook."

	var wrong problem
	if status, err := n.Call(http.MethodPost, "/api/v1/tasks", s.Asker, map[string]any{"agent": "anna", "text": "x", "repository": "handbook"}, &wrong); err != nil || status != http.StatusBadRequest || wrong.Detail != says {
		t.Errorf("the API: %d %+v, %v", status, wrong, err)
	}
	if out, code := s.Cli(n, "--token", s.Asker, "send", "anna", "x", "--repo", "handbook"); code == 0 || !strings.Contains(out, says) {
		t.Errorf("the command line: %d %s", code, out)
	}
	ann := n.Browser("ann")
	page := n.Page(ann, "/")
	for _, want := range []string{"anna · works in ledger", `<option value="lead" selected>`, "the agent's own, or none"} {
		if !strings.Contains(page, want) {
			t.Errorf("the form lacks %q", want)
		}
	}
	for _, path := range []string{"/delegations", "/chat"} {
		res, err := ann.PostForm(n.URL+path, url.Values{"agent": {"anna"}, "text": {"x"}, "repository": {"handbook"}})
		s.Must(err)
		if _ = res.Body.Close(); res.StatusCode != http.StatusBadRequest {
			t.Errorf("the form of %s: %d", path, res.StatusCode)
		}
	}
	for _, c := range []struct{ agent, repository, works string }{{"anna", "", "ledger"}, {"anna", "ledger", "ledger"}, {"any", "handbook", "handbook"}} {
		if got := s.Asked(n.Send(c.agent, c.repository, c.agent+c.repository)).Repository; got != c.works {
			t.Errorf("%s for %q works in %s, want %s", c.agent, c.repository, got, c.works)
		}
	}
}
