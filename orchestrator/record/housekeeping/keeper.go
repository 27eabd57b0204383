package housekeeping

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"log/slog"
	"time"

	"gatehouse/orchestrator/record/proof"
)

// How often what is done besides the work.
const (
	sealEvery   = 5 * time.Second
	sweepEvery  = time.Minute
	retainEvery = 10 * time.Minute
	forgetEvery = 24 * time.Hour
	lease       = "housekeeping"
)

// Store has the lease and the seals.
type Store interface {
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error)
	SaveSealKey(ctx context.Context, key ed25519.PublicKey) error
	// Seal signs the history as far as it goes; false is that nothing was new.
	Seal(ctx context.Context, sign func(message []byte) (signature []byte, keyID string)) (bool, error)
}

// Keeper keeps house on one node.
type Keeper struct {
	Store Store
	Node  string
	Key   ed25519.PrivateKey // of this node's seals
	Log   *slog.Logger
	Every time.Duration // between two looks; 0 is 5 s

	// On the node with the lease: Sweep removes what has expired, Retain what is old, and says whether there is more.
	Sweep  func(ctx context.Context, now time.Time) error
	Retain func(ctx context.Context, now time.Time) (more bool, err error)
	// On each node for itself: Forget removes what retention removed elsewhere, Alive says that the node lives, and
	// Leave that it ends.
	Forget func(ctx context.Context) error
	Alive  func(ctx context.Context) error
	Leave  func(ctx context.Context)

	known                   bool // the key, to all nodes
	swept, retained, forgot time.Time
}

// Run keeps house until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	k.Every = cmp.Or(k.Every, sealEvery)
	tick := time.NewTicker(k.Every)
	defer tick.Stop()
	defer k.Leave(ctx)
	for {
		if err := k.Alive(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("this node could not say that it lives; trying again", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := k.once(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("housekeeping failed; trying again", "err", err)
		}
	}
}

// once does what is due. What fails ends it, and is due again.
func (k *Keeper) once(ctx context.Context) error {
	mine, err := k.Store.Lease(ctx, lease, k.Node, 3*k.Every)
	if err == nil && !k.known {
		err = k.Store.SaveSealKey(ctx, k.public())
		k.known = err == nil
	}
	if err == nil && mine && k.known {
		_, err = k.Store.Seal(ctx, k.sign)
	}
	if err == nil && mine && time.Since(k.swept) >= sweepEvery {
		k.swept = time.Now()
		err = k.Sweep(ctx, k.swept)
	}
	if err == nil && mine && time.Since(k.retained) >= retainEvery {
		var more bool
		if more, err = k.Retain(ctx, time.Now()); !more && err == nil {
			k.retained = time.Now()
		}
	}
	if err == nil && time.Since(k.forgot) >= forgetEvery {
		k.forgot = time.Now()
		err = k.Forget(ctx)
	}
	return err
}

func (k *Keeper) public() ed25519.PublicKey {
	public, _ := k.Key.Public().(ed25519.PublicKey) // a private key always has one
	return public
}

func (k *Keeper) sign(message []byte) (signature []byte, keyID string) {
	return ed25519.Sign(k.Key, message), proof.Fingerprint(k.public())
}
