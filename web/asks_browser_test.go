package web_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gatehouse/handlers/signin"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// A call with a long and hostile input, careful and edited, is whole on its page, on a phone,
// too; a question with many long choices has a button for each.
func TestALongCallAndQuestionInTheBrowser(t *testing.T) {
	h := open(t)
	ann, bob := h.user("ann", people.Approver), h.user("bob", people.Approver)
	u := h.user("dora", people.Operator)
	script := strings.Repeat("echo one after the other\n", 300) + strings.Repeat("word", 500) + "\u202e\nthe end"
	input, err := json.Marshal(map[string]any{"command": script, "env": map[string]any{"deep": []int{1, 2, 3}}})
	h.must(err)
	no := false
	var choices []string
	for _, c := range []string{"one", "two", "three", "four", "five", "six"} {
		choices = append(choices, c+strings.Repeat(" and so on", 15))
	}
	all := h.asks(u, agent.Ask{Action: &agent.Action{Tool: "run_everything_there_is", Server: "operations", Input: input, Hints: agent.Hints{ReadOnly: &no}}}, question(strings.Repeat("Is this a long question? ", 60), choices...))
	editor := h.signIn(bob)
	has(t, editor.post("/approvals/"+all[0].ID+"/decision", verdict(all[0], "edit", "input", strings.Replace(string(input), "the end", "the very end", 1))), 200, "What changed 1→2")

	p := browsertest.New(t).Page()
	code, hash := signin.NewLinkCode()
	h.must(h.store.CreateSigninLink(h.ctx, "test", people.SigninLink{Hash: hash, UserID: ann.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	p.Open(h.url + "/login/link?code=" + code)
	p.WaitText("Needs you")
	for name, address := range map[string]string{"call-long": "/approvals/" + all[0].ID, "call-long-editor": "/approvals/" + all[0].ID + "?edit=input", "question-long": "/approvals/" + all[1].ID, "chat-long": "/chat"} {
		p.Desktop().Light().Open(h.url + address)
		p.Wait("navigation", "Main")
		p.Shot(name + "-light")
		for _, v := range p.Violations() {
			t.Errorf("%s: %+v", name, v)
		}
		p.Phone().Dark().Open(h.url + address)
		p.Wait("navigation", "Main")
		if wide := browsertest.Eval[int](p, "document.documentElement.scrollWidth - screen.width"); wide > 0 {
			t.Errorf("%s is %d px wider than a phone", name, wide)
		}
		p.Shot(name + "-phone")
	}
	p.Desktop().Open(h.url + "/approvals/" + all[0].ID)
	p.WaitText("the very end")
	p.WaitText("⟦U+202E⟧")
	p.Click("button", "Approve once") // its sheet opens first
	p.Click("checkbox", "I have looked at: Text direction is overridden")
	p.Click("checkbox", "I have looked at all of it, to its end")
	p.Click("button", "Approve once")
	p.WaitText("Your approval was counted.")
}
