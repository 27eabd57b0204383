package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// reviewTeam has one agent that changes three files, one of them with the line ends of
// Windows; asked again, it does so one line further down.
const reviewTeam = `
engine: {workers: 4}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    command:
      - sh
      - -ceu
      - |
        cat > z-task.txt
        mkdir -p upload
        : > upload/retry.go
        if grep -Eq '^[^+]*Give up sooner' z-task.txt; then echo '// Tries again, and gives up.' > upload/retry.go; fi
        printf 'package upload\n\nfunc try(n int) bool {\n\treturn n < 500\n}\n' >> upload/retry.go
        printf 'one\r\ntwo\r\nthree' > windows.txt
        echo 'I wrote the retry loop.'
`

// People say more than yes and no: on lines, about some files, and in the file itself.
func TestReviewingInTheBrowser(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), reviewTeam)
	p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")
	browser := browsertest.New(t)
	bob, cleo := browser.Page(), browser.Page()
	for name, page := range map[string]*browsertest.Page{"bob": bob, "cleo": cleo} {
		u, err := p.Store.UserByName(t.Context(), name)
		p.Must(err)
		code, err := placetest.SignedIn(t.Context(), p.Store, u)
		p.Must(err)
		page.Open(n.URL + "/login/link?code=" + code)
		page.WaitText("Needs you")
	}
	t.Run("comments on lines", func(t *testing.T) { lineComments(t, n, bob, cleo) })
	t.Run("some files", func(t *testing.T) { someFiles(t, n, bob) })
	t.Run("an edit", func(t *testing.T) { editing(t, n, bob, cleo) })
	t.Run("keys", func(t *testing.T) { reviewKeys(t, n, bob) })
	t.Run("without script", func(t *testing.T) {
		bob.Script(false)
		reviewWithoutScript(t, n, bob)
		bob.Script(true)
	})
}

// lineComments writes two, loses none of them by a reload, and sends them.
func lineComments(t *testing.T, n *placetest.Node, bob, cleo *browsertest.Page) {
	id := n.Send("coder", "", "the retry loop")
	r := n.Asked(id)
	address := n.URL + "/approvals/" + r.ID
	bob.Open(address)
	bob.Click("link", "Comment on added line 4")
	bob.Fill("Comment on added line 4", "Give up sooner: 500 tries take an hour.")
	bob.Shot("comment-form-light")
	bob.Click("button", "Save comment")
	bob.WaitText("not sent")
	bob.WaitText("1 comment")
	bob.Click("link", "Comment on added line 3")
	bob.Fill("Comment on added line 3", "Name it attempt. <b>Really</b>")
	bob.Click("button", "Save comment")
	bob.WaitText("2 comments")
	if got := n.Requests(id)[0]; len(got.Decisions) != 0 {
		t.Errorf("a draft is a decision: %+v", got.Decisions)
	}
	cleo.Open(address)
	cleo.Wait("button", "Approve")
	if strings.Contains(cleo.Text(), "500 tries take an hour") {
		t.Error("somebody else reads what was not sent")
	}
	gallery(t, bob, "review-drafts", address)
	bob.Open(address)
	bob.WaitText("500 tries take an hour.")
	bob.WaitText("2 comments")
	bob.Phone().Open(address)
	bob.Click("link", "Comment on added line 1")
	bob.Fill("Comment on added line 1", "Typed with a thumb")
	bob.Shot("comment-sheet-phone")
	bob.Click("link", "Cancel")
	bob.Desktop().Open(address + "?view=split")
	bob.WaitText("500 tries take an hour.")
	bob.Shot("review-drafts-split")
	bob.Open(address)
	bob.Click("button", "Request changes")
	bob.WaitText("The agent runs again with your comments.")
	n.Until("a second revision", func() bool { return n.Requests(id)[0].Revision.N == 2 })
	d := n.Requests(id)[0].Decisions[0]
	if len(d.Comments) != 2 || d.Comments[0].Code == "" || d.Verdict != approval.RequestChanges {
		t.Errorf("sent: %+v", d)
	}
	var patch strings.Builder
	if status, err := n.Text("/api/v1/approvals/"+r.ID+"/patch", n.Approver, &patch); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	task := patch.String()
	for _, want := range []string{"upload/retry.go:4", "return n < 500", "Give up sooner"} {
		if !strings.Contains(task, want) {
			t.Errorf("the agent was not told %q:\n%s", want, task)
		}
	}
	bob.Open(address)
	bob.WaitText("2 comments on lines")
	bob.WaitText("moved here from line 4") // what was said of revision 1 stands at its line
	talking(t, bob, cleo, address)
	bob.Open(address + "?rev=1")
	bob.WaitText("500 tries take an hour.")
	gallery(t, bob, "review-sent", address+"?rev=1")
	moves(t, n, bob, address, id)
}

