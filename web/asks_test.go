package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// asks puts what an agent of u's task asks before people, as a run would.
func (h *house) asks(u people.User, what ...agent.Ask) []approval.Request {
	h.Helper()
	t, _ := h.task(u, "Release it")
	return h.asksOn(t, what...)
}

// said is a task that u sends from the chat.
func (h *house) said(u people.User, text string) orchestrator.Task {
	h.Helper()
	t, _, _, err := h.engine.Submit(h.ctx, orchestrator.Submission{Agent: "kik", Text: text, Via: origin.From(origin.Chat), Chat: u.ID, RequesterID: u.ID, Requester: u.Name})
	h.must(err)
	return t
}

// asksOn puts what the agent of a task asks before people.
func (h *house) asksOn(t orchestrator.Task, what ...agent.Ask) []approval.Request {
	h.Helper()
	gate, err := h.gate.Asks(h.ctx, true)
	h.must(err)
	var ids []string
	h.must(h.store.InGate(h.ctx, t.ID, func(tx approval.Tx) error {
		d, err := tx.Delegation(h.ctx, t.RootID)
		if err != nil {
			return err
		}
		from := d.State
		d.State = orchestrator.Waiting
		for _, a := range what {
			id := orchestrator.NewID(orchestrator.RequestPrefix, time.Now())
			ids = append(ids, id)
			d.Work.Asks = append(d.Work.Asks, orchestrator.Asked{Content: a.Content(), Request: id, State: agent.AskOpen})
			if err := gate.Put(h.ctx, tx, d, id, a, true); err != nil {
				return err
			}
		}
		return tx.Move(h.ctx, d, from, d.Attempt)
	}))
	var all []approval.Request
	for _, id := range ids {
		r, err := h.store.Request(h.ctx, id)
		h.must(err)
		all = append(all, r)
	}
	return all
}

func (h *house) asksOne(u people.User, a agent.Ask) approval.Request { return h.asks(u, a)[0] }

func callOf(input any) agent.Ask {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return agent.Ask{Action: &agent.Action{Tool: "Bash", Input: raw}}
}

func toRun(command string) agent.Ask { return callOf(map[string]string{"command": command}) }

func question(text string, choices ...string) agent.Ask {
	return agent.Ask{Question: &agent.Question{Text: text, Choices: choices}}
}

// verdict is the form of the page of r, with further fields.
func verdict(r approval.Request, v approval.Verdict, more ...string) url.Values {
	f := url.Values{"digest": {r.Revision.Digest}, "revision": {strconv.Itoa(r.Revision.N)}}
	if v != "" {
		f.Set("verdict", string(v))
	}
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

// The page of a call shows the whole input and what is known of the tool; its plain forms say
// yes, yes for the rest of the task, and no. Nothing of a change of files is there.
func TestThePageOfACall(t *testing.T) {
	h := open(t)
	ann, dora := h.signIn(h.user("ann", people.Approver)), h.user("dora", people.Operator)
	yes := true
	r := h.asksOne(dora, agent.Ask{Action: &agent.Action{Tool: "deploy", Server: "ops", Hints: agent.Hints{Destructive: &yes},
		Input: json.RawMessage(`{"script":"<b>one</b>\ntwo gpj\u202eexe","key":"AKIAIOSFODNN7EXAMPLE"}`)}})
	page := ann.get("/approvals/" + r.ID)
	has(t, page, http.StatusOK, "kik wants to call deploy of the MCP server ops", "Its server says: may destroy something", "│ &lt;b&gt;one&lt;/b&gt;", "U+202E", "Skip to the call",
		"Approve once", `class="reject"`, "of 1 yes", "What to look at", "deploy of ops with any input", "Yes lets <b>kik</b> make this call")
	lacks(t, page, "request_changes", "<b>one</b>", "\u202e", "AKIAIOSFODNN7EXAMPLE", "merge commit", "0 files", "hand-over", "Edit the input")
	has(t, ann.get("/approvals/"+r.ID+"?part=head"), http.StatusOK, "kik wants to call deploy")
	for _, list := range []string{"/approvals", "/", "/delegations/" + r.TaskID} {
		got := ann.get(list)
		has(t, got, http.StatusOK, "kik wants to call deploy of ops")
		lacks(t, got, "0 files", "no branch yet")
	}
	h.signIn(h.user("eve", people.Auditor)).get("/approvals/" + r.ID)

	has(t, ann.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Approve)), http.StatusConflict, "not ticked", "Approve once")
	has(t, ann.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Reject, "comment", "not today")), http.StatusOK, "You rejected this. The call is not made.", "the call was not made", "not today")
	d, err := h.store.Delegation(h.ctx, r.DelegationID)
	h.must(err)
	if d.State != orchestrator.Queued || d.Work.Asks[0].State != agent.AskRefused {
		t.Errorf("it is %s, %+v", d.State, d.Work.Asks)
	}
}

