package store

import (
	"context"
	"fmt"

	"gatehouse/approval"
)

const selectAnswers = "select n, thread, act, user_id, user_name, channel, text, at from answers where request_id = ? order by n"

func scanAnswer(row scanner) (approval.Answer, error) {
	var a approval.Answer
	var at int64
	err := row.Scan(&a.N, &a.Thread, &a.Act, &a.UserID, &a.User, &a.Channel, &a.Text, &at)
	a.At = fromMicros(at)
	return a, err
}

// Answers returns what was said and done under a request's line comments, oldest first.
func (s *Store) Answers(ctx context.Context, requestID string) ([]approval.Answer, error) {
	rows, err := s.r.query(ctx, selectAnswers, requestID)
	found, err := collect(rows, err, scanAnswer)
	return found, s.explain(err)
}

// Answers is the same within the transaction.
func (t *Tx) Answers(_ context.Context, requestID string) ([]approval.Answer, error) {
	rows, err := t.q.query(t.ctx, selectAnswers, requestID)
	found, err := collect(rows, err, scanAnswer)
	if err != nil {
		return nil, fmt.Errorf("read the answers on %s: %w", requestID, err)
	}
	return found, nil
}

// InsertAnswer adds an answer under its number.
func (t *Tx) InsertAnswer(_ context.Context, requestID string, a approval.Answer) error {
	_, err := t.q.exec(t.ctx, "insert into answers (request_id, n, thread, act, user_id, user_name, channel, text, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		requestID, a.N, a.Thread, string(a.Act), a.UserID, a.User, a.Channel, clean(a.Text), micros(a.At))
	if err != nil {
		return fmt.Errorf("insert answer %d on %s: %w", a.N, requestID, err)
	}
	return nil
}
