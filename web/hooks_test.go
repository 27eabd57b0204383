package web_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/trigger"
	"gatehouse/views"
)

const hookSecret = "It's a Secret to Everybody"

// hooks configures triggers.
func (h *house) hooks(specs ...trigger.Spec) {
	h.Helper()
	var all []*trigger.Trigger
	for _, s := range specs {
		t, problems := trigger.Compile(s)
		if len(problems) > 0 {
			h.Fatalf("%+v", problems)
		}
		all = append(all, t)
	}
	h.intake.SetTriggers(all)
}

// ciFailed is the example of the contract.
func ciFailed() trigger.Spec {
	return trigger.Spec{Name: "ci-failed", Kind: trigger.Webhook, Source: trigger.GitHub, Secrets: []string{hookSecret}, Agent: "kik",
		Task: "Fix {{.workflow_run.name}}", When: "event.action == 'completed'", Owner: "ann"}
}

// github posts a delivery as GitHub does.
func (h *house) github(name, id, body string, change ...func(*http.Request)) answer {
	h.Helper()
	m := hmac.New(sha256.New, []byte(hookSecret))
	m.Write([]byte(body))
	return h.ask("POST", "/hooks/"+name, "", body, append([]func(*http.Request){func(r *http.Request) {
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
		r.Header.Set("X-GitHub-Delivery", id)
		r.Header.Set("X-GitHub-Event", "workflow_run")
		r.Header.Set("Content-Type", "application/json")
	}}, change...)...)
}

// workflowRun is what GitHub sends when a run has ended, in its documented shape.
func workflowRun(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../orchestrator/trigger/testdata/github_workflow_run.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tasks counts all tasks.
func (h *house) tasks() int {
	h.Helper()
	page, err := h.store.List(h.ctx, orchestrator.Filter{RootsOnly: true, Limit: 200})
	h.must(err)
	return len(page.Items)
}

func TestADeliveryIsOneTask(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Operator)
	h.hooks(ciFailed())
	body := workflowRun(t)
	first := h.github("ci-failed", "d1", body)
	if first.StatusCode != http.StatusAccepted {
		t.Fatalf("got %d %s", first.StatusCode, first.body)
	}
	a := first.json(t)
	task, err := h.store.Task(h.ctx, a["id"].(string))
	h.must(err)
	if !strings.HasPrefix(task.Text, "Fix Build\n") || task.RequesterID != ann.ID || task.Via != origin.Trigger(origin.Webhook, "ci-failed") || task.Agent != "kik" || a["delegation_id"] != task.RootID || a["state"] != "queued" {
		t.Errorf("task %+v, answer %s", task, first.body)
	}
	// The same id, and the same body under another id: X-GitHub-Delivery is not signed.
	for _, id := range []string{"d1", "d2"} {
		again := h.github("ci-failed", id, body)
		if again.StatusCode != http.StatusOK || again.json(t)["id"] != task.ID || again.json(t)["delegation_id"] != task.RootID || again.json(t)["delivery"] != a["delivery"] {
			t.Errorf("%s again: %d %s", id, again.StatusCode, again.body)
		}
	}
	filtered := h.github("ci-failed", "d3", strings.Replace(body, `"completed"`, `"requested"`, 1))
	if filtered.StatusCode != http.StatusOK || filtered.json(t)["id"] != nil || filtered.json(t)["state"] != "filtered" {
		t.Errorf("filtered: %d %s", filtered.StatusCode, filtered.body)
	}
	ping := h.github("ci-failed", "d4", `{"zen":"Keep it logically awesome."}`, func(r *http.Request) { r.Header.Set("X-GitHub-Event", "ping") })
	if ping.StatusCode != http.StatusOK || ping.json(t)["id"] != nil {
		t.Errorf("ping: %d %s", ping.StatusCode, ping.body)
	}
	form := url.Values{"payload": {strings.Replace(body, "30433642", "30433643", 1)}}.Encode()
	posted := h.github("ci-failed", "d5", form, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") })
	if posted.StatusCode != http.StatusAccepted || h.tasks() != 2 {
		t.Errorf("as a form: %d %s, %d tasks", posted.StatusCode, posted.body, h.tasks())
	}
}

func TestOfTwoSameCallsAtOnceOneMakesTheTask(t *testing.T) {
	h := open(t)
	h.user("ann", people.Operator)
	h.hooks(ciFailed())
	const n = 8
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i] = h.github("ci-failed", fmt.Sprint("d", i%2), workflowRun(t)) })
	}
	wg.Wait()
	accepted := 0
	for _, a := range answers {
		if a.StatusCode == http.StatusAccepted {
			accepted++
		} else if a.StatusCode != http.StatusOK {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		if a.json(t)["id"] == nil || a.json(t)["id"] != answers[0].json(t)["id"] {
			t.Errorf("another task: %s and %s", a.body, answers[0].body)
		}
	}
	if accepted != 1 || h.tasks() != 1 {
		t.Errorf("%d were accepted, %d tasks", accepted, h.tasks())
	}
}

