package browser

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// chatTeam answers, changes files, takes its time and fails.
const chatTeam = `
repositories:
  app: {path: "REPO", branch: main}
agents:
  kik:
    kind: workflow
    capabilities: [planning]
    steps: [{id: change, agent: coder, task: "{{.Task}}"}]
  coder: {kind: command, repository: app, role: developer, command: [sh, -ceu, "cat > notes.txt; echo 'I wrote the notes down.'"]}
  careful:
    kind: command
    repository: app
    command:
      - sh
      - -ceu
      - |
        mkdir -p .github/workflows; cat > .github/workflows/ci.yml
        printf 'The build is new.\n<b>Trust\342\200\256 me</b>\n'
  talker:
    kind: command
    protocol: jsonl
    command:
      - sh
      - -ceu
      - |
        read -r task
        echo '{"type":"progress","text":"reading the files"}'
        echo '{"type":"progress","text":"counting them"}'
        echo '{"type":"result","text":"There are 3 files."}'
  slow: {kind: command, command: [sh, -c, "while [ ! -e DIR/go-on ]; do sleep 0.05; done; echo 'Done at last.'"]}
  broken: {kind: command, command: [sh, -c, "echo 'claude: not signed in' >&2; exit 3"]}
`

// enters signs a person in at an address.
func enters(n *placetest.Node, page *browsertest.Page, site, name string) {
	n.Helper()
	u, err := n.Store.UserByName(n.Context(), name)
	n.Must(err)
	code, err := placetest.SignedIn(n.Context(), n.Store, u)
	n.Must(err)
	page.Open(site + "/login/link?code=" + code)
	page.WaitText("Needs you")
}

// sentBy lists what a person has sent in the chat, oldest first.
func sentBy(p *placetest.Place, name string) []orchestrator.Delegation {
	p.Helper()
	u, err := p.Store.UserByName(p.Context(), name)
	p.Must(err)
	page, err := p.Store.List(p.Context(), orchestrator.Filter{Conversation: u.ID, Limit: 200})
	p.Must(err)
	slices.Reverse(page.Items)
	return page.Items
}

// says types a message and presses Enter.
func says(p *browsertest.Page, agent, text string) {
	p.Choose("Agent", agent)
	p.Fill("Message", text)
	p.Press("Enter")
}

func TestChatInTheBrowser(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), chatTeam)
	n := p.Start(p.Config, "")
	w := newWire(t, n.URL)
	browser := browsertest.New(t)
	ann, bob := browser.Page(), browser.Page()
	enters(n, ann, w.url(), "ann")
	enters(n, bob, n.URL, "bob")
	gallery(t, ann, "chat-empty", w.url()+"/chat")
	gallery(t, bob, "chat-empty-approver", n.URL+"/chat")

	t.Run("an agent answers", func(t *testing.T) { chatAnswers(t, n, ann, w) })
	t.Run("a card is approved in the chat", func(t *testing.T) { chatApproves(t, n, ann, bob, w) })
	t.Run("who sends and decides sees both", func(t *testing.T) { chatBoth(t, n, ann, browser.Page()) })
	t.Run("decided elsewhere", func(t *testing.T) { chatConverges(t, n, ann, bob) })
	t.Run("a careful change has no Approve", func(t *testing.T) { chatCareful(t, n, ann, bob, w) })
	t.Run("reject and request changes ask for words", func(t *testing.T) { chatSaysWhy(t, n, ann, bob) })
	bob.Open("about:blank") // his line is not the one that is cut
	t.Run("the connection is cut in the middle", func(t *testing.T) { chatCut(t, n, ann, w) })
	t.Run("on a phone", func(t *testing.T) { chatPhone(t, n, ann, w) })
	t.Run("without a WebSocket", func(t *testing.T) { chatPosts(t, n, ann, w) })
	t.Run("without script", func(t *testing.T) { chatPlain(t, n, ann, bob, w) })
}

// chatAnswers sends one message; steps and answer appear by themselves.
func chatAnswers(t *testing.T, n *placetest.Node, ann *browsertest.Page, w *cable) {
	ann.Open(w.url() + "/chat")
	ann.Wait("heading", "Chat")
	ann.Wait("button", "Send")
	browsertest.Eval[bool](ann, "window.sameDocument = true")
	says(ann, "talker", "How many files are there?")
	ann.WaitText("There are 3 files.")
	ann.WaitText("completed")
	ann.WaitText("2 steps")
	browsertest.Eval[bool](ann, `document.querySelector(".chat-steps summary").click(), true`)
	ann.WaitText("reading the files")
	says(ann, "broken", "And now?")
	ann.WaitText("claude: not signed in")
	// Newlines stay, and Shift+Enter is none of ours; what is foreign is no HTML.
	says(ann, "talker", "<b>bold</b>")
	ann.WaitText("<b>bold</b>")
	if !browsertest.Eval[bool](ann, "window.sameDocument === true") {
		t.Error("the page was loaded again to show an answer")
	}
	// A draft outlives a reload, and the agent of the newest task is remembered; the page shows a message before it is one.
	n.Until("the third message is a task", func() bool { return len(sentBy(n.Place, "ann")) == 3 })
	ann.Fill("Message", "half a thou")
	ann.Reload()
	if got := browsertest.Eval[string](ann, "document.getElementById('chat-text').value + '|' + document.getElementById('chat-agent').value"); got != "half a thou|talker" {
		t.Errorf("after a reload: %q", got)
	}
	ann.Fill("Message", "")
}