// What a yes for the rest of the task covers stands beside its button; the grant is on the
// page of the task, which takes it back, and stays there folded.
func TestACallIsAllowedForTheRestOfTheTask(t *testing.T) {
	h := open(t)
	ann, dora := h.signIn(h.user("ann", people.Approver)), h.user("dora", people.Operator)
	r := h.asksOne(dora, toRun("npm test --watch"))
	has(t, ann.get("/approvals/"+r.ID), http.StatusOK, "command: npm test --watch", "Bash with commands that begin: npm test", "Approve for this task", `formaction="/approvals/`+r.ID+`/decision?scope=task"`)
	has(t, ann.post("/approvals/"+r.ID+"/decision?scope=ever", verdict(r, approval.Approve)), http.StatusBadRequest, "once or task")
	has(t, ann.post("/approvals/"+r.ID+"/decision?scope=task", verdict(r, approval.Approve)), http.StatusOK, "counted, for the rest of this task", "and those like it for the rest of the task", "approved for the rest of this task", "Withdraw")
	task := "/delegations/" + r.TaskID
	has(t, ann.get(task), http.StatusOK, "Allowed for the rest of this task", "Bash with commands that begin: npm test", "not used yet", "Revoke")
	grants, err := h.gate.Grants(h.ctx, r.TaskID)
	h.must(err)
	if len(grants) != 1 {
		t.Fatalf("%d grants", len(grants))
	}
	has(t, h.signIn(h.user("olga", people.Operator)).post("/grants/"+grants[0].ID+"/revoke", url.Values{}), http.StatusForbidden, "Revoking this needs")
	has(t, h.signIn(dora).get(task), http.StatusOK, ">Revoke<")
	has(t, ann.post("/grants/gnt_00000000000000000000000000/revoke", url.Values{}), http.StatusNotFound)
	gone := ann.post("/grants/"+grants[0].ID+"/revoke", url.Values{})
	has(t, gone, http.StatusOK, "From now on such a call is asked again.", "1 grant was revoked", "revoked by", "0 grants")
	lacks(t, gone, ">Revoke<")
	has(t, ann.get(task+"?tab=events"), http.StatusOK, `<a href="/approvals/`+r.ID+`">Request</a>`)

	ends := h.asksOne(dora, toRun("rm -rf build; make"))
	page := ann.get("/approvals/" + ends.ID)
	has(t, page, http.StatusOK, "Approve once")
	lacks(t, page, "scope-words", "for this task")
	has(t, ann.post("/approvals/"+ends.ID+"/decision", verdict(ends, approval.Approve, "scope", "task")), http.StatusBadRequest, "Approve it once")
	once := ann.post("/approvals/"+ends.ID+"/decision", verdict(ends, approval.Approve, "scope", "once"))
	has(t, once, http.StatusOK, "may make the call, once")
	has(t, ann.get("/approvals/"+ends.ID+"/evidence"), http.StatusOK, "Call of", "What would be called, by kik", "approved on the web")
}

