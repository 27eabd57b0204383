package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator"
)

// A copy that was made while the server works has what was there, and can be served.
func TestACopyIsMadeWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, database string) {
		p := newPlace(t, database, decideTeam)
		n := p.start(p.config, "")
		task := n.send("coder", "app", "copy")
		p.asked(task)
		file := filepath.Join(p.dir, "copy")
		out, code := p.cli(n, "--config", p.config, "backup", file)
		if code != 0 || !strings.Contains(out, "has a copy of the database") {
			t.Fatalf("exit %d: %s", code, out)
		}
		if out, code := p.cli(n, "--config", p.config, "backup", file); code != 1 || !strings.Contains(out, "is there already") {
			t.Errorf("the same file again: exit %d: %s", code, out)
		}
		if out, code := p.cli(n, "--config", p.config, "backup", filepath.Join(p.dir, "no", "such", "folder")); code != 1 {
			t.Errorf("a folder that is not there: exit %d: %s", code, out)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the copy: %v, %v", info, err)
		}
		n.stop()
		if !strings.HasPrefix(database, "sqlite:") {
			head, err := os.ReadFile(file)
			p.must(err)
			if !strings.HasPrefix(string(head), "PGDMP") {
				t.Errorf("the copy is no archive of pg_dump: %.20q", head)
			}
			return
		}
		path, _ := p.configure("copy-of-it", strings.ReplaceAll(decideTeam, "MARK", p.mark))
		text, err := os.ReadFile(path)
		p.must(err)
		p.must(os.WriteFile(path, []byte(strings.Replace(string(text), database, "sqlite:"+file, 1)), 0o600))
		n = p.start(path, "")
		if code, err := n.call("GET", "/api/v1/approvals?task_id="+task, p.approver, nil, nil); err != nil || code != 200 {
			t.Fatalf("the copy is not served: %d, %v", code, err)
		}
		var d struct{ State orchestrator.State }
		if _, err := n.call("GET", "/api/v1/delegations/"+task, p.asker, nil, &d); err != nil || d.State != orchestrator.AwaitingApproval {
			t.Errorf("the task in the copy: %+v, %v", d, err)
		}
		n.stop()
	})
}
