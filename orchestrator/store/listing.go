package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator"
)

// This file keeps the table listing: what lists, searches and sums read of delegations. It
// is a projection of the log that one follower writes in batches, so that a step writes no
// index that only lists read. All that is in it comes from delegations: whoever writes it
// takes the rows as they are now, as often as he likes.
//
// Whoever writes listing holds the row of its cursor. So the rows that he reads are never
// older than those which were listed before.

const (
	listingCursor = "listing"
	// listBatch is how many events one transaction of the follower takes.
	listBatch = 2000
	// listQueued is how many delegations of events without a position are listed at once.
	listQueued = 5 * listBatch
	// listEvery is how long the follower waits for more: a delegation that lives shorter is
	// listed once.
	listEvery = 400 * time.Millisecond
	// listedTime is how long a list waits at most for what it has to show.
	listedTime = time.Second
)

const (
	listed = `id, task_id, parent_id, to_agent, state, repository, requester,
	usd_micros, approval_id, created_at, ended_at`

	listedNow = `listing.id, listing.task_id, listing.parent_id, listing.to_agent, listing.state,
	listing.repository, listing.requester, listing.usd_micros, listing.approval_id, listing.created_at,
	listing.ended_at`

	selectListed = `d.id, d.task_id, d.parent_id, d.to_agent, d.state, d.repository, d.requester,
	case when d.parent_id = '' then d.usd_micros end, d.approval_id, d.created_at, d.ended_at`

	// What does not change is not written again, and what is as it was not at all.
	updateListing = `update listing set state = d.state, approval_id = d.approval_id, ended_at = d.ended_at,
	usd_micros = case when d.parent_id = '' then d.usd_micros end from delegations d
	where d.id = listing.id and listing.id in `
	changedListing = ` and (listing.state <> d.state or listing.approval_id <> d.approval_id
	or coalesce(listing.ended_at, -1) <> coalesce(d.ended_at, -1)
	or d.parent_id = '' and coalesce(listing.usd_micros, -1) <> coalesce(d.usd_micros, -1))`

	selectNamed = "select " + place + ", e.at, e.delegation_id, t.root_id" + fromOrder +
		" join tasks t on t.id = e.task_id" + inOrder

	// selectQueued is what is committed and has no position yet.
	selectQueued = `select distinct 0, 0, e.delegation_id, t.root_id from event_queue q
	join events e on e.task_id = q.task_id and e.n between q.first_n and q.last_n
	join tasks t on t.id = q.task_id limit ? + 0`

	selectBehind = "select coalesce((select pos from cursors where name = '" + listingCursor + "'), -1)," +
		" coalesce((" + selectPosition + "), 0)"
	anyQueued = ", exists (select 1 from event_queue)"
)

// listings says how the two databases list delegations; some of them in brackets stand for %s.
type listings struct {
	inserts  []string // what is not listed
	mends    []string // what is listed otherwise than it is
	needless []string // removes what there is no delegation of
	behind   string   // the place of the follower, the newest, and whether there are newer ones
	queued   string   // the delegations of those; "" where there are none
}

const mendListing = "update listing set (" + listed + ") = (" + selectListed + ") from delegations d" +
	" where d.id = listing.id and listing.id in %s and (" + listedNow + ") is distinct from (" + selectListed + ")"

func listingSQLite() listings {
	return listings{
		inserts: []string{
			"insert into listing (row, " + listed + ") select d.row, " + selectListed + missing("listing") + " order by d.row",
		},
		mends: []string{mendListing},
		needless: []string{"delete from listing where not exists" +
			" (select 1 from delegations d where d.id = listing.id and d.row = listing.row)"},
		behind: selectBehind + ", 0",
	}
}

func listingPostgres() listings {
	// Punctuation is cut, because the parser would take "src/a.go" for one word. A
	// question mark would stand for an argument.
	const words = `to_tsvector('simple', translate(d.text, './\-_:@#''"` + "`" + `<>()[]{}=+*&|,;!' || chr(63), repeat(' ', 40)))`
	return listings{
		inserts: []string{
			"insert into listing (" + listed + ") select " + selectListed + missing("listing"),
			"insert into listing_words (id, words) select d.id, " + words + missing("listing_words"),
		},
		mends: []string{mendListing, "update listing_words w set words = " + words +
			" from delegations d where d.id = w.id and w.id in %s and w.words <> " + words},
		needless: []string{
			"delete from listing where not exists (select 1 from delegations d where d.id = listing.id)",
			"delete from listing_words where not exists (select 1 from delegations d where d.id = listing_words.id)",
		},
		behind: selectBehind + anyQueued,
		queued: selectQueued,
	}
}

