package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
)

// hooks are two configured triggers over the real store; what they would make of a sample
// is the intake's business, and here it is said beforehand.
type hooks struct{ *house }

func (k hooks) Statuses(ctx context.Context) ([]trigger.Status, error) {
	all := []trigger.Status{
		{Name: "ci-failed", Kind: trigger.Webhook, Source: trigger.GitHub, Agent: "kik", Owner: "ann", Task: "Fix {{.workflow_run.name}}", When: "event.action == 'completed'", URL: "http://localhost:8080/hooks/ci-failed"},
		{Name: "nightly", Kind: trigger.Schedule, Agent: "coder", Owner: "ann", Cron: "0 2 * * *", Zone: "Europe/Berlin", Overlap: "skip", Missed: "run",
			Next: []time.Time{time.Now().Add(time.Hour), time.Now().Add(25 * time.Hour)}, Problem: "There is no user ann who could ask for its tasks."},
	}
	for i := range all {
		page, err := k.store.Deliveries(ctx, trigger.Filter{Trigger: all[i].Name, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 {
			all[i].Last = &page.Items[0]
		}
	}
	return all, nil
}

func (k hooks) Status(ctx context.Context, name string) (trigger.Status, error) {
	all, err := k.Statuses(ctx)
	for _, s := range all {
		if s.Name == name {
			return s, err
		}
	}
	return trigger.Status{}, orchestrator.ErrNotFound
}

func (k hooks) Deliveries(ctx context.Context, f trigger.Filter) (trigger.Page, error) {
	return k.store.Deliveries(ctx, f)
}

func (k hooks) Delivery(ctx context.Context, id string) (trigger.Delivery, error) {
	return k.store.Delivery(ctx, id)
}

func (k hooks) Redeliver(ctx context.Context, id string, by people.User) (trigger.Delivery, error) {
	d, err := k.store.Delivery(ctx, id)
	if err != nil {
		return d, err
	}
	d.Of, d.By, d.ByID, d.ID, d.ReceivedAt = d.ID, by.Name, by.ID, orchestrator.NewID(trigger.DeliveryPrefix, time.Now()), time.Now()
	d, _, err = k.store.AddDelivery(ctx, d, 0)
	return d, err
}

func (k hooks) Try(_ context.Context, name string, s trigger.Sample) (trigger.Trial, error) {
	switch {
	case name != "ci-failed":
		return trigger.Trial{}, orchestrator.ErrNotFound
	case !strings.HasPrefix(string(s.Body), "{"):
		return trigger.Trial{}, orchestrator.Errorf(orchestrator.CodeBadRequest, "This is no JSON.")
	case !strings.Contains(string(s.Body), "completed"):
		return trigger.Trial{Code: "filtered", Message: "The condition is not met."}, nil
	}
	return trigger.Trial{Fires: true, Agent: "kik", Text: "Fix <b>build</b>\u202e"}, nil
}

// delivered stores a delivery of ci-failed.
func (h *house) delivered(state trigger.DeliveryState, body string, change ...func(*trigger.Delivery)) trigger.Delivery {
	h.Helper()
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
	task, _ := h.task(dora, "Fix build")
	b := h.signIn(dora)
	h.says(b.get("/triggers"), http.StatusOK, "ci-failed", "webhook from GitHub", "nothing has come yet", "nightly", "There is no user ann", "0 2 * * *")
	d := h.delivered(trigger.Started, `{"action":"completed","workflow_run":{"name":"<img src=x onerror=alert(1)>\u202e"}}`, func(d *trigger.Delivery) {
		d.TaskID, d.Text, d.Repeats = task.ID, "Fix <img src=x>\u202e", 2
	})
	h.delivered(trigger.Refused, `{"a":1,"a":2}`, func(d *trigger.Delivery) { d.Code, d.Message = "duplicate_key", "The key \"a\" stands twice." })
	h.says(b.get("/triggers"), http.StatusOK, "last: refused")
	h.says(b.get("/triggers/ci-failed"), http.StatusOK, "Payload URL", "http://localhost:8080/hooks/ci-failed", "server.public_url", "the value of secret:", "workflow_run",
		"came 2 more times", "/delegations/"+task.ID, "The key", "Would it fire?")
	h.says(b.get("/triggers/ci-failed?state=refused"), http.StatusOK, "stands twice", "!came 2 more times")
	h.says(b.get("/triggers/ci-failed?state=skipped"), http.StatusOK, "No delivery is skipped")
	h.says(b.get("/triggers/ci-failed?state=gone"), http.StatusBadRequest, "ever in that state")
	h.says(b.get("/triggers/nothing"), http.StatusNotFound, "There is no trigger of that name")
	h.says(b.get("/triggers/nightly"), http.StatusOK, "Next times", "data-rel=\"moment\"", "made up for once", "the time is skipped", "Its time has not come yet")

	h.says(b.get("/triggers/ci-failed/deliveries/"+d.ID), http.StatusOK, "good: HMAC-SHA256", "&#34;action&#34;: &#34;completed&#34;", "&lt;img src=x", "U+202E", "!<img src=x", "!<script>\u202e",
		"/delegations/"+task.ID, "Asks the condition again", "X-GitHub-Event", "met")
	h.says(b.get("/triggers/nightly/deliveries/"+d.ID), http.StatusNotFound, "has no such delivery")
	h.says(b.get("/triggers/ci-failed/deliveries/whk_none"), http.StatusNotFound, "has no such delivery")
	h.says(b.post("/triggers/ci-failed/deliveries/"+d.ID, nil), http.StatusOK, "It is delivered again", "dora delivered it again", "/deliveries/"+d.ID)

	auditor := h.signIn(h.user("olga", people.Auditor))
	h.says(auditor.get("/triggers/ci-failed"), http.StatusOK, "!Would it fire?")
	h.says(auditor.get("/triggers/ci-failed/deliveries/"+d.ID), http.StatusOK, "!Redeliver")
	h.says(auditor.post("/triggers/ci-failed/deliveries/"+d.ID, nil), http.StatusForbidden)
}

func TestATriggerIsTriedWithASample(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
	h.says(b.post("/triggers/ci-failed", form("body", `{"action":"completed"}`, "event", "workflow_run")), http.StatusOK, "It would fire and hand this to kik", "Fix &lt;b&gt;build", "U+202E", `value="workflow_run"`)
	h.says(b.post("/triggers/ci-failed", form("body", `{"action":"started"}`)), http.StatusOK, "It would not fire", "The condition is not met", "started")
	h.says(b.post("/triggers/ci-failed", form("body", "<xml>")), http.StatusBadRequest, "This is no JSON", "&lt;xml&gt;")
	h.says(b.post("/triggers/nothing", form("body", "{}")), http.StatusNotFound)
	if page, err := h.store.Deliveries(h.ctx, trigger.Filter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("a try stored %d deliveries, %v", len(page.Items), err)
	}
}

// A payload of any size and shape is shown in parts, whole, and costs no more than its size.
func TestAHugePayloadIsShownInParts(t *testing.T) {
	h := open(t)
	b := h.signIn(h.user("dora", people.Operator))
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
