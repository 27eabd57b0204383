package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
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
	var data string
	var due, dead int64
	var sent sql.NullInt64
	err := row.Scan(&n.ID, &n.RequestID, &n.Revision, &n.Channel, &n.Address, &n.Kind, &data, &due, &n.Attempts, &n.Error, &dead, &sent)
	if err != nil {
		return n, err
	}
	n.DueAt, n.Dead, n.SentAt = store.FromMicros(due), dead == 1, store.FromNull(sent)
	var d noticeData
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		return n, fmt.Errorf("read the notice %s: %w", n.ID, err)
	}
	n.To = d.To
	return n, nil
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
	var n int
	if err := s.Row(ctx, "select count(*) from (select 1"+due+" limit 1) due", store.Micros(now), channel).Scan(&n); err != nil || n == 0 {
		return nil, s.Advise(err)
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
	rows, err := s.Query(ctx, selectRequest+` where r.id in (select id from requests`+s.IndexedBy("requests_next")+`
		where state = 'pending' and next_at is not null and next_at <= ? order by next_at limit ? + 0) order by r.next_at`, store.Micros(now), limit)
	found, err := store.Collect(rows, err, scanRequest)
	if err != nil {
		return nil, s.Advise(err)
	}
	return found, s.Advise(s.attach(ctx, found))
}
