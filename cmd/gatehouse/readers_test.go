package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/client"
)

// readersTeam has an agent whose change has two files.
const readersTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, repository: app, command: [sh, -c, "echo a > a.txt; echo b > b.txt"]}
`

// readings is what the API says of who read a request.
type readings struct {
	ID   string `json:"id"`
	Read struct {
		Text string            `json:"text"`
		By   []approval.Reader `json:"by"`
	} `json:"read"`
}

// TestWhoReadARequestWithoutAVerdictIsNamed (issue 12, B9): who reads a change, in whole or in
// part, wherever, and says nothing to it, is named on its page, in every row and by the API,
// apart from those who decided. Who only opens the page has read nothing, a reader of the
// revision before has not read this one, and who may not read requests is told nothing.
func TestWhoReadARequestWithoutAVerdictIsNamed(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		p := newPlace(t, database, readersTeam)
		for _, name := range []string{"cleo", "dan"} {
			p.person(name, people.Approver)
		}
		p.person("olga", people.Operator)
		n := p.start(p.config, "")
		bob, cleo, dan := n.browser("bob"), n.browser("cleo"), n.browser("dan")
		task := n.send("coder", "app", "readers")
		r := p.asked(task)
		for _, c := range []*http.Client{bob, cleo, dan} {
			n.page(c, "/approvals/"+r.ID)
		}
		n.readBy(r, "pending", "")

		n.page(cleo, "/approvals/"+r.ID+"?file=b.txt")
		n.readBy(r, "pending", "read without a verdict on the web by cleo: 1 of 2 files")
		if out, code := p.cli(n, "review", r.ID); code != 0 {
			t.Fatalf("review: exit %d\n%s", code, out)
		}
		const both = "read without a verdict on the web by cleo: 1 of 2 files; on the command line by bob: whole"
		n.readBy(r, "pending", both)
		olga := n.browser("olga")
		for _, path := range []string{"/", "/chat", "/delegations/" + task, "/delegations"} {
			reads(t, n.page(olga, path), "!read without a verdict", "!on the command line by bob")
		}

		// The next revision was read by nobody yet; the one before stays as it was.
		if code, _ := n.say(dan, "/approvals/", r, "request_changes", "Once more."); code != http.StatusOK {
			t.Fatalf("request changes: %d", code)
		}
		again := p.revised(task, 2)
		n.readBy(again, "pending", "")
		reads(t, n.page(cleo, "/approvals/"+r.ID+"?rev=1"), "Not read here by dan; "+both)

		// Who decides is named with what they had read then; who does not, beside them.
		n.page(dan, "/approvals/"+r.ID+"?file=a.txt")
		n.page(bob, "/approvals/"+r.ID+"?file=a.txt")
		if code, why := n.yes(n.approver, again); code != http.StatusOK {
			t.Fatalf("the yes: %d %+v", code, why)
		}
		p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
		n.readBy(r, "landed", "read on the web by bob: 1 of 2 files; read without a verdict on the web by dan: 1 of 2 files")
		reads(t, n.page(n.browser("ann"), "/approvals/"+r.ID+"/evidence"), "Revision 2 was read without a verdict on the web by dan: 1 of 2 files.")
		n.stop()
	})
}

// readBy looks at everything that says who read a request.
func (n *node) readBy(r approval.Request, state, want string) {
	n.Helper()
	var list client.List[readings]
	code, err := n.call(http.MethodGet, "/api/v1/approvals?state="+state, n.approver, nil, &list)
	if n.must(err); code != http.StatusOK || !slices.ContainsFunc(list.Items, func(x readings) bool { return x.ID == r.ID && x.Read.Text == want }) {
		n.Errorf("the list of the API: %d, %+v does not say %q", code, list.Items, want)
	}
	var one readings
	code, err = n.call(http.MethodGet, "/api/v1/approvals/"+r.ID, n.approver, nil, &one)
	if n.must(err); code != http.StatusOK || one.Read.Text != want {
		n.Errorf("the API: %d, %q, want %q", code, one.Read.Text, want)
	}
	for _, by := range one.Read.By {
		if saysNo := strings.Contains(want, "without a verdict") && !strings.Contains(strings.Split(want, "read without a verdict")[0], "by "+by.User); by.Decided == saysNo {
			n.Errorf("decided: %+v, of %q", by, want)
		}
	}
	ann := n.browser("ann")
	rows := n.page(ann, "/approvals?state="+state) + n.page(ann, "/audit?filter="+url.QueryEscape("time:1d"))
	page := n.page(ann, "/approvals/"+r.ID)
	out, _ := n.cli(n, "approvals", "--state", state)
	if want == "" {
		reads(n.T, rows+page+out, "!read without", "!Read without", "!read on the", "!not read here")
		return
	}
	if strings.Count(rows, want) != 2 {
		n.Errorf("the lists of the pages do not say %q once each", want)
	}
	reads(n.T, page, strings.ToUpper(want[:1])+want[1:])
	reads(n.T, out, want)
}

// TestTheOverviewSaysWhoHasReadWhatWaits: who may decide sees in the list of what needs them
// that somebody else has read it.
func TestTheOverviewSaysWhoHasReadWhatWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), readersTeam)
	p.person("cleo", people.Approver)
	n := p.start(p.config, "")
	r := p.asked(n.send("coder", "app", "overview"))
	n.page(n.browser("cleo"), "/approvals/"+r.ID+"?file=b.txt")
	reads(t, n.page(n.browser("bob"), "/"), "read without a verdict on the web by cleo: 1 of 2 files")
	reads(t, n.page(n.browser("bob"), "/delegations/"+r.TaskID), "read without a verdict on the web by cleo: 1 of 2 files")
}