// chatApproves: ann asks, bob says yes on the card in his chat; hers changes in place.
func chatApproves(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page, w *cable) {
	bob.Open(n.URL + "/chat")
	bob.Wait("heading", "Chat")
	if bob.Has("button", "Send") {
		t.Error("bob may not send tasks and has the button")
	}
	says(ann, "kik", "Write the notes")
	ann.WaitText("handed to coder")
	ann.WaitText("I wrote the notes down.")
	ann.WaitText("awaiting approval")
	if ann.Has("button", "Approve") {
		t.Error("ann is no approver and has the button")
	}
	gallery(t, ann, "chat-waits", w.url()+"/chat")
	ann.Open(w.url() + "/chat")
	ann.Wait("button", "Send")
	browsertest.Eval[bool](bob, "window.sameDocument = true")
	bob.WaitText("Other requests")
	bob.Wait("button", "Approve")
	bob.Shot("chat-others")
	bob.Click("button", "Approve")
	bob.WaitText("bob approved in chat · landed")
	ann.WaitText("bob approved in chat · landed")
	ann.WaitText("completed")
	if !browsertest.Eval[bool](bob, "window.sameDocument === true") {
		t.Error("a verdict loaded the page again")
	}
	task := sentBy(n.Place, "ann")[len(sentBy(n.Place, "ann"))-1].TaskID
	n.LandedOnce(task)
	if d := n.Requests(task)[0].Decisions[0]; d.Channel != "chat" {
		t.Errorf("the decision was made in %q", d.Channel)
	}
}

// chatBoth: for who also sends messages, other requests stand above the own
// conversation, and a line at the composer leads there.
func chatBoth(t *testing.T, n *placetest.Node, ann, cleo *browsertest.Page) {
	n.Person("cleo", people.Operator, people.Approver)
	enters(n, cleo, n.URL, "cleo")
	cleo.Open(n.URL + "/chat")
	says(cleo, "talker", "Count for me")
	cleo.WaitText("There are 3 files.")
	says(ann, "coder", "Notes for cleo")
	cleo.Wait("link", "1 other request waits for you")
	cleo.Shot("chat-both")
	cleo.Click("link", "1 other request waits for you")
	cleo.Click("button", "Approve")
	cleo.WaitText("cleo approved in chat · landed")
	cleo.WaitGone("waits for you")
	ann.WaitText("cleo approved in chat · landed")
	// Her own change needs another person, and the card says so.
	says(cleo, "coder", "Notes of cleo")
	cleo.WaitText("another person must approve it")
	if cleo.Has("button", "Approve") {
		t.Error("who asked for a change can approve it")
	}
	cleo.Shot("chat-own-request")
	cleo.Phone().Shot("chat-own-request-phone")
	cleo.Click("button", "Reject")
	cleo.Click("button", "Reject")
	cleo.WaitText("cleo rejected in chat · nothing landed")
	cleo.Open("about:blank")
}

// chatConverges: a decision made by a program is on both pages within 2 s.
func chatConverges(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page) {
	says(ann, "coder", "More notes")
	ann.WaitText("More notes")
	var task string
	n.Until("the message", func() bool {
		all := sentBy(n.Place, "ann")
		task = all[len(all)-1].TaskID
		return all[len(all)-1].Text == "More notes"
	})
	r := n.Asked(task)
	shows := func(p *browsertest.Page, text string) bool {
		return strings.Contains(browsertest.Eval[string](p, `(document.getElementById("card-`+r.ID+`") || {innerText: ""}).innerText`), text)
	}
	n.Until("both cards", func() bool { return shows(ann, "awaiting approval") && shows(bob, "awaiting approval") })
	if status, err := n.Decide(r); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	start := time.Now()
	n.Until("both cards to change", func() bool { return shows(ann, "bob approved") && shows(bob, "bob approved") })
	t.Logf("the cards took %s to say so; the aim is 2 s", time.Since(start))
}

