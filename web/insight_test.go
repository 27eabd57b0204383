package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// busy makes a task in which kik has handed to coder and waits, and kik was refused once.
func (h *house) busy(token string) (taskID, rootID, childID string) {
	h.Helper()
	made := h.expect(http.StatusAccepted, "", "POST", "/api/v1/tasks", token, `{"agent":"kik","text":"Fix the retry loop"}`).json(h.T)
	taskID, rootID = made["id"].(string), made["delegation_id"].(string)
	h.must(h.store.InTask(h.ctx, taskID, func(tx orchestrator.Tx) error {
		root, err := tx.Delegation(h.ctx, rootID)
		if err != nil {
			return err
		}
		child := *root
		child.ID = orchestrator.NewID(orchestrator.DelegationPrefix, tx.Now())
		child.ParentID, child.From, child.To, child.HopKey, child.Depth, child.Since, child.CreatedAt = rootID, "kik", "coder", "k", 1, tx.Now(), tx.Now()
		childID = child.ID
		if err := tx.Insert(h.ctx, &child); err != nil {
			return err
		}
		for _, e := range []event.Event{
			{Type: event.Acknowledged, DelegationID: rootID, Actor: "kik"},
			{Type: event.UsageRecorded, DelegationID: rootID, Actor: "kik", Data: event.Data(map[string]any{"model": "sonnet", "input_tokens": 120, "output_tokens": 30, "usd": 0.25})},
			{Type: event.DelegationRefused, DelegationID: rootID, Actor: "kik", Data: event.Data(map[string]any{"to": "<kik>", "code": "cycle", "message": "kik → <kik>"})},
			{Type: event.Delegated, DelegationID: rootID, Actor: "kik", Data: event.Data(map[string]any{"to": "coder", "child": childID})},
			{Type: event.Queued, DelegationID: childID, Actor: "kik"},
			{Type: event.Waiting, DelegationID: rootID, Actor: "kik"},
		} {
			if err := tx.Append(h.ctx, e); err != nil {
				return err
			}
		}
		root.State, root.Since, root.OpenChildren = orchestrator.Waiting, tx.Now(), 1
		return tx.Move(h.ctx, root, orchestrator.Queued, root.Attempt)
	}))
	_, err := h.store.CountInsight(h.ctx, 1000)
	h.must(err)
	return taskID, rootID, childID
}

// TestFiguresOverTheAPI (H31): by each dimension, over a range of days, and for one task.
func TestFiguresOverTheAPI(t *testing.T) {
	h := open(t)
	token := h.token(h.user("ann", people.Admin, people.Operator))
	taskID, _, _ := h.busy(token)
	for by, name := range map[string]string{"agent": "kik", "model": "sonnet", "day": "", "repository": ""} {
		got := h.expect(http.StatusOK, "", "GET", "/api/v1/insights?by="+by, token, "").json(t)
		total := got["total"].(map[string]any)
		if total["handoffs"] != 1.0 || total["input_tokens"] != 120.0 || total["usd"] != 0.25 || total["deadlocks"] != 1.0 || total["refusals"].(map[string]any)["cycle"] != 1.0 {
			t.Errorf("by %s: total %v", by, total)
		}
		found := name == ""
		for _, item := range got["items"].([]any) {
			found = found || item.(map[string]any)["name"] == name
		}
		if !found || got["behind"] != 0.0 || got["as_of"] == nil {
			t.Errorf("by %s: %v", by, got)
		}
	}
	old := h.expect(http.StatusOK, "", "GET", "/api/v1/insights?from=2020-01-01&to=2020-12-31", token, "").json(t)
	if len(old["items"].([]any)) != 0 || old["total"].(map[string]any)["usd"] != nil {
		t.Errorf("2020: %v; nobody reported anything then, which is no 0", old["total"])
	}
	for _, bad := range []string{"by=colour", "from=2026-01-02&to=2026-01-01", "from=2020-01-01&to=2026-01-01", "from=yesterday", "since=1"} {
		h.expect(http.StatusBadRequest, "bad_request", "GET", "/api/v1/insights?"+bad, token, "")
	}
	one := h.expect(http.StatusOK, "", "GET", "/api/v1/tasks/"+taskID+"/insights", token, "").json(t)
	if one["complete"] != true || one["total"].(map[string]any)["output_tokens"] != 30.0 || len(one["agents"].([]any)) != 2 {
		t.Errorf("of the task: %v", one)
	}
	h.expect(http.StatusNotFound, "not_found", "GET", "/api/v1/tasks/tsk_none00/insights", token, "")
}