// Who edits the input makes a revision that another person approves; the page shows line by
// line what changed. What was typed is not lost where it is not taken.
func TestTheInputOfACallIsEditedOnItsPage(t *testing.T) {
	h := open(t)
	ann, bob, dora := h.signIn(h.user("ann", people.Approver)), h.signIn(h.user("bob", people.Approver)), h.user("dora", people.Operator)
	r := h.asksOne(dora, callOf(map[string]string{"command": "npm publish", "description": "gpj\u202eexe"}))
	address := "/approvals/" + r.ID
	has(t, ann.get(address), http.StatusOK, `href="/approvals/`+r.ID+`?edit=input#review-bar"`)
	editor := ann.get(address + "?edit=input")
	has(t, editor, http.StatusOK, `name="input"`, `gpj\u202eexe`, "you cannot approve it", "Make revision 2")
	lacks(t, editor, "Approve once")
	edit := func(input string) url.Values {
		return verdict(r, approval.Edit, "input", input, "comment", "dry", "back", "edit=input")
	}
	has(t, ann.post(address+"/decision", edit(`{"command":`)), http.StatusBadRequest, "no JSON object", `{&#34;command&#34;:</textarea>`)
	same := "{\r\n \"command\": \"npm publish\", \"description\": \"gpj\\u202eexe\"}"
	has(t, ann.post(address+"/decision", edit(same)), http.StatusBadRequest, "The edit changes nothing.")
	has(t, ann.post(address+"/decision", edit("")), http.StatusBadRequest, "")
	done := ann.post(address+"/decision", edit("{\r\n \"command\": \"npm publish --dry-run\", \"description\": \"x\"}"))
	has(t, done, http.StatusOK, "Your edit was stored.", "What changed 1→2", `class="code del"`, `class="code add"`, "Edited by ann, from revision 1. ann cannot approve it.", "input as it was edited")
	lacks(t, done, "Approve once")
	r2, err := h.store.Request(h.ctx, r.ID)
	h.must(err)
	if string(r2.Revision.Input) != `{"command":"npm publish --dry-run","description":"x"}` || r2.Revision.N != 2 {
		t.Errorf("revision %d has %s", r2.Revision.N, r2.Revision.Input)
	}
	has(t, ann.post(address+"/decision", verdict(r2, approval.Approve)), http.StatusForbidden, "ann")
	old := bob.get(address + "?rev=1")
	has(t, old, http.StatusOK, "Revision 2 replaced this one", "npm publish")
	lacks(t, old, "command: npm publish --dry-run", "What changed 1→1")
	has(t, bob.get(address+"?rev=2&since=1"), http.StatusOK, "What changed 1→2")
	has(t, bob.get(address+"?since=7"), http.StatusNotFound)
	has(t, bob.post(address+"/decision", verdict(r, approval.Approve)), http.StatusConflict)
	has(t, bob.post(address+"/decision", verdict(r2, approval.Approve)), http.StatusOK, "may make the call, once")
	has(t, bob.get(address+"/evidence"), http.StatusOK, "edited by ann, from revision 1", "npm publish --dry-run", "Revision 1")
	d, err := h.store.Delegation(h.ctx, r.DelegationID)
	h.must(err)
	if a := d.Work.Asks[0]; a.State != agent.AskAllowed || string(a.Input) != string(r2.Revision.Input) {
		t.Errorf("what runs is %+v", a)
	}
}

