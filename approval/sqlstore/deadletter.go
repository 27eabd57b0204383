package sqlstore

import (
	"context"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
)

// deadNotices are the notices that were given up and whose question is still open: of
// one that was answered meanwhile nobody wants to hear. The cross join makes SQLite
// begin with these few and not with all requests that wait.
const deadNotices = `select n.* from notices n cross join requests r
	where n.dead = 1 and r.id = n.request_id and r.revision = n.revision and r.state = 'pending'`

// The keys of dead letters.
const (
	deadCardKey   = "'card/' || c.request_id || '/' || c.channel || '/' || c.address"
	deadNoticeKey = "'notice/' || n.id"
	deadDigestKey = "'digest/' || d.id"
	deadReportKey = "'report/' || p.task_id || '/' || p.channel || '/' || p.address"
)

const selectDead = `select letter, kind, channel, address, request_id, task_id, title, state, error, attempts, due_at from (
	select ` + deadCardKey + ` as letter, 'card' as kind, c.channel, c.address, c.request_id, '' as task_id, r.title, r.state, c.error, c.attempts, c.due_at
		from cards c join requests r on r.id = c.request_id where c.dead = 1
	union all select ` + deadNoticeKey + `, 'notice', n.channel, n.address, n.request_id, '', r.title, r.state, n.error, n.attempts, n.due_at
		from (` + deadNotices + `) n join requests r on r.id = n.request_id
	union all select ` + deadDigestKey + `, 'digest', d.channel, d.address, '', '', '', '', d.error, d.attempts, d.due_at
		from digests d where d.dead = 1
	union all select ` + deadReportKey + `, 'report', p.channel, p.address, '', p.task_id, t.text, '', p.error, p.attempts, p.due_at
		from reports p join tasks t on t.id = p.task_id where p.dead = 1) dead`

// DeadLetters returns what was given up, in the order of the keys.
func (s *Store) DeadLetters(ctx context.Context, f approval.DeadFilter) (approval.DeadPage, error) {
	limit := store.PageSize(f.Limit)
	var c store.Clauses
	for _, one := range []struct{ clause, value string }{{"channel = ?", string(f.Channel)}, {"letter = ?", f.Key}, {"letter > ?", f.After}} {
		if one.value != "" {
			c.Add(one.clause, one.value)
		}
	}
	items, err := store.ReadAll(ctx, s.Store, func(row store.Scanner) (l approval.DeadLetter, err error) {
		err = row.Scan(&l.Key, &l.Kind, &l.Channel, &l.Address, &l.RequestID, &l.TaskID, &l.Title, &l.State, &l.Error, &l.Attempts, store.Time(&l.At))
		if l.TaskID != "" {
			l.Title = orchestrator.Title(l.Title)
		}
		return l, err
	}, selectDead+c.Where()+" order by letter limit ?", c.Args(limit+1)...)
	page := approval.DeadPage{Items: items}
	if len(items) > limit {
		page.Items, page.Next = items[:limit], items[limit-1].Key
	}
	return page, err
}

// Revive makes dead letters due again, with an event that names who asked; none is no
// error and no event.
func (s *Store) Revive(ctx context.Context, actor string, f approval.DeadFilter) (int, error) {
	total := int64(0)
	err := s.Store.InTask(ctx, event.System, func(t *store.Tx) error {
		total = 0
		for _, kind := range []struct{ table, alias, key string }{
			{"cards", "c", deadCardKey}, {"notices", "n", deadNoticeKey}, {"digests", "d", deadDigestKey},
			{"reports", "p", deadReportKey},
		} {
			args := []any{store.Micros(t.Now())}
			where := " where dead = 1"
			if f.Channel != "" {
				where, args = where+" and channel = ?", append(args, f.Channel)
			}
			if f.Key != "" {
				where, args = where+" and "+kind.key+" = ?", append(args, f.Key)
			}
			n, err := store.Changed(t.Exec("update "+kind.table+" as "+kind.alias+" set dead = 0, attempts = 0, error = '', due_at = ?"+where, args...))
			if err != nil {
				return err
			}
			total += n
		}
		if total == 0 {
			return nil
		}
		return t.Append(ctx, event.Of("", actor, event.ChannelRetriedData{Channel: f.Channel, Letter: f.Key, Count: total}))
	})
	return int(total), s.Advise(err)
}
