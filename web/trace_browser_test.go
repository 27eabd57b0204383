package web_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/web/browsertest"
)

// seat opens a signed-in page of a real browser.
func (h *house) seat(b *browsertest.Browser, u people.User) *browsertest.Page {
	h.Helper()
	p := b.Page()
	h.enter(p, u)
	return p
}

// enter signs somebody in on a page.
func (h *house) enter(p *browsertest.Page, u people.User) {
	h.Helper()
	code, hash := signin.NewLinkCode()
	h.must(h.store.CreateSigninLink(h.ctx, "test", people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	p.Open(h.url + "/login/link?code=" + code)
	p.WaitText("Needs you")
}

// tell appends events to a task.
func (h *house) tell(taskID string, events ...event.Event) {
	h.Helper()
	h.must(h.store.InTask(h.ctx, taskID, func(tx orchestrator.Tx) error {
		var all error
		for _, e := range events {
			e.Actor = "kik"
			all = errors.Join(all, tx.Append(h.ctx, e))
		}
		return all
	}))
}

// move changes a delegation by hand, as its worker would.
func (h *house) move(d orchestrator.Delegation, change func(*orchestrator.Delegation)) {
	h.Helper()
	h.must(h.store.InTask(h.ctx, d.TaskID, func(tx orchestrator.Tx) error {
		row, err := tx.Delegation(h.ctx, d.ID)
		if err != nil {
			return err
		}
		from, attempt := row.State, row.Attempt
		change(row)
		return tx.Move(h.ctx, row, from, attempt)
	}))
}

const report = `# What I did

1. The **retry counter** was reset inside the loop.
2. It is moved out, see [your bank](https://evil.example/login).

| file | lines |
|---|---|
| retry.go | 31 |

<img src=x onerror=alert(1)> ![pixel](https://evil.example/p.gif) ` + nasty

// failedTask is a task whose coder failed, with a refusal, artifacts of hostile names, a
// long log and a use of the shared context.
func (h *house) failedTask(u people.User) (orchestrator.Task, orchestrator.Delegation, orchestrator.Delegation) {
	h.Helper()
	task, root := h.task(u, "Fix the retry loop in the uploader")
	child := h.running(root, "token-of-coder")
	h.tell(task.ID,
		event.Event{Type: event.Acknowledged, DelegationID: root.ID, Data: event.Data(map[string]any{})},
		event.Event{Type: event.Delegated, DelegationID: root.ID, Data: event.Data(map[string]any{"to": "coder", "child": child.ID, "guards": []string{"unknown_agent", "self", "cycle", "max_depth"}})},
		event.Event{Type: event.Waiting, DelegationID: root.ID, Data: event.Data(map[string]any{"children": 1})},
		event.Event{Type: event.DelegationRefused, DelegationID: child.ID, Data: event.Data(map[string]any{"to": "kik " + nasty, "code": "cycle", "message": "coder cannot hand to kik: kik is already in the chain kik → coder."})},
		event.Event{Type: event.Progress, DelegationID: child.ID, Data: event.Data(map[string]any{"text": "go test ./…\nok \x1b[32m\n" + strings.Repeat("x", 300_000)})},
		event.Event{Type: event.Failed, DelegationID: child.ID, Data: event.Data(map[string]any{"code": "exit", "message": "It ended with exit code 3."})},
		event.Event{Type: event.Failed, DelegationID: root.ID, Data: event.Data(map[string]any{"code": "step_failed"})})
	now := time.Now().Add(time.Second)
	h.move(child, func(d *orchestrator.Delegation) {
		d.State, d.EndedAt, d.TokenHash, d.Holder = orchestrator.Failed, &now, "", ""
		d.Error = &agent.Failure{Code: "exit", Message: "It ended with exit code 3: claude: not signed in"}
		d.Result = &agent.Result{Text: report, Data: json.RawMessage(`{"files":3,"note":"<b>x</b>"}`), Artifacts: []agent.Artifact{
			{Name: "../../etc/\"report\"\n\u202egnp.exe", Text: "the whole report"}, {Name: "cover.html", Text: "<script>alert(1)</script>"}}}
	})
	h.move(root, func(d *orchestrator.Delegation) {
		tokens, micro := int64(150000), int64(5_000_000)
		d.State, d.EndedAt = orchestrator.Failed, &now
		d.Error = &agent.Failure{Code: "step_failed", Message: "The step change failed."}
		d.Work.Budget = &budget.Account{Limits: budget.Limits{Tokens: &tokens, MicroUSD: &micro}, Used: budget.Amount{Tokens: 9400}}
	})
	h.must(h.store.InTask(h.ctx, task.ID, func(tx orchestrator.Tx) error {
		e, err := sharedctx.New(time.Now(), "notes", "retry", "found in upload/retry.go "+nasty, "coder", 0)
		if err != nil {
			return err
		}
		if _, err := tx.PutEntry(h.ctx, e); err != nil {
			return err
		}
		_, err = tx.NoteUses(h.ctx, []sharedctx.Use{{Namespace: "notes", Key: "retry", Kind: sharedctx.Write, Agent: "coder", DelegationID: child.ID},
			{Namespace: "notes", Key: "gone", Kind: sharedctx.Read, Agent: "coder", DelegationID: child.ID}})
		return err
	}))
	return task, root, child
}

// A failed task in a real browser: it opens where it failed with the reason first; every
// tab shows foreign text as text; a permalink finds its event on any page; a choice happens
// in place and Back undoes it; on a phone, in the dark and without script it reads as well.
func TestAFailedTaskInTheBrowser(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, root, child := h.failedTask(dora)
	var many []event.Event
	for i := range 150 {
		many = append(many, event.Event{Type: event.Progress, DelegationID: child.ID, Data: event.Data(map[string]any{"text": fmt.Sprintf("line %d", i)})})
	}
	h.tell(task.ID, many...)
	p := h.seat(browsertest.New(t), dora)
	at := h.url + "/delegations/" + task.ID
	p.Open(at)
	p.WaitText("It ended with exit code 3: claude: not signed in")
	p.Wait("button", "Retry")
	if got := browsertest.Eval[string](p, `document.querySelector('.is-selected .agent').textContent`); got != "coder" {
		t.Errorf("the page opens at %q", got)
	}
	for _, tab := range []string{"tree", "timeline", "events", "result", "context", "flow", "figures", "conversation"} {
		for _, look := range []string{"", "-phone-dark"} {
			if look != "" {
				p.Phone().Dark()
			}
			p.Open(at + "?tab=" + tab)
			p.Wait("link", "Timeline")
			p.Shot("task-failed-" + tab + look)
			if wide := browsertest.Eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
				t.Errorf("%s%s is %d px wider than the screen", tab, look, wide)
			}
			p.Desktop().Light()
		}
	}
	p.Open(at + "?tab=result")
	p.WaitText("your bank (evil.example)")
	p.WaitText("picture: pixel")
	if browsertest.Eval[int](p, `document.querySelectorAll('main img, main script').length`) != 0 {
		t.Error("an agent's answer brought elements")
	}
	p.Click("link", "plain text")
	p.WaitText("# What I did")
	p.Click("link", "formatted")
	p.WaitGone("# What I did")

	p.Open(at + "#e-7")
	p.WaitText(`"n": 7`)
	p.Open(h.url + "/delegations/" + root.ID)
	p.Click("link", "coder")
	p.Wait("heading", "coder")
	if !strings.Contains(p.URL(), child.ID) {
		t.Errorf("choosing a row led to %s", p.URL())
	}
	browsertest.Eval[int](p, `(history.back(), 1)`)
	p.Wait("heading", "kik")
	p.Script(false).Open(at + "?tab=timeline")
	p.WaitText("It ended with exit code 3: claude: not signed in")
	p.Script(true)
}

// A tree of 601 in a real browser: a branch opens in place and keeps the reader where she
// is; the search and the next rows come from the server.
func TestALargeTreeInTheBrowser(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, root := h.task(dora, "Fix everything")
	h.fan(root, 60, 9)
	p := h.seat(browsertest.New(t), dora)
	at := h.url + "/delegations/" + task.ID
	for _, tab := range []string{"tree", "timeline"} {
		p.Open(at + "?tab=" + tab)
		p.WaitText("9 below")
		p.Shot("task-large-" + tab)
		p.Phone().Open(at + "?tab=" + tab)
		p.WaitText("9 below")
		p.Shot("task-large-phone-" + tab)
		p.Desktop()
	}
	p.Open(at)
	p.WaitText("9 below")
	browsertest.Eval[int](p, `(window.scrollTo(0, 400), document.querySelectorAll('.fold.is-closed')[30].click(), 1)`)
	p.WaitText("look at part 30, 3")
	if y := browsertest.Eval[int](p, `window.scrollY`); y != 400 {
		t.Errorf("opening a branch moved the page to %d", y)
	}
	if !strings.Contains(p.URL(), "fold=") {
		t.Errorf("the address does not know of the branch: %s", p.URL())
	}
	// What happens meanwhile is shown, and the branch stays open.
	live := h.liveBelow(task.ID)
	h.move(live, func(d *orchestrator.Delegation) {
		now := time.Now()
		d.State, d.EndedAt, d.Result = orchestrator.Completed, &now, &agent.Result{Text: "it is all as it should be"}
	})
	h.tell(task.ID, event.Event{Type: event.Completed, DelegationID: live.ID, Data: event.Data(map[string]any{})})
	p.WaitText("it is all as it should be")
	p.WaitText("look at part 30, 3")
	p.Fill("Search 601 delegations", "part 50, 0")
	p.Click("button", "Search")
	p.WaitText("1 delegation has it, of 601.")
	p.Shot("task-large-found")
}

// liveBelow is a delegation of a task that runs.
func (h *house) liveBelow(taskID string) orchestrator.Delegation {
	h.Helper()
	tree, err := h.store.Tree(h.ctx, taskID)
	h.must(err)
	for _, d := range tree {
		if d.State == orchestrator.Running {
			return d
		}
	}
	h.Fatal("nothing runs")
	return orchestrator.Delegation{}
}
