package orchestrator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"gatehouse/orchestrator/agent"
)

// HashToken is how run tokens are stored and looked up.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// RunTokenPrefix starts every run token, so that a door tells it from an API token.
const RunTokenPrefix = "ghr_"

// newToken makes a run token of 256 random bits.
func newToken() string {
	var b [32]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never fails
	return RunTokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// claim takes the lease of a delegation that is due, raising its attempt. ErrLost means
// that somebody else has it.
func (e *Engine) claim(ctx context.Context, r *run) error {
	err := e.Store.InTask(ctx, r.task.ID, func(tx Tx) error {
		r.over = false // as the try before may have found it
		d, err := tx.Delegation(ctx, r.id)
		if err != nil {
			return err
		}
		now := tx.Now()
		if d.State == Waiting && d.Holder != "" && d.LeaseUntil.Before(now) {
			// The process that waited is gone with its node; the row goes on waiting alone.
			r.over = true
			return loseProcess(ctx, tx, d)
		}
		held := d.Holder != "" && d.LeaseUntil.After(now)
		due := d.State == Queued || d.State == Running || d.State == Checking || d.State == Landing
		if held || !due || d.ReadyAt.After(now) || tx.Task().PausedAt != nil && !d.intended() {
			return ErrLost
		}
		if e.overdue(tx, d) {
			r.over = true
			return e.giveUp(ctx, tx, d)
		}
		d.Work.Breaker = e.breakerSettings()
		if err := lostCall(ctx, tx, d); err != nil {
			return err
		}
		if d.State == Running || d.State == Queued && d.Holder != "" {
			d.Losses++
			if d.Losses >= e.Config().Settings.MaxAttempts {
				r.over = true
				return Fail(ctx, tx, d, agent.Fail(agent.CodeLost, "The node that ran %s went away %d times. The work was not started again. Look at its log, then retry.", d.To, d.Losses))
			}
		}
		return e.take(ctx, tx, r, d)
	})
	if err != nil || r.over {
		return err
	}
	e.claimed(r)
	return nil
}

// claimed notes that r has its row; a notice that came just before is looked after now.
func (e *Engine) claimed(r *run) {
	e.mu.Lock()
	r.claimed, r.attempt, r.leaseUntil = true, r.d.Attempt, r.d.LeaseUntil
	missed := r.missed
	e.mu.Unlock()
	if missed {
		r.look(r.ctx)
	}
	e.Trace("claimed")
}

// intended reports whether d is landing past its intent, which nothing stops.
func (d *Delegation) intended() bool {
	return d.State == Landing && d.Work.Land != nil && d.Work.Land.Intent != nil
}

// breakerSettings are those in force, nil where breakers are off.
func (e *Engine) breakerSettings() *BreakerSettings {
	if s := e.Config().Settings.Breaker; s.Failures > 0 {
		return &s
	}
	return nil
}

// take writes the claim of d for r.
func (e *Engine) take(ctx context.Context, tx Tx, r *run, d *Delegation) error {
	from := d.State
	starts := e.seize(tx, r, d)
	if err := writeClaim(ctx, tx, d, from); err != nil {
		return err
	}
	if err := e.probeAsked(ctx, tx, d); err != nil {
		return err
	}
	r.task, r.d = *tx.Task(), *d
	if !starts {
		return nil
	}
	return tx.Append(ctx, acknowledged(e.Node, d))
}

// own reads r's delegation inside a transaction and makes sure that r still is its
// attempt: the fence before every write of a worker.
func (r *run) own(ctx context.Context, tx Tx) (*Delegation, error) {
	d, err := tx.Delegation(ctx, r.id)
	if err != nil {
		return nil, err
	}
	if d.Attempt != r.attempt || d.Holder != r.e.Node || d.State.Ended() {
		return nil, fmt.Errorf("delegation %s is %s at attempt %d: %w", d.ID, d.State, d.Attempt, ErrLost)
	}
	return d, nil
}
