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
	"gatehouse/cmd/gatehouse/internal/placetest"
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
	p := placetest.New(t, storetest.Postgres(t), loose)
	older, _ := p.Configure("two", loose)
	mallory, cleo := p.Person("mallory", people.Approver, people.Operator), p.Person("cleo", people.Approver)
	inTheWay := filepath.Join(p.Repo, "core/note.txt")
	p.Must(os.MkdirAll(filepath.Dir(inTheWay), 0o700))
	p.Must(os.WriteFile(inTheWay, []byte("in the way"), 0o600))
	one, two := p.Start(p.Config, ""), p.Start(older, "")
	hers := func(text string) (string, approval.Request) {
		var s struct{ ID string }
		code, err := two.Call(http.MethodPost, "/api/v1/tasks", mallory, map[string]any{"agent": "coder", "text": text, "repository": "app"}, &s)
		if p.Must(err); code != http.StatusAccepted {
			t.Fatalf("sending %s: %d", text, code)
		}
		return s.ID, p.Asked(s.ID)
	}
	before, r := hers("before")
	if code, why := yes(two, mallory, r); code != http.StatusOK {
		t.Fatalf("her yes under the rules of before: %d %+v", code, why)
	}
	p.Until("the landing to wait", func() bool { return p.Root(before).Work.Problem != "" })
	reload(one, strict)
	one.Stop()
	since, r := hers("since")
	const differ = " They differ in approval.four_eyes, approval.rules, approval.rules[core], groups.maintainers. " // and nobody's name
	if code, why := yes(two, mallory, r); code != http.StatusConflict || !strings.Contains(why.detail, "Other rules were taken") ||
		!strings.Contains(why.detail, differ) || strings.Contains(why.detail, "mallory") || strings.Contains(why.detail, "cleo") {
		t.Errorf("her yes on the node with the rules of before: %d %+v", code, why)
	}
	p.Must(os.RemoveAll(filepath.Dir(inTheWay)))
	soon := func() { // else it looks again in some seconds
		if code, err := two.Call(http.MethodPost, "/api/v1/delegations/"+before+"/retry", p.Asker, nil, nil); err != nil || code >= http.StatusBadRequest && code != http.StatusConflict {
			t.Fatalf("trying again: %d, %v", code, err)
		}
	}
	soon()
	p.Until("the landing to wait for the rules", func() bool { return strings.Contains(p.Root(before).Work.Problem, "Other rules were taken") })
	if merges := placetest.Git(t, p.Repo, "log", "--merges", "--format=%H", "main"); merges != "" {
		t.Fatalf("it landed: %s", merges)
	}
	p.Configure("two", strict)
	if code, err := two.Call(http.MethodPost, "/api/v1/config/reload", p.Asker, nil, nil); err != nil || code != http.StatusOK {
		t.Fatalf("the rules of today: %d, %v", code, err)
	}
	soon()
	p.Asked(before)
	for _, task := range []string{before, since} {
		if code, why := yes(two, mallory, p.Asked(task)); code != http.StatusForbidden {
			t.Errorf("her yes under the rules of today: %d %+v", code, why)
		}
	}
	if code, why := yes(two, cleo, p.Asked(before)); code != http.StatusOK {
		t.Fatalf("the yes of a maintainer: %d %+v", code, why)
	}
	p.Until("the landing", func() bool { return p.Root(before).State == orchestrator.Completed })
	two.Stop()
}

// TestANodeWithOlderRulesAsksBeforeItHandsOn: since today a person is asked before coder
// works. The node that has not heard of it asks, too, and takes no yes; the other one does.
func TestANodeWithOlderRulesAsksBeforeItHandsOn(t *testing.T) {
	t.Parallel()
	before, _, _ := strings.Cut(strings.Replace(handoverTeam, "    ask_first: true\n", "", 1), "approval:")
	since, _, _ := strings.Cut(handoverTeam, "approval:")
	p := placetest.New(t, storetest.Postgres(t), since)
	older, _ := p.Configure("two", before)
	two := p.Start(older, "")
	one := p.Start(p.Config, placetest.Idle) // it answers, and is killed with the test
	task := two.Send("kik", "app", "deploy")
	r := p.Asked(task)
	if code, why := yes(two, p.Approver, r); code != http.StatusConflict || ran(p) != 0 {
		t.Errorf("the yes on the node with the rules of before: %d %+v after %d runs", code, why, ran(p))
	}
	if code, why := yes(one, p.Approver, r); code != http.StatusOK {
		t.Fatalf("the yes on the other: %d %+v", code, why)
	}
	p.Until("the end", func() bool { return p.Root(task).State == orchestrator.Completed })
	if ran(p) != 1 {
		t.Errorf("coder ran %d times", ran(p))
	}
	two.Stop()
}

