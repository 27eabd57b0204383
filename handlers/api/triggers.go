package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/trigger"

	"github.com/labstack/echo/v4"
)

// triggerShape is the published shape of a trigger.
type triggerShape struct {
	Name       string         `json:"name"`
	Kind       trigger.Kind   `json:"kind"`
	Source     *string        `json:"source"`
	Agent      *string        `json:"agent"`
	Capability *string        `json:"capability"`
	Repository *string        `json:"repository"`
	Owner      string         `json:"owner"`
	Task       string         `json:"task"`
	When       *string        `json:"when"`
	URL        *string        `json:"url"`
	Window     *string        `json:"window"`
	Cron       *string        `json:"cron"`
	Timezone   *string        `json:"timezone"`
	Overlap    *string        `json:"overlap"`
	Missed     *string        `json:"missed"`
	Next       []time.Time    `json:"next"`
	Problem    *string        `json:"problem"`
	Last       *deliveryShape `json:"last"`
	Failures   int            `json:"failures"` // of the last 24 hours
	Refused    *refusedShape  `json:"refused"`  // null: none ever
}

// deliveryShape is the published shape of a delivery. Payload is null in lists, and where
// it is not kept any more.
type deliveryShape struct {
	ID         string                `json:"id"`
	Trigger    string                `json:"trigger"`
	Kind       trigger.Kind          `json:"kind"`
	Source     *string               `json:"source"`
	ExternalID *string               `json:"external_id"`
	Event      *string               `json:"event"`
	BodyHash   *string               `json:"body_sha256"`
	State      trigger.DeliveryState `json:"state"`
	Code       *string               `json:"code"`
	Message    *string               `json:"message"`
	TaskID     *string               `json:"task_id"`
	Of         *string               `json:"redelivery_of"`
	By         *string               `json:"redelivered_by"`
	Repeats    int                   `json:"repeats"`
	Attempts   int                   `json:"attempts"`
	ReceivedAt time.Time             `json:"received_at"`
	DoneAt     *time.Time            `json:"done_at"`

	Text    *string           `json:"text,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload *string           `json:"payload,omitempty"`
}

// refusedShape counts the calls that were answered 401 or 429, and tells of the last one.
type refusedShape struct {
	Calls   int64     `json:"calls"`
	LastAt  time.Time `json:"last_at"`
	Reason  string    `json:"reason"`
	Address string    `json:"address"`
}

func deliveryOf(d trigger.Delivery) deliveryShape {
	return deliveryShape{ID: d.ID, Trigger: d.Trigger, Kind: d.Kind, Source: orNull(string(d.Source)), ExternalID: orNull(d.ExternalID), Event: orNull(d.Event), BodyHash: orNull(d.BodyHash),
		State: d.State, Code: orNull(d.Code), Message: orNull(d.Message), TaskID: orNull(d.TaskID), Of: orNull(d.Of), By: orNull(d.By), Repeats: d.Repeats, Attempts: d.Attempts,
		ReceivedAt: d.ReceivedAt.UTC(), DoneAt: utc(d.DoneAt)}
}

func triggerOf(s trigger.Status) triggerShape {
	t := triggerShape{Name: s.Name, Kind: s.Kind, Source: orNull(string(s.Source)), Agent: orNull(s.Agent), Capability: orNull(s.Capability), Repository: orNull(s.Repository),
		Owner: s.Owner, Task: s.Task, When: orNull(s.When), URL: orNull(s.URL), Cron: orNull(s.Cron), Overlap: orNull(s.Overlap), Missed: orNull(s.Missed),
		Next: append([]time.Time{}, s.Next...), Problem: orNull(s.Problem), Failures: s.Failures}
	if s.Kind == trigger.Webhook {
		t.Window = orNull(s.Window.String())
	} else {
		t.Timezone = orNull(s.Zone)
	}
	if r := s.Refused; r.Calls > 0 {
		t.Refused = &refusedShape{Calls: r.Calls, LastAt: r.Last.UTC(), Reason: r.Reason, Address: r.Address}
	}
	if s.Last != nil {
		last := deliveryOf(*s.Last)
		t.Last = &last
	}
	return t
}

// forPeople refuses runs: what triggers bring is not their task's business.
func (a *API) forPeople(c echo.Context) error {
	if who := caller(c); who.Run != nil {
		return orchestrator.Errorf(orchestrator.CodeForbidden, "A run sees its own task only. What triggers bring is not part of it.")
	}
	return nil
}

// Triggers answers GET /triggers.
func (a *API) Triggers(c echo.Context) error {
	if err := a.forPeople(c); err != nil {
		return err
	}
	all, err := a.Hooks.Statuses(c.Request().Context())
	if err != nil {
		return err
	}
	items := make([]triggerShape, len(all))
	for i, s := range all {
		items[i] = triggerOf(s)
	}
	return c.JSON(http.StatusOK, listOf(items, ""))
}

// Trigger answers GET /triggers/{name}.
func (a *API) Trigger(c echo.Context) error {
	if err := a.forPeople(c); err != nil {
		return err
	}
	s, err := a.Hooks.Status(c.Request().Context(), c.Param("name"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, triggerOf(s))
}

// Deliveries answers GET /triggers/{name}/deliveries, newest first and without payloads.
func (a *API) Deliveries(c echo.Context) error {
	if err := a.forPeople(c); err != nil {
		return err
	}
	q := c.QueryParams()
	if err := only(q, "state", "after", "limit"); err != nil {
		return err
	}
	states, err := statesOf(q, trigger.States())
	if err != nil {
		return err
	}
	if err := cursorIs(q.Get("after"), trigger.DeliveryPrefix); err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	page, err := a.Hooks.Deliveries(c.Request().Context(), trigger.Filter{Trigger: c.Param("name"), States: states, After: q.Get("after"), Limit: limit})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 && q.Get("after") == "" { // nothing came, or nobody has this name
		if _, err := a.Hooks.Status(c.Request().Context(), c.Param("name")); err != nil {
			return err
		}
	}
	items := make([]deliveryShape, len(page.Items))
	for i, d := range page.Items {
		items[i] = deliveryOf(d)
	}
	return c.JSON(http.StatusOK, listOf(items, page.Next))
}

// Delivery answers GET /triggers/{name}/deliveries/{id} and GET /deliveries/{id} with what it carried, as it came.
func (a *API) Delivery(c echo.Context) error {
	d, err := a.delivery(c)
	if err != nil {
		return err
	}
	shape := deliveryOf(d)
	shape.Headers, shape.Text = d.Headers, orNull(d.Text)
	if d.Body != nil {
		text := string(d.Body)
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		shape.Payload = &text
	}
	return c.JSON(http.StatusOK, shape)
}

// delivery reads the delivery of the address; where that names a trigger, too, it is one of its.
func (a *API) delivery(c echo.Context) (trigger.Delivery, error) {
	id, err := a.Ids.Arrival(c.Request().Context(), c.Param("id"))
	if err != nil {
		return trigger.Delivery{}, err
	}
	d, err := a.Hooks.Delivery(c.Request().Context(), id)
	if name := c.Param("name"); err == nil && name != "" && d.Trigger != name {
		err = handlers.NotFound("delivery", id)
	}
	return d, err
}

// Redeliver answers POST /triggers/{name}/deliveries/{id}/redeliver and
// POST /deliveries/{id}/redeliver with the new delivery.
func (a *API) Redeliver(c echo.Context) error {
	d, err := a.delivery(c)
	if err != nil {
		return err
	}
	again, err := a.Hooks.Redeliver(c.Request().Context(), d.ID, caller(c).User)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, deliveryOf(again))
}

// trialBody is the body of POST /triggers/{name}/test: a payload, and what the sender
// would call it.
type trialBody struct {
	Payload json.RawMessage `json:"payload"`
	Event   string          `json:"event"`
}

// trialShape says what a trigger would do.
type trialShape struct {
	Fires   bool    `json:"fires"`
	Agent   *string `json:"agent"`
	Text    *string `json:"text"`
	Key     *string `json:"key"`
	Asks    *string `json:"asks"` // that a person is asked before the agent works
	Code    *string `json:"code"`
	Message *string `json:"message"`
}

// TryTrigger answers POST /triggers/{name}/test. Nothing is stored.
func (a *API) TryTrigger(c echo.Context) error {
	var in trialBody
	if err := read(c, &in); err != nil {
		return err
	}
	trial, err := a.Hooks.Try(c.Request().Context(), c.Param("name"), trigger.Sample{Body: in.Payload, Event: in.Event})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, trialShape{Fires: trial.Fires, Agent: orNull(trial.Agent), Text: orNull(trial.Text), Key: orNull(trial.Key), Asks: orNull(trial.Asks), Code: orNull(trial.Code), Message: orNull(trial.Message)})
}
