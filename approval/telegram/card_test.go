package telegram

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// noon is when the requests of these tests were asked; they are shown some minutes later.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// keeper keeps buttons in memory.
type keeper struct{ bound []Bound }

func (k *keeper) AddButtons(_ context.Context, b []Bound) error {
	k.bound = append(k.bound, b...)
	return nil
}

// owners says whose private chats there are.
type owners map[int64]people.User

func (o owners) UserByAccount(_ context.Context, _ origin.Channel, id int64) (people.User, error) {
	if u, ok := o[id]; ok {
		return u, nil
	}
	return people.User{}, orchestrator.ErrNotFound
}

func (*keeper) AddPrompt(context.Context, Prompt) error { return nil }

func (*keeper) PutButtons(context.Context, []string, int) error { return nil }

const smallDiff = "diff --git a/upload/retry.go b/upload/retry.go\n--- a/upload/retry.go\n+++ b/upload/retry.go\n@@ -1 +1 @@\n-\tn = 0\n+\tn := 0\n"

// silent is a channel that is asked for cards only.
func silent(diff string, s Settings) *Channel {
	return NewChannel(ChannelOptions{Buttons: &keeper{}, Accounts: owners{1001: {ID: "usr_ann", Name: "ann"}},
		Diff: func(context.Context, approval.Request) (string, error) { return diff, nil },
		Now:  func() time.Time { return noon.Add(10 * time.Minute) }, Log: slog.New(slog.DiscardHandler)}, s)
}

var public = Settings{PublicURL: "https://gate.example.com/"}

const (
	group = -100123
	anns  = 1001
)

