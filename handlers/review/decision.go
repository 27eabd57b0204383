package review

import (
	"slices"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// Decide answers POST /approvals/{id}/decision, a plain form. A verdict that is not
// taken shows the page again with the reason and what was typed.
func (p *Pages) Decide(c echo.Context) error {
	id, form, who, err := p.posted(c)
	if err != nil {
		return err
	}
	r, err := p.decidable(c, who)
	if err != nil {
		return err
	}
	b := approval.Ballot{
		RequestID: id, Principal: who.Principal, Channel: handlers.Channel(c), Verdict: approval.Verdict(form.Get("verdict")),
		Digest: form.Get("digest"), Revision: handlers.Count(form.Get("revision")), Comment: form.Get("comment"),
		Seen: approval.Seen{Surface: approval.SurfacePage, WarningsTicked: slices.Concat(form["tick"], form["ticked"])},
	}
	if err := handlers.AskFields(c, &b); err != nil {
		return err
	}
	if r.IsAction() {
		b.Input = inputOf(form.Get("input"), r.Call().Input)
	}
	no, done := refused{input: form.Get("input"), comment: b.Comment, anew: form.Get("start_over") != "", back: form.Get("back"), ticked: b.Seen.WarningsTicked}, string(b.Verdict)
	switch {
	case b.Verdict == approval.RequestChanges:
		b.StartOver = form.Get("start_over") != ""
	case b.Verdict == approval.Approve && form.Get("some") != "":
		no.picked = pickedOf(form)
		b.Files = pathsOf(r.Revision, no.picked)
	}
	after, err := p.Gateway.Decide(c.Request().Context(), b)
	if err != nil {
		return p.refuse(c, err, no)
	}
	if b.Files != nil && after.State == approval.Superseded { // all of them is a plain yes
		done = "some"
	}
	return handlers.SeeOther(c, views.ApprovalHref(id), doneWith(after, b, done))
}

// doneWith is what the page says once after a verdict; done is that of a change of files.
func doneWith(r approval.Request, b approval.Ballot, done string) string {
	switch {
	case r.IsHandover():
		return map[approval.Verdict]string{approval.Approve: "handed", approval.Reject: "not_handed"}[b.Verdict]
	case r.IsAction() && b.ForTask:
		return "granted"
	case r.IsAction() && b.Verdict != approval.Withdraw:
		return map[approval.Verdict]string{approval.Approve: "called", approval.Reject: "not_called", approval.Edit: "call_edited"}[b.Verdict]
	case r.IsQuestion():
		return map[approval.Verdict]string{approval.Respond: "answer", approval.Reject: "not_answered"}[b.Verdict]
	}
	return done
}

// decidable is the request that a verdict is about, for who may decide. Who sent a task also
// answers what its agents ask.
func (p *Pages) decidable(c echo.Context, who handlers.Caller) (approval.Request, error) {
	r, err := p.request(c)
	if err != nil || handlers.OwnQuestion(who, r) {
		return r, err
	}
	if err = who.Require([]handlers.Right{handlers.ApprovalsDecide}); err != nil {
		handlers.TurnedAway(c, p.Ids, p.Gateway, err)
	}
	return r, err
}

// Revert answers POST /approvals/{id}/revert.
func (p *Pages) Revert(c echo.Context) error {
	id, err := p.Ids.Request(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	who, _ := handlers.Who(c)
	t, err := p.Gateway.Revert(c.Request().Context(), id, who.Principal)
	if err != nil {
		return err
	}
	return handlers.SeeOther(c, views.DelegationHref(t.ID), "reverted")
}

// Land answers POST /approvals/{id}/land: a landing that was refused is tried again.
func (p *Pages) Land(c echo.Context) error {
	r, err := p.request(c)
	if err != nil {
		return err
	}
	who, _ := handlers.Who(c)
	d, err := p.Engine.LandAgain(c.Request().Context(), r.DelegationID, who.Name())
	if err != nil {
		return err
	}
	if d.LandsNow() {
		return handlers.SeeOther(c, views.ApprovalHref(r.ID), "lands_now")
	}
	return handlers.SeeOther(c, views.ApprovalHref(r.ID), "landing")
}
