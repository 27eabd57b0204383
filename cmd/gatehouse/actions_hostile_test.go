package main

import (
	"bytes"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// A run cannot say yes to what it asks, nor give itself anything: not with its token, not by a
// form from elsewhere, and a button of the input before an edit decides nothing about the one
// after it, however often it is pressed.
func TestARunCannotAllowItself(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, waitingTeam+`
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`)
		dora := g.Person("dora", people.Approver)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1001)
		root := n.Send("coder", "", "one")
		g.Until("the run", func() bool { return g.Exists("env") })
		env, err := os.ReadFile(filepath.Join(g.Dir, "env"))
		g.Must(err)
		token := ""
		for line := range strings.Lines(string(env)) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(line), "GATEHOUSE_TOKEN="); ok {
				token = v
			}
		}
		permit := exec.CommandContext(t.Context(), "gatehouse", "permit", "--tool", "Bash", "--input", `{"command":"npm publish"}`)
		permit.Env = strings.Split(strings.TrimSpace(string(env)), "\n")
		var said bytes.Buffer
		permit.Stdout = &said
		g.Must(permit.Start())
		r := g.Asked(root)
		card := g.Shown(r)
		old := ""
		for _, row := range card.Buttons {
			for _, b := range row {
				if b.Text == "Approve" {
					old = b.Data
				}
			}
		}
		for _, body := range []map[string]any{{"verdict": "approve"}, {"verdict": "approve", "scope": "task"}, {"verdict": "edit", "input": map[string]any{"command": "ls"}}, {"verdict": "reject"}} {
			if code, p := casts(n, token, r, body); code != http.StatusForbidden {
				t.Errorf("the run's own %v: %d %+v", body, code, p)
			}
		}
		for what, call := range map[string][2]string{"grants": {http.MethodDelete, "/api/v1/grants/gnt_01m85qm19p6n5bq8fv8b7n1ayq"}, "requests": {http.MethodGet, "/api/v1/approvals"}, "pages": {http.MethodGet, "/approvals/" + r.ID}} {
			if code, err := n.Call(call[0], call[1], token, nil, nil); err != nil || code < 400 && what != "pages" {
				t.Errorf("%s with the run's token: %d, %v", what, code, err)
			}
		}
		for name, body := range map[string]any{
			"no ref":       map[string]any{"action": map[string]any{"tool": "Bash", "input": map[string]any{}}},
			"two in one":   map[string]any{"ref": "x", "action": map[string]any{"tool": "Bash", "input": map[string]any{}}, "question": map[string]any{"text": "?"}},
			"by a name":    map[string]any{"ref": "x", "request_id": r.ID, "action": map[string]any{"tool": "Bash", "input": []int{}}},
			"a line break": map[string]any{"ref": "x", "action": map[string]any{"tool": "Bash\nBash", "input": map[string]any{}}},
		} {
			if code, err := n.Call(http.MethodPost, "/api/v1/asks", token, body, nil); err != nil || code != http.StatusBadRequest {
				t.Errorf("asked with %s: %d, %v", name, code, err)
			}
		}
		if code, err := n.Call(http.MethodPost, "/api/v1/asks", g.Approver, map[string]any{"ref": "x", "action": map[string]any{"tool": "Bash", "input": map[string]any{"command": "ls"}}}, nil); err != nil || code < 400 {
			t.Errorf("a person asks as a run: %d, %v", code, err)
		}
		form := url.Values{"verdict": {"approve"}, "digest": {r.Revision.Digest}, "revision": {"1"}, "scope": {"task"}}
		jar, err := cookiejar.New(nil)
		g.Must(err)
		bob := n.Browser("bob")
		for name, c := range map[string]*http.Client{"signed out": {Jar: jar}, "from elsewhere": bob} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL+"/approvals/"+r.ID+"/decision", strings.NewReader(form.Encode()))
			g.Must(err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", "https://evil.example")
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			res, err := c.Do(req)
			g.Must(err)
			g.Must(res.Body.Close())
			if name == "from elsewhere" && res.StatusCode != http.StatusForbidden {
				t.Errorf("a form %s: %s", name, res.Status)
			}
		}
		if now := g.Asked(root); now.ID != r.ID || len(now.Decisions) != 0 {
			t.Fatalf("it was decided: %+v", now.Decisions)
		}

		if code, p := casts(n, dora, r, map[string]any{"verdict": "edit", "input": map[string]any{"command": "npm publish --dry-run"}}); code != http.StatusOK {
			t.Fatalf("edited: %d %+v", code, p)
		}
		for range 3 {
			if said := g.Answer(g.Bot.PressData(placetest.Team, card.ID, old, g.Accounts["bob"])); strings.HasPrefix(said, "Approved") {
				t.Errorf("the old button: %q", said)
			}
		}
		next := g.Asked(root)
		if next.State != approval.Pending || next.Revision.N != 2 || len(next.Yes()) != 0 {
			t.Fatalf("after the old button: %+v", next)
		}
		// The digest of the one before does not pass with the number of this one, nor the other way round.
		for _, body := range []map[string]any{{"verdict": "approve", "digest": r.Revision.Digest, "revision": 2}, {"verdict": "approve", "digest": next.Revision.Digest, "revision": 1}} {
			if code, err := n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", g.Approver, body, nil); err != nil || code != http.StatusConflict {
				t.Errorf("%v: %d, %v", body, code, err)
			}
		}
		if code, p := casts(n, g.Approver, next, map[string]any{"verdict": "approve"}); code != http.StatusOK {
			t.Fatalf("approved: %d %+v", code, p)
		}
		g.Must(permit.Wait())
		if got := strings.TrimSpace(said.String()); got != `{"behavior":"allow","updatedInput":{"command":"npm publish --dry-run"}}` {
			t.Errorf("permit printed %s", got)
		}
		g.Touch("done")
		g.Until("the end", func() bool { return g.Root(root).State == orchestrator.Completed })
		if code, err := n.Call(http.MethodPost, "/api/v1/asks", token, map[string]any{"ref": "late", "action": map[string]any{"tool": "Bash", "input": map[string]any{"command": "ls"}}}, nil); err != nil || code < 400 {
			t.Errorf("a run that is over asks: %d, %v", code, err)
		}
	})
}
