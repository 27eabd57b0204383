package web_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/browsertest"
)

// K13, A32: the conversation in a browser. What the model writes grows at the end of the
// page, a broken call is taken back, and the stored turn takes its place; without script
// the stored turns are there; on a phone and in the dark it reads as well.
func TestTheConversationInTheBrowser(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, root := h.task(dora, "Fix the retry loop")
	h.turn(root, 1, agent.FromUser, said("Fix the retry loop in the uploader."))
	h.turn(root, 2, agent.FromModel, said("I look at it first."), asks("call-1", "read_file", `{"path":"loop.go"}`), asks("call-2", "delegate_to_agent", `{"to":"kik"}`))
	h.turn(root, 3, agent.FromTools, answers("call-1", "read_file", "package loop "+nasty, false), answers("call-2", "delegate_to_agent", "cycle: kik cannot hand to kik.", true))

	p := browsertest.New(t).Page()
	code, hash := signin.NewLinkCode()
	h.must(h.store.CreateSigninLink(h.ctx, "test", people.SigninLink{Hash: hash, UserID: dora.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	p.Open(h.url + "/login/link?code=" + code)
	p.WaitText("Needs you")
	address := h.url + "/delegations/" + root.ID + "?tab=conversation"
	part := func(kind, text string, offset int) {
		h.engine.Hub().Pass(event.Part{TaskID: task.ID, DelegationID: root.ID, Actor: "kik", At: time.Now(), Turn: 4, Kind: kind, Text: text, Offset: offset})
	}
	part("thinking", "let me see", 0)
	part("text", "The counter is ", 0)
	p.Open(address)
	p.WaitText("I look at it first.")
	p.WaitText("cycle: kik cannot hand to kik.") // a refusal stands out while it is folded
	p.WaitText("The counter is")                 // written before the page was opened
	part("text", "reset inside <b>the loop</b> \u202e.", 15)
	p.WaitText("The counter is reset inside <b>the loop</b> ⟦U+202E⟧.")
	p.Shot("conversation-live")
	if strings.Contains(p.Text(), "let me see") {
		t.Error("thinking is shown before it is asked for")
	}
	part(event.KindReset, "", 0)
	part("text", "It is fixed now.", 0)
	p.WaitGone("reset inside")
	p.WaitText("It is fixed now.")
	h.turn(root, 4, agent.FromModel, said("It is fixed now, and stored."))
	h.complete(task.ID, root.ID, 4)
	p.WaitText("It is fixed now, and stored.")
	p.WaitText("4 turns")
	if n := strings.Count(p.Text(), "It is fixed now"); n != 1 {
		t.Errorf("the answer is there %d times", n)
	}

	p.Phone().Dark().Open(address)
	p.WaitText("It is fixed now, and stored.")
	p.Shot("conversation-phone-dark")
	p.Desktop().Light().Script(false).Open(address)
	p.WaitText("It is fixed now, and stored.")
	p.Shot("conversation-plain")
}

// What an agent writes shows in the chat, in the row of its delegation.
func TestTheChatShowsWhatIsBeingWritten(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	p := browsertest.New(t).Page()
	code, hash := signin.NewLinkCode()
	h.must(h.store.CreateSigninLink(h.ctx, "test", people.SigninLink{Hash: hash, UserID: dora.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	p.Open(h.url + "/login/link?code=" + code)
	p.WaitText("Needs you")
	p.Open(h.url + "/chat")
	p.Fill("Message", "Fix the loop")
	p.Press("Enter")
	p.WaitText("tree")
	page, err := h.store.List(h.ctx, listOf(dora))
	h.must(err)
	root := page.Items[0]
	child := h.running(root, "x")
	h.say(root.TaskID, child.ID, 1)
	p.WaitText("coder")
	h.write(root.TaskID, child.ID, 1, "I count the files: ", 0)
	p.WaitText("I count the files:")
	h.write(root.TaskID, child.ID, 1, "three.", 19)
	p.WaitText("I count the files: three.")
	p.Shot("chat-live")
	h.complete(root.TaskID, child.ID, 1)
	p.WaitGone("I count the files")
}

// listOf is the filter for a person's newest task.
func listOf(u people.User) orchestrator.Filter {
	return orchestrator.Filter{Requester: u.Name, RootsOnly: true, Limit: 1}
}
