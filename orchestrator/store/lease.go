package store

import (
	"context"
	"time"
)

// Node is a gatehouse process that works on this database.
type Node struct {
	Name    string
	URL     string
	Version string
	Seen    time.Time
}

// Lease gives the named lease to holder for ttl, or extends it, unless somebody else
// has it. It reports whether holder has it now.
func (s *Store) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	now := s.now()
	n, err := changed(s.w.exec(ctx, `insert into leases (name, holder, until) values (?, ?, ?)
		on conflict (name) do update set holder = excluded.holder, until = excluded.until
		where leases.holder = excluded.holder or leases.until <= ?`, name, holder, micros(now.Add(ttl)), micros(now)))
	return n == 1, s.explain(err)
}

// Unlease gives the lease up, if holder has it.
func (s *Store) Unlease(ctx context.Context, name, holder string) error {
	_, err := s.w.exec(ctx, "delete from leases where name = ? and holder = ?", name, holder)
	return s.explain(err)
}

// SaveNode records that a node lives; Seen is set to now.
func (s *Store) SaveNode(ctx context.Context, n Node) error {
	at, err := s.Clock(ctx)
	if err != nil {
		return err
	}
	_, err = s.w.exec(ctx, `insert into nodes (name, url, version, seen, alive_at) values (?, ?, ?, ?, ?)
		on conflict (name) do update set url = excluded.url, version = excluded.version, seen = excluded.seen, alive_at = excluded.alive_at`, n.Name, n.URL, n.Version, micros(s.now()), micros(at))
	return s.explain(err)
}

// Nodes returns the nodes that were seen since then, by name.
func (s *Store) Nodes(ctx context.Context, since time.Time) ([]Node, error) {
	rows, err := s.r.query(ctx, "select name, url, version, seen from nodes where seen >= ? order by name", micros(since))
	found, err := collect(rows, err, func(row scanner) (Node, error) {
		var n Node
		var seen int64
		err := row.Scan(&n.Name, &n.URL, &n.Version, &seen)
		n.Seen = fromMicros(seen)
		return n, err
	})
	return found, s.explain(err)
}

// DropNode forgets a node that ended, or those that have not been seen since then.
func (s *Store) DropNode(ctx context.Context, name string, before time.Time) error {
	_, err := s.w.exec(ctx, "delete from nodes where name = ? or seen < ?", name, micros(before))
	return s.explain(err)
}
