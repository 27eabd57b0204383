package views_test

import (
	"strings"
	"time"

	"gatehouse/views"
	teamview "gatehouse/views/team"

	"github.com/a-h/templ"
)

func deliveryRows() []teamview.DeliveryRow {
	return []teamview.DeliveryRow{
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k9q", Trigger: "ci-failed", State: "started", Event: "workflow_run", TaskID: taskID, Repeats: 2, At: before(4 * time.Minute)},
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k8q", Trigger: "ci-failed", State: "refused", Event: hostile, Code: "duplicate_key", Message: "The key \"action\" stands twice in " + hostile, At: before(time.Hour)},
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k7q", Trigger: "ci-failed", State: "filtered", Event: "push", Message: "The condition is not met.", At: before(2 * time.Hour)},
		{ID: "whk_01k9m2c8w5q3z7x4v6b8n7f3k6q", Trigger: "ci-failed", State: "stored", Event: "workflow_run", By: "dora", Of: "whk_01k9m2c8w5q3z7x4v6b8n7f3k9q", Attempts: 3, At: before(2 * time.Hour), DueAt: now.Add(time.Minute)},
	}
}

// triggersPages are what `/triggers` shows.
func triggersPages() map[string]templ.Component {
	c := func(title, path string) views.Chrome { return chrome(views.SectionTriggers, title, path) }
	rows := deliveryRows()
	hook := teamview.TriggerRow{Name: "ci-failed", Kind: "webhook", Source: "github", Agent: "kik", Who: "kik", Owner: "ann", URL: "http://localhost:8080/hooks/ci-failed", Last: &rows[0], Failures: 3}
	night := teamview.TriggerRow{Name: "nightly", Kind: "schedule", Agent: "reviewer", Who: "reviewer", Owner: "ann", Cron: "0 2 * * *", Zone: "Europe/Berlin", Next: []time.Time{now.Add(10 * time.Hour), now.Add(34 * time.Hour), now.Add(58 * time.Hour), now.Add(82 * time.Hour), now.Add(106 * time.Hour)}}
	wrong := teamview.TriggerRow{Name: "weekly", Kind: "schedule", Who: "an agent for review", Owner: "zoe", Cron: "0 2 * * 1", Zone: "UTC", Problem: "There is no user zoe who could ask for its tasks. Add them, or name another owner."}
	page := teamview.TriggerPage{Chrome: c("ci-failed", views.TriggerHref("ci-failed")), Trigger: hook, Task: "Fix {{.workflow_run.name}} on {{.repository.full_name}}", When: "event.action == 'completed' && event.workflow_run.conclusion == 'failure'",
		Setup: []teamview.Fact{{Name: "where", Value: "the repository's Settings → Webhooks → Add webhook", Code: false}, {Name: "Payload URL", Value: hook.URL, Code: true}, {Name: "Content type", Value: "application/json", Code: false}}, Deliveries: rows, Older: "/triggers/ci-failed?after=x", MayTry: true, MayOpen: true}
	tried, quiet, times, no := page, page, page, page
	tried.Try = teamview.TryForm{Body: "{}", Event: hostile, Asked: true, Fires: true, Agent: "kik", Text: hostile, Key: hostile}
	no.Try = teamview.TryForm{Body: hostile, Asked: true, Code: "filtered", Message: "The condition is not met."}
	quiet.Deliveries, quiet.Older = nil, ""
	times.Trigger, times.Task, times.When, times.Overlap, times.Missed, times.Setup, times.Deliveries = night, "Nightly review", "", "skip", "run", nil, nil
	one := teamview.DeliveryPage{Chrome: c("ci-failed delivery", views.DeliveryHref("ci-failed", rows[0].ID)), Kind: "webhook", Source: "github", D: rows[0], External: "72d3162e-cc78-11e3-81ab-4c9367dc0958", When: page.When, Text: "Fix " + hostile, Agent: "kik",
		Headers: []teamview.Fact{{Name: "Content-Type", Value: "application/json", Code: true}, {Name: "X-GitHub-Event", Value: hostile, Code: true}}, Hash: digest, Size: 7113, Body: "{\n  \"action\": \"completed\",\n  \"workflow_run\": {\n    \"name\": \"" + hostile + "\"\n  }\n}", Part: 1, Parts: 3, May: true}
	refused, dropped := one, one
	refused.D, refused.Text, refused.Body = rows[1], "", strings.Repeat("x", 3000)
	dropped.Dropped, dropped.Body, dropped.Parts, dropped.Gone = true, "", 1, true
	return map[string]templ.Component{
		"triggers": teamview.Triggers(teamview.TriggersPage{Chrome: c("Triggers", views.TriggersPath), Triggers: []teamview.TriggerRow{hook, night, wrong}}), "triggers-none": teamview.Triggers(teamview.TriggersPage{Chrome: c("Triggers", views.TriggersPath)}),
		"trigger": teamview.Trigger(page), "trigger-tried": teamview.Trigger(tried), "trigger-not": teamview.Trigger(no), "trigger-quiet": teamview.Trigger(quiet), "trigger-times": teamview.Trigger(times),
		"delivery": teamview.Delivery(one), "delivery-refused": teamview.Delivery(refused), "delivery-dropped": teamview.Delivery(dropped),
	}
}
