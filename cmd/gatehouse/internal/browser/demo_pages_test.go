package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/web/browsertest"
)

// agentsWork is how long the demo's team may take: it builds and tests Go code.
const agentsWork = 3 * time.Minute

// show is a running `gatehouse demo`, as a newcomer starts it.
type show struct {
	*testing.T
	link string // the sign-in link that it printed
	site string // its address
	data string // its folder
}

// startDemo runs the program and waits for the link. It ends as with Ctrl-C.
func startDemo(t *testing.T) *show {
	t.Helper()
	s := &show{T: t, data: demoFolderFor(t)}
	path, err := exec.LookPath("gatehouse")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "demo", "--no-browser", "--listen", "127.0.0.1:0", "--data", s.data)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	cmd.Stderr = &strings.Builder{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Errorf("stop the demo: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended with %v and said:\n%s", err, cmd.Stderr)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the demo prints no link: %v\n%s", err, cmd.Stderr)
	}
	s.link = strings.TrimSpace(line[strings.Index(line, "http"):])
	s.site, _, _ = strings.Cut(s.link, "/login")
	return s
}

// person adds somebody to the running demo and returns their sign-in link.
func (s *show) person(name string, roles ...string) string {
	s.Helper()
	config := filepath.Join(s.data, "gatehouse.yaml")
	add := []string{"--config", config, "user", "add", name}
	for _, r := range roles {
		add = append(add, "--role", r)
	}
	for _, args := range [][]string{add, {"--config", config, "user", "signin-link", name}} {
		out, err := exec.Command("gatehouse", args...).Output()
		if err != nil {
			s.Fatalf("gatehouse %v: %v", args, err)
		}
		if link := strings.TrimSpace(string(out)); strings.HasPrefix(link, "http") {
			_, code, _ := strings.Cut(link, "/login/")
			return s.site + "/login/" + code
		}
	}
	s.Fatal("there is no link")
	return ""
}

// shows waits for a text that depends on the agents' work, with or without script.
func (s *show) shows(p *browsertest.Page, text string, look func()) {
	s.Helper()
	for deadline := time.Now().Add(agentsWork); !strings.Contains(p.Text(), text); look() {
		if time.Now().After(deadline) {
			s.Fatalf("%q does not appear on %s:\n%s", text, p.URL(), p.Text())
		}
	}
}

// itself is how a live page comes to show something: nobody touches it.
func itself(p *browsertest.Page) func() {
	return func() { <-time.After(100 * time.Millisecond) }
}

var shortCommit = regexp.MustCompile(`landed on main as ([0-9a-f]{7})`)

// landed checks that the commit which the page names is the merge at the tip of main,
// with its trailers.
func (s *show) landed(p *browsertest.Page) {
	s.Helper()
	m := shortCommit.FindStringSubmatch(p.Text())
	if m == nil {
		s.Fatalf("the page names no commit:\n%s", p.Text())
	}
	merge := placetest.Git(s.T, filepath.Join(s.data, "repository"), "log", "-1", "--merges", "--format=%H %B", "main")
	if !strings.HasPrefix(merge, m[1]) {
		s.Errorf("the page says %s landed; main is at %.40s", m[1], merge)
	}
	for _, trailer := range []string{"Gatehouse-Task: tsk_", "Gatehouse-Agent: coder", "Gatehouse-Digest: ", "Approved-by: you"} {
		if !strings.Contains(merge, trailer) {
			s.Errorf("the merge has no trailer %s:\n%s", trailer, merge)
		}
	}
}

const demoTitle = "Modernise this repository with go fix."

func TestInTheBrowser(t *testing.T) {
	t.Parallel()
	s := startDemo(t)
	browser := browsertest.New(t)
	t.Run("without a session there is only the sign-in page", func(t *testing.T) {
		p := browser.Page()
		p.Open(s.site + "/approvals")
		p.Wait("button", "Sign in")
		p.Shot("login")
		p.Expect("403").Expect("404").Expect("401")
		p.Open(s.site + "/login/link?code=used-long-ago")
		p.WaitText("A link works once")
		p.Shot("login-link-used")
	})

	me := browser.Page()
	me.Open(s.link)
	me.WaitText("Needs you")
	me.WaitText("No tasks yet")
	me.Shot("overview-first-use")

	// The same link does not work twice.
	again := browser.Page()
	again.Expect("40")
	again.Open(s.link)
	again.WaitText("works once")

	bob := browser.Page()
	bob.Open(s.person("bob", "approver"))
	bob.WaitText("Needs you")

	s.mainJob(me, bob)
	s.refusal(me)
	s.rejection(me)
	s.raceOfTwo(me, bob)
	s.withoutScript(me)
}

