package main

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
)

// A sender has the wrong secret. The trigger's page and the command line say so: how often,
// when last, what was wrong and from where, also after a restart; the calls themselves are
// not kept, and the sender is told nothing.
func TestRefusedCallsShowOnTheirTrigger(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, hookTeam)
		n := p.Start(p.Config, "")
		page := func() string { return n.Page(n.Browser("dora"), "/triggers/ci-failed") }
		p.Person("dora", people.Operator)
		if text := page(); !strings.Contains(text, "never called") || strings.Contains(text, "refused:") {
			t.Errorf("a trigger that was never called says\n%s", text)
		}
		for i, signature := range []string{"", "sha256=" + strings.Repeat("0", 64), "sha256=" + strings.Repeat("0", 64)} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.URL+"/hooks/ci-failed", strings.NewReader(`{"action":"completed"}`))
			p.Must(err)
			if placetest.Signed(req, "d1", nil); i == 0 {
				req.Header.Del("X-Hub-Signature-256")
			} else {
				req.Header.Set("X-Hub-Signature-256", signature)
			}
			res, err := http.DefaultClient.Do(req)
			p.Must(err)
			p.Must(res.Body.Close())
			if res.StatusCode != http.StatusUnauthorized {
				t.Errorf("answered %d", res.StatusCode)
			}
		}
		says := func() {
			t.Helper()
			for _, words := range []string{"3 calls refused", "the signature is wrong", "127.0.0.1", "refuses calls"} {
				if text := page(); !strings.Contains(text, words) {
					t.Errorf("the page does not say %q:\n%s", words, text)
				}
			}
			out, code := p.Cli(n, "triggers", "deliveries", "ci-failed")
			if code != 0 || !strings.Contains(out, "3 calls refused: the signature is wrong, or too old, last") || !strings.Contains(out, "from 127.0.0.1") || !strings.Contains(out, "Nothing came.") {
				t.Errorf("the command line says, code %d:\n%s", code, out)
			}
		}
		says() // at once, not at the next minute
		n.Stop()
		n = p.Start(p.Config, "")
		says()
		n.Stop()
	})
}
