package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/store"
)

const selectRequest = `select r.id, r.task_id, r.delegation_id, r.state, r.version, r.agent, r.title, r.repository, r.requester_id, r.requester,
	r.via, r.chain, r.rule, r.landed, r.revert_of, r.reverted_by, r.expires_at, r.created_at, r.decided_at,
	r.mode, r.lineage, r.next_at, r.reminded, r.escalated, r.kind, r.question, ` + revisionColumns + `
	from requests r join revisions v on v.request_id = r.id and v.n = r.revision`

const insertRequest = `insert into requests (id, task_id, delegation_id, state, version, agent, title, repository, requester_id, requester,
	via, chain, rule, landed, revert_of, reverted_by, expires_at, created_at, decided_at, revision, mode, lineage, next_at, reminded, escalated, kind, question, facets, shown)
	values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateRequest = `update requests set state = ?, version = ?, title = ?, rule = ?, landed = ?, reverted_by = ?, expires_at = ?, decided_at = ?, revision = ?,
	mode = ?, lineage = ?, next_at = ?, reminded = ?, escalated = ?
	where id = ? and version = ?`

func scanRequest(row store.Scanner) (approval.Request, error) {
	var r approval.Request
	var via, names, asked string
	err := row.Scan(append([]any{&r.ID, &r.TaskID, &r.DelegationID, &r.State, &r.Version, &r.Agent, &r.Title, &r.Repository, &r.RequesterID, &r.Requester,
		&via, &names, store.JSON(&r.Rule), &r.Landed, &r.RevertOf, &r.RevertedBy, store.MaybeTime(&r.ExpiresAt), store.Time(&r.CreatedAt), store.MaybeTime(&r.DecidedAt),
		&r.Mode, store.MaybeJSON(&r.Lineage), store.MaybeTime(&r.NextAt), &r.Reminded, &r.Escalated, &r.Kind, &asked}, columnsOf(&r.Revision)...)...)
	if err != nil {
		return r, err
	}
	r.Via, r.Chain = origin.Parse(via), chain.ParseNames(names)
	if asked == "" {
		return r, nil
	}
	switch r.Kind {
	case approval.Handover:
		err = json.Unmarshal([]byte(asked), &r.Handover)
	case approval.Action:
		err = json.Unmarshal([]byte(asked), &r.Action)
	case approval.Question:
		err = json.Unmarshal([]byte(asked), &r.Question)
	}
	return r, err
}

// askedOf is what r asks as its column has it; "" for a patch.
func askedOf(r *approval.Request) (string, error) {
	switch {
	case r.Handover != nil:
		return store.Encode(r.Handover)
	case r.Action != nil:
		return store.Encode(r.Action)
	case r.Question != nil:
		return store.Encode(r.Question)
	}
	return "", nil
}

// Request returns a request with its current revision, all decisions and its cards.
func (s *Store) Request(ctx context.Context, id string) (approval.Request, error) {
	r, err := scanRequest(s.Row(ctx, selectRequest+" where r.id = ?", id))
	if err != nil {
		return approval.Request{}, s.Advise(err)
	}
	all := []approval.Request{r}
	err = s.attach(ctx, all)
	return all[0], s.Advise(err)
}

// requestClauses are the conditions of a filter without its place.
func requestClauses(f approval.Filter) (store.Clauses, error) {
	var c store.Clauses
	for _, one := range []struct{ column, value string }{
		{"r.task_id", f.TaskID}, {"r.delegation_id", f.DelegationID}, {"r.repository", f.Repository}, {"r.agent", f.Agent},
	} {
		if one.value != "" {
			c.Add(one.column+" = ?", one.value)
		}
	}
	if f.Rule != "" { // the name is what a stored rule begins with, in both databases
		head, err := store.Encode(policy.Rule{Name: f.Rule})
		if err != nil {
			return c, fmt.Errorf("write the name of a rule: %w", err)
		}
		head, _, _ = strings.Cut(head, `,"need":`)
		c.Add("substr(r.rule, 1, ?) = ?", utf8.RuneCountInString(head)+1, head+",")
	}
	if len(f.States) > 0 {
		states := make([]any, len(f.States))
		for i, state := range f.States {
			states[i] = string(state)
		}
		c.Add("r.state in "+store.Marks(len(states)), states...)
	}
	return c, nil
}

// Requests returns requests, newest first unless the oldest are asked for, as Request does.
func (s *Store) Requests(ctx context.Context, f approval.Filter) (approval.Page, error) {
	limit := store.PageSize(f.Limit)
	c, err := requestClauses(f)
	if err != nil {
		return approval.Page{}, err
	}
	order, after := " order by r.id desc limit ?", "r.id < ?"
	if f.Oldest {
		order, after = " order by r.id limit ?", "r.id > ?"
	}
	if f.After != "" {
		c.Add(after, f.After)
	}
	items, err := store.ReadAll(ctx, s.Store, scanRequest, selectRequest+c.Where()+order, c.Args(limit+1)...)
	if err != nil {
		return approval.Page{}, err
	}
	page := approval.Page{Items: items}
	if len(items) > limit {
		page.Items = items[:limit]
		page.Next = items[limit-1].ID
	}
	return page, s.Advise(s.attach(ctx, page.Items))
}

// CountRequests counts requests, up to most.
func (s *Store) CountRequests(ctx context.Context, f approval.Filter, most int) (int, error) {
	c, err := requestClauses(f)
	if err != nil {
		return 0, err
	}
	return store.ReadOne(ctx, s.Store, store.Scalar[int], "select count(*) from (select 1 from requests r"+c.Where()+" limit ?) as counted", c.Args(most)...)
}

// attached reads requests with their decisions and cards.
func (s *Store) attached(ctx context.Context, text string, args ...any) ([]approval.Request, error) {
	found, err := store.ReadAll(ctx, s.Store, scanRequest, text, args...)
	if err != nil {
		return nil, err
	}
	return found, s.Advise(s.attach(ctx, found))
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
	rows, err := s.Query(ctx, selectDecisions+" where request_id in "+store.Marks(len(args))+" order by at, id", args...)
	decisions, err := store.Collect(rows, err, scanDecision)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		r := byID[d.requestID]
		r.Decisions = append(r.Decisions, d.Decision)
	}
	rows, err = s.Query(ctx, selectCards+" where request_id in "+store.Marks(len(args))+" order by channel, address", args...)
	cards, err := store.Collect(rows, err, scanCard)
	for _, c := range cards {
		r := byID[c.RequestID]
		r.Cards = append(r.Cards, c)
	}
	if err != nil {
		return err
	}
	return s.attachGrants(ctx, byID)
}

// attachGrants reads what the yeses allow that are for the rest of a task.
func (s *Store) attachGrants(ctx context.Context, requests map[string]*approval.Request) error {
	tasks := map[string]any{}
	for _, r := range requests {
		if r.ForTask() {
			tasks[r.TaskID] = r.TaskID
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	rows, err := s.Query(ctx, selectGrants+" where task_id in "+store.Marks(len(tasks))+" order by id", slices.Collect(maps.Values(tasks))...)
	grants, err := store.Collect(rows, err, scanGrant)
	for _, g := range grants {
		if r := requests[g.RequestID]; r != nil {
			r.Grant = &g
		}
	}
	return err
}

// PendingOf returns the ids of the pending requests of a task, oldest first.
func (s *Store) PendingOf(ctx context.Context, taskID string) ([]string, error) {
	return store.ReadAll(ctx, s.Store, store.Scalar[string], "select id from requests where task_id = ? and state = 'pending' order by id", taskID)
}

// selectOverdue reads one partial index and stops at the limit: questions whose deadline
// has not come cost nothing. SQLite would read all that are pending, so it is told.
func (s *Store) selectOverdue() string {
	return selectRequest + ` where r.id in (select id from requests` + s.IndexedBy("requests_overdue") + `
		where state = 'pending' and expires_at is not null and expires_at <= ? order by expires_at limit ? + 0) order by r.expires_at`
}

// Overdue returns pending requests whose deadline is not after now, longest overdue first.
func (s *Store) Overdue(ctx context.Context, now time.Time, limit int) ([]approval.Request, error) {
	return s.attached(ctx, s.selectOverdue(), store.Micros(now), limit)
}

// Request reads the request with its current revision and decisions; ErrNotFound for
// one of another task.
func (t *Tx) Request(_ context.Context, id string) (*approval.Request, error) {
	if known := t.requests[id]; known != nil {
		return known, nil
	}
	r, err := scanRequest(t.Row(selectRequest+" where r.id = ? and r.task_id = ?", id, t.Task().ID))
	if err != nil {
		return nil, err
	}
	if r.Decisions, err = decisionsOf(t.Tx, id); err != nil {
		return nil, err
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
	rule, err = store.Encode(r.Rule)
	if err == nil {
		lineage, err = store.Encode(store.List(r.Lineage))
	}
	if err != nil {
		return "", "", fmt.Errorf("write the rule and lineage of %s: %w", r.ID, err)
	}
	return rule, lineage, nil
}

// InsertRequest adds a request with its first revision. Its task is the locked one.
func (t *Tx) InsertRequest(_ context.Context, r *approval.Request) error {
	r.TaskID = t.Task().ID
	if r.CreatedAt.IsZero() {
		r.CreatedAt = t.Now()
	}
	if r.Mode == "" {
		r.Mode = "any"
	}
	if r.Kind == "" {
		r.Kind = approval.Patch
	}
	r.Version, r.Title, r.Revision.N = max(r.Version, 1), store.Clean(r.Title), max(r.Revision.N, 1)
	rule, lineage, err := requestColumns(r)
	if err != nil {
		return err
	}
	asked, err := askedOf(r)
	if err != nil {
		return fmt.Errorf("write what %s asks: %w", r.ID, err)
	}
	listed := listedNew(r, t.Task().Text)
	facets, shown, err := listed.Columns()
	if err != nil {
		return fmt.Errorf("list request %s: %w", r.ID, err)
	}
	_, err = t.Exec(insertRequest, r.ID, r.TaskID, r.DelegationID, string(r.State), r.Version, r.Agent, r.Title, r.Repository, r.RequesterID, r.Requester,
		r.Via.String(), r.Chain.String(), rule, r.Landed, r.RevertOf, r.RevertedBy, store.NullMicros(r.ExpiresAt), store.Micros(r.CreatedAt), store.NullMicros(r.DecidedAt), r.Revision.N,
		r.Mode, lineage, store.NullMicros(r.NextAt), r.Reminded, r.Escalated, string(r.Kind), asked, facets, shown)
	if err != nil {
		return fmt.Errorf("insert request %s: %w", r.ID, err)
	}
	t.keepRequest(r)
	t.Wrote()
	if err := t.saveRevision(r); err != nil {
		return err
	}
	if err := t.ListNew(listed); err != nil {
		return fmt.Errorf("list request %s: %w", r.ID, err)
	}
	return nil
}

// SaveRequest writes the request's own fields and its current revision's, raises
// Version and makes its cards due. ErrLost when r is not as the row was last read.
func (t *Tx) SaveRequest(_ context.Context, r *approval.Request) error {
	rule, lineage, err := requestColumns(r)
	if err != nil {
		return err
	}
	n, err := store.Changed(t.Exec(updateRequest, string(r.State), r.Version+1, store.Clean(r.Title), rule, r.Landed, r.RevertedBy,
		store.NullMicros(r.ExpiresAt), store.NullMicros(r.DecidedAt), r.Revision.N, r.Mode, lineage, store.NullMicros(r.NextAt), r.Reminded, r.Escalated, r.ID, r.Version))
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

// NewestRequest reads the newest request about the work of a delegation of the task, or about
// handing it on, nil when it has none.
func (t *Tx) NewestRequest(ctx context.Context, delegationID string) (*approval.Request, error) {
	id, err := store.Scalar[string](t.Row("select id from requests where delegation_id = ? and task_id = ? and kind in ('patch', 'handover') order by id desc limit 1", delegationID, t.Task().ID))
	if errors.Is(err, orchestrator.ErrNotFound) {
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
