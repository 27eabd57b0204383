package main

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// TestAFileWithAVeryLongNameIsStillDecided: a database's index holds no name of 3,000 bytes.
// A comment on a line of such a file is refused with what to do, on both databases alike,
// and the change can be approved and lands.
func TestAFileWithAVeryLongNameIsStillDecided(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		team := strings.ReplaceAll(settled("", ""), "mkdir -p core; cat > core/note.txt",
			"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do d=$(head -c 4000 /dev/urandom | tr -dc A-Za-z0-9 | head -c 200); mkdir $d; cd $d; done; cat > note.txt")
		p := placetest.New(t, database, team)
		n := p.Start(p.Config, "")
		r := p.Asked(n.Send("coder", "app", "deep"))
		path := r.Revision.Files[0].Path
		if len(path) < 3000 || approval.RiskOf(r).Level != approval.Plain {
			t.Fatalf("%d bytes of name, %+v", len(path), approval.RiskOf(r))
		}
		res, err := n.Browser("bob").PostForm(n.URL+"/approvals/"+r.ID+"/drafts", url.Values{"do": {"save"}, "path": {path}, "side": {"R"}, "line": {"1"},
			"revision": {"1"}, "at": {"F1R1"}, "text": {"Why?"}})
		p.Must(err)
		page, err := io.ReadAll(res.Body)
		p.Must(err)
		p.Must(res.Body.Close())
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(string(page), "Write it into the comment of your verdict.") {
			t.Errorf("a comment on it: %s", res.Status)
		}
		if code, why := yes(n, n.Approver, r); code != http.StatusOK {
			t.Fatalf("the yes: %d %+v", code, why)
		}
		p.Until("the landing", func() bool { return p.Root(r.TaskID).State == orchestrator.Completed })
		n.Stop()
	})
}
