package task

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	view "gatehouse/views/task"

	"pgregory.net/rapid"
)

// planted is a tree from lines of "id parent state".
func planted(lines ...string) *trace {
	var tree []orchestrator.Delegation
	depth := map[string]int{}
	for _, l := range lines {
		f := strings.Fields(l)
		d := orchestrator.Delegation{ID: f[0], State: orchestrator.State(f[2])}
		if f[1] != "-" {
			d.ParentID, d.Depth = f[1], depth[f[1]]+1
		}
		depth[d.ID] = d.Depth
		if d.State == orchestrator.Failed {
			d.Error = &agent.Failure{Message: "broken"}
		}
		tree = append(tree, d)
	}
	return newTrace(tree)
}

func (t *trace) names(rows []int) string {
	var ids []string
	for _, i := range rows {
		ids = append(ids, t.tree[i].ID)
	}
	return strings.Join(ids, " ")
}

// A closed branch says how many it hides and the worst of them, however deep that is; a
// failed task leads to the deepest failure.
func TestAClosedBranchHidesNoFailure(t *testing.T) {
	tr := planted("root - failed", "a root completed", "b root failed", "a1 a completed", "a2 a completed", "a11 a1 failed", "a12 a1 rejected", "b1 b running")
	if got := tr.below[tr.at["a"]]; got != (view.Below{N: 4, Failed: 1, Rejected: 1}) {
		t.Errorf("below a: %+v", got)
	}
	if got := tr.failing().ID; got != "a11" {
		t.Errorf("the failure is at %s", got)
	}
	if got, want := tr.names(tr.rows(viewOf(url.Values{"fold": {"a"}}), "root", nil)), "root a b b1"; got != want {
		t.Errorf("with a closed: %s, want %s", got, want)
	}
	if got, want := tr.names(tr.rows(viewOf(url.Values{"find": {"x"}}), "root", []string{"a12", "no such"})), "root a a1 a12"; got != want {
		t.Errorf("found: %s, want %s", got, want)
	}
	if got := tr.names(tr.rows(viewOf(url.Values{"find": {"x"}}), "root", nil)); got != "" {
		t.Errorf("nothing was found, and shown is %s", got)
	}
}

// In a large tree ended branches start closed; what lives and the way to the selected
// delegation are open.
func TestALargeTreeStartsWithEndedBranchesClosed(t *testing.T) {
	lines := []string{"root - waiting", "old root completed", "new root waiting", "n1 new running"}
	for i := range largeTree {
		lines = append(lines, fmt.Sprintf("o%d old completed", i))
	}
	tr := planted(lines...)
	if got, want := tr.names(tr.rows(viewOf(nil), "root", nil)), "root old new n1"; got != want {
		t.Errorf("open are %s, want %s", got, want)
	}
	rows := tr.rows(viewOf(nil), "o450", nil)
	page, from := tr.window(rows, viewOf(nil), "o450")
	if len(rows) != len(tr.tree) || from != 400 || len(page) != len(rows)-400 || !slices.Contains(page, tr.at["o450"]) {
		t.Errorf("%d rows, page of %d from %d", len(rows), len(page), from)
	}
	if page, from = tr.window(rows, treeView{from: 100000}, "o450"); from != len(rows)-1 || len(page) != 1 {
		t.Errorf("after the end: %d rows from %d", len(page), from)
	}
}

// Whatever the tree and whatever is folded: rows come once, a caller before what it made.
func TestRowsAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{"d0 - waiting"}
		for i := range rapid.IntRange(0, 30).Draw(t, "n") {
			lines = append(lines, fmt.Sprintf("d%d d%d %s", i+1, rapid.IntRange(0, i).Draw(t, "parent"), rapid.SampledFrom([]string{"completed", "failed", "running"}).Draw(t, "state")))
		}
		tr := planted(lines...)
		fold := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"d0", "d1", "d2", "d9", "zz"})).Draw(t, "fold"), ".")
		seen := map[string]bool{"": true}
		for _, i := range tr.rows(viewOf(url.Values{"fold": {fold}}), "d3", nil) {
			d := tr.tree[i]
			if seen[d.ID] || !seen[d.ParentID] {
				t.Fatalf("%s is there twice, or before %s", d.ID, d.ParentID)
			}
			seen[d.ID] = true
		}
	})
}

