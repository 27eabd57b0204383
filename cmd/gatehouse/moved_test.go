package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// movingTeam is an agent that does what its task says, under the contract's own rules.
const movingTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  mover:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -e]
groups: {maintainers: [cleo, dora]}
approval:
  rules:
    - {name: docs, when: "all(patch.files, .path endsWith '.md') && patch.lines < 50", need: 0}
    - {name: core, when: "any(patch.files, .path startsWith 'core/')", need: 2, from: [maintainers]}
    - {name: rest, when: "true", need: 1}
`

// moving is a place with a core of 120 files and one document.
func moving(t *testing.T, database string) (*placetest.Place, *placetest.Node) {
	t.Helper()
	p := placetest.New(t, database, movingTeam)
	p.Person("cleo", people.Approver)
	p.Person("dora", people.Approver)
	files := map[string]string{"docs/a.md": "# A\n\nWhat A is for.\n", "core/auth.go": "package core\n\n" + strings.Repeat("// Every request is checked.\n", 12) + "func allowed(u string) bool { return u == \"admin\" }\n"}
	for i := range 120 {
		files[fmt.Sprintf("core/f%03d.go", i)] = fmt.Sprintf("package core\n\n// f%03d is one of many.\nfunc f%03d() int { return %d }\n", i, i, i)
	}
	for name, text := range files {
		path := filepath.Join(p.Repo, name)
		p.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		p.Must(os.WriteFile(path, []byte(text), 0o600))
	}
	placetest.Git(t, p.Repo, "add", "-A")
	placetest.Git(t, p.Repo, "commit", "-q", "-m", "the core")
	return p, p.Start(p.Config, "")
}

// does sends the agent what to do.
func does(n *placetest.Node, lines ...string) string {
	n.Helper()
	var s wire.Submitted
	status, err := n.Call(http.MethodPost, "/api/v1/tasks", n.Asker, wire.Submission{Agent: "mover", Text: strings.Join(lines, "\n"), Repository: "app"}, &s)
	n.Must(err)
	if status != http.StatusAccepted {
		n.Fatalf("the task: status %d", status)
	}
	return s.ID
}

// passed waits until a task has landed by a rule, asked nobody.
func passed(p *placetest.Place, task, rule string) {
	p.Helper()
	p.Until("the end of what a rule passes", func() bool { return p.Root(task).State.Ended() })
	all := p.Requests(task)
	if len(all) != 1 || all[0].State != approval.Landed || len(all[0].Decisions) != 1 || all[0].Decisions[0].User != "rule:"+rule {
		p.Fatalf("it did not pass by the rule %s: %+v", rule, all)
	}
}

// warned lists the warnings of a request: code and path.
func warned(r approval.Request) string {
	var all []string
	for _, w := range r.Revision.Warnings {
		all = append(all, strings.TrimSpace(w.Code+" "+w.Path))
	}
	return strings.Join(all, ", ")
}

// TestRulesSeeWhereAFileWas: with the rules of the contract 120 files of the core that are
// renamed to documents are no documents, and a file that leaves the core is the core's
// (issue 6, row 1). A document that changes still passes by its rule.
func TestRulesSeeWhereAFileWas(t *testing.T) {
	t.Parallel()
	p, n := moving(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"))
	passed(p, does(n, `echo more >> docs/a.md`, `echo '# B' > docs/b.md`), "docs")

	r := p.Asked(does(n, `for f in core/f*.go; do mv "$f" "${f%.go}.md"; done`))
	if r.Rule.Name != "core" || r.Rule.Need != 2 || approval.RiskOf(r).Level != approval.Careful {
		t.Errorf("120 files of the core as documents: rule %+v, risk %+v", r.Rule, approval.RiskOf(r))
	}
	if got := warned(r); !strings.Contains(got, "mass_deletion") || strings.Count(got, "renamed_unseen core/f") != 120 {
		t.Errorf("warnings: %.300s", got)
	}
	r = p.Asked(does(n, `mkdir other`, `sed 's/return .*/return true }/' core/auth.go > other/auth.go`, `rm core/auth.go`))
	if r.Rule.Name != "core" || r.Rule.Need != 2 || warned(r) != "renamed_unseen other/auth.go" {
		t.Errorf("a file that leaves the core: rule %+v, warnings %s", r.Rule, warned(r))
	}
	if status, _ := n.Decide(r); status != http.StatusForbidden {
		t.Errorf("the yes of a stranger to the core was answered with %d", status)
	}
	r = p.Asked(does(n, `mv docs/a.md docs/c.md`))
	if r.Rule.Name != "rest" || len(r.Revision.Notes) == 0 || !strings.Contains(fmt.Sprint(r.Revision.Notes), `Rule "docs" passes no change with a warning`) {
		t.Errorf("a document that is moved: rule %+v, notes %+v", r.Rule, r.Revision.Notes)
	}
	r = p.Asked(does(n, `rm docs/a.md`))
	if r.Rule.Name != "rest" || !strings.Contains(fmt.Sprint(r.Revision.Notes), `Rule "docs" passes no change that removes a file`) {
		t.Errorf("a document that is removed: rule %+v, notes %+v", r.Rule, r.Revision.Notes)
	}
	r = p.Asked(does(n, `cp core/auth.go docs/auth.md`))
	if r.Rule.Name != "rest" || warned(r) != "renamed_unseen docs/auth.md, copy docs/auth.md" {
		t.Errorf("a copy of a file that stays: rule %+v, warnings %s", r.Rule, warned(r))
	}
	refusesAliases(n)
	n.Stop()
}

// refusesAliases: neither a choice of files nor an edit makes a tree in which one name could
// become another's on some machine, and a refused one changes nothing.
func refusesAliases(n *placetest.Node) {
	n.Helper()
	dora := token(n.Place, "dora")
	r := n.Asked(does(n, `git mv core/auth.go core/AUTH.go 2>/dev/null || mv core/auth.go core/AUTH.go`)) // as a whole that is one file
	if len(r.Revision.Files) == 0 || r.Revision.Files[0].Path != "core/AUTH.go" {
		n.Fatalf("files %+v", r.Revision.Files)
	}
	for what, body := range map[string]map[string]any{
		"an edit beside a file":    {"verdict": "edit", "edits": []map[string]any{{"path": "core/AUTH.go", "text": "package core\n"}, {"path": "Docs/a.md", "text": "# A\n"}}},
		"an edit with a backslash": {"verdict": "edit", "edits": []map[string]any{{"path": `core\auth.go`, "text": "package core\n"}}},
		"a diff beside a file":     {"verdict": "edit", "patch": "--- /dev/null\n+++ b/DOCS/A.md\n@@ -0,0 +1 @@\n+A\n"},
	} {
		body["revision"] = r.Revision.N
		if status, p := casts(n, dora, r, body); status != http.StatusUnprocessableEntity && status != http.StatusConflict && status != http.StatusBadRequest || p.Code != patch.CodePathAlias {
			n.Errorf("%s: %d %+v", what, status, p)
		}
	}
	r = n.Asked(does(n, `rm core/auth.go`, `echo 'package auth // anew' > core/AUTH.go`))
	if status, p := casts(n, dora, r, map[string]any{"verdict": "approve", "revision": r.Revision.N, "ticked": approval.Ticks(r), "files": []string{"core/AUTH.go"}}); status == http.StatusOK || !strings.Contains(p.Detail, "core/AUTH.go: it reads as core/auth.go") {
		n.Errorf("a choice that keeps both: %d %+v", status, p)
	}
	if now := n.Asked(r.TaskID); now.Version != r.Version || len(now.Decisions) != 0 {
		n.Errorf("a refused verdict changed the request: %+v", now)
	}
}

// TestWhatARulePassedIsUnseenElsewhere: code that a rule let into a document is asked about
// where it would run, and every text of the request shows all of it (issue 6, row 2). Where
// a person has approved it once it may come back without a warning.
func TestWhatARulePassedIsUnseenElsewhere(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p, n := moving(t, database)
		const code = `func init() { exec.Command("sh", "-c", payload).Run() }`
		passed(p, does(n, `printf 'package main\n\n`+code+`\n' > docs/x.md`), "docs")

		task := does(n, `mkdir src`, `mv docs/x.md src/init.go`)
		r := p.Asked(task)
		f := r.Revision.Files[0]
		if len(r.Revision.Files) != 1 || f.OldPath != "docs/x.md" || f.Similarity != 100 || !f.Unseen || f.SeenHere {
			t.Errorf("files: %+v", r.Revision.Files)
		}
		if warned(r) != "renamed_unseen src/init.go" || approval.RiskOf(r).Level != approval.Careful || r.Rule.Name != "rest" {
			t.Errorf("rule %s, warnings %s", r.Rule.Name, warned(r))
		}
		var diff bytes.Buffer
		if status, err := n.Text("/api/v1/approvals/"+r.ID+"/patch", n.Approver, &diff); err != nil || status != http.StatusOK {
			t.Fatalf("the patch: %d, %v", status, err)
		}
		shown, exit := p.Cli(n, "review", r.ID)
		for where, text := range map[string]string{"API": diff.String(), "review": shown} {
			if !strings.Contains(text, "+"+code) || !strings.Contains(text, "-"+code) || strings.Contains(text, "similarity index") {
				t.Errorf("%s does not show the content at both places:\n%s", where, text)
			}
		}
		if exit != 0 || !strings.Contains(shown, "nobody has approved this content at this place: src/init.go") {
			t.Errorf("review does not warn: exit %d\n%s", exit, shown)
		}
		lands := func(task string) {
			t.Helper()
			if root := n.Through(task); root.State != orchestrator.Completed {
				t.Fatalf("the task is %s: %+v", root.State, root.Error)
			}
		}
		lands(task)

		back := does(n, `mkdir -p docs`, `mv src/init.go docs/x.md`)
		if got := warned(p.Asked(back)); got != "renamed_unseen docs/x.md" {
			t.Errorf("only a rule has passed it there: %s", got)
		}
		lands(back)
		again := p.Asked(does(n, `mkdir src`, `mv docs/x.md src/init.go`))
		if f := again.Revision.Files[0]; warned(again) != "" || f.Unseen || !f.SeenHere {
			t.Errorf("bob approved it there: warnings %s, file %+v", warned(again), f)
		}
		const approved, nobody = "A person approved this content at this place before.", "Nobody has approved this content at this place."
		if page := n.Page(n.Browser("cleo"), "/approvals/"+again.ID); !strings.Contains(page, approved) || strings.Contains(page, nobody) {
			t.Error("the page does not say that a person approved it there")
		}
		n.Stop()
	})
}
