package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
)

// triggers configures a webhook of dora's, and a schedule whose owner nobody knows.
func (h *house) triggers() {
	h.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	h.must(err)
	var all []*trigger.Trigger
	for _, s := range []trigger.Spec{
		{Name: "ci-failed", Kind: trigger.Webhook, Source: trigger.GitHub, Secrets: []string{"a secret that is long enough"}, Agent: "kik", Task: "Fix {{.workflow_run.name}}", When: "event.action == 'completed'", Owner: "dora"},
		{Name: "nightly", Kind: trigger.Schedule, Cron: "0 2 * * *", Zone: zone, Overlap: trigger.OverlapSkip, Missed: trigger.MissedRun, Agent: "coder", Task: "Nightly review", Owner: "ann"},
	} {
		t, problems := trigger.Compile(s)
		if len(problems) > 0 {
			h.Fatalf("%s: %+v", s.Name, problems)
		}
		all = append(all, t)
	}
	h.intake.SetTriggers(all)
}

// delivered stores a delivery of ci-failed.
func (h *house) delivered(state trigger.DeliveryState, body string, change ...func(*trigger.Delivery)) trigger.Delivery {
	h.Helper()
	time.Sleep(2 * time.Millisecond) // lists are in the order of ids, which tell milliseconds apart
	now := time.Now()
	d := trigger.Delivery{ID: orchestrator.NewID(trigger.DeliveryPrefix, now), Trigger: "ci-failed", Kind: trigger.Webhook, Source: trigger.GitHub, ExternalID: "72d3162e", Event: "workflow_run",
		Headers: map[string]string{"X-GitHub-Event": "workflow_run", "User-Agent": "<script>\u202e"}, Body: []byte(body), BodyHash: strings.Repeat("a", 64), State: state, ReceivedAt: now, DueAt: now}
	for _, c := range change {
		c(&d)
	}
	d.ExternalID += d.ID
	d, _, err := h.store.AddDelivery(h.ctx, d, 0)
	h.must(err)
	return d
}

// The list says which trigger works, a page what came, and one delivery everything about it.
func TestTriggersShowWhatCameAndWhatBecameOfIt(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	h.triggers()
	task, _ := h.task(dora, "Fix build")
	b := h.signIn(dora)
	h.says(b.get("/triggers"), http.StatusOK, "ci-failed", "webhook from GitHub", "nothing has come yet", "nightly", "ann", "0 2 * * *")
	d := h.delivered(trigger.Started, `{"action":"completed","workflow_run":{"name":"<img src=x onerror=alert(1)>\u202e"}}`, func(d *trigger.Delivery) {
		d.TaskID, d.Text, d.Repeats = task.ID, "Fix <img src=x>\u202e", 2
	})
	h.delivered(trigger.Refused, `{"a":1,"a":2}`, func(d *trigger.Delivery) { d.Code, d.Message = "duplicate_key", "The key \"a\" stands twice." })
	h.says(b.get("/triggers"), http.StatusOK, "last: refused")
	h.says(b.get("/triggers/ci-failed"), http.StatusOK, "Payload URL", "http://localhost:8080/hooks/ci-failed", "server.public_url", "the value of secret:", "workflow_run",
		"came 2 more times", "/delegations/"+task.ID, "The key", "Would it fire?")
	h.says(b.get("/triggers/ci-failed?state=refused"), http.StatusOK, "stands twice", "!came 2 more times")
	h.says(b.get("/triggers/ci-failed?state=refused,failed"), http.StatusOK, "stands twice", "!came 2 more times", `state=refused%2Cfailed" aria-current="page"`)
	h.says(b.get("/triggers/ci-failed?state=refused&state=started"), http.StatusOK, "stands twice", "came 2 more times")
	h.says(b.get("/triggers/ci-failed?state=skipped,failed"), http.StatusOK, "No delivery is skipped or failed")
	h.says(b.get("/triggers/ci-failed?state=refused,gone"), http.StatusBadRequest, "ever in that state")
	h.says(b.get("/triggers/ci-failed?state=skipped"), http.StatusOK, "No delivery is skipped")
	h.says(b.get("/triggers/ci-failed?state=gone"), http.StatusBadRequest, "ever in that state")
	h.says(b.get("/triggers/nothing"), http.StatusNotFound, "in the configuration")
	h.says(b.get("/triggers/nightly"), http.StatusOK, "Next times", "data-rel=\"moment\"", "made up for once", "the time is skipped", "Its time has not come yet")

	h.says(b.get("/triggers/ci-failed/deliveries/"+d.ID), http.StatusOK, "good: HMAC-SHA256", "&#34;action&#34;: &#34;completed&#34;", "&lt;img src=x", "U+202E", "!<img src=x", "!<script>\u202e",
		"/delegations/"+task.ID, "Asks the condition again", "X-GitHub-Event", "met")
	h.says(b.get("/triggers/nightly/deliveries/"+d.ID), http.StatusNotFound, "has no such delivery")
	h.says(b.get("/triggers/ci-failed/deliveries/whk_none"), http.StatusNotFound, "There is no delivery")
	h.says(b.post("/triggers/ci-failed/deliveries/"+d.ID, nil), http.StatusOK, "It is delivered again", "dora delivered it again", "/deliveries/"+d.ID, "started", "onerror=alert(1)")

	auditor := h.signIn(h.user("olga", people.Auditor))
	h.says(auditor.get("/triggers/ci-failed"), http.StatusOK, "!Would it fire?")
	h.says(auditor.get("/triggers/ci-failed/deliveries/"+d.ID), http.StatusOK, "!Redeliver")
	approver := h.signIn(h.user("bob", people.Approver))
	h.says(approver.get("/triggers/ci-failed"), http.StatusOK, "workflow_run", "!/deliveries/")
	h.says(approver.get("/triggers/ci-failed/deliveries/"+d.ID), http.StatusForbidden)
	h.says(auditor.post("/triggers/ci-failed/deliveries/"+d.ID, nil), http.StatusForbidden)
}