// chatCareful: warnings are on the card, the yes is not.
func chatCareful(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page, w *cable) {
	says(ann, "careful", "Change the build")
	bob.WaitText("CI file changed")
	bob.WaitText("To approve, open the diff")
	bob.WaitText("U+202E")
	bob.Wait("button", "Reject")
	if bob.Has("button", "Approve") {
		t.Error("a careful request can be approved on a card")
	}
	gallery(t, bob, "chat-careful-approver", n.URL+"/chat")
	gallery(t, ann, "chat-careful", w.url()+"/chat")
	ann.Open(w.url() + "/chat")
	bob.Open(n.URL + "/chat")
}

// chatSaysWhy: the texts of a verdict are written on the card.
func chatSaysWhy(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page) {
	bob.Click("button", "Request changes")
	bob.Fill("Reason, or what to change", "Leave the build alone.")
	bob.Shot("chat-writing")
	bob.Click("button", "Request changes")
	ann.WaitText("Leave the build alone.")
	all := sentBy(n.Place, "ann")
	task := all[len(all)-1].TaskID
	n.Until("a second revision", func() bool {
		return n.Requests(task)[0].Revision.N == 2 && n.Requests(task)[0].State == approval.Pending
	})
	chatStartsOver(t, n, ann, bob, task)
	bob.Wait("button", "Reject")
	bob.Click("button", "Reject")
	bob.Fill("Reason, or what to change", "Not at all.")
	bob.Press("Tab")
	bob.Click("button", "Reject")
	bob.WaitText("bob rejected in chat · nothing landed")
	ann.WaitText("Not at all.")
	ann.WaitText("rejected")
}

// chatStartsOver: on the page of the request a tick throws away what the agent has made; the
// chat of who asked says so, and who asked for it.
func chatStartsOver(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page, task string) {
	r, hers := n.Requests(task)[0], ann.URL()
	bob.Open(n.URL + "/approvals/" + r.ID)
	bob.Click("checkbox", "Request changes: start over from main")
	bob.Fill("Comment", "Begin again, and leave the build as it is.")
	bob.Shot("start-over-asked")
	bob.Click("button", "Request changes")
	ann.WaitText("bob requested changes, starting over: Begin again, and leave the build as it is.")
	n.Revised(task, 3)
	gallery(t, ann, "chat-started-over", hers)
	gallery(t, bob, "review-started-over", n.URL+"/approvals/"+r.ID)
	gallery(t, bob, "task-started-over", n.URL+"/delegations/"+task+"?tab=events")
	ann.Open(hers)
	ann.Wait("button", "Send")
	bob.Open(n.URL + "/chat")
}

// chatCut sends while the line is cut, mended and blinking, and while the server dies:
// each message is there once, in the order in which it was sent.
func chatCut(t *testing.T, n *placetest.Node, ann *browsertest.Page, w *cable) {
	ann.Expect("WebSocket").Expect("net::").Expect("Failed to fetch").Expect("htmx:")
	before := len(sentBy(n.Place, "ann"))
	var want []string
	next := func() {
		text := fmt.Sprintf("message %d of the storm", len(want)+1)
		want = append(want, text)
		ann.Fill("Message", text)
		ann.Press("Enter")
	}
	ann.Choose("Agent", "talker")
	next()
	w.cut()
	next()
	next()
	ann.WaitText("sending")
	ann.WaitText("Not live since")
	ann.Shot("chat-not-live")
	ann.Phone().Shot("chat-not-live-phone")
	ann.Desktop()
	w.mend()
	for range 4 {
		next()
		w.blink() // perhaps before it is taken, perhaps after and before the answer
	}
	n.Until("all messages", func() bool { return len(sentBy(n.Place, "ann")) >= before+len(want) })
	// A page that is loaded again with a message in hand still sends it.
	w.cut()
	next()
	w.mend()
	ann.Reload()
	n.Until("the message from before the reload", func() bool { return len(sentBy(n.Place, "ann")) >= before+len(want) })
	ann.Choose("Agent", "talker")
	// The server is killed while one is on its way, and another takes its place.
	w.cut()
	next()
	n.Kill()
	next()
	again := n.Start(n.Config, "")
	w.lead(again.URL)
	w.mend()
	n.URL = again.URL
	n.Until("all messages after the crash", func() bool { return len(sentBy(n.Place, "ann")) >= before+len(want) })
	n.Until("the page to show them", func() bool {
		return browsertest.Eval[int](ann, `document.querySelectorAll("#chat-pending li").length`) == 0
	})
	var stored []string
	for _, d := range sentBy(n.Place, "ann")[before:] {
		stored = append(stored, d.Text)
	}
	if !slices.Equal(stored, want) {
		t.Errorf("stored %q, want %q", stored, want)
	}
	shown := browsertest.Eval[[]string](ann, `[...document.querySelectorAll(".chat-mine .chat-text")].map(e => e.textContent).filter(s => s.includes("storm"))`)
	if !slices.Equal(shown, want) {
		t.Errorf("shown %q, want %q", shown, want)
	}
	n.Until("all answers", func() bool {
		return browsertest.Eval[int](ann, `[...document.querySelectorAll(".chat-item")].filter(e => e.innerText.includes("storm") && e.dataset.state === "completed").length`) == len(want)
	})
	gallery(t, ann, "chat-full", w.url()+"/chat")
}