// A stranger learns nothing, writes nothing and is counted.
func TestAStrangersCallLeavesNothing(t *testing.T) {
	h := open(t)
	h.user("ann", people.Operator)
	h.hooks(ciFailed(), trigger.Spec{Name: "nightly", Kind: trigger.Schedule, Cron: "@daily", Agent: "kik", Task: "Look", Owner: "ann"})
	body := workflowRun(t)
	unsigned := func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }
	wrong := func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64)) }
	double := func(r *http.Request) { r.Header.Add("X-Hub-Signature-256", r.Header.Get("X-Hub-Signature-256")) }
	var told []string
	for what, a := range map[string]answer{
		"unsigned": h.github("ci-failed", "d1", body, unsigned), "wrong": h.github("ci-failed", "d1", body, wrong), "double": h.github("ci-failed", "d1", body, double),
		"no such hook": h.github("nothing", "d1", body), "a schedule": h.github("nightly", "d1", body), "a name with a slash": h.github("a%2fb", "d1", body),
	} {
		if a.StatusCode != http.StatusUnauthorized || a.json(t)["code"] != "unauthorized" {
			t.Errorf("%s: %d %s", what, a.StatusCode, a.body)
		}
		told = append(told, fmt.Sprint(a.json(t)["detail"]))
	}
	for _, d := range told {
		if d != told[0] {
			t.Errorf("strangers can tell hooks apart: %q and %q", d, told[0])
		}
	}
	page, err := h.store.Deliveries(h.ctx, trigger.Filter{})
	h.must(err)
	if len(page.Items) != 0 || h.tasks() != 0 {
		t.Errorf("%d deliveries and %d tasks", len(page.Items), h.tasks())
	}
	if a := h.ask("GET", "/hooks/ci-failed", "", ""); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.StatusCode)
	}
}

