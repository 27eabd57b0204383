package audit

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
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

// verifications is how many a node runs at once. Each keeps one connection to the
// database busy.
const verifications = 3

// Verifier verifies the whole history for one person at a time, and for a few people at
// once, so that a button that is pressed again and again does not fill the node. Pages and
// API share one.
type Verifier struct {
	handlers.Proof
	Now func() time.Time

	mu      sync.Mutex
	running map[string]verifying // by who asked
	closed  bool
}

type verifying struct {
	since time.Time
	end   context.CancelFunc
}

// Verify refuses with CodeRateLimited, before it calls progress, what would be one too many.
func (v *Verifier) Verify(ctx context.Context, who string, progress func(proof.Progress)) (proof.Verification, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := v.begin(who, cancel); err != nil {
		return proof.Verification{}, err
	}
	defer v.end(who)
	found, err := v.Proof.Verify(ctx, who, progress)
	if err != nil && v.stopping() {
		return found, errStopping
	}
	return found, err
}

// errStopping is the answer to who verifies on a server that is being stopped.
var errStopping = orchestrator.Errorf(orchestrator.CodeUnavailable, "This server is being stopped, so the verification was ended before its end and nothing was recorded. Verify again once it is back.")

// Close ends the verifications that run and starts no more: a server that stops does not
// wait until a long history is read.
func (v *Verifier) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for _, r := range v.running {
		r.end()
	}
}

func (v *Verifier) begin(who string, end context.CancelFunc) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return errStopping
	}
	if r, runs := v.running[who]; runs {
		return handlers.Refuse(handlers.CodeRateLimited, fmt.Sprintf("You have been verifying the history since %s, so no second run was started. Wait for its answer, or close the page or command that runs it: that stops it.",
			r.since.UTC().Format("15:04:05 UTC")))
	}
	if len(v.running) >= verifications {
		return handlers.Refuse(handlers.CodeRateLimited, fmt.Sprintf("%d people are verifying the history on this server, which is as many as it does at once. Nothing was started. Look at the last result, or try again in a minute.", len(v.running)))
	}
	if v.running == nil {
		v.running = map[string]verifying{}
	}
	v.running[who] = verifying{v.Now(), end}
	return nil
}

func (v *Verifier) end(who string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.running, who)
}

func (v *Verifier) stopping() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}
