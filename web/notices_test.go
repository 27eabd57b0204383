package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/browsertest"
)

// watchNotices keeps what a page's notices say, and has the page looked at or not as told.
const watchNotices = `(() => {
	window.notices = []; window.away = false;
	const real = window.Notification;
	window.Notification = new Proxy(real, { construct(of, args) { notices.push(args[0] + " | " + args[1].body); return Reflect.construct(of, args); } });
	Object.defineProperty(document, "hidden", { configurable: true, get: () => window.away });
	document.hasFocus = () => !window.away;
	return true;
})()`

// away has the person of a page look elsewhere, or come back.
func away(p *browsertest.Page, is bool) {
	browsertest.Eval[bool](p, map[bool]string{true: "window.away = true", false: "window.away = false"}[is])
}

// noticed is what the notices of a page said, one a line.
func noticed(p *browsertest.Page) string {
	return browsertest.Eval[string](p, `notices.join("\n")`)
}

// withWarning makes a request one that takes care.
func withWarning(r *approval.Request) {
	withCI(r)
	r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: ".github/ci.yml", Text: "It runs on every push."}}
	r.Title = "The secret plan"
}

// A person switches notices on by a button, and is told of what waits and of what ended while no
// page is looked at: of careful requests only that one waits. The title counts in any case.
func TestNoticesOfTheBrowser(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver, people.Operator)
	p := h.seat(browsertest.New(t), bob).Notices(true)
	p.Open(h.url + "/settings/you")
	p.Until(`document.getElementById("live-dot").dataset.liveState === "on"`)
	browsertest.Eval[bool](p, watchNotices)
	if text := p.Text(); strings.Contains(text, "none is looked at") {
		t.Errorf("notices are on before anybody wanted them:\n%s", text)
	}
	away(p, true)
	h.announced(dora)
	p.Until(`document.title === "(1) Settings · Gatehouse"`)
	away(p, false)
	tabTo(t, p, "Show notices here")
	p.Press("Enter")
	p.WaitText("while a tab of Gatehouse is open, and none is looked at")
	p.Until(`localStorage.getItem("gatehouse.notices") === "on"`)
	p.Until(`Object.keys(localStorage).some(k => k.startsWith("gatehouse.noticed."))`)

	away(p, true)
	h.announced(dora, func(r *approval.Request) { r.Title = "Fix the other loop" })
	p.Until(`document.title === "(2) Settings · Gatehouse"`)
	p.Until(`notices.length === 1`)
	if got := noticed(p); got != "A request waits for you | Fix the other loop" {
		t.Errorf("the notice says %q", got)
	}
	h.announced(dora, withWarning)
	p.Until(`notices.length === 2`)
	if got := noticed(p); !strings.HasSuffix(got, "\nA request waits for you | ") {
		t.Errorf("the notice of a careful request says %q", got)
	}
	// A request that others decided leaves the number, and makes no notice.
	away(p, false)
	h.announced(dora)
	p.Until(`document.title === "(4) Settings · Gatehouse"`)
	away(p, true)
	mine, root := h.task(bob, "Count the stars")
	other, theirs := h.task(dora, "Count the sheep")
	h.ends(other, theirs)
	h.ends(mine, root)
	p.Until(`notices.length === 3`)
	if got := noticed(p); !strings.HasSuffix(got, "\nYour task is completed · kik | Count the stars") {
		t.Errorf("the notice of an end says %q", got)
	}
	away(p, false)
	p.Click("button", "Show no notices here")
	p.WaitText("This browser can say")
	away(p, true)
	h.announced(dora, func(r *approval.Request) { r.Title = "The fifth" })
	p.Until(`document.title.startsWith("(5) ")`)
	if got := noticed(p); strings.Contains(got, "fifth") {
		t.Errorf("switched off, the notices say %q", got)
	}
}