// look is the card of r in a chat, with its buttons as a last line.
func (c *Channel) look(t *testing.T, chat int64, r approval.Request, view approval.CardView) (string, Message) {
	t.Helper()
	f := c.face(t.Context(), Place{Chat: chat}, r, view)
	if r.State == approval.Pending {
		var err error
		if f.diff, err = c.read(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	m, at, lacks, err := c.card(t.Context(), Place{Chat: chat}, sent{}, f)
	if err == nil && lacks { // as it is once the file was sent
		if at.whole() || strings.Contains(m.Text, "in the file below") {
			t.Errorf("before its file is there the card says\n%s", m.Text)
		}
		m, _, _, err = c.card(t.Context(), Place{Chat: chat}, sent{document: 7}, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := m.Text
	for _, row := range m.Rows {
		text += "\n"
		for i, b := range row {
			if i > 0 {
				text += " "
			}
			text += "[ " + b.Text + " ]"
		}
	}
	return text, m
}

// request is the one of ui.md.
func request(state approval.State) approval.Request {
	r := approvaltest.Request(state)
	r.Title, r.Revision.N, r.Revision.Text = "Fix retry loop in the uploader", 2, ""
	r.Revision.Files = []patch.File{{Path: "upload/retry.go", Status: patch.Modified, Added: 31, Removed: 9},
		{Path: "upload/retry_test.go", Status: patch.Modified, Added: 14, Removed: 2}, {Path: "upload/doc.go", Status: patch.Modified, Added: 3, Removed: 1}}
	r.Revision.Checks = []orchestrator.Check{{Command: "go vet ./...", OK: true}, {Command: "go test ./...", OK: true}}
	for i := range r.Decisions {
		r.Decisions[i].Revision = 2
		r.Decisions[i].At = noon.Add(6 * time.Minute)
	}
	if r.DecidedAt != nil {
		at := noon.Add(6 * time.Minute)
		r.DecidedAt = &at
	}
	return r
}

func TestTheQuestion(t *testing.T) {
	c := silent(smallDiff, public)
	r := request(approval.Pending)
	got, m := c.look(t, anns, r, approvaltest.View(r))
	want := `◆ Approval needed · rev 2
Fix retry loop in the uploader
dora → kik → coder · app/main

upload/retry.go      +31 −9
upload/retry_test.go +14 −2
upload/doc.go        +3  −1
✓ go vet  ✓ go test
no warnings · diff below, complete
Rule rest: 1 yes, you or bob
Until Tue 12:00 UTC · 9f2c1a7e

` + strings.TrimSuffix(smallDiff, "\n") + `
[ Approve ] [ Reject ] [ Changes ]
[ Open the diff ]`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if m.Rows[1][0].URL != "https://gate.example.com/approvals/"+r.ID {
		t.Errorf("the link is %s", m.Rows[1][0].URL)
	}
	if got, _ := c.look(t, group, r, approvaltest.View(r)); !strings.Contains(got, "Rule rest: 1 yes, ann or bob\n") {
		t.Errorf("in a group nobody is you:\n%s", got)
	}
}

func TestTimesArePhrasedForTheirReaders(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	c := silent(smallDiff, Settings{PublicURL: public.PublicURL, Zone: zone})
	for chat, want := range map[int64]string{anns: "Until Tue 13:00 CET · ", group: "Until Tue 12:00 UTC · "} {
		r := request(approval.Pending)
		if got, _ := c.look(t, chat, r, approvaltest.View(r)); !strings.Contains(got, want) {
			t.Errorf("chat %d has no %q:\n%s", chat, want, got)
		}
		r.ExpiresAt = nil
		if got, _ := c.look(t, chat, r, approvaltest.View(r)); !strings.Contains(got, "No deadline · 9f2c1a7e") {
			t.Errorf("without a deadline:\n%s", got)
		}
	}
}

func TestWithoutAnOpenableAddressThereIsNoLink(t *testing.T) {
	for _, address := range []string{"http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080", "http://0.0.0.0", "https://gate", "", "ftp://gate.example.com", "http://app.localhost", "https://GATE.LOCALHOST."} {
		c := silent(smallDiff, Settings{PublicURL: address})
		for _, state := range []approval.State{approval.Pending, approval.Landed, approval.Failed} {
			got, m := c.look(t, group, request(state), approvaltest.View(request(state)))
			// Where everything is said and done there is nothing to open for.
			if strings.Contains(got, "\nOpen on the computer that runs Gatehouse") != (state != approval.Landed) {
				t.Errorf("%s, %s:\n%s", address, state, got)
			}
			for _, row := range m.Rows {
				for _, b := range row {
					if b.URL != "" {
						t.Errorf("%s: a button to %s", address, b.URL)
					}
				}
			}
		}
	}
	for _, address := range []string{"https://gate.example.com", "http://192.0.2.7:8080"} {
		if !openable(address) {
			t.Errorf("%s cannot be opened", address)
		}
	}
}

func TestHowRequestsEnd(t *testing.T) {
	at := noon.Add(6 * time.Minute)
	for name, c := range map[string]struct {
		r    approval.Request
		want string
	}{
		"approved": {with(approval.Approved, nil), "⇥ Approved · landing\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\n[ Open ]"},
		"landed": {with(approval.Landed, func(r *approval.Request) { r.Decisions[0].Channel = "telegram" }),
			"✓ Approved · landed on main\nFix retry loop in the uploader\nbob on Telegram, 12:06 UTC · 1 of 1\ncommit 4444444 · took 6 min\n[ Open ]"},
		"landed by two": {with(approval.Landed, func(r *approval.Request) {
			r.Rule.Need = 2
			r.Decisions = append(r.Decisions, approval.Decision{User: "cleo", UserID: "usr_cleo", For: "ann", Revision: 2, Verdict: approval.Approve, Channel: "cli", At: at})
		}), "✓ Approved · landed on main\nFix retry loop in the uploader\nbob on the web, 12:06 UTC; cleo (for ann) on the command line, 12:06 UTC · 2 of 2\ncommit 4444444 · took 6 min\n[ Open ]"},
		"by rule": {with(approval.Landed, func(r *approval.Request) {
			r.Decisions[0].User, r.Decisions[0].UserID, r.Decisions[0].Channel = "rule:docs", "", "rule"
		}),
			"✓ Approved · landed on main\nFix retry loop in the uploader\nrule docs, 12:06 UTC\ncommit 4444444 · took 6 min\n[ Open ]"},
		"to a branch": {with(approval.Landed, func(r *approval.Request) { r.Revision.Deliver = "branch" }),
			"✓ Approved · pushed to gatehouse/coder-fix-9f2c1a\nFix retry loop in the uploader\nbob on the web, 12:06 UTC · 1 of 1\ncommit 4444444 · took 6 min\n[ Open ]"},
		"rejected": {with(approval.Rejected, func(r *approval.Request) { r.Decisions[0].Comment = "Breaks resume;\nsee line 42." }),
			"⊖ Rejected · nothing landed\nFix retry loop in the uploader\nbob on the web, 12:06 UTC\n\"Breaks resume; see line 42.\"\n[ Open ]"},
		"changes": {with(approval.ChangesRequested, func(r *approval.Request) {
			r.Decisions[0].Verdict, r.Decisions[0].Comments = approval.RequestChanges, make([]agent.LineComment, 2)
		}),
			"↩ Changes requested · coder works on it again\nFix retry loop in the uploader\nbob on the web, 12:06 UTC\n2 line comments\n[ Open ]"},
		"changes from the start": {with(approval.ChangesRequested, func(r *approval.Request) {
			r.Decisions[0].Verdict, r.Decisions[0].StartOver = approval.RequestChanges, true
		}),
			"↩ Changes requested · coder works on it again\nFix retry loop in the uploader\nbob on the web, 12:06 UTC, starting over\n[ Open ]"},
		"expired": {with(approval.Expired, func(r *approval.Request) {
			r.Decisions, r.Reminded = nil, 2
			end := noon.Add(73 * time.Hour)
			r.DecidedAt = &end
		}), "⌛ Expired, not approved · nothing landed\nFix retry loop in the uploader\nasked 3 d ago, 2 reminders, no decision\n[ Open ]"},
		"expired halfway": {with(approval.Expired, func(r *approval.Request) { r.Rule.Need, r.Reminded = 2, 1 }),
			"⌛ Expired, not approved · nothing landed\nFix retry loop in the uploader\nasked 6 min ago, 1 reminder, 1 of 2 yes\n[ Open ]"},
		"stale": {with(approval.Stale, nil), "⧉ Stale · main moved, so it is asked again\nFix retry loop in the uploader\nbob's yes did not land.\nNothing landed: the branch moved meanwhile. Revision 3 asks again.\n[ Open ]"},
		"reverted": {with(approval.Reverted, func(r *approval.Request) {
			r.Landed, r.RevertedBy = strings.Repeat("4", 40), "apr_01k9zzzzzzzzzzzzzzzzabcdef"
		}),
			"⧉ Reverted · it had landed on main\nFix retry loop in the uploader\ncommit 4444444 was undone by apr_…abcdef\n[ Open ]"},
		"failed":    {with(approval.Failed, nil), "✕ Failed · nothing landed\nFix retry loop in the uploader\nIts page says why, and can try again.\n[ Open ]"},
		"cancelled": {with(approval.Cancelled, nil), "■ Cancelled · nothing landed\nFix retry loop in the uploader\n[ Open ]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := silent(smallDiff, public).look(t, group, c.r, approvaltest.View(c.r)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func with(state approval.State, change func(*approval.Request)) approval.Request {
	r := request(state)
	if change != nil {
		change(&r)
	}
	return r
}

func TestWhatReplacedARevision(t *testing.T) {
	changes := approval.Decision{User: "ann", UserID: "usr_ann", Revision: 2, Verdict: approval.RequestChanges}
	for want, change := range map[string]func(*approval.Request){
		"rev 2 → rev 3 after ann's comments": func(r *approval.Request) { r.Decisions = []approval.Decision{changes} },
		"rev 2 → rev 3 after ann's comments, starting over": func(r *approval.Request) {
			anew := changes
			anew.StartOver = true
			r.Decisions = []approval.Decision{anew}
		},
		"rev 2 → rev 3, because main moved": func(*approval.Request) {},
		"rev 2 → rev 3, edited by cleo": func(r *approval.Request) {
			r.Revision.Made, r.Revision.MadeFrom, r.Revision.Editor = approval.MadeByEdit, 2, &approval.Party{User: "cleo"}
		},
		"rev 2 → rev 3, some of its files": func(r *approval.Request) { r.Revision.Made, r.Revision.MadeFrom = approval.MadeByFiles, 2 },
		"rev 2 → rev 3, because main moved\nbob's yes was to rev 2 and did not land: main moved, so it is asked again.": func(r *approval.Request) {
			r.Decisions = []approval.Decision{{User: "bob", UserID: "usr_bob", Revision: 2, Verdict: approval.Approve}}
			r.Revision.Made, r.Revision.MadeFrom, r.Revision.Editor = approval.MadeByEdit, 1, &approval.Party{User: "cleo"} // the one before was hers
		},
	} {
		r := with(approval.Pending, func(r *approval.Request) { r.Revision.N = 3; change(r) })
		c := silent(smallDiff, public)
		f := c.face(t.Context(), Place{Chat: group}, r, approvaltest.View(r))
		if got := f.retired(2).text.String(); got != "⧉ Replaced by revision 3 · buttons are off\nFix retry loop in the uploader\n"+want {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
}

// A channel offers Approve only where all of the change can be seen.
func TestWhereThereIsNoApprove(t *testing.T) {
	large := strings.Repeat("+line\n", 1+documentLimit/6)
	for name, c := range map[string]struct {
		diff   string
		change func(*approval.Request)
		view   func(*approval.CardView)
		says   []string
	}{
		"a warning": {smallDiff, func(r *approval.Request) {
			r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/workflows/ci.yml"}}
		}, nil, []string{"⚠ CI file changed: .github/workflows/ci.yml\n", "To approve, open the diff: CI file changed.\n"}},
		"a failed check": {smallDiff, func(r *approval.Request) { r.Revision.Checks[1].OK = false }, nil, []string{"✕ go test  ✓ go vet\n", "To approve, open the diff: Checks failed.\n"}},
		"100,000 lines": {strings.Repeat("+a line\n", 100_000), func(r *approval.Request) { r.Revision.Added = 100_000 }, nil,
			[]string{"diff in the file below", "To approve, open the diff: too long to show here.\n"}},
		"too large for a file": {large, nil, nil, []string{"diff not here: it has 6 MB", "To approve, open the diff: it has 6 MB.\n"}},
		"approved in the chat": {smallDiff, func(r *approval.Request) { r.Mode = "chat" }, func(v *approval.CardView) { v.Verdicts = v.Verdicts[1:] },
			[]string{"To approve, open the chat: changes of coder are approved there.\n"}},
		"approved on the page": {smallDiff, func(r *approval.Request) { r.Mode = "web" }, func(v *approval.CardView) { v.Verdicts = v.Verdicts[1:] },
			[]string{"To approve, open the page: changes of coder are approved there.\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := with(approval.Pending, c.change)
			view := approvaltest.View(r)
			if c.view != nil {
				c.view(&view)
			}
			got, _ := silent(c.diff, public).look(t, group, r, view)
			for _, want := range append(c.says, "\n[ Reject ] [ Changes ]\n") {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
		})
	}
}

func TestWhoSaidYesAndWhoIsNext(t *testing.T) {
	r := request(approval.Pending)
	r.Rule = policy.Rule{Name: "core", Need: 2, From: []string{"maintainers"}}
	r.Decisions = []approval.Decision{{User: "bob", UserID: "usr_bob", Revision: 1, Verdict: approval.Approve}, {User: "bob", UserID: "usr_bob", Revision: 2, Verdict: approval.Approve}}
	view := approvaltest.View(r)
	view.Needs.Missing, view.Turn = []approval.Voter{{Name: "ann", For: "dora"}, {Name: "cleo"}}, "ann (for dora) or cleo"
	for chat, want := range map[int64]string{group: "next ann (for dora) or cleo\n", anns: "next you (for dora) or cleo\n"} {
		if got, _ := silent(smallDiff, public).look(t, chat, r, view); !strings.Contains(got, "Rule core: 1 of 2 yes so far (bob), "+want) {
			t.Errorf("got\n%s", got)
		}
	}
	view.TooFew = `This needs 2 of maintainers, but only bob can: ann asked for it. Add a person to maintainers, or change the rule "core".`
	if got, _ := silent(smallDiff, public).look(t, group, r, view); !strings.HasPrefix(got, "◆ Approval needed · rev 2 · "+view.TooFew+"\n") {
		t.Errorf("the first line does not say that nobody can:\n%s", got)
	}
}

// In a private chat somebody whose yes does not count, or counts already, is not asked
// for it.
func TestApproveIsNotOfferedInVain(t *testing.T) {
	r := request(approval.Pending)
	view := approvaltest.View(r)
	view.Needs.Missing, view.Turn = []approval.Voter{{Name: "bob"}, {Name: "cleo"}}, "bob or cleo"
	got, m := silent(smallDiff, public).look(t, anns, r, view)
	if !strings.Contains(got, "Approving is up to bob or cleo.\n") || m.Rows[0][0].Text != rejectButton {
		t.Errorf("ann's card:\n%s", got)
	}
	if _, m := silent(smallDiff, public).look(t, group, r, view); m.Rows[0][0].Text != approveButton {
		t.Errorf("the group's buttons are %+v", m.Rows)
	}
}

func TestADiffIsInTheCardOnlyIfAllOfItIs(t *testing.T) {
	for name, c := range map[string]struct {
		diff  string
		where string
	}{
		"fits":                 {smallDiff, "diff below, complete"},
		"900 units":            {strings.Repeat("x", inlineLimit) + "\n", "diff below, complete"},
		"901 units":            {strings.Repeat("x", inlineLimit+1) + "\n", "diff in the file below"},
		"900 in UTF-16":        {strings.Repeat("😀", inlineLimit/2) + "\n", "diff below, complete"},
		"901 in UTF-16":        {strings.Repeat("😀", inlineLimit/2) + "x\n", "diff in the file below"},
		"code points grow":     {strings.Repeat("\u202e", inlineLimit/5) + "\n", "diff in the file below"},
		"ends with blanks":     {"+a\n+  \n", "diff in the file below"},
		"ends with no lf":      {"+a\n\\ No newline at end of file\n", "diff below, complete"},
		"nothing":              {"\n", "diff not here: it is empty"},
		"blanks in the middle": {"+  \n+a\n", "diff below, complete"},
	} {
		r := request(approval.Pending)
		if got, _ := silent(c.diff, public).look(t, group, r, approvaltest.View(r)); !strings.Contains(got, c.where) {
			t.Errorf("%s: no %q in\n%s", name, c.where, got)
		}
	}
	if got := inline("+a\u202eb\x00\n"); got != "+a⟦U+202E⟧b⟦U+0000⟧" {
		t.Errorf("shown as %q", got)
	}
}

func TestFileNames(t *testing.T) {
	for repository, want := range map[string]string{"app": "app-9f2c1a-rev2.diff", "../../etc/passwd": "etc-passwd-9f2c1a-rev2.diff", "\u202e": "change-9f2c1a-rev2.diff",
		"": "change-9f2c1a-rev2.diff", "my app\n": "my-app-9f2c1a-rev2.diff"} {
		r := request(approval.Pending)
		r.Repository = repository
		if got := fileName(r); got != want {
			t.Errorf("%q becomes %s, not %s", repository, got, want)
		}
	}
}
