package api

import (
	"net/http"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/trigger"
	"gatehouse/web/wire"

	"github.com/labstack/echo/v4"
)

func deliveryOf(d trigger.Delivery) wire.Delivery {
	return wire.Delivery{ID: d.ID, Trigger: d.Trigger, Kind: string(d.Kind), Source: wire.Maybe(d.Source), ExternalID: wire.Maybe(d.ExternalID), Event: wire.Maybe(d.Event), BodyHash: wire.Maybe(d.BodyHash),
		State: string(d.State), Code: wire.Maybe(d.Code), Message: wire.Maybe(d.Message), TaskID: wire.Maybe(d.TaskID), Of: wire.Maybe(d.Of), By: wire.Maybe(d.By), Repeats: d.Repeats, Attempts: d.Attempts,
		ReceivedAt: d.ReceivedAt.UTC(), DoneAt: utc(d.DoneAt)}
}

func triggerOf(s trigger.Status) wire.Trigger {
	t := wire.Trigger{Name: s.Name, Kind: string(s.Kind), Source: wire.Maybe(s.Source), Agent: wire.Maybe(s.Agent), Capability: wire.Maybe(s.Capability), Repository: wire.Maybe(s.Repository),
		Owner: s.Owner, Task: s.Task, When: wire.Maybe(s.When), URL: wire.Maybe(s.URL), Cron: wire.Maybe(s.Cron), Overlap: wire.Maybe(s.Overlap), Missed: wire.Maybe(s.Missed),
		Next: append([]time.Time{}, s.Next...), Problem: wire.Maybe(s.Problem), Failures: s.Failures}
	if s.Kind == trigger.Webhook {
		t.Window = wire.Maybe(s.Window.String())
	} else {
		t.Timezone = wire.Maybe(s.Zone)
	}
	if r := s.Refused; r.Calls > 0 {
		t.Refused = &wire.Refused{Calls: r.Calls, LastAt: r.Last.UTC(), Reason: r.Reason, Address: r.Address}
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
	all, err := a.Site.Triggers.Statuses(c.Request().Context())
	return send(c, http.StatusOK, wire.ListOf(each.Of(all, triggerOf), ""), err)
}

// Trigger answers GET /triggers/{name}.
func (a *API) Trigger(c echo.Context) error {
	if err := a.forPeople(c); err != nil {
		return err
	}
	s, err := a.Site.Triggers.Status(c.Request().Context(), c.Param("name"))
	return send(c, http.StatusOK, triggerOf(s), err)
}

// Deliveries answers GET /triggers/{name}/deliveries, newest first and without payloads.
func (a *API) Deliveries(c echo.Context) error {
	if err := a.forPeople(c); err != nil {
		return err
	}
	q := asked(c, "state", "after", "limit")
	f := trigger.Filter{Trigger: c.Param("name"), States: statesOf(q, trigger.States()),
		After: q.id(trigger.DeliveryPrefix), Limit: q.limit()}
	if q.err != nil {
		return q.err
	}
	page, err := a.Site.Triggers.Deliveries(c.Request().Context(), f)
	if err != nil {
		return err
	}
	if len(page.Items) == 0 && q.Get("after") == "" { // nothing came, or nobody has this name
		if _, err := a.Site.Triggers.Status(c.Request().Context(), c.Param("name")); err != nil {
			return err
		}
	}
	return c.JSON(http.StatusOK, wire.ListOf(each.Of(page.Items, deliveryOf), page.Next))
}

// Delivery answers GET /triggers/{name}/deliveries/{id} and GET /deliveries/{id} with what it carried, as it came.
func (a *API) Delivery(c echo.Context) error {
	d, err := a.delivery(c)
	if err != nil {
		return err
	}
	shape := deliveryOf(d)
	shape.Headers, shape.Text = d.Headers, wire.Maybe(d.Text)
	if d.Body != nil {
		text := strings.ToValidUTF8(string(d.Body), "\uFFFD")
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
	d, err := a.Site.Triggers.Delivery(c.Request().Context(), id)
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
	again, err := a.Site.Triggers.Redeliver(c.Request().Context(), d.ID, caller(c).User)
	return send(c, http.StatusAccepted, deliveryOf(again), err)
}

// TryTrigger answers POST /triggers/{name}/test. Nothing is stored.
func (a *API) TryTrigger(c echo.Context) error {
	var in wire.Sample
	if err := read(c, &in); err != nil {
		return err
	}
	trial, err := a.Site.Triggers.Try(c.Request().Context(), c.Param("name"), trigger.Sample{Body: in.Payload, Event: in.Event})
	return send(c, http.StatusOK, wire.Trial{Fires: trial.Fires, Agent: wire.Maybe(trial.Agent), Text: wire.Maybe(trial.Text), Key: wire.Maybe(trial.Key), Asks: wire.Maybe(trial.Asks), Code: wire.Maybe(trial.Code), Message: wire.Maybe(trial.Message)}, err)
}
