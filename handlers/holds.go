package handlers

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/views"
	auditview "gatehouse/views/audit"
	taskview "gatehouse/views/task"

	"github.com/labstack/echo/v4"
)

// HoldsPage answers GET /audit/holds?lifted=true.
func (p *Pages) HoldsPage(c echo.Context) error {
	return p.holdsPage(c, http.StatusOK, func(*auditview.HoldsPage) {})
}

func (p *Pages) holdsPage(c echo.Context, status int, change func(*auditview.HoldsPage)) error {
	f, err := p.begin(c, views.SectionAudit, "Legal holds")
	if err != nil {
		return err
	}
	page := auditview.HoldsPage{Lifted: c.QueryParam("lifted") == "true", MaySet: f.who.Has(people.AuditHold), Rules: rulesOf(p.Engine.Config().Retention)}
	all, err := p.Holds.Holds(f.ctx, page.Lifted)
	if err != nil {
		return err
	}
	page.Holds = holdRows(all)
	page.Chrome = f.chrome
	change(&page)
	return render(c, status, auditview.Holds(page))
}

func holdRows(all []retention.Hold) []views.HoldRow {
	var rows []views.HoldRow
	for _, h := range all {
		row := views.HoldRow{ID: h.ID, What: "Everything", Reason: h.Reason, By: h.By, At: h.At, LiftedBy: h.LiftedBy, LiftedAt: at(h.LiftedAt), LiftReason: h.LiftReason}
		switch h.Kind {
		case retention.Repository:
			row.What = "The repository " + h.Subject
		case retention.Task:
			row.What, row.Href = "The task "+h.Subject, views.DelegationHref(h.Subject)
			if h.RequestID != "" {
				row.What = "The request " + h.RequestID + " with its task"
			}
		}
		rows = append(rows, row)
	}
	return rows
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
	who, _ := Who(c)
	what, subject, reason := c.FormValue("what"), strings.TrimSpace(c.FormValue("subject")), c.FormValue("reason")
	h, err := p.holdOf(c.Request().Context(), who, what, subject)
	if err == nil {
		h.Reason, h.By = reason, who.User.Name
		_, err = p.Holds.SetHold(c.Request().Context(), h)
	}
	if err == nil {
		return seeOther(c, views.HoldsPath, "held")
	}
	return p.holdRefused(c, err, func(page *auditview.HoldsPage) { page.What, page.Subject, page.Reason = what, subject, reason })
}

// holdOf understands what a form names.
func (p *Pages) holdOf(ctx context.Context, who Caller, what, subject string) (retention.Hold, error) {
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
		return retention.Hold{Kind: retention.Task, Subject: r.TaskID, RequestID: r.ID}, known(err, "request", subject)
	}
	t, err := p.Ids.Task(ctx, who, subject)
	return retention.Hold{Kind: retention.Task, Subject: t.ID}, err
}

// LiftHold answers POST /audit/holds/{id}/lift.
func (p *Pages) LiftHold(c echo.Context) error {
	who, _ := Who(c)
	if _, err := p.Holds.LiftHold(c.Request().Context(), c.Param("id"), who.User.Name, c.FormValue("reason")); err != nil {
		return p.holdRefused(c, err, func(*auditview.HoldsPage) {})
	}
	return seeOther(c, views.HoldsPath, "lifted")
}

// holdRefused shows the page again with what is wrong, and the form as it was sent.
func (p *Pages) holdRefused(c echo.Context, err error, change func(*auditview.HoldsPage)) error {
	var known *orchestrator.Error
	if !errors.As(err, &known) {
		return err
	}
	return p.holdsPage(c, FaultOf(err).Status, func(page *auditview.HoldsPage) {
		change(page)
		page.Flash = &views.Flash{Bad: true, Text: FaultOf(err).Message}
	})
}

// kept fills in what holds a task, and what retention has removed of it.
func (p *Pages) kept(f *frame, t orchestrator.Task, page *taskview.DelegationPage) error {
	holds, err := p.Holds.HoldsOn(f.ctx, t.ID)
	if err != nil {
		return err
	}
	page.Legal = holdRows(holds)
	if t.DroppedAt != nil {
		page.Dropped, page.CanRetry = t.DroppedAt.Format("2006-01-02"), false
	}
	return nil
}
