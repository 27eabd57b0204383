package browser

import (
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/web/browsertest"
)

// parrotTeam has an agent that says what it was told, so that a page shows what it remembers.
const parrotTeam = `
agents:
  parrot: {kind: command, command: [sh, -c, "echo I was told:; cat"]}
  slow: {kind: command, protocol: jsonl, command: [sh, -c, "read -r task; while [ ! -e DIR/go-on ]; do sleep 0.05; done; echo '{\"type\":\"result\",\"text\":\"Done at last.\"}'"]}
`

// threadRows are the titles of the list of threads.
func threadRows(p *browsertest.Page) string {
	return strings.Join(browsertest.Eval[[]string](p, `[...document.querySelectorAll("#chat-thread-list .thread-title")].map(e => e.textContent.trim())`), ", ")
}

// A thread is gone on with, another is begun with /new, and the list has both, with script and
// without, on a wide screen and on a phone.
func TestThreadsInTheBrowser(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), parrotTeam)
	n := p.Start(p.Config, "")
	ann := browsertest.New(t).Page()
	enters(n, ann, n.URL, "ann")
	ann.Open(n.URL + "/chat")
	says(ann, "parrot", "My name is Ann")
	ann.WaitText("I was told:")
	n.Until("the list of threads", func() bool { return threadRows(ann) == "All messages, My name is Ann" })
	ann.Click("link", "reply in the thread: My name is Ann")
	ann.Wait("heading", "My name is Ann")
	ann.Fill("Message", "What is my name?")
	ann.Press("Enter")
	ann.WaitText(`{"person":"ann","text":"My name is Ann"}`)
	if at := ann.URL(); !strings.Contains(at, "?thread=") {
		t.Errorf("the follow-up left its thread for %s", at)
	}
	ann.Shot("thread-open")
	ann.Fill("Message", "/new Another matter")
	ann.Press("Enter")
	ann.Wait("heading", "Another matter")
	n.Until("the new thread in the list", func() bool { return threadRows(ann) == "All messages, Another matter, My name is Ann" })
	if shown := browsertest.Eval[int](ann, `document.querySelectorAll("#chat-items .chat-item").length`); shown != 1 {
		t.Errorf("the new thread begins with %d messages", shown)
	}
	threadToldAtWork(t, n, ann)
	gallery(t, ann, "thread", ann.URL())
	ann.Phone().Reload()
	unfolds(ann)
	ann.Wait("link", "All messages")
	ann.Shot("thread-list-phone")
	ann.Desktop()

	ann.Script(false)
	defer ann.Script(true)
	ann.Open(n.URL + "/chat")
	unfolds(ann)
	ann.Shot("thread-list-plain")
	browsertest.Eval[bool](ann, `[...document.querySelectorAll("#chat-thread-list a")].find(a => a.innerText.includes("My name is Ann")).click(), true`)
	ann.Wait("heading", "My name is Ann")
	ann.Fill("Message", "And without script?")
	ann.Click("button", "Send")
	ann.Wait("heading", "My name is Ann")
	ann.WaitText("And without script?")
	if all := sentBy(p, "ann"); len(all) != 5 {
		t.Errorf("%d messages were sent", len(all))
	}
}

// threadToldAtWork: what is typed while the agent works is said to it.
func threadToldAtWork(t *testing.T, n *placetest.Node, ann *browsertest.Page) {
	ann.Click("link", "New thread")
	ann.Wait("heading", "Chat")
	says(ann, "slow", "Take your time")
	ann.WaitText("slow works")
	ann.Click("link", "reply in the thread: Take your time")
	ann.Wait("heading", "Take your time")
	ann.Fill("Message", "But mind the tests")
	ann.Press("Enter")
	n.Until("the words in the thread", func() bool {
		return browsertest.Eval[string](ann, `[...document.querySelectorAll("#chat-items .chat-told .chat-text")].map(e => e.innerText).join()`) == "But mind the tests"
	})
	ann.Shot("thread-told")
	n.Touch("go-on")
	ann.WaitText("Done at last.")
	if waits := browsertest.Eval[int](ann, `document.querySelectorAll("#chat-pending li").length`); waits != 0 {
		t.Errorf("%d messages are not sent", waits)
	}
}

// unfolds opens the list of threads with the keyboard.
func unfolds(p *browsertest.Page) {
	browsertest.Eval[bool](p, `document.querySelector("#chat-threads summary").focus(), true`)
	p.Press("Enter")
	p.Until(`document.getElementById("chat-threads").open`)
}