// A question has its choices as buttons and room for words. Who sent the task reads and
// answers it on its page, in their lists and in the chat, without the role approver; nobody
// else's question, and no call, is theirs.
func TestThePageOfAQuestion(t *testing.T) {
	h := open(t)
	ann := h.signIn(h.user("ann", people.Approver))
	u := h.user("dora", people.Operator)
	dora, olga := h.signIn(u), h.signIn(h.user("olga", people.Operator))
	both := h.asks(u, question("Which <i>colour</i>?\nPick one.", "red", "dark\nblue"), question("Why?"))
	r, why := both[0], both[1]
	page := ann.get("/approvals/" + r.ID)
	has(t, page, http.StatusOK, "What kik asks", "Which &lt;i&gt;colour&lt;/i&gt;?", `name="choice" value="red"`, `formaction="/approvals/`+r.ID+`/decision?verdict=answer"`, "No answer", ">Answer<",
		"of dora who sent the task", "kik asks a question")
	lacks(t, page, "<i>", "0 files", "No warnings", "Approve once", ">Approve<", "hand-over", "yes needed", "merge commit")
	mine := dora.get("/approvals/" + r.ID)
	has(t, mine, http.StatusOK, `value="red"`, ">Answer<", "you or ann")
	lacks(t, mine, "No answer")
	has(t, dora.get("/"), http.StatusOK, `<a class="row-title" href="/approvals/`+r.ID+`"`)
	has(t, dora.get("/delegations/"+r.TaskID), http.StatusOK, "kik asks a question", "you or ann, with an answer", "its question waits for an answer; who can give one: ann, dora; and 1 more")
	has(t, dora.get("/delegations"), http.StatusOK, "with an answer")
	has(t, olga.get("/approvals/"+r.ID), http.StatusForbidden)
	has(t, olga.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Respond, "comment", "x")), http.StatusForbidden, "Deciding needs the role approver")
	lacks(t, olga.get("/delegations/"+r.TaskID), "Which ")
	call := h.asksOne(u, toRun("npm test"))
	has(t, dora.get("/approvals/"+call.ID), http.StatusForbidden)
	has(t, dora.post("/approvals/"+call.ID+"/decision", verdict(call, approval.Approve)), http.StatusForbidden)

	has(t, dora.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Respond)), http.StatusBadRequest, "The answer is empty", `value="red"`)
	has(t, dora.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Respond, "choice", "green", "comment", "typed")), http.StatusBadRequest, "is none of the choices", "typed")
	done := dora.post("/approvals/"+r.ID+"/decision?verdict=answer", verdict(r, "", "choice", "dark\r\nblue", "comment", "as the sky"))
	has(t, done, http.StatusOK, "Your answer was given to the agent.", "dora answered", "dark\nblue\n\nas the sky", "The answer", `data-state="answered"`)
	has(t, ann.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Respond, "comment", "late")), http.StatusConflict, "late")
	has(t, ann.post("/approvals/"+why.ID+"/decision", verdict(why, approval.Reject, "comment", "nobody knows")), http.StatusOK, "The agent is told that nobody answers this.", "ann gave no answer · kik was told so", "nobody knows")
	has(t, ann.get("/approvals/"+r.ID+"/evidence"), http.StatusOK, "What is asked, by kik", "answered on the web", "as the sky", "answered")
	got := ann.get("/approvals/" + why.ID + "/evidence")
	has(t, got, http.StatusOK, "nobody knows")
	lacks(t, got, "as the sky")
}

// The lists of the audit find calls and questions by what they are, and say no size of them.
func TestCallsAndQuestionsAreFoundInTheAudit(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	eve := h.signIn(h.user("eve", people.Auditor))
	h.asks(dora, toRun("npm publish"), question("Which colour?"))
	for filter, want := range map[string][2]string{"is:action": {"npm publish", "Which colour?"}, "is:question": {"Which colour?", "npm publish"}} {
		got := eve.get("/audit?columns=size&columns=time&filter=" + url.QueryEscape(filter))
		has(t, got, http.StatusOK, want[0])
		lacks(t, got, want[1], "0 files")
	}
	has(t, eve.get("/audit?filter=state:answered"), http.StatusOK, "No request")
}