func TestWhatIsNoStrictJSONIsRefusedAndKept(t *testing.T) {
	h := open(t)
	token := h.token(h.user("ann", people.Operator))
	h.hooks(ciFailed())
	for what, body := range map[string]string{
		"no JSON": "{", "a key twice": `{"action":"completed","action":"requested"}`, "another case": `{"action":"completed","Action":"requested"}`,
		"deep": `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", "no UTF-8": "{\"a\":\"\xff\"}", "more behind": `{"action":"completed"}{}`, "nothing": "",
	} {
		a := h.github("ci-failed", "id of "+what, body)
		if a.StatusCode != http.StatusBadRequest || a.json(t)["code"] != "bad_request" {
			t.Errorf("%s: %d %.300s", what, a.StatusCode, a.body)
		}
	}
	large := h.github("ci-failed", "large", `{"a":"`+strings.Repeat("x", trigger.MaxBody)+`"}`)
	if large.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large one: %d %s", large.StatusCode, large.body)
	}
	list := h.expect(http.StatusOK, "", "GET", v1+"/triggers/ci-failed/deliveries?state=refused&limit=200", token, "").json(t)
	if items := list["items"].([]any); len(items) != 7 || items[0].(map[string]any)["code"] != "malformed" {
		t.Errorf("kept: %v", list)
	}
	if h.tasks() != 0 {
		t.Errorf("%d tasks", h.tasks())
	}
}

func TestWhatTheEngineRefusesIsToldAndCanBeDeliveredAgain(t *testing.T) {
	h := open(t)
	h.hooks(ciFailed())
	body := workflowRun(t)
	refused := h.github("ci-failed", "d1", body)
	if refused.StatusCode != http.StatusConflict || refused.json(t)["code"] != "owner" {
		t.Fatalf("without an owner: %d %s", refused.StatusCode, refused.body)
	}
	ann := h.user("ann", people.Operator)
	bob := h.user("bob", people.Operator)
	auditor, approver := h.token(h.user("ada", people.Auditor)), h.token(h.user("abe", people.Approver))
	token := h.token(bob)
	item := h.expect(http.StatusOK, "", "GET", v1+"/triggers/ci-failed/deliveries", token, "").json(t)["items"].([]any)[0].(map[string]any)
	id := item["id"].(string)
	if item["state"] != "refused" || item["payload"] != nil {
		t.Errorf("in the list: %v", item)
	}
	at := v1 + "/triggers/ci-failed/deliveries/" + id
	if got := h.expect(http.StatusOK, "", "GET", at, auditor, "").json(t); got["payload"] != body || got["headers"].(map[string]any)["X-GitHub-Event"] != "workflow_run" {
		t.Errorf("with its payload: %.300v", got)
	}
	h.expect(http.StatusForbidden, "forbidden", "GET", at, approver, "")
	h.expect(http.StatusForbidden, "forbidden", "POST", at+"/redeliver", auditor, "{}")
	h.expect(http.StatusNotFound, "not_found", "GET", v1+"/triggers/another/deliveries/"+id, token, "")
	again := h.expect(http.StatusAccepted, "", "POST", v1+"/deliveries/"+id[len(id)-6:]+"/redeliver", token, "{}").json(t)
	if again["state"] != "started" || again["redelivery_of"] != id || again["redelivered_by"] != "bob" {
		t.Fatalf("again: %v", again)
	}
	task, err := h.store.Task(h.ctx, again["task_id"].(string))
	h.must(err)
	if task.RequesterID != bob.ID || task.RequesterID == ann.ID { // who had it delivered again asked for it; the owner is barred by the trigger
		t.Errorf("requester %s", task.Requester)
	}
	third := h.expect(http.StatusAccepted, "", "POST", at+"/redeliver", token, "{}").json(t)
	if third["task_id"] == again["task_id"] || h.tasks() != 2 {
		t.Errorf("a task of its own: %v", third)
	}
	events, err := h.store.Events(h.ctx, event.System, 0, 200)
	h.must(err)
	n := 0
	for _, e := range events {
		if e.Type == "trigger.redelivered" && e.Actor == "bob" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d events say who had it delivered again", n)
	}
}

func TestATriggerIsTriedWithoutATrace(t *testing.T) {
	h := open(t)
	token := h.token(h.user("ann", people.Operator))
	lost := ciFailed()
	lost.Name, lost.Agent = "lost", "nobody"
	h.hooks(ciFailed(), lost, trigger.Spec{Name: "nightly", Kind: trigger.Schedule, Cron: "0 2 * * *", Agent: "kik", Task: "Review {{delivery}}", Owner: "ann"})
	try := func(name, body string) map[string]any {
		return h.expect(http.StatusOK, "", "POST", v1+"/triggers/"+name+"/test", token, body).json(t)
	}
	if got := try("ci-failed", `{"payload":`+workflowRun(t)+`,"event":"workflow_run"}`); got["fires"] != true || got["agent"] != "kik" || !strings.HasPrefix(got["text"].(string), "Fix Build\n") {
		t.Errorf("it would start: %v", got)
	}
	if got := try("ci-failed", `{"payload":{"action":"requested"}}`); got["fires"] != false || got["code"] != "filtered" {
		t.Errorf("it would not: %v", got)
	}
	if got := try("ci-failed", `{"payload":{"action":"completed"}}`); got["code"] != "template" || !strings.Contains(got["message"].(string), ".workflow_run.name") {
		t.Errorf("no text: %v", got)
	}
	if got := try("lost", `{"payload":`+workflowRun(t)+`}`); got["fires"] != false || got["code"] != "unknown_agent" {
		t.Errorf("no agent: %v", got)
	}
	if got := try("nightly", `{}`); got["fires"] != true || !strings.HasPrefix(got["text"].(string), "Review 20") || strings.Contains(got["text"].(string), "webhook") {
		t.Errorf("a schedule: %v", got)
	}
	if no := h.expect(http.StatusNotFound, "not_found", "POST", v1+"/triggers/none/test", token, "{}").json(t)["detail"]; !strings.Contains(no.(string), `"none" in the configuration. Known triggers: `) {
		t.Errorf("a trigger that is not there: %v", no)
	}
	all := h.expect(http.StatusOK, "", "GET", v1+"/triggers", token, "")
	items := all.json(t)["items"].([]any)
	if len(items) != 3 || items[1].(map[string]any)["problem"] == nil || items[0].(map[string]any)["problem"] != nil || items[0].(map[string]any)["url"] != "http://localhost:8080/hooks/ci-failed" ||
		len(items[2].(map[string]any)["next"].([]any)) != 5 || strings.Contains(all.body, hookSecret) {
		t.Errorf("the list: %s", all.body)
	}
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/triggers/ci-failed/deliveries?after=whk_x", token, "")
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/triggers/ci-failed/deliveries?state=gone", token, "")
	h.expect(http.StatusBadRequest, "bad_request", "GET", v1+"/triggers/ci-failed/deliveries?limit=-1", token, "")
	page, err := h.store.Deliveries(h.ctx, trigger.Filter{})
	h.must(err)
	if len(page.Items) != 0 || h.tasks() != 0 {
		t.Errorf("%d deliveries and %d tasks", len(page.Items), h.tasks())
	}
}

// The page of a task that a webhook made leads back to the delivery, for whoever may read
// it, and the delivery leads to the task.
func TestATaskOfAWebhookLeadsBackToItsDelivery(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Operator)
	h.hooks(ciFailed())
	made := h.github("ci-failed", "d1", workflowRun(t)).json(t)
	b := h.signIn(ann)
	delivery := views.DeliveryHref("ci-failed", made["delivery"].(string))
	h.says(b.get("/delegations/"+made["id"].(string)), http.StatusOK, `href="`+delivery+`"`, "by webhook ci-failed")
	h.says(b.get(delivery), http.StatusOK, "/delegations/"+made["id"].(string))
}

// A page's own stream names no types: whatever happens is heard, also what is added later.
func TestPagesHearEveryTypeOfEvent(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Operator, people.Admin)
	stream := h.signIn(ann).listen(asIs)
	h.signIn(ann) // is an event that no page listens for
	h.ask("POST", "/api/v1/tasks", h.token(ann), `{"agent":"kik","text":"Look"}`)
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "event: ") && line != "event: alive" || strings.Contains(line, "session.created") {
			t.Errorf("a page's stream has %q", line)
		}
		if strings.HasPrefix(line, "data: ") && strings.Contains(line, `"type":"task.created"`) {
			return
		}
	}
	t.Error("the page did not hear of the task")
}
