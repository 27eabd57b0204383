package browser

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/web/browsertest"
)

// readingTeam has an agent whose change has all that makes reading hard: changes far
// apart, a moved file, a deleted one, spaces, a picture, a lock file and a warning.
const readingTeam = `
engine: {workers: 4}
repositories:
  app: {path: "REPO", branch: main, checks: ["test -f README.md"]}
agents:
  coder:
    kind: command
    repository: app
    command:
      - sh
      - -ceu
      - |
        cat > z-task.txt
        sed -i 's/^line 60$/line 60, changed/; s/^line 200$/line 200, changed/' long.txt
        sed -i 's/^    \(return\)/\t\1/; s/^func old/func fresh/' spaces.go
        mkdir -p moved && git mv src/name.go moved/name.go && echo '// more' >> moved/name.go
        git rm -q src/gone.txt
        printf '\211PNG\r\n\032\n\000\000\000\015IHDR\000\000\000\002\000\000\000\002\010\002\000\000\000\375\324\232\163\000\000\000\022IDAT\170\234\143\370\317\300\300\000\302\014\014\377\001\037\356\005\373\321\025\041\313\000\000\000\000IEND\256B\140\202' > web/logo.png
        seq 1 300 > web/package-lock.json
        mkdir -p .github/workflows && echo 'on: push' > .github/workflows/ci.yml
        printf 'The loop was reset; I moved it out, and tidied what stood beside it.\n'
`

// readingRepo is what that change is made of.
func readingRepo(t *testing.T, repo string) {
	t.Helper()
	var long, gone strings.Builder
	for i := range 300 {
		long.WriteString("line " + strconv.Itoa(i+1) + "\n")
		if i < 40 {
			gone.WriteString("old " + strconv.Itoa(i+1) + "\n")
		}
	}
	for name, text := range map[string]string{
		"long.txt": long.String(), "src/gone.txt": gone.String(), ".editorconfig": "[*.go]\ntab_width = 8\n",
		"spaces.go":   "package spaces\n\nfunc old() int {\n    return 1\n}\n\nfunc two() int {\n    return 2\n}\n",
		"src/name.go": "package src\n\n// Name is a name.\nconst Name = \"x\"\n\nvar other = 1\n", "web/logo.png": "\x89PNG\r\n\x1a\n old",
	} {
		path := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	placetest.Git(t, repo, "add", "-A")
	placetest.Git(t, repo, "commit", "-q", "-m", "what is to change")
}

// Reading a change: folded lines, links to lines, marks that the server keeps, keys, and
// the same on a phone.
func TestReadingAChangeInTheBrowser(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), readingTeam)
	readingRepo(t, p.Repo)
	n := p.Start(p.Config, "")
	bob := browsertest.New(t).Page()
	u, err := p.Store.UserByName(t.Context(), "bob")
	p.Must(err)
	code, err := placetest.SignedIn(t.Context(), p.Store, u)
	p.Must(err)
	bob.Expect("picture").Open(n.URL + "/login/link?code=" + code)
	bob.WaitText("Needs you")
	r := n.Asked(n.Send("coder", "", "the loop"))
	address := n.URL + "/approvals/" + r.ID
	t.Run("pictures", func(t *testing.T) {
		gallery(t, bob, "reading", address)
		gallery(t, bob, "reading-split", address+"?view=split")
	})
	t.Run("folded lines", func(t *testing.T) { foldedLines(t, bob, address) })
	t.Run("lines", func(t *testing.T) { linesOfText(t, bob, address) })
	t.Run("without script", func(t *testing.T) {
		bob.Script(false)
		readWithoutScript(t, bob, address)
		bob.Script(true)
	})
	t.Run("by keys", func(t *testing.T) {
		readByKeys(t, bob, address, func() {
			n.Until("eight marks", func() bool {
				got, err := p.Store.Reading(t.Context(), u.ID, r.ID, 1)
				return err == nil && len(got.Viewed) == 8
			})
		})
	})
	t.Run("on a phone", func(t *testing.T) { readOnAPhone(t, bob, address) })
	t.Run("decided", func(t *testing.T) { decidedElsewhere(t, n, r, bob, address) })
}

// foldedLines open in place, keep what is read where it is, and stay open in the address.
func foldedLines(t *testing.T, bob *browsertest.Page, address string) {
	bob.Open(address)
	bob.WaitText("⋯ 56 unchanged lines")
	bob.Click("link", "Show 20 lines above")
	bob.WaitText("⋯ 36 unchanged lines")
	bob.WaitText("line 37")
	if !strings.Contains(bob.URL(), "open=") {
		t.Errorf("the address is %s", bob.URL())
	}
	bob.Click("link", "Show 20 lines below")
	bob.WaitText("⋯ 113 unchanged lines")
	bob.Open(bob.URL())
	bob.WaitText("⋯ 36 unchanged lines")
	bob.WaitText("⋯ 113 unchanged lines")
	bob.WaitText("⋯ 97 unchanged lines") // after the last change
	bob.Click("link", "whole file")
	bob.WaitText("line 300")
	bob.Shot("reading-unfolded")
	bob.Open(address + "#" + anchorOf(bob, "long.txt") + "R150")
	bob.WaitText("line 150")
}

// anchorOf is the id of a file's block.
func anchorOf(p *browsertest.Page, path string) string {
	return browsertest.Eval[string](p, `document.querySelector('.file[data-path="`+path+`"]').id`)
}