func TestATriggerIsTriedWithASample(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
	h.triggers()
	h.says(b.post("/triggers/ci-failed", form("body", `{"action":"completed","workflow_run":{"name":"<b>build\u202e"}}`, "event", "workflow_run")), http.StatusOK, "It would fire and hand this to kik", "&lt;b&gt;build", "!<b>build", `value="workflow_run"`)
	h.says(b.post("/triggers/ci-failed", form("body", `{"action":"started"}`)), http.StatusOK, "It would not fire", "filtered", "started")
	h.says(b.post("/triggers/ci-failed", form("body", "<xml>")), http.StatusOK, "It would not fire", "&lt;xml&gt;")
	h.says(b.post("/triggers/nothing", form("body", "{}")), http.StatusNotFound)
	if page, err := h.store.Deliveries(h.ctx, trigger.Filter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("a try stored %d deliveries, %v", len(page.Items), err)
	}
}

// A payload of any size and shape is shown in parts, whole, and costs no more than its size.
func TestAHugePayloadIsShownInParts(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
	h.triggers()
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for name, c := range map[string]struct {
		body  string
		parts string
	}{
		"one line":   {`{"a":"` + strings.Repeat("ä", 100_000) + `END"}`, "of 7"},
		"deep":       {deep, "of 4"},
		"no JSON":    {strings.Repeat("x\xff", 40_000), "of 3"},
		"many lines": {"[" + strings.Repeat(`"x",`, 20_000) + `"END"]`, ""},
	} {
		d := h.delivered(trigger.Filtered, c.body)
		address := "/triggers/ci-failed/deliveries/" + d.ID
		first := b.get(address)
		h.says(first, http.StatusOK, "part 1 "+c.parts, "part 2")
		if len(first.body) > 3<<20 {
			t.Errorf("%s: the page has %d bytes", name, len(first.body))
		}
		h.says(b.get(address+"?part=2"), http.StatusOK, "part 2 "+c.parts, "part 1")
		h.says(b.get(address+"?part=99999"), http.StatusNotFound, "fewer parts")
		h.says(b.get(address+"?part=-1"), http.StatusBadRequest)
		h.says(b.get(address+"?part=x"), http.StatusBadRequest)
	}
}