// TestWhoWaitsForWhom (A24): every hand-over that is under way, by its id, with whom it waits
// for and since when; and why nobody waits in a circle.
func TestWhoWaitsForWhom(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator)
	token := h.token(ann)
	taskID, rootID, childID := h.busy(token)
	other, _, _ := h.busy(token)
	for _, path := range []string{"/api/v1/waits", "/api/v1/waits?task=" + taskID} {
		got := h.expect(http.StatusOK, "", "GET", path, token, "").json(t)
		rows := map[string]map[string]any{}
		for _, item := range got["items"].([]any) {
			row := item.(map[string]any)
			rows[row["delegation_id"].(string)] = row
		}
		root, child := rows[rootID], rows[childID]
		if got["cycle"] != false || !strings.Contains(got["note"].(string), "circle") {
			t.Errorf("%s: cycle %v, %v", path, got["cycle"], got["note"])
		}
		if root["waits_for"] != "children" || root["children"].([]any)[0].(map[string]any)["id"] != childID || root["since"] == nil {
			t.Errorf("%s: the caller: %v", path, root)
		}
		if child["waits_for"] != "slot" || child["agent"] != "coder" {
			t.Errorf("%s: the called: %v", path, child)
		}
		if want := map[bool]int{true: 2, false: 4}[strings.Contains(path, "task=")]; len(rows) != want {
			t.Errorf("%s has %d rows, want %d", path, len(rows), want)
		}
	}
	first := h.expect(http.StatusOK, "", "GET", "/api/v1/waits?limit=3", token, "").json(t)
	rest := h.expect(http.StatusOK, "", "GET", "/api/v1/waits?limit=3&after="+fmt.Sprint(first["next"]), token, "").json(t)
	if len(first["items"].([]any)) != 3 || len(rest["items"].([]any)) != 1 || rest["next"] != nil {
		t.Errorf("pages of %d and %d rows", len(first["items"].([]any)), len(rest["items"].([]any)))
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", "/api/v1/waits?after=x", token, "")
	b := h.signIn(ann)
	if page := b.get("/waits").body; !strings.Contains(page, "no worker is free") && !strings.Contains(page, "a worker takes it next") || !strings.Contains(page, "it waits for coder below") {
		t.Errorf("/waits: %.3000s", page)
	}
	if page := b.get("/delegations/" + other).body; !strings.Contains(page, `id="waits-h"`) {
		t.Error("the page of a live task does not say who waits for whom")
	}
}

// TestFiguresAndFlowHavePages (H30, H31): without script they are tables; the drawing is a file, too.
func TestFiguresAndFlowHavePages(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator)
	b := h.signIn(ann)
	if page := b.get("/insights").body; !strings.Contains(page, "Nothing happened in these days") {
		t.Errorf("an empty house: %.2000s", page)
	}
	taskID, _, _ := h.busy(h.token(ann))
	for path, wants := range map[string][]string{
		"/insights":        {"By agent", ">kik<", "sonnet", "cycle", "data-chart-table", "agent.csv"},
		"/insights?from=x": {"is not understood", "By agent"},
		"/insights?from=2026-02-01&to=2026-01-01": {"end before they begin"},
		"/insights/agent.csv":                     {"name,tasks,handoffs", "kik,1,"},
		"/insights/channel.csv":                   {"channel,approved,rejected", ",answered"},
		"/insights?agent=kik&repository=":         {"By agent", `<option value="kik" selected>`, "agent=kik", "Clear"},
		"/insights?agent=%3Ckik%3E":               {"Nothing happened in these days for", "Show all"},
		"/insights/day.csv?agent=nobody":          {"name,tasks"},
		"/delegations/" + taskID + "/flow":        {">coder<", "cycle", "<desc"},
		"/delegations/" + taskID + "/flow.svg":    {"<?xml", ">coder<", "&lt;kik&gt;"},
		"/delegations/" + taskID + "?tab=flow":    {">coder<", "As a table"},
		"/delegations/" + taskID + "?tab=figures": {"hand-overs", "$0.25"},
	} {
		page := b.get(path).body
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q: %.1500s", path, want, page)
			}
		}
		if strings.Contains(page, "<kik>") {
			t.Errorf("%s has a name as markup", path)
		}
	}
}
