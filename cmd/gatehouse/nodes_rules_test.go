package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store/storetest"
)

// TestANodeWithOlderRulesDecidesNothing: ann has made the rules stricter on one node, and
// the other still has the file of before, by which mallory lands her own change alone. It
// counts no yes and lands nothing, also not what was approved before, until it has the
// rules of today; then nobody's right of before is left.
func TestANodeWithOlderRulesDecidesNothing(t *testing.T) {
	t.Parallel()
	loose := strings.ReplaceAll(settled("", "approval: {four_eyes: false}"), "cleo, dora", "mallory")
	strict := settled("", `approval: {rules: [{name: core, when: "true", need: 1, from: [maintainers]}]}`)
	p := newPlace(t, storetest.Postgres(t), loose)
	older, _ := p.configure("two", loose)
	mallory, cleo := p.person("mallory", people.Approver, people.Operator), p.person("cleo", people.Approver)
	inTheWay := filepath.Join(p.repo, "core/note.txt")
	p.must(os.MkdirAll(filepath.Dir(inTheWay), 0o700))
	p.must(os.WriteFile(inTheWay, []byte("in the way"), 0o600))
	one, two := p.start(p.config, ""), p.start(older, "")
	hers := func(text string) (string, approval.Request) {
		var s struct{ ID string }
		code, err := two.call(http.MethodPost, "/api/v1/tasks", mallory, map[string]any{"agent": "coder", "text": text, "repository": "app"}, &s)
		if p.must(err); code != http.StatusAccepted {
			t.Fatalf("sending %s: %d", text, code)
		}
		return s.ID, p.asked(s.ID)
	}
	before, r := hers("before")
	if code, why := two.yes(mallory, r); code != http.StatusOK {
		t.Fatalf("her yes under the rules of before: %d %+v", code, why)
	}
	p.until("the landing to wait", func() bool { return p.root(before).Work.Problem != "" })
	one.reload(strict)
	one.stop()
	since, r := hers("since")
	const differ = " They differ in approval.four_eyes, approval.rules, approval.rules[core], groups.maintainers. " // and nobody's name
	if code, why := two.yes(mallory, r); code != http.StatusConflict || !strings.Contains(why.detail, "Other rules were taken") ||
		!strings.Contains(why.detail, differ) || strings.Contains(why.detail, "mallory") || strings.Contains(why.detail, "cleo") {
		t.Errorf("her yes on the node with the rules of before: %d %+v", code, why)
	}
	p.must(os.RemoveAll(filepath.Dir(inTheWay)))
	soon := func() { // else it looks again in some seconds
		if code, err := two.call(http.MethodPost, "/api/v1/delegations/"+before+"/retry", p.asker, nil, nil); err != nil || code >= http.StatusBadRequest && code != http.StatusConflict {
			t.Fatalf("trying again: %d, %v", code, err)
		}
	}
	soon()
	p.until("the landing to wait for the rules", func() bool { return strings.Contains(p.root(before).Work.Problem, "Other rules were taken") })
	if merges := git(t, p.repo, "log", "--merges", "--format=%H", "main"); merges != "" {
		t.Fatalf("it landed: %s", merges)
	}
	p.configure("two", strict)
	if code, err := two.call(http.MethodPost, "/api/v1/config/reload", p.asker, nil, nil); err != nil || code != http.StatusOK {
		t.Fatalf("the rules of today: %d, %v", code, err)
	}
	soon()
	p.asked(before)
	for _, task := range []string{before, since} {
		if code, why := two.yes(mallory, p.asked(task)); code != http.StatusForbidden {
			t.Errorf("her yes under the rules of today: %d %+v", code, why)
		}
	}
	if code, why := two.yes(cleo, p.asked(before)); code != http.StatusOK {
		t.Fatalf("the yes of a maintainer: %d %+v", code, why)
	}
	p.until("the landing", func() bool { return p.root(before).State == orchestrator.Completed })
	two.stop()
}

// TestANodeWithOlderRulesAsksBeforeItHandsOn: since today a person is asked before coder
// works. The node that has not heard of it asks, too, and takes no yes; the other one does.
func TestANodeWithOlderRulesAsksBeforeItHandsOn(t *testing.T) {
	t.Parallel()
	before, _, _ := strings.Cut(strings.Replace(handoverTeam, "    ask_first: true\n", "", 1), "approval:")
	since, _, _ := strings.Cut(handoverTeam, "approval:")
	p := newPlace(t, storetest.Postgres(t), since)
	older, _ := p.configure("two", before)
	two := p.start(older, "")
	one := p.start(p.config, idle) // it answers, and is killed with the test
	task := two.send("kik", "app", "deploy")
	r := p.asked(task)
	if code, why := two.yes(p.approver, r); code != http.StatusConflict || p.ran() != 0 {
		t.Errorf("the yes on the node with the rules of before: %d %+v after %d runs", code, why, p.ran())
	}
	if code, why := one.yes(p.approver, r); code != http.StatusOK {
		t.Fatalf("the yes on the other: %d %+v", code, why)
	}
	p.until("the end", func() bool { return p.root(task).State == orchestrator.Completed })
	if p.ran() != 1 {
		t.Errorf("coder ran %d times", p.ran())
	}
	two.stop()
}
