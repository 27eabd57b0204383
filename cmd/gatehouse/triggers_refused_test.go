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
	anyPlace(t, func(t *testing.T, database string) {
		p := newPlace(t, database, hookTeam)
		n := p.start(p.config, "")
		page := func() string { return n.page(n.browser("dora"), "/triggers/ci-failed") }
		p.person("dora", people.Operator)
		if text := page(); !strings.Contains(text, "never called") || strings.Contains(text, "refused:") {
			t.Errorf("a trigger that was never called says\n%s", text)
		}
		for i, signature := range []string{"", "sha256=" + strings.Repeat("0", 64), "sha256=" + strings.Repeat("0", 64)} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+"/hooks/ci-failed", strings.NewReader(`{"action":"completed"}`))
			p.must(err)
			if placetest.Signed(req, "d1", nil); i == 0 {
				req.Header.Del("X-Hub-Signature-256")
			} else {
				req.Header.Set("X-Hub-Signature-256", signature)
			}
			res, err := http.DefaultClient.Do(req)
			p.must(err)
			p.must(res.Body.Close())
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
			out, code := p.cli(n, "triggers", "deliveries", "ci-failed")
			if code != 0 || !strings.Contains(out, "3 calls refused: the signature is wrong, or too old, last") || !strings.Contains(out, "from 127.0.0.1") || !strings.Contains(out, "Nothing came.") {
				t.Errorf("the command line says, code %d:\n%s", code, out)
			}
		}
		says() // at once, not at the next minute
		n.stop()
		n = p.start(p.config, "")
		says()
		n.stop()
	})
}
