package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

const noticeColumns = "id, request_id, revision, channel, address, kind, data, due_at, attempts, error, dead, sent_at"

// noticeData is what a notice says beside its request.
type noticeData struct {
	To []string `json:"to,omitempty"`
}

func scanNotice(row scanner) (approval.Notice, error) {
	var n approval.Notice
	var data string
	var due, dead int64
	var sent sql.NullInt64
	err := row.Scan(&n.ID, &n.RequestID, &n.Revision, &n.Channel, &n.Address, &n.Kind, &data, &due, &n.Attempts, &n.Error, &dead, &sent)
	if err != nil {
		return n, err
	}
	n.DueAt, n.Dead, n.SentAt = fromMicros(due), dead == 1, fromNull(sent)
	var d noticeData
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		return n, fmt.Errorf("read the notice %s: %w", n.ID, err)
	}
	n.To = d.To
	return n, nil
}

// InsertNotice adds a notice, due at once.
func (t *Tx) InsertNotice(_ context.Context, n approval.Notice) error {
	data, err := encode(noticeData{To: n.To})
	if err == nil {
		_, err = t.q.exec(t.ctx, "insert into notices (id, request_id, revision, channel, address, kind, data, due_at) values (?, ?, ?, ?, ?, ?, ?, ?)",
			n.ID, n.RequestID, n.Revision, n.Channel, n.Address, n.Kind, data, micros(t.now))
	}
	if err != nil {
		return fmt.Errorf("add a notice of %s: %w", n.RequestID, err)
	}
	return nil
}

// DueNotices leases notices of a channel that were not sent, longest due first;
// nobody else gets them before until.
func (s *Store) DueNotices(ctx context.Context, channel string, now, until time.Time, limit int) ([]approval.Notice, error) {
	const due = " from notices where sent_at is null and dead = 0 and due_at <= ? and channel = ?"
	var n int
	if err := s.r.row(ctx, "select count(*) from (select 1"+due+" limit 1) due", micros(now), channel).Scan(&n); err != nil || n == 0 {
		return nil, s.explain(err)
	}
	rows, err := s.w.query(ctx, "update notices set due_at = ?, holder = ? where id in (select id"+due+" order by due_at, id limit ?"+s.dialect.skip+") returning "+noticeColumns,
		micros(until), s.node, micros(now), channel, limit)
	found, err := collect(rows, err, scanNotice)
	return found, s.explain(err)
}

// SaveNotice records that a notice was sent, or when to try again.
func (s *Store) SaveNotice(ctx context.Context, n approval.Notice) error {
	count, err := changed(s.w.exec(ctx, "update notices set holder = '', due_at = ?, attempts = ?, error = ?, dead = ?, sent_at = ? where id = ?",
		micros(n.DueAt), n.Attempts, clean(n.Error), flag(n.Dead), nullMicros(n.SentAt), n.ID))
	if err == nil && count == 0 {
		return fmt.Errorf("notice %s: %w", n.ID, orchestrator.ErrNotFound)
	}
	return s.explain(err)
}

// DueActs returns pending requests whose NextAt is not after now, longest due first.
func (s *Store) DueActs(ctx context.Context, now time.Time, limit int) ([]approval.Request, error) {
	rows, err := s.r.query(ctx, selectRequest+` where r.id in (select id from requests`+s.dialect.useNext+`
		where state = 'pending' and next_at is not null and next_at <= ? order by next_at limit ? + 0) order by r.next_at`, micros(now), limit)
	found, err := collect(rows, err, scanRequest)
	if err != nil {
		return nil, s.explain(err)
	}
	return found, s.explain(s.attach(ctx, found))
}
