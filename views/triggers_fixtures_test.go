package views_test

import (
	"strings"
	"time"

	"gatehouse/orchestrator/trigger"
	"gatehouse/views"
	teamview "gatehouse/views/team"

	"github.com/a-h/templ"
)

func deliveryRows() []trigger.Delivery {
	return []trigger.Delivery{
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k9q", Trigger: "ci-failed", State: "started", Event: "workflow_run", TaskID: taskID, Repeats: 2, ReceivedAt: before(4 * time.Minute)},
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k8q", Trigger: "ci-failed", State: "refused", Event: hostile, Code: "duplicate_key", Message: "The key \"action\" stands twice in " + hostile, ReceivedAt: before(time.Hour)},
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k7q", Trigger: "ci-failed", State: "filtered", Event: "push", Message: "The condition is not met.", ReceivedAt: before(2 * time.Hour)},
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k6q", Trigger: "ci-failed", State: "stored", Event: "workflow_run", By: "dora", Of: "whk_01k9m2c8w5q3z7x4v6b8n7f3k9q", Attempts: 3, ReceivedAt: before(2 * time.Hour), DueAt: now.Add(time.Minute)},
	}
}

// triggersPages are what `/triggers` shows.
func triggersPages() map[string]templ.Component {
	c := func(title, path string) views.Chrome { return chrome(views.SectionTriggers, title, path) }
	rows := deliveryRows()
	hook := trigger.Status{Name: "ci-failed", Kind: "webhook", Source: "github", Agent: "kik", Owner: "ann", URL: "http://localhost:8080/hooks/ci-failed", Last: &rows[0], Failures: 3,
		Task: "Fix {{.workflow_run.name}} on {{.repository.full_name}}", When: "event.action == 'completed' && event.workflow_run.conclusion == 'failure'"}
	night := trigger.Status{Name: "nightly", Kind: "schedule", Agent: "reviewer", Owner: "ann", Cron: "0 2 * * *", Zone: "Europe/Berlin", Next: []time.Time{now.Add(10 * time.Hour), now.Add(34 * time.Hour), now.Add(58 * time.Hour), now.Add(82 * time.Hour), now.Add(106 * time.Hour)},
		Task: "Nightly review", Overlap: "skip", Missed: "run"}
	wrong := trigger.Status{Name: "weekly", Kind: "schedule", Capability: "review", Owner: "zoe", Cron: "0 2 * * 1", Zone: "UTC", Problem: "There is no user zoe who could ask for its tasks. Add them, or name another owner."}
	page := teamview.TriggerPage{Chrome: c("ci-failed", views.TriggerHref("ci-failed")), Trigger: hook,
		Setup: []teamview.Fact{{Name: "where", Value: "the repository's Settings → Webhooks → Add webhook", Code: false}, {Name: "Payload URL", Value: hook.URL, Code: true}, {Name: "Content type", Value: "application/json", Code: false}}, Deliveries: rows, Older: "/triggers/ci-failed?after=x", MayTry: true, MayOpen: true}
	tried, quiet, times, no := page, page, page, page
	tried.Try = teamview.TryForm{Body: "{}", Event: hostile, Asked: true, Trial: trigger.Trial{Fires: true, Agent: "kik", Text: hostile, Key: hostile}}
	no.Try = teamview.TryForm{Body: hostile, Asked: true, Trial: trigger.Trial{Code: "filtered", Message: "The condition is not met."}}
	quiet.Deliveries, quiet.Older = nil, ""
	times.Trigger, times.Setup, times.Deliveries = night, nil, nil
	came, bad := rows[0], rows[1]
	came.Kind, came.Source, came.ExternalID, came.Text, came.BodyHash, came.Body = "webhook", "github", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "Fix "+hostile, digest, make([]byte, 7113)
	bad.Kind, bad.Source, bad.ExternalID, bad.BodyHash, bad.Body = came.Kind, came.Source, came.ExternalID, came.BodyHash, came.Body
	one := teamview.DeliveryPage{Chrome: c("ci-failed delivery", views.DeliveryHref("ci-failed", rows[0].ID)), D: came, When: hook.When, Agent: "kik",
		Headers: []teamview.Fact{{Name: "Content-Type", Value: "application/json", Code: true}, {Name: "X-GitHub-Event", Value: hostile, Code: true}}, Body: "{\n  \"action\": \"completed\",\n  \"workflow_run\": {\n    \"name\": \"" + hostile + "\"\n  }\n}", Part: 1, Parts: 3, May: true}
	refused, dropped := one, one
	refused.D, refused.Body = bad, strings.Repeat("x", 3000)
	dropped.Dropped, dropped.Body, dropped.Parts, dropped.Gone = true, "", 1, true
	return map[string]templ.Component{
		"triggers": teamview.Triggers(teamview.TriggersPage{Chrome: c("Triggers", views.TriggersPath), Triggers: []trigger.Status{hook, night, wrong}}), "triggers-none": teamview.Triggers(teamview.TriggersPage{Chrome: c("Triggers", views.TriggersPath)}),
		"trigger": teamview.Trigger(page), "trigger-tried": teamview.Trigger(tried), "trigger-not": teamview.Trigger(no), "trigger-quiet": teamview.Trigger(quiet), "trigger-times": teamview.Trigger(times),
		"delivery": teamview.Delivery(one), "delivery-refused": teamview.Delivery(refused), "delivery-dropped": teamview.Delivery(dropped),
	}
}