// missing are the delegations among some that a table does not have.
func missing(table string) string {
	return " from delegations d where d.id in %s and not exists (select 1 from " + table + " l where l.id = d.id)"
}

// named is an event with the delegations whose rows it may have changed.
type named struct {
	pos, at          int64
	delegation, root string
}

func scanNamed(row scanner) (n named, err error) {
	err = row.Scan(&n.pos, &n.at, &n.delegation, &n.root)
	return n, err
}

// followLog lists what is committed until ctx ends: soon after it happened, and at once
// when a list asks. Of several nodes the one that orders events does.
func (s *Store) followLog(ctx context.Context) {
	for {
		grown := s.ordered.Changed()
		if s.told == nil || s.seq.held.Load() {
			if err := s.catchUp(ctx, false); err != nil {
				s.complain(ctx, "listing what happened failed; trying again", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-grown:
		case <-time.After(orderPoll):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listEvery):
		}
	}
}

// upToDate has everything that is committed listed before a list is read. It waits a bounded
// time; then the list is answered with what there is. A snapshot is of a moment like that.
func (s *Store) upToDate(ctx context.Context) {
	if s.r.held(ctx) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listedTime)
	defer cancel()
	err := s.catchUp(ctx, true)
	s.complain(ctx, "listing what happened failed; lists may be behind", err)
}

// listers are those of this process who write the listing, one at a time. Whoever came
// before another one began has by its end all that he came for.
type listers struct {
	turn        chan struct{}
	begun, done atomic.Int64 // runs that list all that is committed
}

// catchUp lists what is committed by now. Queued: also what has no position yet, which
// will be listed again.
func (s *Store) catchUp(ctx context.Context, queued bool) error {
	if behind, err := behind(s.r.row(ctx, s.dialect.listings.behind), queued); err != nil || !behind {
		return err
	}
	next := s.lists.begun.Load() + 1
	select {
	case s.lists.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.lists.turn }()
	if s.lists.done.Load() >= next {
		return nil
	}
	if queued {
		next = s.lists.begun.Add(1)
	}
	for {
		n, err := s.listSome(ctx, queued)
		if err != nil {
			return err
		}
		if n < listBatch {
			break
		}
	}
	if queued {
		s.lists.done.Store(next)
	}
	return nil
}

// behind reports whether there is anything to list.
func behind(row scanner, queued bool) (bool, error) {
	var pos, last int64
	var more bool
	err := row.Scan(&pos, &last, &more)
	return pos < last || queued && more, err
}

// listSome lists what the next events are about, with the place that it has come to, and
// returns how many events that were.
func (s *Store) listSome(ctx context.Context, queued bool) (int, error) {
	var events []named
	err := s.transact(ctx, func(t *Tx) error {
		pos, err := t.lockListing()
		if err != nil {
			return err
		}
		ids := map[string]bool{}
		if queued && s.dialect.listings.queued != "" { // first: they may get their positions meanwhile
			rows, err := t.q.query(t.ctx, s.dialect.listings.queued, listQueued)
			if err := collectNamed(ids, rows, err); err != nil {
				return err
			}
		}
		rows, err := t.q.query(t.ctx, selectNamed, afterPlace(pos, listBatch)...)
		if events, err = collect(rows, err, scanNamed); err != nil {
			return err
		}
		for _, n := range events {
			ids[n.delegation], ids[n.root] = true, true
		}
		if err := t.project(ids); err != nil || len(events) == 0 {
			return err
		}
		t.s.trace("listing")
		last := events[len(events)-1]
		return t.moveCursor(listingCursor, pos, last.pos, fromMicros(last.at))
	})
	return len(events), err
}

