package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// group lets transactions that wait for SQLite's one writer share a commit, each with its
// own outcome: what fails is undone alone, and nobody is told of success before the commit
// that all share has succeeded. The first one that waits leads: it writes for those that
// came by the time it had the writer, and gives the lead on.
type group struct {
	mu      sync.Mutex
	waiting []*member
	led     bool
}

// member is a transaction in a group.
type member struct {
	t    *Tx
	told chan told
}

// told is the outcome, or that it is this one's turn to lead.
type told struct {
	lead bool
	err  error
}

// What a member's statements stand between, so that they can be undone alone.
const (
	savepoint   = "savepoint step"
	releaseStep = "release step"
	undoStep    = "rollback to step"
)

// errBroken says that SQLite has undone the whole transaction, as it may where the disk is
// full: nothing more is written in it.
var errBroken = errors.New("the commit that steps share was undone")

// maxGroup is how many share a commit at most.
const maxGroup = 64

func (g *group) apply(ctx context.Context, t *Tx) error {
	m := &member{t, make(chan told, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, m)
	lead := !g.led
	g.led = true
	g.mu.Unlock()
	for {
		if lead {
			g.lead(ctx, t.s)
		}
		say := <-m.told
		if lead = say.lead; !lead {
			return say.err
		}
	}
}

// lead writes for those who wait, the leader among them, and gives the lead on.
func (g *group) lead(ctx context.Context, s *Store) {
	tx, err := s.w.begin(ctx)
	g.mu.Lock()
	k := min(len(g.waiting), maxGroup)
	some := g.waiting[:k:k]
	g.waiting = g.waiting[k:]
	g.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("begin: %w", err)
		for _, m := range some {
			m.told <- told{err: err}
		}
	} else {
		write(ctx, tx, some)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.led = len(g.waiting) > 0; g.led {
		g.waiting[0].told <- told{lead: true}
	}
}

// write commits what the members have to write and tells each its outcome.
func write(ctx context.Context, tx *sql.Tx, some []*member) {
	ok := some[:0:0]
	for i, m := range some {
		err := m.write(ctx, tx, len(some) > 1)
		if errors.Is(err, errBroken) {
			// Nothing of it is committed; each of the others runs alone.
			_ = tx.Rollback()
			m.told <- told{err: err}
			for _, m := range append(ok, some[i+1:]...) {
				m.told <- told{err: errStale}
			}
			return
		}
		if err != nil {
			m.told <- told{err: err}
			continue
		}
		ok = append(ok, m)
	}
	if len(ok) == 0 {
		_ = tx.Rollback()
		return
	}
	err := tx.Commit()
	if err != nil {
		err = commitError{fmt.Errorf("commit: %w", err)}
	}
	for _, m := range ok {
		m.told <- told{err: err}
	}
}

// write writes what one member has to write. Where others share the commit and it fails,
// it leaves nothing behind.
func (m *member) write(ctx context.Context, tx *sql.Tx, shared bool) (err error) {
	t := m.t
	b := bound{t.s.w, tx}
	if shared {
		if _, err := b.exec(ctx, savepoint); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				if _, lost := b.exec(ctx, undoStep); lost != nil {
					err = fmt.Errorf("%w (%w: %w)", err, errBroken, lost)
					return
				}
			}
			if _, end := b.exec(ctx, releaseStep); end != nil {
				err = fmt.Errorf("%w: %w", errBroken, errors.Join(err, end))
			}
		}()
	}
	if t.made {
		args, err := t.row.args()
		if err != nil {
			return err
		}
		if _, err := b.exec(ctx, insertTask, args...); err != nil {
			return err
		}
	} else if err := t.count(ctx, b); err != nil {
		return err
	}
	for _, l := range t.order {
		if err := l.write(ctx, b, t.row.ID); err != nil {
			return err
		}
	}
	return insertAll(ctx, b, t)
}
