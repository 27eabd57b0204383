package audit

import (
	"context"
	"net/http"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/views"
	view "gatehouse/views/audit"

	"github.com/labstack/echo/v4"
)

// auditProof is how far the log is sealed, and what the last verification found.
func (p *Pages) auditProof(ctx context.Context) (view.AuditProof, error) {
	var v view.AuditProof
	sealed, err := p.Proof.SealedUpTo(ctx)
	if err != nil {
		return v, err
	}
	v.SealedAt = sealed.At
	last, ok, err := p.Proof.LastVerified(ctx)
	if err != nil || !ok {
		return v, err
	}
	v.Last = &last
	return v, nil
}

// AuditVerify answers GET /audit/verify with what the last verification found.
func (p *Pages) AuditVerify(c echo.Context) error { return p.verifyPage(c, http.StatusOK, "") }

// verifyPage says in front, when there is one, why no verification was started.
func (p *Pages) verifyPage(c echo.Context, status int, problem string) error {
	f, err := p.Begin(c, views.SectionAudit, "Verify the history")
	if err != nil {
		return err
	}
	f.Chrome.StreamURL = ""
	page := view.AuditVerifyPage{Chrome: f.Chrome, Problem: problem}
	if page.Proof, err = p.auditProof(f.Ctx); err != nil {
		return err
	}
	if page.Keys, err = p.Proof.SealKeys(f.Ctx); err != nil {
		return err
	}
	return handlers.Render(c, status, view.AuditVerify(page))
}

// verifyTime is how long one verification that a page asked for may take.
const verifyTime = 30 * time.Minute

// RunVerify answers POST /audit/verify: it reads every event again. A reader who goes away
// stops it.
func (p *Pages) RunVerify(c echo.Context) error {
	who, _ := handlers.Who(c)
	// Without support for deadlines there is none to prolong.
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(verifyTime))
	_, err := p.Proof.Verify(c.Request().Context(), who.Name(), func(proof.Progress) {})
	if err == nil {
		return handlers.SeeOther(c, views.AuditVerifyPath, "")
	}
	if f := handlers.FaultOf(err); f.Code == handlers.CodeRateLimited {
		return p.verifyPage(c, f.Status, f.Message)
	}
	return err
}
