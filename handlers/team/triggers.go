package team

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
	"gatehouse/views"
	view "gatehouse/views/team"

	"github.com/labstack/echo/v4"
)

// How much of a payload one page shows, in bytes; deeper JSON than that is shown as it
// came: indenting it would make megabytes of blanks.
const (
	payloadPart  = 32 << 10
	payloadDepth = 64
)

// TriggersPage answers GET /triggers.
func (p *Pages) TriggersPage(c echo.Context) error {
	f, err := p.Begin(c, views.SectionTriggers, "Triggers")
	if err != nil {
		return err
	}
	all, err := p.Triggers.Statuses(f.Ctx)
	if err != nil {
		return err
	}
	return handlers.Render(c, http.StatusOK, view.Triggers(view.TriggersPage{Chrome: f.Chrome, Triggers: all}))
}

// Trigger answers GET /triggers/{name}.
func (p *Pages) Trigger(c echo.Context) error {
	return p.trigger(c, http.StatusOK, view.TryForm{})
}

// trigger draws the page, with a sample that was tried.
func (p *Pages) trigger(c echo.Context, status int, try view.TryForm) error {
	f, err := p.Begin(c, views.SectionTriggers, c.Param("name"))
	if err != nil {
		return err
	}
	s, err := p.Triggers.Status(f.Ctx, c.Param("name"))
	if err != nil {
		return err
	}
	filter := trigger.Filter{Trigger: s.Name, After: c.QueryParam("after")}
	var states []string
	for state := range strings.SplitSeq(strings.Join(c.QueryParams()["state"], ","), ",") {
		switch one := trigger.DeliveryState(strings.TrimSpace(state)); {
		case one == "" || slices.Contains(filter.States, one):
		case slices.Contains(trigger.States(), one):
			filter.States, states = append(filter.States, one), append(states, string(one))
		default:
			return handlers.Refuse(orchestrator.CodeBadRequest, "No delivery is ever in that state. Choose one of the list.")
		}
	}
	found, err := p.Triggers.Deliveries(f.Ctx, filter)
	if err != nil {
		return err
	}
	page := view.TriggerPage{Chrome: f.Chrome, Trigger: s, Deliveries: found.Items, Setup: setupOf(s),
		State: strings.Join(states, ","), Later: filter.After != "", MayTry: f.Who.Has(people.TasksWrite), MayOpen: f.Who.Has(people.TasksWrite) || f.Who.Has(people.AuditRead), Try: try}
	page.Title = s.Name
	if found.Next != "" {
		page.Older = handlers.WithParam(page.Path, "after", found.Next)
	}
	return handlers.Render(c, status, view.Trigger(page))
}

// setupOf is what to enter at the sender, in its own words.
func setupOf(s trigger.Status) []view.Fact {
	address := func(name string) view.Fact { return view.Fact{Name: name, Value: s.URL, Code: true} }
	const secret = "the value of secret: in the configuration; no page shows it"
	switch s.Source {
	case trigger.GitHub:
		return []view.Fact{{Name: "where", Value: "the repository's Settings → Webhooks → Add webhook"}, address("Payload URL"),
			{Name: "Content type", Value: "application/json"}, {Name: "Secret", Value: secret}, {Name: "events", Value: "those that this trigger looks at, not everything"}}
	case trigger.GitLab:
		return []view.Fact{{Name: "where", Value: "the project's Settings → Webhooks → Add new webhook"}, address("URL"),
			{Name: "Secret token", Value: secret}, {Name: "Trigger", Value: "those that this trigger looks at"}}
	case trigger.Standard:
		return []view.Fact{address("Endpoint URL"), {Name: "secret", Value: secret}, {Name: "headers", Value: "webhook-id, webhook-timestamp, webhook-signature"}}
	}
	return []view.Fact{address("URL"), {Name: "secret", Value: secret}, {Name: "signature", Value: "HMAC-SHA256 of the body, in the header that the configuration names"}}
}