// chatPhone does the same with a thumb, cut in the middle of an answer.
func chatPhone(t *testing.T, n *placetest.Node, ann *browsertest.Page, w *cable) {
	ann.Phone().Open(w.url() + "/chat")
	ann.Choose("Agent", "slow")
	ann.Fill("Message", "Take your time")
	ann.Click("button", "Send")
	ann.WaitText("slow works")
	ann.Shot("chat-phone-running")
	w.blink()
	n.Touch("go-on")
	ann.WaitText("Done at last.")
	if size := browsertest.Eval[string](ann, `getComputedStyle(document.getElementById("chat-text")).fontSize`); size != "16px" {
		t.Errorf("text of %s makes a phone zoom", size)
	}
	bottom := browsertest.Eval[float64](ann, `innerHeight - document.getElementById("chat-form").getBoundingClientRect().bottom`)
	if bottom > 1 || bottom < -1 {
		t.Errorf("the composer ends %v px above the bottom of the window", bottom)
	}
	// Who reads further up is not moved, and learns that there is more.
	// What is drawn meanwhile may move it, until the page has noticed that its reader scrolled.
	n.Until("the top", func() bool {
		return browsertest.Eval[bool](ann, `scrollTo(0, 0), window.atTop ??= (addEventListener("scroll", () => window.atTop = scrollY === 0), false)`)
	})
	browsertest.Eval[bool](ann, `document.getElementById("chat-text").focus(), true`)
	ann.Press("x")
	ann.Press("Backspace")
	other := ann.Tab()
	other.Expect("net::")
	other.Open(w.url() + "/chat")
	says(other, "talker", "From another tab")
	ann.Wait("button", "new below")
	if y := browsertest.Eval[float64](ann, "scrollY"); y != 0 {
		t.Errorf("the page moved to %v under the reader", y)
	}
	ann.Click("button", "new below")
	ann.WaitText("From another tab")
	ann.Reload()
	ann.Click("link", "‹ Older")
	ann.WaitText("How many files are there?")
	ann.Click("link", "Newest")
	ann.Wait("link", "‹ Older")
	ann.Desktop()
}

// chatPosts: a proxy that knows no WebSocket costs nothing but speed.
func chatPosts(t *testing.T, n *placetest.Node, ann *browsertest.Page, w *cable) {
	ann.Open(w.url() + "/chat")
	ann.Wait("button", "Send")
	before := len(sentBy(n.Place, "ann"))
	browsertest.Eval[bool](ann, "delete window.WebSocket && (window.WebSocket = undefined, true)")
	w.blink() // what was open is gone, and there is no other
	says(ann, "talker", "By the form")
	n.Until("the message", func() bool { return len(sentBy(n.Place, "ann")) == before+1 })
	ann.WaitText("By the form")
	n.Until("its answer", func() bool {
		return browsertest.Eval[int](ann, `[...document.querySelectorAll(".chat-item")].filter(e => e.innerText.includes("By the form") && e.innerText.includes("There are 3 files.")).length`) == 1
	})
}

// chatPlain is the chat in a browser that runs no script.
func chatPlain(t *testing.T, n *placetest.Node, ann, bob *browsertest.Page, w *cable) {
	ann.Script(false)
	bob.Script(false)
	defer ann.Script(true)
	defer bob.Script(true)
	ann.Open(w.url() + "/chat")
	ann.Choose("Agent", "coder")
	ann.Fill("Message", "Plain notes")
	ann.Click("button", "Send")
	ann.WaitText("Plain notes")
	all := sentBy(n.Place, "ann")
	r := n.Asked(all[len(all)-1].TaskID)
	ann.Reload()
	ann.WaitText("awaiting approval")
	ann.Shot("chat-noscript")
	bob.Open(n.URL + "/chat")
	bob.Shot("chat-noscript-approver")
	bob.Expect("400")
	bob.Click("button", "Request changes")
	bob.WaitText("Nothing says what should change.")
	bob.Click("button", "Approve")
	bob.WaitText("bob approved in chat")
	n.Until("the landing", func() bool { return n.Requests(r.TaskID)[0].State == approval.Landed })
	ann.Reload()
	ann.WaitText("bob approved in chat · landed")
}
