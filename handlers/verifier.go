package handlers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator/proof"
)

// verifications is how many a node runs at once. Each keeps one connection to the
// database busy.
const verifications = 3

// Verifier verifies the whole history for one person at a time, and for a few people at
// once, so that a button that is pressed again and again does not fill the node. Pages and
// API share one.
type Verifier struct {
	Proof
	Now func() time.Time

	mu      sync.Mutex
	running map[string]time.Time // by who asked
}

// Verify refuses with CodeRateLimited, before it calls progress, what would be one too many.
func (v *Verifier) Verify(ctx context.Context, who string, progress func(proof.Progress)) (proof.Verification, error) {
	if err := v.begin(who); err != nil {
		return proof.Verification{}, err
	}
	defer v.end(who)
	return v.Proof.Verify(ctx, who, progress)
}

func (v *Verifier) begin(who string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if since, runs := v.running[who]; runs {
		return Refuse(CodeRateLimited, fmt.Sprintf("You have been verifying the history since %s, so no second run was started. Wait for its answer, or close the page or command that runs it: that stops it.",
			since.UTC().Format("15:04:05 UTC")))
	}
	if len(v.running) >= verifications {
		return Refuse(CodeRateLimited, fmt.Sprintf("%d people are verifying the history on this server, which is as many as it does at once. Nothing was started. Look at the last result, or try again in a minute.", len(v.running)))
	}
	if v.running == nil {
		v.running = map[string]time.Time{}
	}
	v.running[who] = v.Now()
	return nil
}

func (v *Verifier) end(who string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.running, who)
}
