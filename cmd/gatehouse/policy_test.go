package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/passive"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// rulesOfBefore are the rules under which the past requests were asked.
const rulesOfBefore = `
groups: {maintainers: [ann, bob]}
approval:
  rules:
    - {name: docs, when: "all(patch.files, .path endsWith '.md')", need: 0}
    - {name: rest, when: "true", need: 1}
`

// rulesOnTrial ask two for the core and nobody for small fixes of tests.
const rulesOnTrial = `
groups: {maintainers: [ann, bob]}
approval:
  rules:
    - {name: docs, when: "all(patch.files, .path endsWith '.md')", need: 0}
    - {name: core, when: "any(patch.files, .path startsWith 'core/')", need: 2, from: [maintainers]}
    - {name: tests, when: "all(patch.files, .path endsWith '_test.go') && patch.lines < 10", need: 0}
    - {name: rest, when: "true", need: 1}
`

// record asks n requests as the past has them: documents, the core, tests and others,
// in turn.
func record(p *placetest.Place, n int) {
	p.Helper()
	cfg, err := config.Load(p.Config, os.LookupEnv)
	p.Must(err)
	gate := approval.New(approval.Options{Store: p.Store, Users: p.Store, Logger: slog.New(slog.DiscardHandler),
		Diff: func(_ context.Context, _ approval.Request) (string, error) { return "", nil }},
		approval.Config{Policy: cfg.Policy, Groups: cfg.Groups, Channels: []approval.Channel{passive.Inbox}})
	paths := []string{"docs/use.md", "core/queue.go", "upload/retry_test.go", "upload/retry.go"}
	for i := range n {
		now := time.Now().UTC()
		d := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, now), To: "coder", Text: fmt.Sprint("Change ", i), State: orchestrator.Checking,
			Attempt: 1, HopKey: "root", Repository: "app", CreatedAt: now, Since: now}
		t := orchestrator.Task{ID: orchestrator.NewID(orchestrator.TaskPrefix, now), RootID: d.ID, Agent: "coder", Text: d.Text, Repository: "app", Requester: "ci", CreatedAt: now}
		d.TaskID = t.ID
		_, _, err := p.Store.NewTask(p.Context(), t, func(tx orchestrator.Tx) error { return tx.Insert(p.Context(), &d) })
		p.Must(err)
		stored, err := p.Store.Delegation(p.Context(), d.ID)
		p.Must(err)
		p.Must(gate.Ask(p.Context(), stored, orchestrator.Proposal{Repository: "app", Deliver: "merge", Agent: "coder", Base: patch.Base{Branch: "main"},
			Digest: fmt.Sprintf("%064x", i), Review: &patch.Review{Files: []patch.File{{Path: paths[i%len(paths)], Status: patch.Modified, Added: 3}}, Added: 3}}))
	}
}

// Other rules are tried on 500 recorded requests: the table has each that would have gone
// otherwise, and a rule with a typing error is named by its place in the file.
func TestOtherRulesAreTriedOnPastRequests(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, rulesOfBefore)
		record(p, 500)
		n := p.Start(p.Config, placetest.Idle)
		next := filepath.Join(p.Dir, "next.yaml")
		p.Must(os.WriteFile(next, []byte(rulesOnTrial), 0o600))

		out, code := p.Cli(n, "policy", "test", "--rules", next)
		if code != 0 || !strings.Contains(out, "500 requests in 30d: 250 would go otherwise (125 stricter, 125 looser, 0 decided by others).") {
			t.Fatalf("exit %d:\n%.2000s", code, out)
		}
		if strings.Count(out, "rest: 1 of all approvers") != 250 || strings.Count(out, "core: 2 of maintainers") != 125 || strings.Count(out, "tests: passes") != 125 {
			t.Errorf("the table:\n%.2000s", out)
		}
		if out, code = p.Cli(n, "policy", "test"); code != 0 || !strings.Contains(out, "500 requests in 30d: 0 would go otherwise") {
			t.Errorf("the rules in force: exit %d:\n%.500s", code, out)
		}
		// The list alone will do: the server knows the groups.
		p.Must(os.WriteFile(next, []byte("- {name: core, when: \"any(patch.files, .path startsWith 'core/')\", need: 2, from: [maintainers]}\n"), 0o600))
		if out, code = p.Cli(n, "policy", "test", "--rules", next); code != 0 || !strings.Contains(out, "core: 2 of maintainers") {
			t.Errorf("a bare list: exit %d:\n%.500s", code, out)
		}
		p.Must(os.WriteFile(next, []byte("rules: [{name: core, when: 'true', from: [leads]}]\n"), 0o600))
		if out, code = p.Cli(n, "policy", "test", "--rules", next); code != 2 || !strings.Contains(out, `There is no group "leads"`) {
			t.Errorf("a group that the server does not know: exit %d:\n%.500s", code, out)
		}
		p.Must(os.WriteFile(next, []byte(strings.Replace(rulesOnTrial, "patch.lines <", "patch.lnes <", 1)), 0o600))
		if out, code = p.Cli(n, "policy", "test", "--rules", next); code != 2 || !strings.Contains(out, "next.yaml:7:") || !strings.Contains(out, "there is no patch.lnes. Did you mean patch.lines?") {
			t.Errorf("a typing error: exit %d:\n%s", code, out)
		}
	})
}