// mainJob sends the example, watches, reads, approves and finds the commit.
func (s *show) mainJob(me, bob *browsertest.Page) {
	s.Helper()
	me.Click("button", "Send this: Modernise the repository")
	me.Wait("heading", demoTitle)
	browsertest.Eval[bool](me, "window.sameDocument = true")
	s.shows(me, "reviewer", itself(me))
	me.Shot("delegation-running")
	s.shows(me, "awaiting approval", itself(me))
	s.shows(bob, demoTitle, itself(bob)) // whose overview nobody touched
	if !browsertest.Eval[bool](me, "window.sameDocument === true") {
		s.Error("the page was loaded again while the tree grew")
	}
	for _, name := range []string{"kik", "coder", "reviewer"} {
		me.Wait("link", name)
	}
	s.gallery(me, "delegation-waits", me.URL())
	task, _, _ := strings.Cut(me.URL(), "?")

	me.Click("link", demoTitle)
	me.WaitText("What to look at")
	if got := browsertest.Eval[int](me, "document.querySelectorAll('.diff-unified tr.add').length"); got < 5 {
		s.Errorf("the diff shows %d added lines", got)
	}
	request, _, _ := strings.Cut(me.URL(), "?")
	s.gallery(me, "review", request)
	me.Open(request)
	me.Click("link", "Side by side")
	me.Wait("table", "Changes of report/report.go, before and after")
	me.Shot("review-split")
	me.Click("button", "viewed: report/report.go")
	me.WaitText("1 of 2 viewed")

	browsertest.Eval[bool](bob, "window.sameDocument = true")
	bob.Open(request)
	bob.WaitText("What to look at")
	me.Fill("Comment", "Reads well")
	me.Click("button", "Approve")
	me.WaitText("Your approval was counted.")
	s.shows(bob, "you approved on the web", itself(bob))
	s.shows(me, "landed on main as", itself(me))
	s.landed(me)
	s.gallery(me, "review-landed", request)

	me.Open(task)
	s.shows(me, "completed", itself(me))
	s.landed(me)
	me.Open(task + "?tab=events")
	for _, typ := range []string{"task.created", "delegation.delegated", "approval.requested", "approval.decided", "patch.landed"} {
		me.WaitText(typ)
	}
	for _, tab := range []string{"tree", "timeline", "events", "result"} {
		s.gallery(me, "delegation-"+tab, task+"?tab="+tab)
	}
}

// refusal sends the example that a guard refuses: the tree has a row for it.
func (s *show) refusal(me *browsertest.Page) {
	s.Helper()
	me.Open(s.site + "/")
	me.Click("button", "Send this: See a refusal")
	me.Wait("heading", refusedTask)
	s.shows(me, "refused", itself(me))
	s.shows(me, "completed", itself(me))
	me.WaitText("cycle")
	me.WaitText("Agent 'boomerang' already in delegation chain: boomerang → echo → boomerang.")
	task, _, _ := strings.Cut(me.URL(), "?")
	s.gallery(me, "refused-tree", task)
	s.gallery(me, "refused-timeline", task+"?tab=timeline")
}

// rejection says no, with a reason that stays readable.
func (s *show) rejection(me *browsertest.Page) {
	s.Helper()
	s.plant(map[string]string{"old/old.go": "package old\n\nfunc Any(v interface{}) interface{} { return v }\n"})
	s.ask(me)
	me.Fill("Comment", "Not this week; see the plan.")
	me.Click("button", "Reject")
	me.WaitText("You rejected this. Nothing landed.")
	me.WaitText("Not this week; see the plan.")
	s.gallery(me, "review-rejected", strings.Split(me.URL(), "?")[0])
	me.Click("link", "Open the task")
	s.shows(me, "rejected", itself(me))
	s.gallery(me, "delegation-rejected", me.URL())
}