// talking: two people talk under the two comments of revision 1, at a desk and on a phone.
func talking(t *testing.T, bob, cleo *browsertest.Page, address string) {
	bob.WaitText("2 open comments")
	cleo.Phone().Open(address)
	cleo.Click("button", "Resolve the comment on upload/retry.go:4")
	cleo.WaitText("Resolved by cleo")
	cleo.WaitText("1 open comment")
	gallery(t, cleo, "review-threads", address)
	cleo.Desktop()
	bob.Script(false)
	bob.Open(address)
	bob.Click("button", "Resolve the comment on upload/retry.go:5")
	bob.WaitText("Resolved by bob")
	bob.Script(true)
}

// moves: a draft goes with its line to the next revision, or says that it is gone.
func moves(t *testing.T, n *placetest.Node, bob *browsertest.Page, address, id string) {
	bob.Open(address)
	bob.Click("link", "Comment on added line 5")
	bob.Fill("Comment on added line 5", "Stays with its line")
	bob.Click("button", "Save comment")
	bob.WaitText("1 comment")
	bob.Click("link", "Comment on added line 1")
	bob.Fill("Comment on added line 1", "Will be gone")
	bob.Click("button", "Save comment")
	bob.WaitText("2 comments")
	old := bob.Tab()
	old.Open(address)
	old.Click("link", "Comment on added line 2")
	old.Fill("Comment on added line 2", "Begun before, kept after")
	r := n.Requests(id)[0]
	status, err := n.Call("POST", "/api/v1/approvals/"+r.ID+"/decision", n.Approver, map[string]any{"verdict": "request_changes", "digest": r.Revision.Digest, "comment": "Once more.", "take_drafts": false}, nil)
	if err != nil || status != 200 {
		t.Fatal(status, err)
	}
	n.Until("a third revision", func() bool { return n.Requests(id)[0].Revision.N == 3 })
	old.WaitText("Revision 3 replaced this one")
	if old.Has("button", "Approve") {
		t.Error("the page of an old revision still offers a yes")
	}
	old.Click("button", "Save comment")
	old.WaitText("not sent")
	if !strings.Contains(old.Text(), "Tries again, and gives up.") {
		t.Errorf("another revision took the place of the one that is read:\n%s", old.Text())
	}
	old.Shot("comment-superseded")
	bob.Open(address)
	bob.WaitText("whose line is gone")
	bob.WaitText("// Tries again, and gives up.")
	bob.WaitText("moved here from line 5 of revision 2")
	gallery(t, bob, "review-gone", address)
	bob.Open(address)
	bob.Click("button", "Delete the comment on upload/retry.go:1")
	bob.WaitGone("whose line is gone")
	bob.WaitText("2 comments")
	bob.WaitText("Begun before, kept after")
}

// someFiles approves two of three: what lands has no third.
func someFiles(t *testing.T, n *placetest.Node, bob *browsertest.Page) {
	id := n.Send("coder", "", "the loop, in part")
	r := n.Asked(id)
	address := n.URL + "/approvals/" + r.ID
	bob.Open(address)
	bob.Click("link", "Approve only some files")
	bob.Wait("button", "Approve 3 of 3 files")
	bob.Click("checkbox", "Include z-task.txt")
	bob.Wait("button", "Approve 2 of 3 files")
	gallery(t, bob, "review-picking", bob.URL())
	bob.Open(address + "?pick=1")
	bob.Click("checkbox", "Include z-task.txt")
	browsertest.Eval[bool](bob, `(document.querySelector('[data-file-end]').scrollIntoView({block: 'center'}), true)`)
	bob.Until("!document.querySelector('[data-unviewed]')") // a file has been in sight to its end for a while
	bob.Click("button", "Approve 2 of 3 files")
	bob.WaitText("landed on main as")
	bob.Open(address)
	bob.WaitText("left out 1 file of revision 1: z-task.txt")
	got := n.Requests(id)[0]
	if files := placetest.Git(t, n.Repo, "show", "--name-only", "--format=", "-m", "--first-parent", got.Landed); files != "upload/retry.go\nwindows.txt" {
		t.Errorf("landed: %q", files)
	}
	gallery(t, bob, "review-partial-landed", address)
}

