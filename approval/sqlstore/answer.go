package sqlstore

import (
	"context"
	"fmt"

	"gatehouse/approval"
	"gatehouse/orchestrator/store"
)

const selectAnswers = "select n, thread, act, user_id, user_name, channel, text, at from answers where request_id = ? order by n"

func scanAnswer(row store.Scanner) (approval.Answer, error) {
	var a approval.Answer
	err := row.Scan(&a.N, &a.Thread, &a.Act, &a.UserID, &a.User, &a.Channel, &a.Text, store.Time(&a.At))
	return a, err
}

// Answers returns what was said and done under a request's line comments, oldest first.
func (s *Store) Answers(ctx context.Context, requestID string) ([]approval.Answer, error) {
	return store.ReadAll(ctx, s.Store, scanAnswer, selectAnswers, requestID)
}

// Answers is the same within the transaction.
func (t *Tx) Answers(_ context.Context, requestID string) ([]approval.Answer, error) {
	rows, err := t.Query(selectAnswers, requestID)
	found, err := store.Collect(rows, err, scanAnswer)
	if err != nil {
		return nil, fmt.Errorf("read the answers on %s: %w", requestID, err)
	}
	return found, nil
}

// InsertAnswer adds an answer under its number.
func (t *Tx) InsertAnswer(_ context.Context, requestID string, a approval.Answer) error {
	_, err := t.Exec("insert into answers (request_id, n, thread, act, user_id, user_name, channel, text, at) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		requestID, a.N, a.Thread, string(a.Act), a.UserID, a.User, a.Channel, store.Clean(a.Text), store.Micros(a.At))
	if err != nil {
		return fmt.Errorf("insert answer %d on %s: %w", a.N, requestID, err)
	}
	return nil
}
