package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// A copy that was made while the server works has what was there, and can be served.
func TestACopyIsMadeWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, decideTeam)
		n := p.Start(p.Config, "")
		task := n.Send("coder", "app", "copy")
		p.Asked(task)
		file := filepath.Join(p.Dir, "copy")
		out, code := p.Cli(n, "--config", p.Config, "backup", file)
		if code != 0 || !strings.Contains(out, "has a copy of the database") {
			t.Fatalf("exit %d: %s", code, out)
		}
		if out, code := p.Cli(n, "--config", p.Config, "backup", file); code != 1 || !strings.Contains(out, "is there already") {
			t.Errorf("the same file again: exit %d: %s", code, out)
		}
		if out, code := p.Cli(n, "--config", p.Config, "backup", filepath.Join(p.Dir, "no", "such", "folder")); code != 1 {
			t.Errorf("a folder that is not there: exit %d: %s", code, out)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the copy: %v, %v", info, err)
		}
		n.Stop()
		if !strings.HasPrefix(database, "sqlite:") {
			head, err := os.ReadFile(file)
			p.Must(err)
			if !strings.HasPrefix(string(head), "PGDMP") {
				t.Errorf("the copy is no archive of pg_dump: %.20q", head)
			}
			return
		}
		path, _ := p.Configure("copy-of-it", strings.ReplaceAll(decideTeam, "MARK", p.Mark))
		text, err := os.ReadFile(path)
		p.Must(err)
		p.Must(os.WriteFile(path, []byte(strings.Replace(string(text), database, "sqlite:"+file, 1)), 0o600))
		n = p.Start(path, "")
		if code, err := n.Call("GET", "/api/v1/approvals?task_id="+task, p.Approver, nil, nil); err != nil || code != 200 {
			t.Fatalf("the copy is not served: %d, %v", code, err)
		}
		var d struct{ State orchestrator.State }
		if _, err := n.Call("GET", "/api/v1/delegations/"+task, p.Asker, nil, &d); err != nil || d.State != orchestrator.AwaitingApproval {
			t.Errorf("the task in the copy: %+v, %v", d, err)
		}
		n.Stop()
	})
}