// TryTrigger answers POST /triggers/{name}: what it would make of a sample.
func (p *Pages) TryTrigger(c echo.Context) error {
	try := view.TryForm{Body: c.FormValue("body"), Event: c.FormValue("event"), Asked: true}
	trial, err := p.Triggers.Try(c.Request().Context(), c.Param("name"), trigger.Sample{Body: []byte(try.Body), Event: try.Event})
	status := http.StatusOK
	if err != nil {
		f := handlers.FaultOf(err)
		if f.ID != "" || f.Status == http.StatusNotFound {
			return err
		}
		status, trial = f.Status, trigger.Trial{Code: f.Code, Message: f.Message}
	}
	try.Trial = trial
	return p.trigger(c, status, try)
}

// Delivery answers GET /triggers/{name}/deliveries/{id}.
func (p *Pages) Delivery(c echo.Context) error {
	f, err := p.Begin(c, views.SectionTriggers, "Delivery")
	if err != nil {
		return err
	}
	d, err := p.delivery(c)
	if err != nil {
		return err
	}
	page := view.DeliveryPage{Chrome: f.Chrome, D: d,
		Dropped: d.Body == nil && d.Kind == trigger.Webhook, May: f.Who.Has(people.TasksWrite) && d.State != trigger.Stored}
	page.Title = d.Trigger + " delivery"
	switch s, err := p.Triggers.Status(f.Ctx, d.Trigger); {
	case orchestrator.CodeOf(err) == orchestrator.CodeNotFound:
		page.Gone = true
	case err != nil:
		return err
	default:
		page.When, page.Agent = s.When, view.GetsWork(s)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Headers)) {
		page.Headers = append(page.Headers, view.Fact{Name: name, Value: d.Headers[name]})
	}
	if page.Body, page.Part, page.Parts, err = payloadOf(readable(d.Body), c.QueryParam("part")); err != nil {
		return err
	}
	return handlers.Render(c, http.StatusOK, view.Delivery(page))
}

// delivery finds the delivery that the address names; one of another trigger is not there.
func (p *Pages) delivery(c echo.Context) (trigger.Delivery, error) {
	d, err := p.Triggers.Delivery(c.Request().Context(), c.Param("id"))
	if err == nil && d.Trigger != c.Param("name") {
		return d, handlers.Refuse(orchestrator.CodeNotFound, "This trigger has no such delivery. It may be older than what is kept; see the list.")
	}
	return d, err
}

// readable indents JSON that is not too deep; everything else stays as it came.
func readable(body []byte) string {
	depth, deepest := 0, 0
	for _, b := range body { // braces within texts count, too: they only leave it as it came
		switch b {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	var out bytes.Buffer
	if deepest > payloadDepth || json.Indent(&out, body, "", "  ") != nil {
		return string(body)
	}
	return out.String()
}

// payloadOf is one part of a long text, counted from 1. It ends at the end of a line where
// one is near, and never within a character.
func payloadOf(text, asked string) (part string, n, of int, err error) {
	n = 1
	if asked != "" {
		if n, err = strconv.Atoi(asked); err != nil || n < 1 {
			return "", 0, 0, handlers.Refuse(orchestrator.CodeBadRequest, "The part is no number from 1 on. Open the delivery again.")
		}
	}
	for i := 1; ; i++ {
		end := cutAt(text)
		if i == n {
			part = text[:end]
		}
		of, text = i, text[end:]
		if text == "" {
			break
		}
	}
	if n > of {
		return "", 0, 0, handlers.Refuse(orchestrator.CodeNotFound, "The payload has fewer parts than that. Open the delivery again.")
	}
	return part, n, of, nil
}

// cutAt is where the first part of text ends.
func cutAt(text string) int {
	if len(text) <= payloadPart {
		return len(text)
	}
	if line := bytes.LastIndexByte([]byte(text[payloadPart/2:payloadPart]), '\n'); line >= 0 {
		return payloadPart/2 + line + 1
	}
	end := payloadPart
	for end > payloadPart-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}

// Redeliver answers POST /triggers/{name}/deliveries/{id}: it delivers again, as the
// person who asks.
func (p *Pages) Redeliver(c echo.Context) error {
	who, _ := handlers.Who(c)
	if who.User.ID == "" {
		return handlers.Refuse(orchestrator.CodeForbidden, "Only a person delivers again.")
	}
	d, err := p.delivery(c)
	if err != nil {
		return err
	}
	again, err := p.Triggers.Redeliver(c.Request().Context(), d.ID, who.User)
	if err != nil {
		return err
	}
	return handlers.SeeOther(c, views.DeliveryHref(again.Trigger, again.ID), "redelivered")
}
