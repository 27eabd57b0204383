package audit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/views"
	view "gatehouse/views/audit"

	"github.com/labstack/echo/v4"
)

// HoldsPage answers GET /audit/holds?lifted=true.
func (p *Pages) HoldsPage(c echo.Context) error {
	return p.holdsPage(c, http.StatusOK, func(*view.HoldsPage) {})
}

func (p *Pages) holdsPage(c echo.Context, status int, change func(*view.HoldsPage)) error {
	f, err := p.Begin(c, views.SectionAudit, "Legal holds")
	if err != nil {
		return err
	}
	page := view.HoldsPage{Lifted: c.QueryParam("lifted") == "true", MaySet: f.Who.Has(people.AuditHold), Rules: rulesOf(p.Engine.Config().Retention)}
	if page.Holds, err = p.Holds.Holds(f.Ctx, page.Lifted); err != nil {
		return err
	}
	page.Chrome = f.Chrome
	change(&page)
	return handlers.Render(c, status, view.Holds(page))
}

// rulesOf says what retention removes.
func rulesOf(r retention.Rules) []string {
	var out []string
	for _, one := range []struct {
		age  time.Duration
		what string
	}{{r.Data, "what tasks were about: texts, conversations, data of events"}, {r.Blobs, "the bundles of patches"}, {r.Deliveries, "what webhooks brought"}} {
		if one.age > 0 {
			out = append(out, "Retention removes "+one.what+" after "+views.Duration(one.age)+".")
		}
	}
	if len(out) == 0 {
		out = append(out, "Retention is off: nothing is removed.")
	}
	return out
}

// SetHold answers POST /audit/holds.
func (p *Pages) SetHold(c echo.Context) error {
	who, _ := handlers.Who(c)
	what, subject, reason := c.FormValue("what"), strings.TrimSpace(c.FormValue("subject")), c.FormValue("reason")
	h, err := p.holdOf(c.Request().Context(), who, what, subject)
	if err == nil {
		h.Reason, h.By = reason, who.User.Name
		_, err = p.Holds.SetHold(c.Request().Context(), h)
	}
	if err == nil {
		return handlers.SeeOther(c, views.HoldsPath, "held")
	}
	return p.holdRefused(c, err, func(page *view.HoldsPage) { page.What, page.Subject, page.Reason = what, subject, reason })
}

// holdOf understands what a form names.
func (p *Pages) holdOf(ctx context.Context, who handlers.Caller, what, subject string) (retention.Hold, error) {
	switch {
	case what == "everything":
		return retention.Hold{Kind: retention.Everything}, nil
	case what == "repository":
		return retention.Hold{Kind: retention.Repository, Subject: subject}, nil
	case strings.HasPrefix(subject, orchestrator.RequestPrefix):
		id, err := p.Ids.Request(ctx, subject)
		if err != nil {
			return retention.Hold{}, err
		}
		r, err := p.Requests.Request(ctx, id)
		return retention.Hold{Kind: retention.Task, Subject: r.TaskID, RequestID: r.ID}, handlers.Known(err, "request", subject)
	}
	t, err := p.Ids.Task(ctx, who, subject)
	return retention.Hold{Kind: retention.Task, Subject: t.ID}, err
}

// LiftHold answers POST /audit/holds/{id}/lift.
func (p *Pages) LiftHold(c echo.Context) error {
	who, _ := handlers.Who(c)
	if _, err := p.Holds.LiftHold(c.Request().Context(), c.Param("id"), who.User.Name, c.FormValue("reason")); err != nil {
		return p.holdRefused(c, err, func(*view.HoldsPage) {})
	}
	return handlers.SeeOther(c, views.HoldsPath, "lifted")
}

// holdRefused shows the page again with what is wrong, and the form as it was sent.
func (p *Pages) holdRefused(c echo.Context, err error, change func(*view.HoldsPage)) error {
	if orchestrator.CodeOf(err) == "" {
		return err
	}
	return p.holdsPage(c, handlers.FaultOf(err).Status, func(page *view.HoldsPage) {
		change(page)
		page.Flash = &views.Flash{Bad: true, Text: handlers.FaultOf(err).Message}
	})
}
