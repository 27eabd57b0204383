package sqlstore

import (
	"context"
	"sync"

	"gatehouse/approval"
	"gatehouse/orchestrator/store"
)

// pendings keeps the requests that wait for people as they were last read: every page
// says how many the reader can decide, and a request is read anew only when its version
// has risen. It holds what the last answer named and nothing else.
type pendings struct {
	mu    sync.Mutex
	known map[string]approval.Request
}

const selectPending = "select id, version from requests where state = 'pending' order by id desc limit ?"

// Pending returns the newest pending requests, newest first, at most limit, without their
// cards. Callers share them and must not change them.
func (s *Store) Pending(ctx context.Context, limit int) ([]approval.Request, error) {
	now, err := store.ReadAll(ctx, s.Store, func(row store.Scanner) (r approval.Request, err error) {
		err = row.Scan(&r.ID, &r.Version)
		return r, err
	}, selectPending, limit)
	if err != nil {
		return nil, err
	}
	known := s.waiting.get()
	var ids []string
	for _, r := range now {
		if had, ok := known[r.ID]; !ok || had.Version != r.Version { // a snapshot may be older than what is known
			ids = append(ids, r.ID)
		}
	}
	fresh, err := s.requestsByID(ctx, ids)
	if err != nil {
		return nil, s.Advise(err)
	}
	next := make(map[string]approval.Request, len(now))
	var found []approval.Request
	for _, r := range now {
		one, ok := fresh[r.ID]
		if !ok {
			one = known[r.ID]
		}
		if one.State == approval.Pending { // else decided since
			next[r.ID] = one
			found = append(found, one)
		}
	}
	s.waiting.set(next)
	return found, nil
}

func (p *pendings) get() map[string]approval.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// set replaces the map; who has got the one before may go on reading it.
func (p *pendings) set(known map[string]approval.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = known
}

// requestsByID reads requests with their decisions.
func (s *Store) requestsByID(ctx context.Context, ids []string) (map[string]approval.Request, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := s.Query(ctx, selectRequest+" where r.id in "+store.Marks(len(ids)), store.Args(ids)...)
	all, err := store.Collect(rows, err, scanRequest)
	if err == nil {
		err = s.attach(ctx, all)
	}
	found := make(map[string]approval.Request, len(all))
	for _, r := range all {
		r.Cards = nil
		found[r.ID] = r
	}
	return found, err
}

// The condition on the state is that of the index of what is pending.
const selectStanding = `select r.id, r.repository, v.n, v.base, v.overtaken not in ('', '[]', 'null')
	from requests r join revisions v on v.request_id = r.id and v.n = r.revision
	where r.state = 'pending' and r.kind not in ('handover', 'action', 'question') and r.revert_of = '' and v.made = '' order by r.id`

// Standing lists all pending patches that their agents could make again, oldest first.
func (s *Store) Standing(ctx context.Context) ([]approval.Standing, error) {
	return store.ReadAll(ctx, s.Store, func(row store.Scanner) (w approval.Standing, err error) {
		err = row.Scan(&w.RequestID, &w.Repository, &w.Revision, store.JSON(&w.Base), &w.Overtaken)
		return w, err
	}, selectStanding)
}

// PendingCount counts the requests that wait for people.
func (s *Store) PendingCount(ctx context.Context) (int64, error) {
	return store.ReadOne(ctx, s.Store, store.Scalar[int64], "select count(*) from requests where state = 'pending'")
}
