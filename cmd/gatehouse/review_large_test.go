package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
)

// largeTeam changes a hundred thousand lines of one file, adds many files and one line of
// four megabytes.
const largeTeam = `
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    command:
      - sh
      - -ceu
      - |
        seq -f 'line %.0f is another now' 1 50000 > big.txt
        mkdir -p many
        i=0; while [ $i -lt 400 ]; do echo "file $i" > many/$i.txt; i=$((i+1)); done
        head -c 4000000 /dev/zero | tr '\0' x > web.js
        echo 'Large.'
`

func TestAHugeChangeIsReadInPages(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), largeTeam)
	var old strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&old, "line %d is as before\n", i+1)
	}
	p.Must(os.WriteFile(filepath.Join(p.Repo, "big.txt"), []byte(old.String()), 0o600))
	placetest.Git(t, p.Repo, "add", "-A")
	placetest.Git(t, p.Repo, "commit", "-q", "-m", "much to change")
	n := p.Start(p.Config, "")
	r := n.Asked(n.Send("coder", "", "everything"))
	bob := n.Browser("bob")
	address := "/approvals/" + r.ID
	read := func(query string, words ...string) string {
		t.Helper()
		var took time.Duration
		body := ""
		for range 2 {
			start := time.Now()
			body = n.Page(bob, address+query)
			took = time.Since(start)
		}
		t.Logf("%-40s %7d bytes in %s; the aim is 1 s", query, len(body), took.Round(time.Millisecond))
		for _, w := range words {
			if !strings.Contains(body, w) {
				t.Errorf("%s lacks %.60q", query, w)
			}
		}
		return body
	}
	first := read("", "Page 1 of 201", "402 files", "web.js", "399.txt", "The file list is complete")
	if len(first) > 3<<20 {
		t.Errorf("the first page has %d bytes", len(first))
	}
	read("?page=150")
	last := read("?page=201", "show 64 kB more")
	if len(last) > 3<<20 {
		t.Errorf("the last page has %d bytes", len(last))
	}
	read("?find=line+49999+is+another", "1 line with", "page=")
	read("?find=not+there", "No line of the diff")
	read("?page=201&more=F402R1&to=65536", strings.Repeat("x", 65_000), "to=131072")
	read("?part=head")
	if one := read("?file=big.txt&ctx=5000&page=2", "Page 2 of 200"); len(one) > 3<<20 {
		t.Errorf("a page of one file has %d bytes", len(one))
	}
}