// TestANodeThatDoesNotComeUpTakesNoRules: what its file says would land a change that nobody
// approved, and the address that it wants is taken. The node that serves goes on by its own.
func TestANodeThatDoesNotComeUpTakesNoRules(t *testing.T) {
	t.Parallel()
	strict := settled("", `approval: {rules: [{name: core, when: "true", need: 1, from: [maintainers]}]}`)
	p := placetest.New(t, storetest.Postgres(t), strict)
	cleo := p.Person("cleo", people.Approver)
	one := p.Start(p.Config, "")
	taken := "server: {listen: \"" + strings.TrimPrefix(one.URL, "http://") + "\"}\n"
	loose, _ := p.Configure("two", taken+settled("", "approval: {four_eyes: false}"))
	two, _ := p.Launch(loose, "")
	if code := two.Code(); code != console.ExitUsage || !strings.Contains(two.Log(), "is in use") {
		t.Fatalf("the other ended with %d: %s", code, two.Log())
	}
	if all := configurations(p); len(all) != 1 {
		t.Errorf("the history has %v", all)
	}
	task := one.Send("coder", "app", "text")
	if code, why := yes(one, cleo, p.Asked(task)); code != http.StatusOK {
		t.Fatalf("a yes under the rules of the node that serves: %d %+v", code, why)
	}
	p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
	one.Stop()
}

// TestAStartWithRulesOfBeforeTakesNothing: ann made the rules stricter last week, and a node
// starts again with the file of before, by which mallory lands her own change alone. It
// decides nothing and says so in every place; the other node goes on. A person may have it
// load that file: then they meant it. Without another node a start is enough.
func TestAStartWithRulesOfBeforeTakesNothing(t *testing.T) {
	t.Parallel()
	loose := strings.ReplaceAll(settled("", "approval: {four_eyes: false}"), "cleo, dora", "mallory")
	strict := settled("", `approval: {rules: [{name: core, when: "true", need: 1, from: [maintainers]}]}`)
	p := placetest.New(t, storetest.Postgres(t), loose)
	older, _ := p.Configure("two", loose)
	mallory, cleo := p.Person("mallory", people.Approver, people.Operator), p.Person("cleo", people.Approver)
	one, two := p.Start(p.Config, ""), p.Start(older, "")
	reload(one, strict)
	two.Stop()
	two = p.Start(older, "")
	events := func(n int) {
		t.Helper()
		if all := configurations(p); len(all) != n {
			t.Errorf("the history has %d configurations, want %d: %v", len(all), n, all)
		}
	}
	decides := func(n *placetest.Node, may bool) {
		t.Helper()
		code, err := n.Call(http.MethodGet, "/readyz", "", nil, nil)
		if want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[may]; err != nil || code != want {
			t.Errorf("ready: %d, %v; want %d", code, err, want)
		}
		for _, path := range []string{"/", "/settings/config"} {
			if page := n.Page(n.Browser("ann"), path); strings.Contains(page, "The rules of this node were in force before") == may {
				t.Errorf("%s says that its rules count: %t", path, !may)
			}
		}
	}
	events(2)
	decides(one, true)
	decides(two, false)
	if out, _ := p.Cli(two, "--config", older, "doctor"); !strings.Contains(out, "⚠ rules") || !strings.Contains(out, "The rules of this file were in force before") {
		t.Errorf("doctor on the file of before:\n%s", out)
	}
	if out, _ := p.Cli(one, "--config", p.Config, "doctor"); !strings.Contains(out, "✓ rules") {
		t.Errorf("doctor on the file of today:\n%s", out)
	}
	var s struct{ ID string }
	code, err := two.Call(http.MethodPost, "/api/v1/tasks", mallory, map[string]any{"agent": "coder", "text": "hers", "repository": "app"}, &s)
	if p.Must(err); code != http.StatusAccepted {
		t.Fatalf("sending: %d", code)
	}
	r := p.Asked(s.ID)
	if code, why := yes(two, mallory, r); code != http.StatusConflict || !strings.Contains(why.detail, "Other rules were taken") {
		t.Errorf("her yes on the node with the rules of before: %d %+v", code, why)
	}
	if code, why := yes(one, mallory, r); code != http.StatusForbidden {
		t.Errorf("her yes on the node with the rules of today: %d %+v", code, why)
	}
	if code, why := yes(one, cleo, p.Asked(s.ID)); code != http.StatusOK {
		t.Fatalf("the yes of a maintainer: %d %+v", code, why)
	}
	p.Until("the landing", func() bool { return p.Root(s.ID).State == orchestrator.Completed })

	// Somebody means it.
	p.Must(two.Cmd.Process.Signal(syscall.SIGHUP))
	p.Until("the rules of before to be in force", func() bool { return len(configurations(p)) == 3 })
	if last := string(configurations(p)[2].Data); !strings.Contains(last, `"as_of"`) || !strings.Contains(last, "SIGHUP") {
		t.Errorf("the history says %s", last)
	}
	p.Until("the node to be ready", func() bool {
		code, err := two.Call(http.MethodGet, "/readyz", "", nil, nil)
		return err == nil && code == http.StatusOK
	})
	decides(two, true)

	// Now those of today are of before; alone, the node with them may go back by a start.
	one.Stop()
	one = p.Start(p.Config, "")
	events(3)
	decides(one, false)
	one.Stop()
	two.Stop()
	one = p.Start(p.Config, "")
	events(4)
	decides(one, true)
	if last := string(configurations(p)[3].Data); !strings.Contains(last, `"as_of"`) || !strings.Contains(last, `"how":"start"`) {
		t.Errorf("the history says %s", last)
	}
	one.Stop()
}