// O15: used and reserved stand beside the limit; what nobody reported is not 0.
func TestMetersTellUsedFromReserved(t *testing.T) {
	tokens, micro, span := int64(150_000), int64(5_000_000), 30*time.Minute
	d := orchestrator.Delegation{State: orchestrator.Waiting, Work: orchestrator.Work{Account: orchestrator.Account{Budget: &budget.Account{Limits: budget.Limits{Tokens: &tokens, MicroUSD: &micro, Time: &span},
		Used: budget.Amount{Tokens: 9400, Time: 38 * time.Second}, Reserved: budget.Amount{Tokens: 40_000}}}}}
	var words []string
	for _, m := range metersOf(d, 2, 5) {
		words = append(words, m.Name+": "+m.Words)
	}
	want := "tokens: 9.4k used · 40k reserved of 150k; money: not reported of $5; running time: 38 s used of 30 min; hand-overs: 2 of 5"
	if got := strings.Join(words, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	d.State = orchestrator.Completed
	if got := metersOf(d, 0, 0)[0]; got.Words != "9.4k used of 150k" || got.Reserved != 0 {
		t.Errorf("after the end: %+v", got)
	}
	d.Work.Budget.Used.Tokens = 200_000
	if got := metersOf(d, 0, 0)[0]; !got.Over || got.Used != 100 {
		t.Errorf("over the limit: %+v", got)
	}
}

// A file's name from an agent leads nowhere else.
func TestNamesOfArtifactsAreTamed(t *testing.T) {
	for in, want := range map[string]string{"report.md": "report.md", "../../etc/passwd": "passwd", `C:\x\..\boot.ini`: "boot.ini", "a\"b\nc\u202egnp.exe": "a_b_c_gnp.exe", "..": "artifact-3.txt", "": "artifact-3.txt",
		".bashrc": "bashrc", strings.Repeat("x", 300): strings.Repeat("x", 100), "-rf": "rf", "日本": "artifact-3.txt"} {
		if got := handlers.FileName(in, 3); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// What is long is cut between characters, and more of it can be had.
func TestLongTextsAreCutBetweenCharacters(t *testing.T) {
	text := strings.Repeat("ä", textStep)
	if got := longText("a"+text, 0); len(got.Text) != textStep-1 || got.Rest != textStep+2 {
		t.Errorf("cut at %d, %d left", len(got.Text), got.Rest)
	}
	if got := longText(text, 1); got.Rest != 0 || got.Text != text {
		t.Error("two pieces are not all of it")
	}
}

// A task leads back to what made it: the delivery, where this person may read that.
func TestATaskLeadsToItsDelivery(t *testing.T) {
	operator, approver := people.As(people.User{ID: "u", Roles: []people.Role{people.Operator}}, nil), people.As(people.User{ID: "v", Roles: []people.Role{people.Approver}}, nil)
	for _, c := range []struct {
		who      people.Principal
		via, key string
		want     string
	}{
		{operator, origin.Trigger(origin.Webhook, "ci failed").String(), "trigger:ci failed:whk_1", "/triggers/ci%20failed/deliveries/whk_1"},
		{approver, "schedule ci failed", "trigger:ci failed:whk_1", "/triggers/ci%20failed"},
		{operator, "webhook ci", "trigger:ci:key:whk_1", "/triggers/ci"},
		{operator, "web", "trigger:ci:whk_1", ""},
		{operator, "webhook ", "", ""},
	} {
		if got := cameBy(handlers.Caller{Principal: c.who}, orchestrator.Task{Via: origin.Parse(c.via), Key: c.key}); got != c.want {
			t.Errorf("%s %s leads to %q, want %q", c.via, c.key, got, c.want)
		}
	}
}
