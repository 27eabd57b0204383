package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// askingTeam has a program that asks before it makes two calls, and then asks a question.
const askingTeam = `
agents:
  coder: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null;
    first=$(gatehouse permit --tool Bash --input "{\"command\":\"npm publish --tag next\",\"description\":\"Publish the release\"}") && echo "$first" >> DIR/ran;
    second=$(gatehouse permit --tool Bash --input "{\"command\":\"npm publish\",\"description\":\"Publish the release\"}") && echo "$second" >> DIR/ran;
    colour=$(gatehouse ask "Which colour shall the new button have? It stands beside the red one." --choice "green" --choice "blue, as the links" ); echo "chosen: $colour"']}
approval:
  actions:
    - {name: shell, when: tool == "Bash", need: 1}
`

// TestCallsAndQuestionsInTheBrowser: a call is read and edited by one person and approved by
// another, one is allowed for the rest of the task, and who sent the task answers the question;
// by keyboard, without script, on a phone, and as a screen reader has it.
func TestCallsAndQuestionsInTheBrowser(t *testing.T) {
	t.Parallel()
	p := placetest.New(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), askingTeam)
	p.Person("olga", people.Operator)
	p.Person("cleo", people.Approver)
	n := p.Start(p.Config, "")
	browser := browsertest.New(t)
	pages := map[string]*browsertest.Page{}
	for _, name := range []string{"cleo", "bob", "olga"} {
		u, err := p.Store.UserByName(t.Context(), name)
		p.Must(err)
		code, err := placetest.SignedIn(t.Context(), p.Store, u)
		p.Must(err)
		pages[name] = browser.Page()
		pages[name].Open(n.URL + "/login/link?code=" + code)
		pages[name].WaitText("Needs you")
	}
	cleo, bob, olga := pages["cleo"], pages["bob"], pages["olga"]
	clean := func(page *browsertest.Page, what string) {
		t.Helper()
		for _, v := range page.Violations() {
			t.Errorf("%s: %+v", what, v)
		}
	}

	olga.Desktop().Open(n.URL + "/")
	olga.Choose("Agent", "coder")
	olga.Fill("Task", "Release it")
	olga.Click("button", "Send")
	olga.WaitText("The task was sent.")
	task := strings.TrimPrefix(strings.Split(olga.URL(), "?")[0], n.URL+"/delegations/")
	call := p.Asked(p.Root(task).TaskID)
	address := n.URL + "/approvals/" + call.ID
	task = p.Root(call.TaskID).TaskID
	gallery(t, bob, "asks-call", address)
	clean(bob, "the page of a call")
	gallery(t, bob, "asks-list", n.URL+"/approvals")
	gallery(t, bob, "asks-chat-call", n.URL+"/chat")
	clean(bob, "the card of a call")

	// Cleo edits without script; the page shows what she made of it, and offers her no yes.
	cleo.Expect("400 (Bad Request)") // what is no input
	olga.Expect("400 (Bad Request)") // no answer
	cleo.Script(false).Open(address)
	cleo.Click("link", "Edit the input")
	cleo.WaitText("you cannot approve it")
	cleo.Fill("Input of Bash as a JSON object", `{"command": "npm publish",`)
	cleo.Click("button", "Make revision 2")
	cleo.WaitText("no JSON object")
	gallery(t, cleo, "asks-call-refused", address+"?edit=input")
	cleo.Open(address + "?edit=input")
	cleo.Fill("Input of Bash as a JSON object", `{"command": "npm publish --tag next --dry-run", "description": "Publish the release"}`)
	cleo.Fill("What you changed", "Dry first")
	cleo.Click("button", "Make revision 2")
	cleo.WaitText("What changed 1→2")
	if cleo.Has("button", "Approve once") {
		t.Error("who edited is offered a yes")
	}
	cleo.Script(true)
	gallery(t, bob, "asks-call-edited", address)
	clean(bob, "the page of an edited call")

	// Bob approves with the keyboard alone, for the rest of the task.
	bob.Desktop().Open(address)
	bob.WaitText("For the rest of this task means")
	browsertest.Eval[bool](bob, `(() => { document.querySelector(".approve-task").focus(); return true; })()`)
	bob.Press("Enter")
	bob.WaitText("counted, for the rest of this task")
	bob.Open(n.URL + "/delegations/" + task)
	bob.WaitText("Allowed for the rest of this task")
	gallery(t, bob, "asks-task-grants", n.URL+"/delegations/"+task)
	clean(bob, "the page of a task with a grant")
	question := p.Asked(task)
	if ran, err := os.ReadFile(filepath.Join(p.Dir, "ran")); err != nil || strings.Count(string(ran), "allow") != 2 || !strings.Contains(string(ran), "--dry-run") {
		t.Errorf("it ran %q, %v", ran, err)
	}
	bob.Open(n.URL + "/delegations/" + task)
	bob.Click("button", "Revoke Bash with commands that begin: npm publish")
	bob.WaitText("From now on such a call is asked again.")

	// Olga sent the task, and is no approver.
	address = n.URL + "/approvals/" + question.ID
	gallery(t, olga, "asks-question", address)
	clean(olga, "the page of a question")
	gallery(t, bob, "asks-chat-question", n.URL+"/chat")
	gallery(t, olga, "asks-task-question", n.URL+"/delegations/"+task)
	olga.Desktop().Script(false).Open(address)
	olga.Click("button", "Answer")
	olga.WaitText("The answer is empty")
	olga.Script(true).Phone().Open(address)
	olga.Fill("Or answer in your own words; what is here also goes with a choice", "and not bold")
	olga.Click("button", "blue, as the links")
	olga.WaitText("Your answer was given to the agent.")
	gallery(t, bob, "asks-answered", address)
	clean(bob, "the page of an answered question")
	gallery(t, bob, "asks-evidence", address+"/evidence")
	p.Until("the end", func() bool { return p.Root(task).State == orchestrator.Completed })
	if text := p.Root(task).Result.Text; !strings.Contains(text, "chosen: blue, as the links") || !strings.Contains(text, "and not bold") {
		t.Errorf("it answered %q", text)
	}
}
