package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
)

const selectRequest = `select r.id, r.task_id, r.delegation_id, r.state, r.version, r.agent, r.title, r.repository, r.requester_id, r.requester,
	r.via, r.chain, r.rule, r.landed, r.revert_of, r.reverted_by, r.expires_at, r.created_at, r.decided_at,
	r.mode, r.lineage, r.next_at, r.reminded, r.escalated, r.kind, r.question, ` + revisionColumns + `
	from requests r join revisions v on v.request_id = r.id and v.n = r.revision`

const insertRequest = `insert into requests (id, task_id, delegation_id, state, version, agent, title, repository, requester_id, requester,
	via, chain, rule, landed, revert_of, reverted_by, expires_at, created_at, decided_at, revision, mode, lineage, next_at, reminded, escalated, kind, question)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateRequest = `update requests set state = ?, version = ?, title = ?, rule = ?, landed = ?, reverted_by = ?, expires_at = ?, decided_at = ?, revision = ?,
	mode = ?, lineage = ?, next_at = ?, reminded = ?, escalated = ?
	where id = ? and version = ?`

func scanRequest(row scanner) (approval.Request, error) {
	var r approval.Request
	var via, rule, lineage, question string
	var expires, decided, next sql.NullInt64
	var created int64
	v := revisionRow{into: &r.Revision}
	err := row.Scan(append([]any{&r.ID, &r.TaskID, &r.DelegationID, &r.State, &r.Version, &r.Agent, &r.Title, &r.Repository, &r.RequesterID, &r.Requester,
		&via, &r.Chain, &rule, &r.Landed, &r.RevertOf, &r.RevertedBy, &expires, &created, &decided, &r.Mode, &lineage, &next, &r.Reminded, &r.Escalated, &r.Kind, &question}, v.columns()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return r, orchestrator.ErrNotFound
	}
	if err != nil {
		return r, err
	}
	r.Via = origin.Parse(via)
	r.ExpiresAt, r.CreatedAt, r.DecidedAt, r.NextAt = fromNull(expires), fromMicros(created), fromNull(decided), fromNull(next)
	if err := errors.Join(json.Unmarshal([]byte(rule), &r.Rule), json.Unmarshal(orNull(lineage), &r.Lineage), json.Unmarshal(orNull(question), &r.Question)); err != nil {
		return r, fmt.Errorf("read the rule, lineage and question of %s: %w", r.ID, err)
	}
	return r, v.decode()
}

// Request returns a request with its current revision, all decisions and its cards.
func (s *Store) Request(ctx context.Context, id string) (approval.Request, error) {
	r, err := scanRequest(s.r.row(ctx, selectRequest+" where r.id = ?", id))
	if err != nil {
		return approval.Request{}, s.explain(err)
	}
	all := []approval.Request{r}
	err = s.attach(ctx, all)
	return all[0], s.explain(err)
}

// requestClauses are the conditions of a filter without its place.
func requestClauses(f approval.Filter) (clauses, error) {
	var c clauses
	for _, one := range []struct{ column, value string }{
		{"r.task_id", f.TaskID}, {"r.delegation_id", f.DelegationID}, {"r.repository", f.Repository}, {"r.agent", f.Agent},
	} {
		if one.value != "" {
			c.add(one.column+" = ?", one.value)
		}
	}
	if f.Rule != "" { // the name is what a stored rule begins with, in both databases
		head, err := encode(approval.Rule{Name: f.Rule})
		if err != nil {
			return c, fmt.Errorf("write the name of a rule: %w", err)
		}
		head, _, _ = strings.Cut(head, `,"need":`)
		c.add("substr(r.rule, 1, ?) = ?", utf8.RuneCountInString(head)+1, head+",")
	}
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		c.add("r.state in "+marks(len(states)), states...)
	}
	return c, nil
}

// Requests returns requests, newest first unless the oldest are asked for, as Request does.
func (s *Store) Requests(ctx context.Context, f approval.Filter) (approval.Page, error) {
	limit := pageSize(f.Limit)
	c, err := requestClauses(f)
	if err != nil {
		return approval.Page{}, err
	}
	order, after := " order by r.id desc limit ?", "r.id < ?"
	if f.Oldest {
		order, after = " order by r.id limit ?", "r.id > ?"
	}
	if f.After != "" {
		c.add(after, f.After)
	}
	rows, err := s.r.query(ctx, selectRequest+c.where()+order, append(c.args, limit+1)...)
	items, err := collect(rows, err, scanRequest)
	if err != nil {
		return approval.Page{}, s.explain(err)
	}
	page := approval.Page{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		page.Next = items[limit-1].ID
	}
	return page, s.explain(s.attach(ctx, page.Items))
}

// CountRequests counts requests, up to most.
func (s *Store) CountRequests(ctx context.Context, f approval.Filter, most int) (int, error) {
	c, err := requestClauses(f)
	if err != nil {
		return 0, err
	}
	n := 0
	err = s.r.row(ctx, "select count(*) from (select 1 from requests r"+c.where()+" limit ?) as counted", append(c.args, most)...).Scan(&n)
	return n, s.explain(err)
}

// attach reads the decisions and cards of requests.
func (s *Store) attach(ctx context.Context, requests []approval.Request) error {
	if len(requests) == 0 {
		return nil
	}
	byID := make(map[string]*approval.Request, len(requests))
	args := make([]any, len(requests))
	for i := range requests {
		byID[requests[i].ID], args[i] = &requests[i], requests[i].ID
	}
	rows, err := s.r.query(ctx, selectDecisions+" where request_id in "+marks(len(args))+" order by at, id", args...)
	decisions, err := collect(rows, err, scanDecision)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		r := byID[d.requestID]
		r.Decisions = append(r.Decisions, d.Decision)
	}
	rows, err = s.r.query(ctx, selectCards+" where request_id in "+marks(len(args))+" order by channel, address", args...)
	cards, err := collect(rows, err, scanCard)
	for _, c := range cards {
		r := byID[c.RequestID]
		r.Cards = append(r.Cards, c)
	}
	return err
}

// PendingOf returns the ids of the pending requests of a task, oldest first.
func (s *Store) PendingOf(ctx context.Context, taskID string) ([]string, error) {
	rows, err := s.r.query(ctx, "select id from requests where task_id = ? and state = 'pending' order by id", taskID)
	found, err := collect(rows, err, func(row scanner) (string, error) {
		var id string
		err := row.Scan(&id)
		return id, err
	})
	return found, s.explain(err)
}

// selectOverdue reads one partial index and stops at the limit: questions whose deadline
// has not come cost nothing. SQLite would read all that are pending, so it is told.
func selectOverdue(d *dialect) string {
	return selectRequest + ` where r.id in (select id from requests` + d.useOverdue + `
		where state = 'pending' and expires_at is not null and expires_at <= ? order by expires_at limit ? + 0) order by r.expires_at`
}

// Overdue returns pending requests whose deadline is not after now, longest overdue first.
func (s *Store) Overdue(ctx context.Context, now time.Time, limit int) ([]approval.Request, error) {
	rows, err := s.r.query(ctx, s.dialect.overdue, micros(now), limit)
	found, err := collect(rows, err, scanRequest)
	if err != nil {
		return nil, s.explain(err)
	}
	return found, s.explain(s.attach(ctx, found))
}

// Request reads the request with its current revision and decisions; ErrNotFound for
// one of another task.
func (t *Tx) Request(_ context.Context, id string) (*approval.Request, error) {
	if known := t.requests[id]; known != nil {
		return known, nil
	}
	r, err := scanRequest(t.q.row(t.ctx, selectRequest+" where r.id = ? and r.task_id = ?", id, t.row.ID))
	if err != nil {
		return nil, err
	}
	rows, err := t.q.query(t.ctx, selectDecisions+" where request_id = ? order by at, id", id)
	decisions, err := collect(rows, err, scanDecision)
	if err != nil {
		return nil, err
	}
	for _, d := range decisions {
		r.Decisions = append(r.Decisions, d.Decision)
	}
	t.keepRequest(&r)
	return &r, nil
}

func (t *Tx) keepRequest(r *approval.Request) {
	if t.requests == nil {
		t.requests = map[string]*approval.Request{}
	}
	t.requests[r.ID] = r
}

// requestColumns are the parts of a request that are kept as JSON.
func requestColumns(r *approval.Request) (rule, lineage string, err error) {
	rule, err = encode(r.Rule)
	if err == nil {
		lineage, err = encode(list(r.Lineage))
	}
	if err != nil {
		return "", "", fmt.Errorf("write the rule and lineage of %s: %w", r.ID, err)
	}
	return rule, lineage, nil
}

// InsertRequest adds a request with its first revision. Its task is the locked one.
func (t *Tx) InsertRequest(_ context.Context, r *approval.Request) error {
	r.TaskID = t.row.ID
	if r.CreatedAt.IsZero() {
		r.CreatedAt = t.now
	}
	if r.Mode == "" {
		r.Mode = "any"
	}
	if r.Kind == "" {
		r.Kind = approval.Patch
	}
	r.Version, r.Title, r.Revision.N = max(r.Version, 1), clean(r.Title), max(r.Revision.N, 1)
	rule, lineage, err := requestColumns(r)
	if err != nil {
		return err
	}
	question := ""
	if r.Question != nil {
		if question, err = encode(r.Question); err != nil {
			return fmt.Errorf("write the question of %s: %w", r.ID, err)
		}
	}
	_, err = t.q.exec(t.ctx, insertRequest, r.ID, r.TaskID, r.DelegationID, string(r.State), r.Version, r.Agent, r.Title, r.Repository, r.RequesterID, r.Requester,
		r.Via.String(), r.Chain, rule, r.Landed, r.RevertOf, r.RevertedBy, nullMicros(r.ExpiresAt), micros(r.CreatedAt), nullMicros(r.DecidedAt), r.Revision.N,
		r.Mode, lineage, nullMicros(r.NextAt), r.Reminded, r.Escalated, string(r.Kind), question)
	if err != nil {
		return fmt.Errorf("insert request %s: %w", r.ID, err)
	}
	t.keepRequest(r)
	t.touch(r.ID)
	return t.saveRevision(r)
}

// SaveRequest writes the request's own fields and its current revision's, raises
// Version and makes its cards due. ErrLost when r is not as the row was last read.
func (t *Tx) SaveRequest(_ context.Context, r *approval.Request) error {
	rule, lineage, err := requestColumns(r)
	if err != nil {
		return err
	}
	n, err := changed(t.q.exec(t.ctx, updateRequest, string(r.State), r.Version+1, clean(r.Title), rule, r.Landed, r.RevertedBy,
		nullMicros(r.ExpiresAt), nullMicros(r.DecidedAt), r.Revision.N, r.Mode, lineage, nullMicros(r.NextAt), r.Reminded, r.Escalated, r.ID, r.Version))
	if err != nil {
		return fmt.Errorf("save request %s: %w", r.ID, err)
	}
	if n == 0 {
		delete(t.requests, r.ID)
		return fmt.Errorf("save request %s: %w", r.ID, orchestrator.ErrLost)
	}
	r.Version++
	t.keepRequest(r)
	t.touch(r.ID)
	if err := t.saveRevision(r); err != nil {
		return err
	}
	return t.callCards(r.ID)
}

// mayClose are the states of a request that the end of its delegation ends. The last
// three have ended, but a further revision could have followed.
var mayClose = map[approval.State]bool{approval.Pending: true, approval.Approved: true, approval.ChangesRequested: true, approval.Superseded: true, approval.Stale: true}

// CloseRequest moves the newest request of a delegation to an ended state and makes
// its cards due; of one that landed it remembers which contents people approved where. No request, or one that has ended, is no error.
func (t *Tx) CloseRequest(ctx context.Context, delegationID string, end orchestrator.RequestEnd, commit string) error {
	r, err := t.newestRequest(ctx, delegationID)
	if err != nil || r == nil || !mayClose[r.State] {
		return err
	}
	if r.IsHandover() && r.State != approval.Pending { // the yes was to the hand-over, whatever came of the work
		return nil
	}
	if r.Revision.State == r.State || r.Revision.State == approval.Pending {
		r.Revision.State = approval.State(end)
	}
	r.State, r.NextAt = approval.State(end), nil
	if commit != "" {
		r.Landed = commit
	}
	if r.State == approval.Landed {
		if err := t.keepApproved(r.Repository, r.Vouched()); err != nil {
			return err
		}
	}
	return t.SaveRequest(ctx, r)
}

// Overtaken puts onto the newest request of a delegation why a yes to it lands nothing.
// CloseRequest, which comes next, writes it.
func (t *Tx) Overtaken(ctx context.Context, delegationID string, o patch.Overtaken) error {
	r, err := t.newestRequest(ctx, delegationID)
	if err != nil || r == nil {
		return err
	}
	r.Revision.Overtaken = &o
	return nil
}

// ShowLanding makes the cards of the newest request of a delegation due, where it is
// approved: what they say of its landing has changed.
func (t *Tx) ShowLanding(ctx context.Context, delegationID string) error {
	r, err := t.newestRequest(ctx, delegationID)
	if err != nil || r == nil || r.State != approval.Approved {
		return err
	}
	return t.SaveRequest(ctx, r)
}

// newestRequest reads the newest request of a delegation, nil when it has none.
func (t *Tx) newestRequest(ctx context.Context, delegationID string) (*approval.Request, error) {
	var id string
	err := t.q.row(t.ctx, "select id from requests where delegation_id = ? and task_id = ? order by id desc limit 1", delegationID, t.row.ID).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the request of %s: %w", delegationID, err)
	}
	r, err := t.Request(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read request %s: %w", id, err)
	}
	return r, nil
}
