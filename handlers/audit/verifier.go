package audit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/proof"
)

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
