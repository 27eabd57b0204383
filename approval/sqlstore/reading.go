package sqlstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/store"
)

// OpenReading records when a revision was first drawn for a person; a later time changes
// nothing.
func (s *Store) OpenReading(ctx context.Context, userID, requestID string, revision int, at time.Time) error {
	_, err := s.Exec(ctx, "insert into readings (user_id, request_id, revision, opened_at) values (?, ?, ?, ?) on conflict do nothing",
		userID, requestID, revision, store.Micros(at))
	return s.Advise(err)
}

// Reading returns how far a person has read a revision; zero values where they never
// opened it.
func (s *Store) Reading(ctx context.Context, userID, requestID string, revision int) (approval.Reading, error) {
	whole, err := store.ReadAll(ctx, s.Store, store.Scalar[string],
		"select surface from read_whole where user_id = ? and request_id = ? and revision = ? order by at, surface", userID, requestID, revision)
	if err != nil {
		return approval.Reading{}, err
	}
	got := approval.Reading{Whole: whole}
	err = s.Row(ctx, "select opened_at from readings where user_id = ? and request_id = ? and revision = ?", userID, requestID, revision).Scan(store.Time(&got.OpenedAt))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return got, nil
	}
	if err != nil {
		return approval.Reading{}, s.Advise(err)
	}
	rows, err := s.Query(ctx, `select file, 1 as viewed from viewed_files where user_id = ? and request_id = ? and revision = ?
		union all select file, 0 from opened_files where user_id = ? and request_id = ? and revision = ? order by 1`,
		userID, requestID, revision, userID, requestID, revision)
	err = store.Each(rows, err, func(row store.Scanner) error {
		var n, viewed int
		err := row.Scan(&n, &viewed)
		if viewed > 0 {
			got.Viewed = append(got.Viewed, n)
		} else {
			got.Opened = append(got.Opened, n)
		}
		return err
	})
	return got, s.Advise(err)
}

// selectLooks lists what was before people who gave no verdict on the revision: how many
// files on its page, then each place where all of it was.
func selectLooks(n int) string {
	const seen = ` and not exists (select 1 from decisions d where d.request_id = l.request_id and d.revision = l.revision and d.user_id = l.user_id)`
	return `select l.request_id, l.revision, r.revision, u.name, '', (select count(*) from opened_files o where o.user_id = l.user_id and o.request_id = l.request_id and o.revision = l.revision)
		+ (select count(*) from viewed_files v where v.user_id = l.user_id and v.request_id = l.request_id and v.revision = l.revision
			and not exists (select 1 from opened_files o where o.user_id = v.user_id and o.request_id = v.request_id and o.revision = v.revision and o.file = v.file)), l.opened_at
		from readings l join requests r on r.id = l.request_id join users u on u.id = l.user_id where l.request_id in ` + store.Marks(n) + seen + `
		union all select l.request_id, l.revision, r.revision, u.name, l.surface, 0, l.at
		from read_whole l join requests r on r.id = l.request_id join users u on u.id = l.user_id where l.request_id in ` + store.Marks(n) + seen + `
		order by 1, 2, 7, 4, 5`
}

// Looks returns who had something of the requests' revisions before them and gave no verdict
// on that revision, in the order of request, revision and time.
func (s *Store) Looks(ctx context.Context, requestIDs []string) ([]approval.Look, error) {
	if len(requestIDs) == 0 {
		return nil, nil
	}
	ids := store.Args(requestIDs)
	rows, err := s.Query(ctx, selectLooks(len(ids)), slices.Concat(ids, ids)...)
	var looks []approval.Look
	err = store.Each(rows, err, func(row store.Scanner) error {
		var l approval.Look
		var newest, files int
		var at int64
		var surface string
		if err := row.Scan(&l.RequestID, &l.Revision, &newest, &l.User, &surface, &files, &at); err != nil || surface == "" && files == 0 {
			return err // the page was drawn, and none of it was before them
		}
		i := slices.IndexFunc(looks, func(o approval.Look) bool {
			return o.RequestID == l.RequestID && o.Revision == l.Revision && o.User == l.User
		})
		if i < 0 {
			l.Current = l.Revision == newest
			looks, i = append(looks, l), len(looks)
		}
		looks[i].Files += files
		if surface != "" {
			looks[i].Whole = append(looks[i].Whole, surface)
		}
		return nil
	})
	return looks, s.Advise(err)
}

// openedAtOnce is how many files one statement records; each takes four parameters.
const openedAtOnce = 200

// MarkOpened records that files of a revision that the person has opened were before them.
func (s *Store) MarkOpened(ctx context.Context, userID, requestID string, revision int, files []int) error {
	for some := range slices.Chunk(files, openedAtOnce) {
		var args []any
		for _, file := range some {
			args = append(args, userID, requestID, revision, file)
		}
		if _, err := s.Exec(ctx, "insert into opened_files (user_id, request_id, revision, file) values "+store.Tuples(4, len(some))+" on conflict do nothing", args...); err != nil {
			return s.Advise(err)
		}
	}
	return nil
}

// MarkViewed sets or removes a mark on a file of a revision that the person has opened.
func (s *Store) MarkViewed(ctx context.Context, userID, requestID string, revision, file int, viewed bool) error {
	query := "delete from viewed_files where user_id = ? and request_id = ? and revision = ? and file = ?"
	if viewed {
		query = "insert into viewed_files (user_id, request_id, revision, file) values (?, ?, ?, ?) on conflict do nothing"
	}
	_, err := s.Exec(ctx, query, userID, requestID, revision, file)
	return s.Advise(err)
}

// MarkWhole records that a person was given the whole diff of a revision in a place; a later
// time changes nothing.
func (s *Store) MarkWhole(ctx context.Context, userID, requestID string, revision int, surface string, at time.Time) error {
	_, err := s.Exec(ctx, "insert into read_whole (user_id, request_id, revision, surface, at) values (?, ?, ?, ?, ?) on conflict do nothing",
		userID, requestID, revision, surface, store.Micros(at))
	return s.Advise(err)
}

// PurgeReadings removes what is known of revisions that were first opened before that
// time, but not of requests that still wait.
func (s *Store) PurgeReadings(ctx context.Context, before time.Time) (int64, error) {
	const gone = " < ? and request_id not in (select id from requests where state = 'pending')"
	n, err := store.Changed(s.Exec(ctx, "delete from readings where opened_at"+gone, store.Micros(before)))
	if err != nil {
		return n, s.Advise(err)
	}
	whole, err := store.Changed(s.Exec(ctx, "delete from read_whole where at"+gone, store.Micros(before)))
	return n + whole, s.Advise(err)
}
