package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
)

// What a run asks for twice by mistake is done once (P50): a spawn of the same task for the
// same agent, and the announcement of a child's end. Each has a deterministic key, which the
// store keeps with the child while that lives and for Settings.Spawn.Remember after its end;
// then a sweep forgets it.

// defaultRemember is how long that is where the configuration says nothing.
const defaultRemember = 24 * time.Hour

// Remembered is how long after a child's end its keys are known.
func (s SpawnSettings) Remembered() time.Duration {
	if s.Remember <= 0 {
		return defaultRemember
	}
	return s.Remember
}

// spawnedOnce is the key of a spawn: who spawns, in which generation, and what for whom.
func spawnedOnce(d *Delegation, key string) string {
	return fmt.Sprintf("spawn/%s/%d/%s", d.ID, d.Work.Runs, key)
}

// announcedOnce is the key of the announcement of a child's end to its caller.
func announcedOnce(d *Delegation, child string) string {
	return fmt.Sprintf("announce/%s/%d/%s", d.ID, d.Work.Runs, child)
}

// madeBefore finds the child that answers for a hop, ErrNotFound where there is none. The
// child of a spawn answers until it has been forgotten, also before the sweep comes by.
func (e *Engine) madeBefore(ctx context.Context, tx Tx, d *Delegation, p *planned) (*Delegation, error) {
	if !p.Spawn {
		return tx.Child(ctx, d.ID, d.Work.Runs, p.key)
	}
	if p.Again {
		p.anew = p.Ref
	}
	child, err := spawnOf(ctx, tx, d, p.key)
	if err != nil {
		return nil, err
	}
	if child.EndedAt == nil || tx.Now().Sub(*child.EndedAt) < e.Config().Settings.Spawn.Remembered() {
		return child, nil
	}
	p.anew = child.ID // it is no repetition of the hop that made that one
	if err := tx.Forget(ctx, spawnedOnce(d, p.key)); err != nil {
		return nil, err
	}
	return nil, ErrNotFound
}

// spawnOf finds the newest child that a spawn made. A node of before the keys, which works
// beside this one while the nodes are brought up one by one, notes none: its child is found
// by the plain hop key, as it finds it itself.
func spawnOf(ctx context.Context, tx Tx, d *Delegation, key string) (*Delegation, error) {
	id, err := tx.Remembered(ctx, spawnedOnce(d, key))
	if errors.Is(err, ErrNotFound) {
		return tx.Child(ctx, d.ID, d.Work.Runs, key)
	}
	if err != nil {
		return nil, err
	}
	return tx.Delegation(ctx, id)
}

// rememberSpawn makes child the answer for its spawn. The hop key below its caller has to be
// its own: the same spawn may be made again once this one is forgotten.
func rememberSpawn(ctx context.Context, tx Tx, d, child *Delegation) error {
	if !child.Spawned {
		return nil
	}
	key := child.HopKey
	child.HopKey += "@" + child.ID
	return tx.Remember(ctx, spawnedOnce(d, key), child.ID)
}

// announceOnce notes that a turn tells d of the ends of children, and returns the keys of
// the announcements. One that is on record is refused with the whole turn.
func announceOnce(ctx context.Context, tx Tx, d *Delegation, children []string) ([]string, error) {
	keys := make([]string, 0, len(children))
	for _, id := range children {
		key := announcedOnce(d, id)
		err := tx.Remember(ctx, key, id)
		if errors.Is(err, ErrExists) {
			return nil, Errorf(CodeConflict, "The end of %s was announced to %s before. Each is announced once.", id, d.To)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// announces reports whether a turn tells the ends of spawned children, which is a message of
// its own; the outcomes of other hops come as the results of their calls.
func announces(t agent.Turn) bool { return len(t.Children) > 0 && t.Message.Role == agent.FromUser }