// raceOfTwo lets two people decide on the same page: the second learns of the first.
func (s *show) raceOfTwo(me, bob *browsertest.Page) {
	s.Helper()
	s.ask(me)
	// bob's page has no script and so does not know yet when he presses.
	bob.Script(false)
	bob.Open(strings.Split(me.URL(), "?")[0])
	bob.Wait("button", "Approve")
	me.Click("button", "Reject")
	me.WaitText("You rejected this.")
	bob.Expect("409")
	bob.Click("checkbox", unread)
	bob.Click("button", "Approve")
	bob.WaitText("Your approval was not counted.")
	bob.WaitText("rejected this")
	bob.Shot("review-too-late")
	bob.Script(true)
}

// withoutScript is the main job again, in a browser that runs none.
func (s *show) withoutScript(me *browsertest.Page) {
	s.Helper()
	me.Script(false)
	me.Open(s.site + "/")
	me.Shot("noscript-overview")
	me.Fill("Task", demoTitle)
	me.Choose("Agent", "kik")
	me.Click("button", "Send")
	me.Wait("heading", demoTitle)
	s.shows(me, "awaiting approval", me.Reload)
	me.Shot("noscript-delegation")
	me.Click("link", demoTitle)
	me.WaitText("What to look at")
	me.Click("link", "Side by side")
	me.Wait("table", "Changes of old/old.go, before and after")
	me.Click("link", "Unified")
	me.Wait("table", "Changes of old/old.go")
	me.Shot("noscript-review")
	me.Click("checkbox", unread) // nobody knows how far somebody without script has scrolled
	me.Click("button", "Approve")
	me.WaitText("approved on the web")
	s.shows(me, "landed on main as", me.Reload)
	s.landed(me)
	me.Click("link", "Open the task")
	s.shows(me, "completed", me.Reload)
	me.Script(true)
}

// ask sends the example's words and opens the request once it is there.
func (s *show) ask(me *browsertest.Page) {
	s.Helper()
	me.Open(s.site + "/delegations")
	me.Click("DisclosureTriangle", "New task")
	me.Fill("Task", demoTitle)
	me.Choose("Agent", "kik")
	me.Click("button", "Send")
	me.Wait("heading", demoTitle)
	s.shows(me, "awaiting approval", itself(me))
	me.Click("link", demoTitle)
	me.WaitText("What to look at")
}

// plant commits files to the demo's repository, as its people do.
func (s *show) plant(files map[string]string) {
	s.Helper()
	dir := filepath.Join(s.data, "repository")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			s.Fatal(err)
		}
	}
	placetest.Git(s.T, dir, "add", "-A")
	placetest.Git(s.T, dir, "commit", "-q", "-m", "more work of people")
}

// gallery takes a page's picture in light, in dark and on a phone, where it must fit.
func (s *show) gallery(p *browsertest.Page, name, address string) { gallery(s.T, p, name, address) }

func gallery(t *testing.T, p *browsertest.Page, name, address string) {
	t.Helper()
	p.Desktop().Light().Open(address)
	p.Wait("navigation", "Main")
	p.Shot(name + "-light")
	p.Dark().Shot(name + "-dark")
	p.Light().Phone().Open(address)
	p.Wait("navigation", "Main")
	if wide := browsertest.Eval[int](p, "document.documentElement.scrollWidth - screen.width"); wide > 0 {
		t.Errorf("%s is %d px wider than a phone", name, wide)
	}
	p.Shot(name + "-phone")
	p.Desktop()
}

// unread is the tick of a yes by somebody who has opened no file.
const unread = "I approve without having opened any file"

// scrollThrough reads a file of the review page to its end, until the page knows.
func scrollThrough(p *browsertest.Page) {
	browsertest.Eval[bool](p, `(() => { document.querySelector(".file > details[open] [data-file-end]").scrollIntoView({block: "center"}); return true; })()`)
	p.Until(`!document.querySelector("#verdict [data-unviewed]")`)
}