// Two of two: one yes for the task and one for once is a yes for once.
func TestACallThatNeedsTwo(t *testing.T) {
	h := open(t)
	c := h.gate.Config()
	two := 2
	rules, problems := policy.CompileActions([]policy.RuleConfig{{Name: "two", When: "true", Need: &two}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	c.Actions = rules
	h.gate.SetConfig(c)
	ann, bob, dora := h.signIn(h.user("ann", people.Approver)), h.signIn(h.user("bob", people.Approver)), h.user("dora", people.Operator)
	r := h.asksOne(dora, toRun("npm test"))
	has(t, ann.post("/approvals/"+r.ID+"/decision?scope=task", verdict(r, approval.Approve)), http.StatusOK, "1 yes (ann)", "approved for the rest of this task")
	has(t, bob.post("/approvals/"+r.ID+"/decision", verdict(r, approval.Approve)), http.StatusOK, "may make the call, once")
	lacks(t, bob.get("/delegations/"+r.TaskID), "Allowed for the rest of this task")
}

// In the chat a call that fits its card is approved there, for once or for the rest of the task;
// a question is answered there. What is long or careful leads to its page.
func TestCardsOfCallsAndQuestionsInTheChat(t *testing.T) {
	h := open(t)
	ann, u := h.signIn(h.user("ann", people.Approver)), h.user("dora", people.Operator)
	dora, olga := h.signIn(u), h.signIn(h.user("olga", people.Operator))
	all := h.asks(u, toRun("npm test"), question("Which colour?", "red", "blue"), toRun("make "+strings.Repeat("x", approval.CutQuestion)), toRun("echo gpj\u202eexe"))
	call, asked, long, careful := all[0], all[1], all[2], all[3]
	chat := ann.get("/chat")
	has(t, chat, http.StatusOK, "kik wants to call Bash", "command: npm test", `formaction="/chat/approvals/`+call.ID+`/decision?scope=task"`, "Bash with commands that begin: npm test",
		"kik asks a question", `name="choice" value="red"`, "No answer", "To approve, open the page")
	lacks(t, chat, "request_changes", "0 files", "no branch yet")
	for _, r := range []approval.Request{long, careful} {
		has(t, ann.post("/chat/approvals/"+r.ID+"/decision", verdict(r, approval.Approve)), http.StatusForbidden)
	}
	has(t, ann.post("/chat/approvals/"+call.ID+"/decision?scope=task", verdict(call, approval.Approve)), http.StatusOK, "the call may be made, and those like it for the rest of the task")
	has(t, olga.post("/chat/approvals/"+asked.ID+"/decision", verdict(asked, approval.Respond, "choice", "red")), http.StatusForbidden)
	has(t, ann.post("/chat/approvals/"+asked.ID+"/decision", verdict(asked, approval.Respond)), http.StatusBadRequest, "The answer is empty")

	mine := h.asksOn(h.said(u, "Paint it"), question("Why?\nSay it."), toRun("npm publish"))
	own := dora.get("/chat")
	has(t, own, http.StatusOK, "Why?", ">Answer<", "you or ann")
	lacks(t, own, "npm publish")
	has(t, dora.post("/chat/approvals/"+mine[1].ID+"/decision", verdict(mine[1], approval.Approve)), http.StatusForbidden)
	done := dora.post("/chat/approvals/"+mine[0].ID+"/decision", verdict(mine[0], approval.Respond, "comment", "because"))
	has(t, done, http.StatusOK, "dora answered in chat", "because")
	has(t, ann.get("/chat"), http.StatusOK, "dora answered in chat")
}

// A call that may have run before says so on its page, in lists and on its card.
func TestACallThatMayHaveRun(t *testing.T) {
	h := open(t)
	ann, dora := h.signIn(h.user("ann", people.Approver)), h.user("dora", people.Operator)
	task, root := h.task(dora, "Release it")
	h.must(h.store.InGate(h.ctx, task.ID, func(tx approval.Tx) error {
		d, err := tx.Delegation(h.ctx, root.ID)
		if err != nil {
			return err
		}
		d.Work.Asks = []orchestrator.Asked{{Content: toRun("npm publish").Content(), Request: "apr_0", State: agent.AskAllowed, Begun: true}}
		return tx.Move(h.ctx, d, d.State, d.Attempt)
	}))
	r := h.asksOn(task, toRun("npm publish"))[0]
	for _, page := range []string{"/approvals/" + r.ID, "/approvals", "/chat"} {
		has(t, ann.get(page), http.StatusOK, "May have run before")
	}
}
