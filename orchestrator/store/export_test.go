package store

import (
	"context"
	"database/sql"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/record/insight"
)

// Spoil changes the database behind the store's back, as an intruder would.
func (s *Store) Spoil(ctx context.Context, text string, args ...any) error {
	_, err := s.w.exec(ctx, text, args...)
	return err
}

// Explain returns the plan of a query.
func (s *Store) Explain(ctx context.Context, text string, args ...any) (string, error) {
	verb := "explain query plan "
	if s.Dialect() == "PostgreSQL" {
		verb = "explain (costs off) "
	}
	rows, err := s.r.query(ctx, verb+text, args...)
	lines, err := collect(rows, err, func(row scanner) (string, error) {
		var line string
		if s.Dialect() == "PostgreSQL" {
			err := row.Scan(&line)
			return line, err
		}
		var a, b, c sql.NullInt64
		err := row.Scan(&a, &b, &c, &line)
		return line, err
	})
	plan := ""
	for _, line := range lines {
		plan += line + "\n"
	}
	return plan, err
}

// The texts whose plans are checked.
const (
	ThreadsQuery = selectThreads
	SelectAgents = selectAgents
	AllTimeQuery = selectAllTime
	TurnsQuery   = selectTurnsOfBreakers
	StuckQuery   = selectStuck
	LiveQuery    = selectLive
	TodayQuery   = selectToday
	LandedQuery  = selectLanded
	DecidedQuery = selectDecided
	WrongQuery   = selectWrong
	CountWrong   = countWrong
	RefusedQuery = selectRefused
	CountRefused = countRefused
)

// UnclaimedQuery is the query of the look for what nobody took up.
func (s *Store) UnclaimedQuery() string { return selectUnclaimed(s.dialect) }

// What counts an agent's spawned children, and the sweep of what is done once.
const (
	SpawnedByQuery = selectSpawnedBy
	PurgeDedup     = purgeDedup
)

// ClaimableQuery is the query of a poll.
func (s *Store) ClaimableQuery() string { return s.dialect.claimable }

// ListQuery makes the query of a page.
func (s *Store) ListQuery(f orchestrator.Filter, limit int) (string, []any) {
	text, args := listQuery(f, limit)
	return s.dialect.whole(text), args
}

// LiveTasksQuery finds the live tasks of a state.
var LiveTasksQuery = liveQuery

// InsightQuery sums days; OpenQuery lists live children.
var (
	InsightQuery = func(by insight.Dimension) string {
		text, _ := insightQuery(by, insight.Filter{})
		return text
	}
	OpenQuery = selectOpen
)

// IndexText is how an index was made.
func (s *Store) IndexText(ctx context.Context, name string) (string, error) {
	query := "select sql from sqlite_master where type = 'index' and name = ?"
	if s.Dialect() == "PostgreSQL" {
		query = "select indexdef from pg_indexes where schemaname = current_schema() and indexname = ?"
	}
	var text string
	err := s.r.row(ctx, query, name).Scan(&text)
	return text, err
}

// HistoryQuery is the query of a page of a list.
func (s *Store) HistoryQuery(ctx context.Context, q history.Query, after string) (string, []any, error) {
	switch q.List {
	case history.Delegations:
		a, err := s.askDelegations(ctx, orchestrator.Filter{Line: q})
		if err != nil {
			return "", nil, err
		}
		if len(a.words) > 0 {
			text, args := s.dialect.delegationsWith(a, 51)
			return text, args, nil
		}
		return s.walkDelegations(ctx, orchestrator.Filter{After: after}, a, 51)
	case history.Events:
		return s.eventIDs(ctx, q, 51)
	}
	a, err := s.askRequests(ctx, q)
	if err != nil {
		return "", nil, err
	}
	text, args := s.dialect.requestsWith(a, 51)
	if len(a.words) == 0 {
		text, args, err = s.requestIDs(ctx, a, after, 51)
	}
	return selectShown(text, "r.id"), args, err
}

// DeliveriesQuery is the list of deliveries.
var DeliveriesQuery = deliveriesQuery

// Shapes is how many statements of whole steps are prepared, and the most there may be.
func (s *Store) Shapes() (n, most int) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return len(s.w.shapes), maxShapes
}

// Order gives places once to what has none, as the node that orders events does.
func (s *Store) Order(ctx context.Context) (int64, error) { return s.orderSome(ctx) }

// Searched is what is searched of texts.
func Searched(texts ...string) string { return searched(texts) }
