package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/web/browsertest"
)

// statesTeam has an agent for each thing that a page may have to show.
const statesTeam = `
engine: {workers: 6}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f README.md", "echo 'it does not build' >&2; false"]}
  site: {path: "REPO", branch: main}
agents:
  an-agent-with-quite-a-long-name-that-somebody-chose: {kind: command, repository: site, command: [sh, -c, "cat > notes.txt"]}
  kik:
    kind: workflow
    capabilities: [planning]
    steps: [{id: change, agent: coder, task: "{{.Task}}"}]
  coder:
    kind: command
    repository: app
    role: developer
    command:
      - sh
      - -ceu
      - |
        mkdir -p .github/workflows internal/a/rather/deep/folder web
        printf 'on: push\njobs: {}\n' > .github/workflows/ci.yml
        printf 'package folder\n\n// \342\200\256Hidden turns the text around.\nconst Hidden = "<script>alert(1)</script>"\n' > internal/a/rather/deep/folder/a_file_with_a_long_name_that_wraps_on_a_phone.go
        printf '\000\001\002' > web/logo.bin
        seq 1 400 > web/package-lock.json
        echo 'More than before, on one line that is long enough to need wrapping on every screen that people carry in their pockets, and then some.' >> README.md
        printf 'I changed the build, the readme and the logo.\n\033[31m<b>Trust me.</b>\n'
  broken: {kind: command, repository: app, command: [sh, -c, "echo 'claude: not signed in' >&2; exit 3"]}
  absent: {kind: command, command: [no-such-program]}
  talker: {kind: command, command: [sh, -c, "echo 'Nothing needs to change.'"]}
  slow: {kind: command, command: [sleep, "600"]}
`

func TestEveryStateOfThePages(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), statesTeam)
	n := p.Start(p.Config, "")
	browser := browsertest.New(t)
	ann, bob := browser.Page(), browser.Page()
	for name, page := range map[string]*browsertest.Page{"ann": ann, "bob": bob} {
		u, err := p.Store.UserByName(t.Context(), name)
		p.Must(err)
		code, err := placetest.SignedIn(t.Context(), p.Store, u)
		p.Must(err)
		page.Open(n.URL + "/login/link?code=" + code)
		page.WaitText("Needs you")
	}
	t.Run("nothing yet", func(t *testing.T) {
		gallery(t, bob, "empty-overview", n.URL+"/")
		gallery(t, bob, "empty-approvals", n.URL+"/approvals")
		gallery(t, ann, "empty-delegations", n.URL+"/delegations")
	})
	t.Run("a careful change", func(t *testing.T) { careful(t, n, ann, bob) })
	t.Run("two revisions", func(t *testing.T) { twoRevisions(t, n, bob) })
	t.Run("a landing that is held up", func(t *testing.T) { heldLanding(t, n, ann, bob) })
	t.Run("what went wrong", func(t *testing.T) { wentWrong(t, n, ann, bob) })
	t.Run("full lists", func(t *testing.T) {
		for i := range 55 {
			n.Send("talker", "", fmt.Sprintf("chore %d", i))
		}
		n.Send("slow", "", "Watch the clock")
		gallery(t, ann, "full-overview", n.URL+"/")
		gallery(t, ann, "full-delegations", n.URL+"/delegations")
		ann.Open(n.URL + "/delegations")
		ann.Click("link", "older ›")
		ann.Wait("link", "‹ newest")
		gallery(t, bob, "full-approvals", n.URL+"/approvals?state=all")
		gallery(t, ann, "agents", n.URL+"/agents")
		gallery(t, ann, "agent", n.URL+"/agents/coder")
		ann.Open(n.URL + "/agents?from=kik&to=kik")
		ann.WaitText("self")
		ann.Shot("agents-check")
	})
}

// careful shows a change with every kind of warning: yes wants a tick for each.
func careful(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page) {
	r := n.Asked(n.Send("kik", "", "the build over again"))
	address := n.URL + "/approvals/" + r.ID
	gallery(t, bob, "review-careful", address)
	bob.Open(address)
	for _, warning := range []string{"CI file changed", "Lock file changed", "Binary file changed", "A check failed", "U+202E"} {
		bob.WaitText(warning)
	}
	bob.Click("button", "Approve")
	bob.WaitText("I have looked at: CI file changed")
	bob.Shot("review-careful-sheet")
	bob.Phone().Open(address)
	bob.Click("button", "Approve")
	bob.WaitText("I have looked at: CI file changed")
	bob.Shot("review-careful-sheet-phone")
	bob.Desktop()
	if got := n.Requests(r.TaskID)[0].State; got != approval.Pending {
		t.Errorf("one press approved a change with warnings: it is %s", got)
	}
	ann.Open(address)
	ann.Wait("heading", "Do the build over again")
	if ann.Has("button", "Approve") {
		t.Error("ann is no approver and has the button")
	}
	ann.Shot("review-may-not")
}

