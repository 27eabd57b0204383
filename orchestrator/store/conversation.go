package store

import (
	"context"

	"gatehouse/orchestrator/agent"
)

const (
	selectTurnPage = `select n, message, model, stop, input_tokens, output_tokens, usd_micros, children, at, took from turns
	where delegation_id = ? and generation = ? and n > ? order by n limit ?`
	selectLastTurn = "select coalesce(max(n), 0) from turns where delegation_id = ? and generation = ?"
)

// TurnPage returns turns with n > after of one generation, oldest first.
func (s *Store) TurnPage(ctx context.Context, delegationID string, generation, after, limit int) ([]agent.Turn, error) {
	rows, err := s.r.query(ctx, selectTurnPage, delegationID, generation, after, limit)
	found, err := collect(rows, err, scanTurn)
	return found, s.explain(err)
}

// LastTurn is the number of a generation's newest turn, 0 when it has none.
func (s *Store) LastTurn(ctx context.Context, delegationID string, generation int) (int, error) {
	var n int
	err := s.r.row(ctx, selectLastTurn, delegationID, generation).Scan(&n)
	return n, s.explain(err)
}
