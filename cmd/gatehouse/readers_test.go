package main

import (
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
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
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, readersTeam)
		for _, name := range []string{"cleo", "dan"} {
			p.Person(name, people.Approver)
		}
		p.Person("olga", people.Operator)
		n := p.Start(p.Config, "")
		bob, cleo, dan := n.Browser("bob"), n.Browser("cleo"), n.Browser("dan")
		task := n.Send("coder", "app", "readers")
		r := p.Asked(task)
		for _, c := range []*http.Client{bob, cleo, dan} {
			n.Page(c, "/approvals/"+r.ID)
		}
		readBy(n, r, "pending", "")

		n.Page(cleo, "/approvals/"+r.ID+"?file=b.txt")
		readBy(n, r, "pending", "read without a verdict on the web by cleo: 1 of 2 files")
		if out, code := p.Cli(n, "review", r.ID); code != 0 {
			t.Fatalf("review: exit %d\n%s", code, out)
		}
		const both = "read without a verdict on the web by cleo: 1 of 2 files; on the command line by bob: whole"
		readBy(n, r, "pending", both)
		olga := n.Browser("olga")
		for _, path := range []string{"/", "/chat", "/delegations/" + task, "/delegations"} {
			reads(t, n.Page(olga, path), "!read without a verdict", "!on the command line by bob")
		}

		// The next revision was read by nobody yet; the one before stays as it was.
		if code, _ := n.Say(dan, "/approvals/", r, "request_changes", "Once more."); code != http.StatusOK {
			t.Fatalf("request changes: %d", code)
		}
		again := p.Revised(task, 2)
		readBy(n, again, "pending", "")
		reads(t, n.Page(cleo, "/approvals/"+r.ID+"?rev=1"), "Not read here by dan; "+both)

		// Who decides is named with what they had read then; who does not, beside them.
		n.Page(dan, "/approvals/"+r.ID+"?file=a.txt")
		n.Page(bob, "/approvals/"+r.ID+"?file=a.txt")
		if code, why := yes(n, n.Approver, again); code != http.StatusOK {
			t.Fatalf("the yes: %d %+v", code, why)
		}
		p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
		readBy(n, r, "landed", "read on the web by bob: 1 of 2 files; read without a verdict on the web by dan: 1 of 2 files")
		reads(t, n.Page(n.Browser("ann"), "/approvals/"+r.ID+"/evidence"), "Revision 2 was read without a verdict on the web by dan: 1 of 2 files.")
		n.Stop()
	})
}

// readBy looks at everything that says who read a request.
func readBy(n *placetest.Node, r approval.Request, state, want string) {
	n.Helper()
	var list client.List[readings]
	code, err := n.Call(http.MethodGet, "/api/v1/approvals?state="+state, n.Approver, nil, &list)
	if n.Must(err); code != http.StatusOK || !slices.ContainsFunc(list.Items, func(x readings) bool { return x.ID == r.ID && x.Read.Text == want }) {
		n.Errorf("the list of the API: %d, %+v does not say %q", code, list.Items, want)
	}
	var one readings
	code, err = n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, n.Approver, nil, &one)
	if n.Must(err); code != http.StatusOK || one.Read.Text != want {
		n.Errorf("the API: %d, %q, want %q", code, one.Read.Text, want)
	}
	for _, by := range one.Read.By {
		if saysNo := strings.Contains(want, "without a verdict") && !strings.Contains(strings.Split(want, "read without a verdict")[0], "by "+by.User); by.Decided == saysNo {
			n.Errorf("decided: %+v, of %q", by, want)
		}
	}
	ann := n.Browser("ann")
	rows := n.Page(ann, "/approvals?state="+state) + n.Page(ann, "/audit?filter="+url.QueryEscape("time:1d"))
	page := n.Page(ann, "/approvals/"+r.ID)
	out, _ := n.Cli(n, "approvals", "--state", state)
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
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), readersTeam)
	p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")
	r := p.Asked(n.Send("coder", "app", "overview"))
	n.Page(n.Browser("cleo"), "/approvals/"+r.ID+"?file=b.txt")
	reads(t, n.Page(n.Browser("bob"), "/"), "read without a verdict on the web by cleo: 1 of 2 files")
	reads(t, n.Page(n.Browser("bob"), "/delegations/"+r.TaskID), "read without a verdict on the web by cleo: 1 of 2 files")
}