// twoRevisions asks for changes, reads what changed, and sees an old page say so.
func twoRevisions(t *testing.T, n *placetest.Node, bob *browsertest.Page) {
	id := n.Send("an-agent-with-quite-a-long-name-that-somebody-chose", "", "the notes")
	r := n.Asked(id)
	address := n.URL + "/approvals/" + r.ID
	bob.Open(address)
	bob.Wait("button", "Request changes")
	old := bob.Tab()
	old.Open(address)
	old.Wait("button", "Approve")
	bob.Fill("Comment", "Say it with more words.")
	bob.Click("button", "Request changes")
	bob.WaitText("The agent runs again with your comments.")
	n.Until("a second revision", func() bool { return n.Requests(id)[0].Revision.N == 2 })
	old.WaitText("Revision 2 replaced this one")
	if old.Has("button", "Approve") {
		t.Error("the page of an old revision still offers a yes")
	}
	old.Shot("review-superseded")
	bob.Open(address)
	bob.Click("link", "compare 1→2")
	bob.WaitText("Only what changed from revision 1 to 2.")
	bob.WaitText("Say it with more words.")
	gallery(t, bob, "review-compare", bob.URL())
	placetest.Git(t, n.Repo, "commit", "-q", "--allow-empty", "-m", "nothing else")
	bob.Open(address)
	bob.WaitText("moved by 1 commit since")
	bob.WaitText("this change still applies unchanged")
	bob.Shot("review-base-moved")
}

// heldLanding approves while the people's folder is dirty. Once it is clean the change
// lands by itself, and at once for who asks for it.
func heldLanding(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page) {
	id := n.Send("an-agent-with-quite-a-long-name-that-somebody-chose", "", "more notes")
	r := n.Asked(id)
	readme := filepath.Join(n.Repo, "README.md")
	n.Must(os.WriteFile(readme, []byte("Work of a person, in the middle.\n"), 0o600))
	bob.Open(n.URL + "/approvals/" + r.ID)
	scrollThrough(bob)
	bob.Click("button", "Approve")
	bob.WaitText("has changes that are not committed")
	bob.WaitText("The approval stands.")
	gallery(t, bob, "review-held", n.URL+"/approvals/"+r.ID)
	gallery(t, ann, "delegation-held", n.URL+"/delegations/"+id)
	placetest.Git(t, n.Repo, "checkout", "-q", "README.md")
	if code, err := n.Call("POST", "/api/v1/delegations/"+id+"/retry", n.Asker, nil, nil); err != nil || code >= 400 && code != 409 { // 409: it has landed
		t.Fatalf("trying again: %d, %v", code, err)
	}
	ann.Open(n.URL + "/delegations/" + id)
	ann.WaitText("completed")
	ann.WaitText("landed")
	n.LandedOnce(id)
}

// wentWrong shows failures, and the pages that say no.
func wentWrong(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page) {
	for _, agent := range []string{"broken", "absent"} {
		id := n.Send(agent, "", "what "+agent+" can")
		n.Until("the end", func() bool { return n.Root(id).State == orchestrator.Failed })
		gallery(t, ann, "delegation-"+agent, n.URL+"/delegations/"+id)
		ann.Open(n.URL + "/delegations/" + id)
		ann.Wait("button", "Retry")
	}
	gallery(t, ann, "no-match", n.URL+"/delegations?q=unheard-of&state=expired")
	ann.WaitText("without the filter")
	ann.Expect("404").Expect("403")
	bob.Expect("404").Expect("403").Expect("409")
	ann.Open(n.URL + "/delegations/tsk_00000000000000000000000000")
	ann.WaitText("There is nothing here")
	ann.Shot("error-not-found")
	ann.Phone().Open(n.URL + "/nowhere")
	ann.WaitText("There is nothing at this address.")
	ann.Shot("error-nowhere-phone")
	ann.Desktop()
	if text := ann.Text(); strings.Contains(text, "err ") {
		t.Errorf("an address that is not there is called our failure:\n%s", text)
	}
}
