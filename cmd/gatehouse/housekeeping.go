package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/record/proof"
)

// How often what is done besides the work.
const (
	sealEvery  = 5 * time.Second
	sweepEvery = time.Minute
)

// keep seals the history and removes what has expired, on one node at a time, until
// ctx ends. What fails is tried again at the next tick: nothing depends on when.
func (h *house) keep(ctx context.Context) error {
	key, err := h.sealKey()
	if err != nil {
		return err
	}
	public, _ := key.Public().(ed25519.PublicKey) // a private key always has one
	sign := func(message []byte) ([]byte, string) { return ed25519.Sign(key, message), proof.Fingerprint(public) }
	tick := time.NewTicker(sealEvery)
	defer tick.Stop()
	var swept, retained, forgot time.Time
	known := false // the key, to all nodes
	defer h.leave(ctx)
	for {
		if err := h.alive(ctx); err != nil && ctx.Err() == nil {
			h.log.Warn("this node could not say that it lives; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		mine, err := h.store.Lease(ctx, "housekeeping", h.node, 3*sealEvery)
		if err == nil && !known {
			err = h.store.SaveSealKey(ctx, public)
			known = err == nil
		}
		if err == nil && mine && known {
			_, err = h.store.Seal(ctx, sign)
		}
		if err == nil && mine && time.Since(swept) >= sweepEvery {
			swept = time.Now()
			err = h.sweep(ctx, swept)
		}
		if err == nil && mine && time.Since(retained) >= retainEvery {
			var more bool
			if more, err = h.retain(ctx, time.Now()); !more && err == nil {
				retained = time.Now()
			}
		}
		if err == nil && time.Since(forgot) >= forgetEvery {
			forgot = time.Now()
			err = h.forget(ctx)
		}
		if err != nil && ctx.Err() == nil {
			h.log.Warn("housekeeping failed; trying again", "err", err)
		}
	}
}

// keepButtons is how long the buttons of a request that ended get an answer.
const keepButtons = 30 * 24 * time.Hour

// sweep removes what has expired.
func (h *house) sweep(ctx context.Context, now time.Time) error {
	_, values := h.store.Context(cliActor).Cleanup(ctx, now)
	_, signins := h.store.PurgeSignins(ctx, now)
	_, drafts := h.store.PurgeDrafts(ctx, now.Add(-approval.KeepDrafts))
	_, readings := h.store.PurgeReadings(ctx, now.Add(-approval.KeepReadings))
	_, codes := h.store.PurgeLinkCodes(ctx, now)
	_, buttons := h.store.ForgetButtons(ctx, now.Add(-keepButtons))
	_, done := h.store.PurgeDedup(ctx, now.Add(-h.engine.Config().Settings.Spawn.Remembered()))
	return errors.Join(done, values, signins, drafts, readings, codes, buttons)
}