// Of several tabs of one person one shows a notice, and none does while one is looked at.
func TestNoticesOfSeveralTabs(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	p := h.seat(browsertest.New(t), bob).Notices(true)
	second := p.Tab()
	for tab, path := range map[*browsertest.Page]string{p: "/settings/you", second: "/"} {
		tab.Open(h.url + path)
		tab.Until(`document.getElementById("live-dot").dataset.liveState === "on"`)
		browsertest.Eval[bool](tab, watchNotices)
	}
	p.Click("button", "Show notices here")
	p.Until(`localStorage.getItem("gatehouse.notices") === "on"`)
	p.Until(`Object.keys(localStorage).some(k => k.startsWith("gatehouse.noticed."))`)
	away(p, true)
	titles := func(start string) {
		t.Helper()
		p.Until(`document.title.startsWith("` + start + `")`)
		second.Until(`document.title.startsWith("` + start + `")`)
	}
	h.announced(dora, func(r *approval.Request) { r.Title = "The first" })
	titles("(1) ")
	away(second, true)
	h.announced(dora, func(r *approval.Request) { r.Title = "The second" })
	titles("(2) ")
	for noticed(p)+noticed(second) == "" && t.Context().Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if got := noticed(p) + noticed(second); got != "A request waits for you | The second" {
		t.Errorf("with two tabs the notices say %q", got)
	}
}

// announced is request with the event that the gate appends.
func (h *house) announced(u people.User, change ...func(*approval.Request)) approval.Request {
	h.Helper()
	r := h.request(u, change...)
	h.tell(r.TaskID, event.Of(r.DelegationID, "coder", event.RequestedData{Repository: r.Repository}))
	return r
}

// ends completes a task.
func (h *house) ends(task orchestrator.Task, root orchestrator.Delegation) {
	h.Helper()
	h.must(h.store.InTask(h.ctx, task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(h.ctx, root.ID)
		if err != nil {
			return err
		}
		d.State = orchestrator.Running
		if err := tx.Move(h.ctx, d, orchestrator.Queued, d.Attempt); err != nil {
			return err
		}
		return orchestrator.Succeed(h.ctx, tx, d)
	}))
}

// Where the browser was told to show none, the settings say so and offer nothing.
func TestNoticesThatTheBrowserRefuses(t *testing.T) {
	h := open(t)
	p := h.seat(browsertest.New(t), h.user("bob", people.Approver)).Notices(false)
	p.Open(h.url + "/settings/you")
	p.WaitText("This browser was told to show no notices of this address.")
	if p.Has("button", "Show notices here") {
		t.Error("it offers what it cannot do")
	}
}

// Without script nothing is asked for and nothing is missing: the title counts, and the
// setting that needs script is not there.
func TestNoticesWithoutScript(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	r := h.request(dora)
	b := h.signIn(bob)
	h.says(b.get("/settings/you"), http.StatusOK, "<title>(1) Settings · Gatehouse</title>", "Mute my tasks")
	h.says(b.get("/approvals/"+r.ID), http.StatusOK, "<title>(1) ◆ ")
	h.says(b.post("/settings/you/muted", form("muted", "1")), http.StatusOK, "stay as they are from now on", "Keep them up to date")
	h.says(b.post("/settings/you/muted", form()), http.StatusOK, "go on until their ends again", "Mute my tasks")
}

// What the script asks for is the reader's own: nobody hears of requests that they cannot
// decide on, nor of tasks that others sent.
func TestNoticesAreTheReadersOwn(t *testing.T) {
	h := open(t)
	dora, bob, eve := h.user("dora", people.Operator, people.Approver), h.user("bob", people.Approver), h.user("eve", people.Operator)
	h.request(dora)
	task, root := h.task(eve, "Mine alone")
	h.ends(task, root)
	items := func(u people.User, query string) (waiting int, titles []string) {
		a := h.signIn(u).get("/notices" + query)
		var said struct {
			Waiting int
			Items   []struct{ Kind, Title, Text, Href string }
		}
		if err := json.Unmarshal([]byte(a.body), &said); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%d %s: %v", a.StatusCode, a.body, err)
		}
		for _, i := range said.Items {
			titles = append(titles, i.Kind+" "+i.Text)
		}
		return said.Waiting, titles
	}
	about := "?task=" + task.ID + "&task=tsk_00000000000000000000000000&task=" + strings.Repeat("x", 99)
	for u, want := range map[*people.User]string{&dora: "", &bob: "request Fix the retry loop", &eve: "end Mine alone"} {
		_, got := items(*u, about)
		if strings.Join(got, ", ") != want {
			t.Errorf("%s hears %q, want %q", u.Name, got, want)
		}
	}
	h.expect(http.StatusSeeOther, "", http.MethodGet, "/notices", "", "") // to the sign-in page
}