// linesOfText: a run of lines is named by the address, and a comment quotes it.
func linesOfText(t *testing.T, bob *browsertest.Page, address string) {
	bob.Open(address)
	bob.Wait("button", "Approve")
	file := anchorOf(bob, "long.txt")
	bob.Click("link", "Comment on added line 60")
	bob.Wait("button", "Save comment")
	bob.Press("Escape")
	browsertest.Eval[bool](bob, `document.querySelector('[data-comment="`+file+`R62"]').dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, shiftKey: true}))`)
	bob.Wait("button", "Save comment")
	if at := browsertest.Eval[string](bob, "location.hash"); at != "#"+file+"R60-R62" {
		t.Errorf("the address names %s", at)
	}
	if lit := browsertest.Eval[int](bob, `document.querySelectorAll(".in-range").length`); lit != 3 {
		t.Errorf("%d lines are marked", lit)
	}
	bob.Fill("Comment on line 62", "All three?")
	bob.Shot("reading-range")
	bob.Click("button", "Save comment")
	bob.WaitText("lines 60–62")
	bob.Click("button", "Delete the comment on long.txt:60–62")
	bob.WaitGone("All three?")
}

// readByKeys walks all files with v; the marks are there on another device, too.
func readByKeys(t *testing.T, bob *browsertest.Page, address string, kept func()) {
	bob.Open(address)
	bob.Wait("button", "Approve")
	total := browsertest.Eval[int](bob, `document.querySelectorAll(".file-item").length`)
	bob.Press("v")
	bob.WaitText("1 of " + strconv.Itoa(total) + " viewed")
	bob.Press("v")
	bob.WaitText("2 of " + strconv.Itoa(total) + " viewed")
	other := bob.Tab()
	other.Expect("picture").Open(address)
	for i := range total - 2 {
		bob.Press("v")
		bob.WaitText(strconv.Itoa(i+3) + " of ")
	}
	bob.WaitText(strconv.Itoa(total) + " of " + strconv.Itoa(total) + " viewed")
	if at := browsertest.Eval[string](bob, "document.activeElement.id"); at != "review-bar" {
		t.Errorf("after the last file the focus is on %q", at)
	}
	kept() // the page shows a mark before the server has it
	other.Open(address)
	other.WaitText(strconv.Itoa(total) + " of " + strconv.Itoa(total) + " viewed")
	other.Shot("reading-viewed")
	bob.Press("a")
	bob.WaitText("I have looked at: CI file changed")
	bob.Press("Escape")
	bob.WaitGone("I have looked at: CI file changed")
}

// readOnAPhone shows one file at a time, and the list as a sheet.
func readOnAPhone(t *testing.T, bob *browsertest.Page, address string) {
	bob.Phone().Open(address)
	bob.Wait("button", "Approve")
	shown := `Array.from(document.querySelectorAll(".file")).filter(f => f.offsetParent).length`
	if n := browsertest.Eval[int](bob, shown); n != 1 {
		t.Errorf("%d files are shown at once", n)
	}
	browsertest.Eval[bool](bob, `document.querySelector("#file-list > summary").click(), true`)
	bob.Shot("reading-phone-sheet")
	// Not by its name: Chromium's accessibility tree was seen once to keep what it knew of the closed list.
	third := browsertest.Eval[string](bob, `(a => (a.click(), a.hash.slice(1)))(document.querySelectorAll(".file-item a")[2])`)
	bob.Shot("reading-phone-file")
	if now := browsertest.Eval[string](bob, `document.querySelector(".file.is-current").id`); now != third {
		t.Errorf("the list led to %s, not to %s", now, third)
	}
	if n := browsertest.Eval[int](bob, shown); n != 1 {
		t.Errorf("%d files are shown at once", n)
	}
	for _, sel := range []string{".verdict-row button", "#file-list > summary", ".file-walk a", ".viewed button"} {
		if h := browsertest.Eval[int](bob, `Math.min(...Array.from(document.querySelectorAll("`+sel+`")).filter(e => e.offsetParent).map(e => Math.round(e.getBoundingClientRect().height)))`); h < 44 {
			t.Errorf("%s is %d px high", sel, h)
		}
	}
	bob.Desktop()
}

// readWithoutScript does the same by links and forms.
func readWithoutScript(t *testing.T, bob *browsertest.Page, address string) {
	bob.Open(address)
	bob.Click("link", "Show 20 lines above")
	bob.WaitText("⋯ 36 unchanged lines")
	bob.Click("button", "viewed: long.txt")
	bob.WaitText("1 of 8 viewed")
	bob.Click("button", "viewed: long.txt")
	bob.WaitText("0 of 8 viewed")
	bob.Open(address + "?comment=" + anchorOf(bob, "long.txt") + "R62&from=60")
	bob.Fill("Comment on line 62", "Without script")
	bob.Click("button", "Save comment")
	bob.WaitText("lines 60–62")
	bob.Click("button", "Delete the comment on long.txt:60–62")
	bob.WaitGone("Without script")
}

// decidedElsewhere: an open page learns of it, and offers nothing that is over.
func decidedElsewhere(t *testing.T, n *placetest.Node, r approval.Request, bob *browsertest.Page, address string) {
	bob.Open(address)
	bob.Wait("link", "Approve only some files")
	status, err := n.Call("POST", "/api/v1/approvals/"+r.ID+"/decision", n.Approver, map[string]any{"verdict": "reject", "digest": r.Revision.Digest, "comment": "Not now."}, nil)
	if err != nil || status != 200 {
		t.Fatal(status, err)
	}
	bob.WaitText("rejected this")
	bob.WaitText("nothing landed")
	if bob.Has("button", "Approve") || bob.Has("link", "Approve only some files") || bob.Has("link", "Edit") {
		t.Error("a page of a decided request still offers a verdict")
	}
	bob.Shot("reading-decided")
}
