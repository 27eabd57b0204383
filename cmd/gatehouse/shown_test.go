package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"

	"pgregory.net/rapid"
)

// shownTeam has one agent that changes its checkout as the task says, and one that
// answers with a patch as text. Both are shown at every door.
const shownTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
agents:
  hands: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, "head -n 1 | sh -e"]}
  words: {kind: command, protocol: jsonl, repository: app, env: {PLACE: MARK}, command: [cat, "DIR/answer.jsonl"]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// shownFor is how long random patches are tried: a few of them in the suite, however long
// that takes, and for as long as FUZZTIME says (60s) where somebody wants to know.
func shownFor(t *testing.T) (time.Duration, int) {
	s := os.Getenv("FUZZTIME")
	if s == "" {
		return 0, 4
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatalf("FUZZTIME: %v", err)
	}
	return d, 1 << 30
}

// TestWhatIsShownIsWhatIsDecidedAndLands: random changes of random trees, by an agent's
// hands and as a patch in its answer. What the page, the chat, Telegram, the command line
// and the API show of each is the same change, is all of it, and is what lands.
func TestWhatIsShownIsWhatIsDecidedAndLands(t *testing.T) {
	t.Parallel()
	limit, most := shownFor(t)
	s := newShownWorld(t)
	until := time.Now().Add(limit)
	tried, failed := 0, false
	check := func(rt *rapid.T) {
		if !failed && tried > 0 && (tried >= most || limit > 0 && time.Now().After(until)) {
			return
		}
		defer func() { failed = rt.Failed() }() // it is made smaller for as long as rapid likes
		tried++
		s.try(rt)
	}
	for first := true; first || limit > 0 && time.Now().Before(until); first = false {
		rapid.Check(t, check)
	}
	t.Logf("%d changes tried: %d refused, %d landed; approvable in Telegram %d, in the chat %d; not shown whole %d", tried, s.refused, s.landed, s.inTelegram, s.inChat, s.hidden)
	if tried < most && limit == 0 || s.landed == 0 {
		t.Errorf("too little was tried")
	}
}

// private is bob's chat with the bot: a group is told of many requests by a digest.
const private int64 = 1002

// shownWorld is a running server with a developer's clone in which changes are made up.
type shownWorld struct {
	*placetest.Gate
	n       *placetest.Node
	bob     *http.Client
	clone   string
	changes int

	refused, landed, inTelegram, inChat, hidden int
}

func newShownWorld(t *testing.T) *shownWorld {
	s := &shownWorld{Gate: placetest.NewGate(t, "sqlite:"+filepath.Join(t.TempDir(), "db"), shownTeam)}
	s.n = s.Start(s.Config, "")
	s.bob = s.n.Browser("bob")
	s.Link(s.n, "bob", private)
	s.clone = filepath.Join(s.Dir, "clone")
	placetest.Git(t, "", "clone", "-q", s.Repo, s.clone)
	return s
}

// try makes one change, has an agent make it, reads it everywhere, and lets it land.
func (s *shownWorld) try(rt *rapid.T) {
	s.Helper()
	placetest.Git(s.T, s.clone, "fetch", "-q", "origin")
	placetest.Git(s.T, s.clone, "checkout", "-q", "-f", "origin/main")
	placetest.Git(s.T, s.clone, "clean", "-q", "-fdx")
	asText := rapid.Bool().Draw(rt, "as text")
	script := s.mutate(rt, asText)
	placetest.Git(s.T, s.clone, "add", "-A", "-f")
	want := placetest.Git(s.T, s.clone, "write-tree")
	if want == placetest.Git(s.T, s.clone, "rev-parse", "HEAD^{tree}") {
		return
	}
	s.changes++
	agent := "hands"
	if asText {
		agent = "words"
		s.answerWith(rt)
	}
	task := s.ask(agent, fmt.Sprintf("%s #%d", script, s.changes))
	var pending []approval.Request
	s.Until("a request or a refusal", func() bool {
		pending = s.Requests(task, approval.Pending)
		return len(pending) > 0 || s.Root(task).State.Ended()
	})
	if len(pending) == 0 {
		if d := s.Root(task); d.State != orchestrator.Failed || d.Error == nil {
			rt.Fatalf("no request, and the task is %s", d.State)
		}
		s.refused++
		return
	}
	r := pending[0]
	if r.Revision.Tree != want {
		rt.Fatalf("the agent made %s, and people are asked about %s", want, r.Revision.Tree)
	}
	s.shownEverywhere(rt, r)
	s.decideAndLand(rt, r)
}

// ask sends a task as ann.
func (s *shownWorld) ask(agent, text string) string {
	s.Helper()
	var sent struct {
		ID string `json:"id"`
	}
	status, err := s.n.Call(http.MethodPost, "/api/v1/tasks", s.Asker, map[string]any{"agent": agent, "text": text}, &sent)
	if s.Must(err); status != http.StatusAccepted {
		s.Fatalf("the task is answered with %d", status)
	}
	return sent.ID
}

// answerWith writes the change that stands in the clone as a patch in an answer.
func (s *shownWorld) answerWith(rt *rapid.T) {
	around := rapid.IntRange(1, 5).Draw(rt, "context")
	diff := gitBytes(s.T, s.clone, "diff", "--cached", "--no-renames", "--no-color", fmt.Sprintf("-U%d", around), "HEAD")
	line, err := json.Marshal(map[string]any{"type": "result", "text": "A patch.", "patch": string(diff)})
	s.Must(err)
	s.Must(os.WriteFile(filepath.Join(s.Dir, "answer.jsonl"), append(line, '\n'), 0o600))
}

// lineKinds are what a line of a file may hold: plain words most of the time, and what
// is hard to show.
var lineKinds = []string{"", "x", "func main() {", "\treturn nil", "  a, b = b, a", "trailing  ", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ No newline at end of file",
	"<b>not bold</b> & \"quoted\"", "tab\tin it", "ümläut 漢字", "right\u202eleft", "zero\u200bwidth", "carriage\r", "esc\x1b[31m", "index 0123456..89abcde 100644", "# Code generated by x. DO NOT EDIT."}

// pathKinds are names of files.
var pathKinds = []string{"a.txt", "b.go", "docs/read me.md", "docs/x.md", "src/main.go", "src/deep/er/y.go", "ünï.txt", "we'ird \"q\".txt", "Makefile", ".github/workflows/ci.yml", "vendor/lib.go", "data.bin", "$HOME.txt"}

func content(rt *rapid.T, name string, text bool) []byte {
	switch kind := rapid.IntRange(0, 9).Draw(rt, name+" kind"); {
	case kind == 0 && !text:
		return append([]byte{0, 1, 0xff}, rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(rt, name+" bytes")...)
	case kind == 1:
		return nil
	case kind == 2:
		return []byte("long " + strings.Repeat("a b ", rapid.IntRange(100, 9000).Draw(rt, name+" length")) + "\n")
	default:
		lines := rapid.SliceOfN(rapid.SampledFrom(lineKinds), 1, 40).Draw(rt, name+" lines")
		text := strings.Join(lines, "\n")
		if kind < 8 {
			text += "\n"
		}
		return []byte(text)
	}
}

// edited is a file with some lines changed.
func edited(rt *rapid.T, old []byte) []byte {
	lines := strings.SplitAfter(string(old), "\n")
	for range rapid.IntRange(1, 3).Draw(rt, "edits") {
		i := rapid.IntRange(0, len(lines)-1).Draw(rt, "at")
		line := rapid.SampledFrom(lineKinds).Draw(rt, "line") + "\n"
		switch rapid.IntRange(0, 2).Draw(rt, "how") {
		case 0:
			lines = slices.Insert(lines, i, line)
		case 1:
			lines[i] = line
		default:
			lines = slices.Delete(lines, i, i+1)
			if len(lines) == 0 {
				return nil
			}
		}
	}
	return []byte(strings.Join(lines, ""))
}

// mutate changes files of the clone at random, and returns a script of one line that
// does the same in a checkout.
func (s *shownWorld) mutate(rt *rapid.T, text bool) string {
	var script strings.Builder
	quote := func(p string) string { return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'" }
	put := func(p string, b []byte) {
		s.Must(os.MkdirAll(filepath.Dir(filepath.Join(s.clone, p)), 0o700))
		s.Must(os.WriteFile(filepath.Join(s.clone, p), b, 0o600))
		fmt.Fprintf(&script, "mkdir -p %s; printf %%s %s | base64 -d > %s; ", quote(filepath.Dir(p)), base64.StdEncoding.EncodeToString(b), quote(p))
	}
	for range rapid.IntRange(1, 4).Draw(rt, "changes") {
		have := strings.Split(strings.TrimSuffix(placetest.Git(s.T, s.clone, "-c", "core.quotePath=false", "ls-files", "-z", "--cached", "--others"), "\x00"), "\x00")
		have = slices.DeleteFunc(have, func(p string) bool { _, err := os.Lstat(filepath.Join(s.clone, p)); return p == "" || err != nil })
		how := rapid.SampledFrom([]string{"add", "add", "edit", "edit", "edit", "delete", "move", "mode", "copy"}).Draw(rt, "change")
		if len(have) == 0 {
			how = "add"
		}
		to := rapid.SampledFrom(pathKinds).Draw(rt, "path")
		if how == "add" {
			put(to, content(rt, "new", text))
			continue
		}
		from := rapid.SampledFrom(have).Draw(rt, "file")
		old, err := os.ReadFile(filepath.Join(s.clone, from))
		s.Must(err)
		switch {
		case how == "edit" && !bytes.Contains(old, []byte{0}):
			put(from, edited(rt, old))
		case how == "copy" && !(text && bytes.Contains(old, []byte{0})):
			put(to, old)
		case how == "mode":
			s.Must(os.Chmod(filepath.Join(s.clone, from), 0o700)) //nolint:gosec // this is the change
			fmt.Fprintf(&script, "chmod +x %s; ", quote(from))
		case how == "move" && from != to:
			if text && bytes.Contains(old, []byte{0}) {
				continue
			}
			put(to, old)
			fallthrough
		case how == "delete" && !(text && bytes.Contains(old, []byte{0})):
			s.Must(os.Remove(filepath.Join(s.clone, from)))
			fmt.Fprintf(&script, "rm -f %s; ", quote(from))
		}
	}
	return script.String()
}

// apiRequest is what the API says of a request.
type apiRequest struct {
	Digest string `json:"digest"`
	Base   string `json:"base"`
	Tree   string `json:"tree"`
	Target string `json:"target"`
	Files  []struct {
		Path    string `json:"path"`
		OldPath string `json:"old_path"`
	} `json:"files"`
	Warnings []struct {
		Code string `json:"code"`
	} `json:"warnings"`
	Risk struct {
		Level string `json:"level"`
	} `json:"risk"`
}

// shownEverywhere reads a request at every door.
func (s *shownWorld) shownEverywhere(rt *rapid.T, r approval.Request) {
	s.Helper()
	var api apiRequest
	status, err := s.n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, s.Approver, nil, &api)
	if s.Must(err); status != http.StatusOK || api.Digest != r.Revision.Digest || api.Tree != r.Revision.Tree || api.Target != "main" {
		rt.Fatalf("the API shows %d %+v", status, api)
	}
	var diff bytes.Buffer
	if status, err = s.n.Text("/api/v1/approvals/"+r.ID+"/patch", s.Approver, &diff); err != nil || status != http.StatusOK {
		rt.Fatalf("the patch: %d, %v", status, err)
	}
	if got := s.applied(rt, r, diff.Bytes()); got != r.Revision.Tree {
		rt.Fatalf("the API's patch makes %s of the base, and the request is about %s\n%s", got, r.Revision.Tree, diff.String())
	}
	paths := s.differing(r)
	var named []string
	for _, f := range api.Files {
		named = append(named, f.Path, f.OldPath)
	}
	for _, p := range paths {
		if !slices.Contains(named, p) {
			rt.Fatalf("the API names %q and not %q", named, p)
		}
	}
	said, code := s.Cli(s.n, "review", r.ID)
	if code != 0 || !strings.Contains(unmarked(said), diff.String()) {
		rt.Fatalf("review: exit %d, and it does not show the patch as it is:\n%s\n%s", code, said, diff.String())
	}
	whole := s.onThePage(rt, r, paths)
	if !whole {
		s.hidden++
		if api.Risk.Level != string(approval.Careful) {
			rt.Fatalf("something cannot be shown, and the request is %s with %v; the patch:\n%s", api.Risk.Level, api.Warnings, diff.String())
		}
	}
	s.onThePhone(rt, r, diff.String(), whole)
	s.inAChat(rt, r, paths, whole)
}

// applied is the tree that git makes of the base with a diff.
func (s *shownWorld) applied(rt *rapid.T, r approval.Request, diff []byte) string {
	s.Helper()
	placetest.Git(s.T, s.clone, "checkout", "-q", "-f", r.Revision.Base.Commit)
	placetest.Git(s.T, s.clone, "clean", "-q", "-fdx")
	file := filepath.Join(s.Dir, "shown.diff")
	s.Must(os.WriteFile(file, diff, 0o600))
	placetest.Git(s.T, s.clone, "apply", "--index", "--binary", "--whitespace=nowarn", "--allow-empty", file)
	return placetest.Git(s.T, s.clone, "write-tree")
}

// differing are all paths in which the trees differ, without any notion of a move.
func (s *shownWorld) differing(r approval.Request) []string {
	out := placetest.Git(s.T, s.clone, "diff", "--no-renames", "--name-only", "-z", r.Revision.Base.Tree, r.Revision.Tree)
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

// marks are what terminals, pages and cards show instead of what nobody could see.
var marks = regexp.MustCompile(`⟦(?:U\+([0-9A-F]+)|0x([0-9A-F]{2}))⟧`)

// unmarked is a text with the characters that its marks stand for.
func unmarked(s string) string {
	return marks.ReplaceAllStringFunc(s, func(m string) string {
		f := marks.FindStringSubmatch(m)
		if f[2] != "" {
			n, _ := strconv.ParseUint(f[2], 16, 8)
			return string([]byte{byte(n)})
		}
		n, _ := strconv.ParseInt(f[1], 16, 32)
		return string(rune(n))
	})
}

var (
	tagShape    = regexp.MustCompile(`<[^>]*>`)
	rowShape    = regexp.MustCompile(`(?s)<tr class="(add|del|ctx)[^"]*"[^>]*>(.*?)</tr>`)
	numberShape = regexp.MustCompile(`(?s)<(?:td|th)[^>]*class="no"[^>]*>(?:<a [^>]*>)?(\d*)`)
	codeShape   = regexp.MustCompile(`(?s)<td class="code[^"]*"[^>]*>(.*?)</td>`)
	pathShape   = regexp.MustCompile(`data-path="([^"]*)"`)
	noteShape   = regexp.MustCompile(`(?s)<span class="(?:line-end|no-eol|cut)"[^>]*>.*?</span>\s?`)
)

// onThePage reads the diff off the page: every path is named, and each file's lines,
// put into what the base has, make the file that lands. It reports whether all of the
// change is to be seen there.
func (s *shownWorld) onThePage(rt *rapid.T, r approval.Request, paths []string) bool {
	s.Helper()
	page := s.n.Page(s.bob, "/approvals/"+r.ID)
	if !strings.Contains(page, `value="`+r.Revision.Digest+`"`) {
		rt.Fatalf("the page's form is not for the revision %s", r.Revision.Digest)
	}
	text := unmarked(html.UnescapeString(tagShape.ReplaceAllString(page, "")))
	for _, p := range paths {
		if !strings.Contains(text, p) {
			rt.Fatalf("the page does not name %q", p)
		}
	}
	whole := true
	for i, f := range r.Revision.Files {
		section := sectionOf(page, f.Path)
		if section == "" {
			rt.Fatalf("the page has no part for %q", f.Path)
		}
		if strings.Contains(section, `class="binary"`) || strings.Contains(section, `class="cut`) {
			whole = false
			continue
		}
		old := f.Path
		if f.OldPath != "" {
			old = f.OldPath
		}
		before, after := s.blob(r.Revision.Base.Tree, old), s.blob(r.Revision.Tree, f.Path)
		section, all, moved := strings.Cut(section, `<details class="whole-file"`) // what a moved file is at its new place
		if got := rebuilt(section, before); got != after {
			rt.Fatalf("the page's lines of %q (%d) make %q of %q, and what lands is %q", f.Path, i, got, before, after)
		}
		if got := rebuilt(all, ""); moved && !strings.Contains(all, "Show the lines after") && got != after {
			rt.Fatalf("the page says that %q (%d) is %q, and what lands is %q", f.Path, i, got, after)
		}
	}
	return whole
}

// sectionOf is the part of the page about one file.
func sectionOf(page, path string) string {
	for _, part := range strings.Split(page, `<section class="file`)[1:] {
		if m := pathShape.FindStringSubmatch(part); m != nil && html.UnescapeString(m[1]) == path {
			part, _, _ = strings.Cut(part, "</section>")
			return part
		}
	}
	return ""
}

// blob is a file of a tree, "" where there is none.
func (s *shownWorld) blob(tree, path string) string {
	if placetest.Git(s.T, s.clone, "ls-tree", "--full-tree", "-z", tree, "--", path) == "" {
		return ""
	}
	file := filepath.Join(s.Dir, "blob")
	placetest.Git(s.T, s.clone, "config", "core.quotePath", "false")
	out := gitBytes(s.T, s.clone, "cat-file", "blob", tree+":"+path)
	s.Must(os.WriteFile(file, out, 0o600))
	return string(out)
}

// rebuilt puts the lines of a file's part of the page into the file as it was.
func rebuilt(section, before string) string {
	base := strings.SplitAfter(before, "\n")
	if base[len(base)-1] == "" {
		base = base[:len(base)-1]
	}
	var out []string
	at := 0
	upTo := func(lines int) {
		for len(out) < lines && at < len(base) {
			out, at = append(out, base[at]), at+1
		}
	}
	for _, row := range rowShape.FindAllStringSubmatch(section, -1) {
		cell := codeShape.FindStringSubmatch(row[2])[1]
		line := unmarked(html.UnescapeString(tagShape.ReplaceAllString(noteShape.ReplaceAllString(cell, ""), "")))
		line = strings.TrimSuffix(line, "\n") // an empty row has one, so that it can be copied
		if strings.Contains(cell, `class="line-end"`) {
			line += "\r"
		}
		if !strings.Contains(cell, `class="no-eol"`) {
			line += "\n"
		}
		var numbers []int
		for _, n := range numberShape.FindAllStringSubmatch(row[2], -1) {
			if k, err := strconv.Atoi(n[1]); err == nil {
				numbers = append(numbers, k)
			}
		}
		n := numbers[len(numbers)-1]
		switch row[1] {
		case "add":
			upTo(n - 1)
			out = append(out, line)
		case "del":
			for at < n-1 {
				out, at = append(out, base[at]), at+1
			}
			if base[at] != line {
				return "a removed line that the base does not have: " + line
			}
			at++
		default:
			upTo(n - 1)
			if at >= len(base) || base[at] != line {
				return "a line of context that the base does not have: " + line
			}
			out, at = append(out, line), at+1
		}
	}
	return strings.Join(append(out, base[at:]...), "")
}

// onThePhone reads the card and the file in Telegram. Approve is there only with all of
// the change.
func (s *shownWorld) onThePhone(rt *rapid.T, r approval.Request, diff string, whole bool) {
	s.Helper()
	s.Bot.Say(private, s.Accounts["bob"], "/status "+r.ID, 0)
	s.Bot.Until(s, "the card of "+r.ID+" with its file", func() bool {
		card := s.Card(private, r)
		return len(card.Buttons) > 0 && !strings.Contains(card.Text, "its file is not sent yet")
	})
	card := s.Card(private, r)
	offers := false
	for _, row := range card.Buttons {
		for _, b := range row {
			offers = offers || b.Text == "Approve"
		}
	}
	if !offers {
		return
	}
	s.inTelegram++
	if !whole {
		rt.Fatalf("Telegram offers Approve for what cannot be shown:\n%s", card.Text)
	}
	name := "-" + r.Revision.Digest[:6] + fmt.Sprintf("-rev%d.diff", r.Revision.N)
	if strings.Contains(strings.ReplaceAll(unmarked(card.Text), "\r", ""), strings.ReplaceAll(strings.TrimSuffix(shortIds(diff), "\n"), "\r", "")) {
		return
	}
	s.Bot.Until(s, "the file of "+r.ID, func() bool {
		for _, m := range s.Bot.FromBot(private) {
			if m.Document != nil && strings.HasSuffix(m.Document.Name, name) {
				if string(m.Document.Data) != diff {
					rt.Fatalf("the file in Telegram is not the patch")
				}
				return true
			}
		}
		return false
	})
}

var indexShape = regexp.MustCompile(`(?m)^index ([0-9a-f]{7})[0-9a-f]*\.\.([0-9a-f]{7})[0-9a-f]*`)

func shortIds(diff string) string { return indexShape.ReplaceAllString(diff, "index $1..$2") }

// inAChat reads the card in the chat: where it offers Approve it names every file.
func (s *shownWorld) inAChat(rt *rapid.T, r approval.Request, paths []string, whole bool) {
	s.Helper()
	page := s.n.Page(s.bob, "/chat?request="+r.ID)
	_, card, found := strings.Cut(page, `id="card-`+r.ID+`"`)
	card, _, _ = strings.Cut(card, "</section>")
	if !found {
		rt.Fatalf("the chat has no card of the request")
	}
	if !strings.Contains(card, `value="approve"`) {
		return
	}
	s.inChat++
	if !whole {
		rt.Fatalf("the chat offers Approve for what cannot be shown")
	}
	text := unmarked(html.UnescapeString(tagShape.ReplaceAllString(card, "")))
	for _, p := range paths {
		if !strings.Contains(text, p) {
			rt.Fatalf("the chat offers Approve and does not name %q:\n%s", p, text)
		}
	}
}

// decideAndLand gives the yes for what was shown, and looks at what landed.
func (s *shownWorld) decideAndLand(rt *rapid.T, r approval.Request) {
	s.Helper()
	var codes []string
	for _, w := range r.Revision.Warnings {
		codes = append(codes, w.Code)
	}
	verdict := map[string]any{"verdict": "approve", "digest": r.Revision.Digest}
	status, told := giveVerdict(s.n, s.Approver, r.ID, verdict)
	if status == http.StatusConflict && told["code"] == "not_ticked" {
		verdict["revision"], verdict["ticked"] = r.Revision.N, codes
		status, told = giveVerdict(s.n, s.Approver, r.ID, verdict)
	}
	if status != http.StatusOK {
		rt.Fatalf("the yes is answered with %d %v", status, told)
	}
	s.Until("the landing", func() bool { return s.Root(r.TaskID).State.Ended() })
	if d := s.Root(r.TaskID); d.State != orchestrator.Completed {
		rt.Fatalf("after the yes the task is %s: %+v", d.State, d.Error)
	}
	if got := placetest.Git(s.T, s.Repo, "rev-parse", "main^{tree}"); got != r.Revision.Tree {
		rt.Fatalf("landed %s, and decided was %s", got, r.Revision.Tree)
	}
	s.landed++
}

// gitBytes is what git prints, with every byte of it.
func gitBytes(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return out
}
