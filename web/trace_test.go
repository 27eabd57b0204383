package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// fan makes a task with wide times deep delegations below its root: coders, each with
// reviewers below it. All have ended but those of the last coder; of every hundredth coder
// the first reviewer failed.
func (h *house) fan(root orchestrator.Delegation, wide, deep int) (failed []string) {
	h.Helper()
	now := time.Now()
	child := func(parent orchestrator.Delegation, to, text string, state orchestrator.State) orchestrator.Delegation {
		d := madeBelow(parent, to, text, state, now)
		if state == orchestrator.Failed {
			failed = append(failed, d.ID)
		}
		return d
	}
	h.must(h.store.InTask(h.ctx, root.TaskID, func(tx orchestrator.Tx) error {
		add := func(d orchestrator.Delegation) error {
			if err := tx.Insert(h.ctx, &d); err != nil {
				return err
			}
			for _, e := range []struct {
				kind event.Type
				id   string
				data map[string]any
			}{{event.Delegated, d.ParentID, map[string]any{"to": d.To, "child": d.ID, "guards": []string{"self", "cycle"}}}, {event.Queued, d.ID, map[string]any{"from": d.From}},
				{event.Acknowledged, d.ID, map[string]any{}}, {event.Progress, d.ID, map[string]any{"text": "a line\nanother of " + d.To}}, {event.Completed, d.ID, map[string]any{}}} {
				if err := tx.Append(h.ctx, event.Event{Type: e.kind, DelegationID: e.id, Actor: "kik", Data: event.Data(e.data)}); err != nil {
					return err
				}
			}
			return nil
		}
		for i := range wide {
			state := orchestrator.Completed
			if i == wide-1 {
				state = orchestrator.Waiting
			}
			c := child(root, "coder", fmt.Sprintf("part %d of the work", i), state)
			if err := add(c); err != nil {
				return err
			}
			for k := range deep {
				state := orchestrator.Completed
				switch {
				case i == wide-1:
					state = orchestrator.Running
				case i%100 == 50 && k == 0:
					state = orchestrator.Failed
				}
				if err := add(child(c, "reviewer", fmt.Sprintf("look at part %d, %d", i, k), state)); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	return failed
}

// madeBelow is a delegation that another one made.
func madeBelow(parent orchestrator.Delegation, to, text string, state orchestrator.State, now time.Time) orchestrator.Delegation {
	d := orchestrator.Delegation{ID: orchestrator.NewID(orchestrator.DelegationPrefix, now), TaskID: parent.TaskID, ParentID: parent.ID, From: parent.To, To: to, Text: text,
		State: state, Depth: parent.Depth + 1, Chain: chain.New(3).With(chain.Step{From: parent.To, To: to, Task: text}), CreatedAt: now, Since: now, ReadyAt: now, Requester: "dora"}
	d.HopKey = d.ID
	d.StartedAt = &now
	if state.Ended() {
		end := now.Add(3 * time.Second)
		d.EndedAt = &end
	}
	if state == orchestrator.Failed {
		d.Error = &agent.Failure{Code: "exit", Message: "It ended with exit code 3: " + nasty}
	}
	if state == orchestrator.Completed {
		d.Result = &agent.Result{Text: "done: " + text}
	}
	return d
}

// rowsOf counts the rows of the tree on a page.
func rowsOf(page string) int { return strings.Count(page, `id="row-dlg_`) }

// A task of 10,000 delegations opens quickly: ended branches are closed and say what is the
// worst that they hide, only a page of rows is there, and the server finds any of them.
func TestATaskOfTenThousandDelegationsOpens(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, root := h.task(dora, "Fix everything")
	failed := h.fan(root, 1000, 9)
	b := h.signIn(dora)
	timed := func(path string) string {
		b.page(path)
		start := time.Now()
		page := b.page(path)
		t.Logf("%s: %s, %d kB, %d rows (aim: 300 ms)", strings.ReplaceAll(path, task.ID, "TASK"), time.Since(start).Round(time.Millisecond), len(page)/1000, rowsOf(page))
		return page
	}
	at := "/delegations/" + task.ID
	page := timed(at)
	if n := rowsOf(page); n != 200 {
		t.Errorf("%d rows are on the first page", n)
	}
	for _, want := range []string{"9 below", "· 1 failed", `aria-expanded="false"`, "rows 1–200 of 1,010 that are open · 10,001 delegations", "next rows ›", "Search 10,001 delegations"} {
		if !strings.Contains(page, want) {
			t.Errorf("the first page lacks %q", want)
		}
	}
	for _, tab := range []string{"timeline", "events", "conversation", "result", "context"} {
		timed(at + "?tab=" + tab)
	}
	// The drawing and the figures count all 50,000 events, not the first ones.
	if page = timed(at + "?tab=flow"); !strings.Contains(page, "10,001 hand-overs, 0 refused") || !strings.Contains(page, ">9,000<") {
		t.Error("the flow leaves hand-overs out")
	}
	if page = timed(at + "?tab=figures"); !strings.Contains(page, ">10,000<") || !strings.Contains(page, ">9,000<") {
		t.Error("the figures leave hand-overs out")
	}
	page = timed(at + "?row=1000&tab=timeline")
	if !strings.Contains(page, "9 below, 9 running") {
		t.Error("the branch that lives does not say so")
	}
	page = timed(at + "?find=" + url.QueryEscape("LOOK at part 777, 3"))
	if n := rowsOf(page); n != 3 || !strings.Contains(page, "1 delegation has it, of 10,001.") {
		t.Errorf("the search shows %d rows; wanted are the one and the two above it", n)
	}
	if page = timed(at + "?find=100%25_"); !strings.Contains(page, "Nothing here has “") {
		t.Error("what nobody has is found")
	}
	page = timed("/delegations/" + failed[3])
	if !strings.Contains(page, `id="row-`+failed[3]+`"`) || !strings.Contains(page, "It ended with exit code 3") || !strings.Contains(page, "another of reviewer") {
		t.Error("the page of one of them does not show its row, its failure and its log")
	}
	if !strings.Contains(page, `class="guards"`) {
		t.Error("its guards are not shown")
	}
	page = timed(at + "?tab=events&at=31000")
	if !strings.Contains(page, `id="e-31000" class="is-at"`) {
		t.Error("the permalink of an event does not show it")
	}
	timed(at + "?tab=events&type=delegation.failed")
	b.oddAddresses(at)
}

// oddAddresses are refused, or answered with the page as far as they fit.
func (b *browser) oddAddresses(at string) {
	b.Helper()
	for _, bad := range []string{"?tab=events&before=x", "?tab=events&at=-1", "?tab=events&at=99999999999999999999"} {
		if a := b.get(at + bad); a.StatusCode != http.StatusBadRequest {
			b.Errorf("%s: %d", bad, a.StatusCode)
		}
	}
	for _, odd := range []string{"?fold=....", "?fold=" + strings.Repeat("zzzzzzzz.", 500), "?row=999999", "?row=-4", "?more=zz", "?tab=nothing", "?find=" + url.QueryEscape(nasty)} {
		b.page(at + odd)
	}
}

// What an agent handed over is a download and never a page of ours; names and values of the
// shared context are text; who may not read it is told so; events are filtered by type and
// by delegation, and each has its own address.
func TestResultsContextAndEventsOfADelegation(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	task, _, child := h.failedTask(dora)
	b := h.signIn(dora)
	at := "/delegations/" + child.ID
	a := b.get(at + "/artifacts/1")
	if got := a.Header.Get("Content-Disposition"); a.body != "the whole report" || got != "attachment; filename=_report___gnp.exe" && got != "attachment; filename=report___gnp.exe" {
		t.Errorf("the artifact is %q as %q", a.body, got)
	}
	if a = b.get(at + "/artifacts/2"); a.Header.Get("Content-Type") != "application/octet-stream" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("markup of an agent is sent as %s", a.Header.Get("Content-Type"))
	}
	for _, n := range []string{"0", "3", "-1", "x", "99999999999999999999"} {
		if a := b.get(at + "/artifacts/" + n); a.StatusCode != http.StatusNotFound {
			t.Errorf("artifact %s: %d", n, a.StatusCode)
		}
	}
	page := b.page(at + "?tab=context")
	for _, want := range []string{"notes/retry", "written", "notes/gone", "it was deleted or has expired", "found in upload/retry.go &lt;script&gt;", "wrote it"} {
		if !strings.Contains(page, want) {
			t.Errorf("the context tab lacks %q", want)
		}
	}
	page = b.page(at + "?tab=events&type=delegation.refused")
	if strings.Count(page, `<li id="e-`) != 1 || !strings.Contains(page, "?at=6&amp;tab=events#e-6") || !strings.Contains(page, `<option value="delegation.refused" selected`) {
		t.Error("the filter by type does not leave the one refusal with its link")
	}
	if page = b.page(at + "?tab=events&of=one"); strings.Contains(page, `class="event-type">task.created`) || !strings.Contains(page, "delegation.refused") {
		t.Error("the filter by delegation leaves events of others")
	}
	if page = b.page(at + "?tab=events"); !strings.Contains(page, "Raw JSON") || len(page) > 300_000 {
		t.Errorf("a page with a line of 300 kB has %d bytes", len(page))
	}
	if page = b.page(at); !strings.Contains(page, "296 kB more") {
		t.Error("the log does not say what it left out of a long line")
	}
	if page = b.page("/delegations/" + task.ID + "?tab=timeline"); !strings.Contains(page, `class="why">why<`) {
		t.Error("a refusal has no way to its reason")
	}
}
