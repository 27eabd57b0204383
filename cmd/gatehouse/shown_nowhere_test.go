package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/web/wire"
)

// What `review` could not write, nobody has read: it is not remembered as shown, and the server
// does not book it as read.
func TestWhatReviewCouldNotWriteIsNotRead(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), `
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, repository: app, command: [sh, -c, 'seq 1 60000 > long.txt']}
`)
	n := p.Start(p.Config, "")
	r := p.Asked(n.Send("coder", "", "much"))
	shell := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir, "GATEHOUSE_URL=" + n.URL, "GATEHOUSE_TOKEN=" + p.Approver, "GORACE=" + placetest.NoSleep, "ID=" + r.ID}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out)
	}
	read := func() string {
		t.Helper()
		var a wire.Request
		if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, p.Asker, nil, &a); err != nil || code != http.StatusOK {
			t.Fatalf("the request: %d %v", code, err)
		}
		return a.Read.Text
	}
	for line, says := range map[string]string{
		`gatehouse review "$ID" >&-; echo "ended with $?"`:         "Standard output is closed or the null device, so nobody would see " + r.ID + ". Nothing was shown or remembered.\nended with 1\n",
		`gatehouse review "$ID" >/dev/null; echo "ended with $?"`:  "ended with 1\n",
		`gatehouse review "$ID" 2>/dev/null | head -2; echo "cut"`: "cut\n",
		`gatehouse review "$ID" >/dev/full; echo "ended with $?"`:  "ended with 1\n",
	} {
		if out := shell(line); !strings.HasSuffix(out, says) {
			t.Errorf("%s says\n%s", line, out)
		}
		if got := read(); strings.Contains(got, "whole") {
			t.Errorf("after %s the server says %q", line, got)
		}
		if out, code := p.Cli(n, "approve", r.ID); code == 0 || !strings.Contains(out, "You have not read "+r.ID+" here") {
			t.Fatalf("after %s a yes: exit %d\n%s", line, code, out)
		}
	}
	if got := len(p.Requests(r.TaskID, approval.Pending)); got != 1 {
		t.Fatalf("%d requests are pending", got)
	}
	if out := shell(`gatehouse review "$ID" | tail -1`); !strings.Contains(out, "approve: gatehouse approve") {
		t.Errorf("all of it ends with\n%s", out)
	}
	if got := read(); !strings.Contains(got, "on the command line by bob: whole") {
		t.Errorf("after all of it the server says %q", got)
	}
	if out, code := p.Cli(n, "approve", r.ID); code != 0 {
		t.Errorf("the yes to what was read: exit %d\n%s", code, out)
	}
	n.Stop()
}