// editing changes one line of a file with the line ends of Windows: nothing else of it changes.
func editing(t *testing.T, n *placetest.Node, bob, cleo *browsertest.Page) {
	placetest.Git(t, n.Repo, "rm", "-q", "-r", "upload", "windows.txt")
	placetest.Git(t, n.Repo, "commit", "-q", "-m", "from the start")
	id := n.Send("coder", "", "the loop, edited")
	r := n.Asked(id)
	address := n.URL + "/approvals/" + r.ID
	bob.Open(address)
	bob.Click("link", "Edit")
	bob.WaitText("you cannot approve it")
	bob.Fill("New text of windows.txt", "one\n2\nthree")
	bob.Fill("What you changed", "Digits.")
	gallery(t, bob, "review-editing", bob.URL())
	bob.Desktop()
	bob.Click("button", "Make revision 2")
	n.Until("the edit", func() bool { return n.Requests(id)[0].Revision.N == 2 })
	bob.Open(address)
	bob.WaitText("Edited by bob, from revision 1.")
	if bob.Has("button", "Approve") {
		t.Error("who edited it may approve it")
	}
	gallery(t, bob, "review-edited", address)
	cleo.Open(address)
	scrollThrough(cleo)
	cleo.Click("button", "Approve")
	cleo.WaitText("landed")
	if text := placetest.Git(t, n.Repo, "show", n.Requests(id)[0].Landed+":windows.txt"); text != "one\r\n2\r\nthree" {
		t.Errorf("the edited file is %q", text)
	}
}

// reviewWithoutScript does the same with links and forms alone.
func reviewWithoutScript(t *testing.T, n *placetest.Node, bob *browsertest.Page) {
	id := n.Send("coder", "", "the loop by hand")
	r := n.Asked(id)
	bob.Open(n.URL + "/approvals/" + r.ID)
	bob.Click("link", "Comment on added line 1")
	bob.Fill("Comment on added line 1", "Without any script")
	bob.Shot("comment-form-plain")
	bob.Click("button", "Save comment")
	bob.WaitText("Without any script")
	bob.WaitText("1 comment")
	bob.Click("link", "Edit the comment on z-task.txt:1")
	bob.Fill("Comment on added line 1", "Changed my mind")
	bob.Click("button", "Save comment")
	bob.WaitText("Changed my mind")
	bob.Click("link", "Approve only some files")
	for _, f := range r.Revision.Files {
		bob.Click("checkbox", "Include "+f.Path)
	}
	bob.Click("checkbox", unread)
	bob.Click("button", "Approve the ticked files")
	bob.Expect("400")
	bob.WaitText("No file is chosen.")
	bob.Click("link", "Cancel")
	bob.Click("button", "Request changes")
	bob.WaitText("The agent runs again with your comments.")
	n.Until("a second revision", func() bool { return n.Requests(id)[0].Revision.N == 2 })
}

// reviewKeys moves and opens; none of the keys decides.
func reviewKeys(t *testing.T, n *placetest.Node, bob *browsertest.Page) {
	id := n.Send("coder", "", "the loop by keys")
	r := n.Asked(id)
	bob.Open(n.URL + "/approvals/" + r.ID)
	bob.Wait("button", "Approve")
	bob.Press("j")
	bob.Press("c")
	bob.Wait("button", "Save comment")
	bob.Fill("Comment on removed line 2", "Typed, not saved")
	bob.Press("Escape")
	bob.WaitGone("Sent with your verdict, not before.")
	bob.Press("c")
	bob.Wait("button", "Save comment")
	// The driver sends the letter of the key apart from the key, so it lands in the field.
	if got := browsertest.Eval[string](bob, `document.getElementById("remark-text").value`); strings.TrimSuffix(got, "c") != "Typed, not saved" {
		t.Errorf("Escape lost what was typed: %q", got)
	}
	bob.Press("Escape")
	for _, key := range []string{"a", "n", "p", "]", "[", "v", "k", "e"} {
		bob.Press(key)
	}
	if at := browsertest.Eval[string](bob, `document.activeElement.id`); at != "comment" {
		t.Errorf("e leads to %q", at)
	}
	if got := n.Requests(id)[0]; got.State != approval.Pending || len(got.Decisions) > 0 {
		t.Errorf("a key decided: %s %+v", got.State, got.Decisions)
	}
}
