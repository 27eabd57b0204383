package sqlstore

import (
	"context"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/store"
)

const noticeColumns = "id, request_id, revision, channel, address, kind, data, due_at, attempts, error, dead, sent_at"

// noticeData is what a notice says beside its request.
type noticeData struct {
	To []string `json:"to,omitempty"`
}

func scanNotice(row store.Scanner) (approval.Notice, error) {
	var n approval.Notice
	var data noticeData
	err := row.Scan(&n.ID, &n.RequestID, &n.Revision, &n.Channel, &n.Address, &n.Kind, store.JSON(&data), store.Time(&n.DueAt), &n.Attempts, &n.Error,
		&n.Dead, store.MaybeTime(&n.SentAt))
	n.To = data.To
	return n, err
}

// InsertNotice adds a notice, due at once.
func (t *Tx) InsertNotice(_ context.Context, n approval.Notice) error {
	data, err := store.Encode(noticeData{To: n.To})
	if err == nil {
		_, err = t.Exec("insert into notices (id, request_id, revision, channel, address, kind, data, due_at) values (?, ?, ?, ?, ?, ?, ?, ?)",
			n.ID, n.RequestID, n.Revision, n.Channel, n.Address, n.Kind, data, store.Micros(t.Now()))
	}
	if err != nil {
		return fmt.Errorf("add a notice of %s: %w", n.RequestID, err)
	}
	return nil
}

// DueNotices leases notices of a channel that were not sent, longest due first;
// nobody else gets them before until.
func (s *Store) DueNotices(ctx context.Context, channel origin.Channel, now, until time.Time, limit int) ([]approval.Notice, error) {
	const due = " from notices where sent_at is null and dead = 0 and due_at <= ? and channel = ?"
	if due, err := s.anyDue(ctx, due, store.Micros(now), channel); err != nil || !due {
		return nil, err
	}
	rows, err := s.Change(ctx, "update notices set due_at = ?, holder = ? where id in (select id"+due+" order by due_at, id limit ?"+s.SkipLocked()+") returning "+noticeColumns,
		store.Micros(until), s.Node(), store.Micros(now), channel, limit)
	found, err := store.Collect(rows, err, scanNotice)
	return found, s.Advise(err)
}

// SaveNotice records that a notice was sent, or when to try again.
func (s *Store) SaveNotice(ctx context.Context, n approval.Notice) error {
	count, err := store.Changed(s.Exec(ctx, "update notices set holder = '', due_at = ?, attempts = ?, error = ?, dead = ?, sent_at = ? where id = ?",
		store.Micros(n.DueAt), n.Attempts, store.Clean(n.Error), store.Flag(n.Dead), store.NullMicros(n.SentAt), n.ID))
	if err == nil && count == 0 {
		return fmt.Errorf("notice %s: %w", n.ID, orchestrator.ErrNotFound)
	}
	return s.Advise(err)
}

// DueActs returns pending requests whose NextAt is not after now, longest due first.
func (s *Store) DueActs(ctx context.Context, now time.Time, limit int) ([]approval.Request, error) {
	return s.attached(ctx, selectRequest+` where r.id in (select id from requests`+s.IndexedBy("requests_next")+`
		where state = 'pending' and next_at is not null and next_at <= ? order by next_at limit ? + 0) order by r.next_at`, store.Micros(now), limit)
}
