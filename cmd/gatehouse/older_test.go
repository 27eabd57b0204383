package main

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/sqlstore"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
	"gatehouse/web/wire"
)

// testdata/before27 is what the program before migration 00027 left behind: rows.jsonl.gz
// has all rows of its database after the story that olderRequests tells, app.bundle the
// people's repository, and the other two are an evidence and an export that it wrote. It
// knew neither both sides of a move, nor who worked on a tree, nor full names of branches.
const (
	olderData    = "testdata/before27"
	olderVersion = 26
	// olderApprove is the data of the Approve button under its card of "Do pending".
	olderApprove = "aVin4t2E4901pEXd_oD45MleSnUDL27Vu7A_MBlUUeg"
)

// olderTeam is the team of then.
const olderTeam = `
engine: {workers: 4, lease: 2s}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f README.md"]}
agents:
  coder: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, 'cat > "notes-$GATEHOUSE_TASK_ID.txt"']}
  kik: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, 'gatehouse delegate coder "$(cat)"']}
  boss: {kind: command, sandbox: off, env: {PLACE: MARK, GORACE: NO_SLEEP}, command: [sh, -c, 'gatehouse delegate clerk "$(cat)" 2>&1 || echo "went on after $?"']}
  clerk: {kind: command, ask_first: true, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'echo "done as asked"']}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// olderRequests is what people had been asked, and how far each was.
var olderRequests = map[string]struct {
	state  approval.State
	target string
}{
	"Do landed by a press":           {approval.Landed, "main"},
	"Do rejected in chat":            {approval.Rejected, "main"},
	"Do changes asked for":           {approval.Landed, "main"},
	"Do some files":                  {approval.Landed, "main"},
	"Do a child's tree":              {approval.Landed, "main"},
	"Do to be undone":                {approval.Landed, "main"},
	"Do cancelled":                   {approval.Cancelled, "main"},
	"Do pending":                     {approval.Pending, "main"},
	"Do pending, and edited by bob":  {approval.Pending, "main"},
	"Do pending with a child's tree": {approval.Pending, "main"},
	"Revert: Do to be undone":        {approval.Pending, "main"},
	"On an id":                       {approval.Pending, ""}, // the branch of then was a commit's id
	"Approve handoff to clerk? Context: Do a hand-over with a yes": {approval.Approved, ""},
	"Approve handoff to clerk? Context: Do a hand-over with a no":  {approval.Rejected, ""},
	"Approve handoff to clerk? Context: Do a hand-over that waits": {approval.Pending, ""},
}

// older is an installation that an older program has left.
type older struct {
	*placetest.Gate
	tokens map[string]string
	by     map[string]approval.Request // by title
}

func newOlder(t *testing.T, database string) *older {
	t.Helper()
	storetest.Older(t, database, filepath.Join(olderData, "rows.jsonl.gz"), olderVersion)
	bot := bottest.New(t)
	bot.AddChat(placetest.Team, "supergroup", "Approvers")
	p := &placetest.Place{T: t, Dir: t.TempDir(), Database: database, Mark: rand.Text()}
	p.Repo = filepath.Join(p.Dir, "app")
	placetest.Git(t, "", "clone", "-q", "-b", "main", filepath.Join(olderData, "app.bundle"), p.Repo)
	p.Config, p.Data = p.Configure("one", strings.NewReplacer("TOKEN", bot.Token, "BOT_API", bot.URL).Replace(olderTeam))
	var err error
	p.Store, err = sqlstore.Open(t.Context(), database, store.Options{Node: "test", Logger: slog.New(slog.DiscardHandler), Pool: 4})
	p.Must(err)
	t.Cleanup(func() { p.Store.Close() }) //nolint:errcheck // the test is over
	o := &older{Gate: &placetest.Gate{Place: p, Bot: bot, Accounts: map[string]bottest.Account{"bob": {ID: 1002, Username: "bob", Name: "bob"}}}, tokens: map[string]string{}, by: map[string]approval.Request{}}
	for _, name := range []string{"ann", "bob", "dora", "carol"} {
		o.tokens[name] = token(o.Gate.Place, name)
	}
	p.Asker, p.Approver = o.tokens["ann"], o.tokens["bob"]
	page, err := p.Store.Requests(t.Context(), approval.Filter{Limit: 100})
	p.Must(err)
	for _, r := range page.Items {
		o.by[r.Title] = r
	}
	return o
}

// token makes a token for somebody who is there already.
func token(p *placetest.Place, name string) string {
	p.Helper()
	u, err := p.Store.UserByName(p.Context(), name)
	p.Must(err)
	secret, hash := signin.NewToken()
	_, err = p.Store.CreateToken(p.Context(), "test", people.Token{UserID: u.ID, Scopes: people.Scopes(), Hash: hash})
	p.Must(err)
	return secret
}

// TestWhatAnOlderVersionLeftIsReadDecidedAndVerified: every request of then is read on the
// page, on the command line and over the API; what waited is decided at every door, by whom
// may, and lands; and the history of then verifies, before and after.
func TestWhatAnOlderVersionLeftIsReadDecidedAndVerified(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db") },
		"postgres": func(t *testing.T) string { return storetest.EmptyPostgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOlder(t, database(t))
			n := o.Start(o.Config, "")
			o.isRead(n)
			o.verifies(n)
			o.isDecided(n)
			o.verifies(n)
			n.Stop()
		})
	}
}

// isRead reads every request at every door.
func (o *older) isRead(n *placetest.Node) {
	o.Helper()
	if len(o.by) != len(olderRequests) {
		o.Fatalf("%d requests, want %d: %v", len(o.by), len(olderRequests), o.by)
	}
	cleo := n.Browser("cleo")
	for title, want := range olderRequests {
		r := o.by[title]
		var told wire.Request
		if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, o.Approver, nil, &told); err != nil || code != http.StatusOK {
			o.Errorf("%q over the API: %d, %v", title, code, err)
		}
		if told.Title != title || told.State != string(want.state) || told.Digest != r.Revision.Digest || told.Revision != r.Revision.N || told.Target != want.target && want.target != "" {
			o.Errorf("%q over the API: %+v", title, told)
		}
		if page := n.Page(cleo, "/approvals/"+r.ID); !strings.Contains(page, r.Revision.Digest) {
			o.Errorf("the page of %q does not have its digest", title)
		}
		if page := n.Page(n.Browser("carol"), "/approvals/"+r.ID+"/evidence"); !strings.Contains(page, r.Revision.Digest) {
			o.Errorf("the evidence of %q does not have its digest", title)
		}
		if r.Handover != nil {
			continue
		}
		var diff bytes.Buffer
		if code, err := n.Text("/api/v1/approvals/"+r.ID+"/patch", o.Approver, &diff); err != nil || code != http.StatusOK || !strings.Contains(diff.String(), "notes/"+o.notes(r)) {
			o.Errorf("the diff of %q: %d, %v: %s", title, code, err, &diff)
		}
	}
}

// notes is the file that an agent of then wrote for a request's task, or for the one undone.
func (o *older) notes(r approval.Request) string {
	if r.RevertOf != "" {
		return o.by["Do to be undone"].TaskID + ".txt"
	}
	return r.TaskID + ".txt"
}

// verifies checks the whole history, what the program of then wrote into files, and what
// this one writes of the requests of then.
func (o *older) verifies(n *placetest.Node) {
	o.Helper()
	out, said, code := asAuditor(n, o.Dir, "", "--config", o.Config, "audit", "verify")
	if code != 0 || !bytes.Contains(out, []byte("The history of 16 tasks verified")) {
		o.Errorf("audit verify: exit %d: %s%s", code, out, said)
	}
	var now bytes.Buffer
	code, err := n.Text("/api/v1/approvals/"+o.by["Do changes asked for"].ID+"/evidence?format=bundle", o.tokens["carol"], &now)
	if o.Must(err); code != http.StatusOK {
		o.Fatalf("evidence: %d: %s", code, &now)
	}
	bundles := map[string][]byte{"now.jsonl": now.Bytes(), "evidence.jsonl": o.unpacked("evidence.jsonl.gz"), "export.jsonl": o.unpacked("export.jsonl.gz")}
	for name, bundle := range bundles {
		o.Must(os.WriteFile(filepath.Join(o.Dir, name), bundle, 0o600))
		if out, said, code := asAuditor(n, o.Dir, "", "audit", "verify", "--file", name); code != 0 {
			o.Errorf("%s: exit %d: %s%s", name, code, out, said)
		}
	}
}

func (o *older) unpacked(name string) []byte {
	o.Helper()
	f, err := os.Open(filepath.Join(olderData, name))
	o.Must(err)
	defer f.Close()
	in, err := gzip.NewReader(f)
	o.Must(err)
	text, err := io.ReadAll(in)
	o.Must(err)
	return text
}

// isDecided decides what waited, each at another door.
func (o *older) isDecided(n *placetest.Node) {
	o.Helper()
	o.pressedUnderAnOldCard(n)
	o.readAndApproved(n)
	o.editedByBob(n)

	r := o.by["Do pending with a child's tree"]
	if code, body := n.Say(n.Browser("cleo"), "/approvals/", o.Asked(r.TaskID), "approve", ""); code != http.StatusOK {
		o.Errorf("the yes on the page: %d\n%s", code, body)
	}
	o.lands(r, "cleo")

	r = o.by["Revert: Do to be undone"]
	if code, err := n.Decide(o.Asked(r.TaskID)); err != nil || code != http.StatusOK {
		o.Errorf("the yes to the revert: %d, %v", code, err)
	}
	o.lands(r, "bob")
	o.Until("that it is recorded as undone", func() bool {
		undone, err := o.Store.Request(o.Context(), o.by["Do to be undone"].ID)
		o.Must(err)
		return undone.State == approval.Reverted
	})

	r = o.by["Approve handoff to clerk? Context: Do a hand-over that waits"]
	if code, err := n.Decide(o.Asked(r.TaskID)); err != nil || code != http.StatusOK {
		o.Errorf("the yes to the hand-over: %d, %v", code, err)
	}
	o.Until("the end of the hand-over", func() bool { return o.Root(r.TaskID).State.Ended() })
	if d := o.Root(r.TaskID); d.State != orchestrator.Completed || strings.TrimSpace(d.Result.Text) != "done as asked" {
		o.Errorf("the hand-over: %s %+v", d.State, d.Result)
	}
	o.onAnID(n)
	if left := all(o.Gate.Place, approval.Pending); len(left) != 0 {
		o.Errorf("still pending: %+v", left)
	}
}

// lands waits for the landing of a request of then, by one yes.
func (o *older) lands(r approval.Request, who string) {
	o.Helper()
	o.Until("the landing of "+r.Title, func() bool { return o.Root(r.TaskID).State.Ended() })
	after, err := o.Store.Request(o.Context(), r.ID)
	o.Must(err)
	if last := after.Decisions; after.State != approval.Landed || len(last) == 0 || last[len(last)-1].User != who || last[len(last)-1].Verdict != approval.Approve {
		o.Errorf("%q is %s: %+v", r.Title, after.State, last)
	}
	if names := placetest.Git(o.T, o.Repo, "ls-tree", "-r", "--name-only", "main"); strings.Contains(names, o.notes(r)) == (r.RevertOf != "") {
		o.Errorf("after %q main has\n%s", r.Title, names)
	}
}

// pressedUnderAnOldCard: the Approve of then stands under a card of which nobody knows any
// more that it had all of the change, so it leads to where it is read.
func (o *older) pressedUnderAnOldCard(n *placetest.Node) {
	o.Helper()
	r := o.by["Do pending"]
	for range 2 { // the numbers of the updates of then, which do not come again
		o.Bot.Say(placetest.Team, o.Accounts["bob"], "Hello", 0)
	}
	if said := o.Answer(o.Bot.PressData(placetest.Team, 2, olderApprove, o.Accounts["bob"])); said == "" || strings.HasPrefix(said, "Approved") {
		o.Errorf("the press under the card of then is answered %q", said)
	}
	if now := o.Asked(r.TaskID); now.Revision.N != 1 || len(now.Decisions) != 0 {
		o.Errorf("the press decided %+v", now.Decisions)
	}
}

// readAndApproved is the way of the command line.
func (o *older) readAndApproved(n *placetest.Node) {
	o.Helper()
	r := o.by["Do pending"]
	if out, code := o.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "notes/"+r.TaskID+".txt") {
		o.Errorf("review: exit %d: %s", code, out)
	}
	if out, code := o.Cli(n, "approve", r.ID); code != 0 || !strings.Contains(out, "on main") {
		o.Errorf("approve: exit %d: %s", code, out)
	}
	o.lands(r, "bob")
}

// editedByBob: whose hand is in a revision of then is not forgotten.
func (o *older) editedByBob(n *placetest.Node) {
	o.Helper()
	r := o.Asked(o.by["Do pending, and edited by bob"].TaskID)
	barred(n, "bob", o.Approver, r, "You edited this revision")
	if code, p := casts(n, o.tokens["dora"], r, map[string]any{"verdict": "approve", "revision": r.Revision.N, "ticked": approval.Ticks(r)}); code != http.StatusOK {
		o.Errorf("dora's yes: %d %+v", code, p)
	}
	o.lands(r, "dora")
}

// onAnID: a change on a commit's id, which was possible then, has no branch to land on. A
// yes does not land it; it is asked again for main.
func (o *older) onAnID(n *placetest.Node) {
	o.Helper()
	r := o.by["On an id"]
	if page := n.Page(n.Browser("cleo"), "/approvals/"+r.ID); !strings.Contains(page, "no branch yet") {
		o.Error("the page of a change on an id does not say that it has no branch")
	}
	if out, code := o.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "app (no branch)") {
		o.Errorf("review of a change on an id: exit %d: %s", code, out)
	}
	if code, err := n.Decide(o.Asked(r.TaskID)); err != nil || code != http.StatusOK {
		o.Errorf("the yes to a change on an id: %d, %v", code, err)
	}
	again := o.Revised(r.TaskID, 2)
	if again.Revision.Base.Branch != "main" || !slices.ContainsFunc(again.Decisions, func(d approval.Decision) bool { return d.Revision == 1 }) {
		o.Errorf("asked again on %+v: %+v", again.Revision.Base, again.Decisions)
	}
	if code, err := n.Decide(again); err != nil || code != http.StatusOK {
		o.Errorf("the second yes: %d, %v", code, err)
	}
	o.lands(r, "bob")
}