func collectNamed(ids map[string]bool, rows *sql.Rows, err error) error {
	found, err := collect(rows, err, scanNamed)
	for _, n := range found {
		ids[n.delegation], ids[n.root] = true, true
	}
	return err
}

// lockListing keeps others from writing the listing until this transaction ends, and returns
// how far it has come.
func (t *Tx) lockListing() (int64, error) {
	var pos, at int64
	err := t.q.row(t.till, selectCursor+t.s.dialect.lock, listingCursor).Scan(&pos, &at)
	if errors.Is(err, orchestrator.ErrNotFound) {
		_, err = t.q.exec(t.ctx, beginCursor, listingCursor)
		if err == nil {
			err = t.q.row(t.till, selectCursor+t.s.dialect.lock, listingCursor).Scan(&pos, &at)
		}
	}
	return pos, err
}

// project brings the rows of some delegations to what these are now.
func (t *Tx) project(ids map[string]bool) error {
	delete(ids, "")
	for some := range slices.Chunk(slices.Sorted(maps.Keys(ids)), manyAtOnce) {
		args, in := anys(some), marks(len(some))
		if _, err := t.q.exec(t.ctx, updateListing+in+changedListing, args...); err != nil {
			return err
		}
		for _, text := range t.s.dialect.listings.inserts {
			if _, err := t.q.exec(t.ctx, strings.Replace(text, "%s", in, 1), args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// listUnnamed lists what this transaction changes and no event of it names: the follower
// would not find it.
func (t *Tx) listUnnamed() error {
	ids := map[string]bool{}
	for _, l := range t.order {
		if l.relisted && (len(t.events) == 0 || l.row.plain.ID != t.row.RootID) {
			ids[l.row.plain.ID] = true
		}
	}
	for i := range t.events {
		delete(ids, t.events[i].DelegationID)
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := t.lockListing(); err != nil {
		return err
	}
	return t.project(ids)
}

// relists reports whether a list shows anything of a delegation that changed.
func (s *stored) relists(old *stored) bool {
	p, o := &s.plain, &old.plain
	return p.State != o.State || p.ApprovalID != o.ApprovalID || nullMicros(p.EndedAt) != nullMicros(o.EndedAt) ||
		o.ParentID == "" && usdMicros(p.Usage.USD) != usdMicros(o.Usage.USD)
}

// reindexBatch is how many delegations are listed anew in one transaction.
const reindexBatch = 1000

// Reindex makes the listing anew from the delegations, also while servers run, and tells
// after each batch how many it has done.
func (s *Store) Reindex(ctx context.Context, progress func(done int64)) (int64, error) {
	last, err := s.LastPosition(ctx)
	if err != nil {
		return 0, err
	}
	// What happens from here on is found by the follower.
	err = s.transact(ctx, func(t *Tx) error {
		pos, err := t.lockListing()
		if err != nil {
			return err
		}
		for _, text := range t.s.dialect.listings.needless {
			if _, err := t.q.exec(t.ctx, text); err != nil {
				return err
			}
		}
		if pos <= last {
			return nil
		}
		return t.moveCursor(listingCursor, pos, last, t.now)
	})
	var done int64
	for after := ""; err == nil; {
		var ids []string
		if ids, err = s.reindexSome(ctx, after); err != nil || len(ids) == 0 {
			break
		}
		after, done = ids[len(ids)-1], done+int64(len(ids))
		progress(done)
	}
	return done, s.explain(err)
}

// reindexSome lists the next delegations anew, where they are not listed as they are.
func (s *Store) reindexSome(ctx context.Context, after string) (ids []string, err error) {
	err = s.transact(ctx, func(t *Tx) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := t.lockListing(); err != nil {
			return err
		}
		rows, err := t.q.query(t.ctx, "select id from delegations where id > ? order by id limit ?", after, reindexBatch)
		if ids, err = collect(rows, err, Scalar[string]); err != nil || len(ids) == 0 {
			return err
		}
		for _, text := range t.s.dialect.listings.mends {
			if _, err := t.q.exec(t.ctx, strings.Replace(text, "%s", marks(len(ids)), 1), anys(ids)...); err != nil {
				return err
			}
		}
		again := map[string]bool{}
		for _, id := range ids {
			again[id] = true
		}
		return t.project(again)
	})
	return ids, err
}
