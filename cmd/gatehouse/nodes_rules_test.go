package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/console"
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

// TestANodeThatDoesNotComeUpTakesNoRules: what its file says would land a change that nobody
// approved, and the address that it wants is taken. The node that serves goes on by its own.
func TestANodeThatDoesNotComeUpTakesNoRules(t *testing.T) {
	t.Parallel()
	strict := settled("", `approval: {rules: [{name: core, when: "true", need: 1, from: [maintainers]}]}`)
	p := newPlace(t, storetest.Postgres(t), strict)
	cleo := p.person("cleo", people.Approver)
	one := p.start(p.config, "")
	taken := "server: {listen: \"" + strings.TrimPrefix(one.url, "http://") + "\"}\n"
	loose, _ := p.configure("two", taken+settled("", "approval: {four_eyes: false}"))
	two, _ := p.launch(loose, "")
	if code := two.code(); code != console.ExitUsage || !strings.Contains(two.log(), "is in use") {
		t.Fatalf("the other ended with %d: %s", code, two.log())
	}
	if all := p.configurations(); len(all) != 1 {
		t.Errorf("the history has %v", all)
	}
	task := one.send("coder", "app", "text")
	if code, why := one.yes(cleo, p.asked(task)); code != http.StatusOK {
		t.Fatalf("a yes under the rules of the node that serves: %d %+v", code, why)
	}
	p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
	one.stop()
}

// TestAStartWithRulesOfBeforeTakesNothing: ann made the rules stricter last week, and a node
// starts again with the file of before, by which mallory lands her own change alone. It
// decides nothing and says so in every place; the other node goes on. A person may have it
// load that file: then they meant it. Without another node a start is enough.
func TestAStartWithRulesOfBeforeTakesNothing(t *testing.T) {
	t.Parallel()
	loose := strings.ReplaceAll(settled("", "approval: {four_eyes: false}"), "cleo, dora", "mallory")
	strict := settled("", `approval: {rules: [{name: core, when: "true", need: 1, from: [maintainers]}]}`)
	p := newPlace(t, storetest.Postgres(t), loose)
	older, _ := p.configure("two", loose)
	mallory, cleo := p.person("mallory", people.Approver, people.Operator), p.person("cleo", people.Approver)
	one, two := p.start(p.config, ""), p.start(older, "")
	one.reload(strict)
	two.stop()
	two = p.start(older, "")
	events := func(n int) {
		t.Helper()
		if all := p.configurations(); len(all) != n {
			t.Errorf("the history has %d configurations, want %d: %v", len(all), n, all)
		}
	}
	decides := func(n *node, may bool) {
		t.Helper()
		code, err := n.call(http.MethodGet, "/readyz", "", nil, nil)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[may]; err != nil || code != want {
			t.Errorf("ready: %d, %v; want %d", code, err, want)
		}
		for _, path := range []string{"/", "/settings/config"} {
			if page := n.page(n.browser("ann"), path); strings.Contains(page, "The rules of this node were in force before") == may {
				t.Errorf("%s says that its rules count: %t", path, !may)
			}
		}
	}
	events(2)
	decides(one, true)
	decides(two, false)
	if out, _ := p.cli(two, "--config", older, "doctor"); !strings.Contains(out, "⚠ rules") || !strings.Contains(out, "The rules of this file were in force before") {
		t.Errorf("doctor on the file of before:\n%s", out)
	}
	if out, _ := p.cli(one, "--config", p.config, "doctor"); !strings.Contains(out, "✓ rules") {
		t.Errorf("doctor on the file of today:\n%s", out)
	}
	var s struct{ ID string }
	code, err := two.call(http.MethodPost, "/api/v1/tasks", mallory, map[string]any{"agent": "coder", "text": "hers", "repository": "app"}, &s)
	if p.must(err); code != http.StatusAccepted {
		t.Fatalf("sending: %d", code)
	}
	r := p.asked(s.ID)
	if code, why := two.yes(mallory, r); code != http.StatusConflict || !strings.Contains(why.detail, "Other rules were taken") {
		t.Errorf("her yes on the node with the rules of before: %d %+v", code, why)
	}
	if code, why := one.yes(mallory, r); code != http.StatusForbidden {
		t.Errorf("her yes on the node with the rules of today: %d %+v", code, why)
	}
	if code, why := one.yes(cleo, p.asked(s.ID)); code != http.StatusOK {
		t.Fatalf("the yes of a maintainer: %d %+v", code, why)
	}
	p.until("the landing", func() bool { return p.root(s.ID).State == orchestrator.Completed })

	// Somebody means it.
	p.must(two.cmd.Process.Signal(syscall.SIGHUP))
	p.until("the rules of before to be in force", func() bool { return len(p.configurations()) == 3 })
	if last := string(p.configurations()[2].Data); !strings.Contains(last, `"as_of"`) || !strings.Contains(last, "SIGHUP") {
		t.Errorf("the history says %s", last)
	}
	p.until("the node to be ready", func() bool {
		code, err := two.call(http.MethodGet, "/readyz", "", nil, nil)
		return err == nil && code == http.StatusOK
	})
	decides(two, true)

	// Now those of today are of before; alone, the node with them may go back by a start.
	one.stop()
	one = p.start(p.config, "")
	events(3)
	decides(one, false)
	one.stop()
	two.stop()
	one = p.start(p.config, "")
	events(4)
	decides(one, true)
	if last := string(p.configurations()[3].Data); !strings.Contains(last, `"as_of"`) || !strings.Contains(last, `"how":"start"`) {
		t.Errorf("the history says %s", last)
	}
	one.stop()
}
