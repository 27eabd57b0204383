package sqlstore_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// TestPlans: SQLite reads what is due along its partial indexes. PostgreSQL reads tables
// without rows, which these are, at once.
func TestPlans(t *testing.T) {
	s, err := sqlstore.Open(t.Context(), storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "g.db")), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if _, err := s.Exec(t.Context(), "analyze"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		name, text string
		args       []any
		want       string
	}{
		{"lines of a digest", sqlstore.SelectLines, []any{"dig_1"}, "cards_digest"},
		{"given up notices", sqlstore.DeadNotices, nil, "notices_dead"},
		{"due digests", sqlstore.DigestsDue, []any{1, "tg"}, "digests_due"},
		{"due reports", sqlstore.ReportsDue, []any{1, "tg"}, "reports_due"},
		{"what a task has alive", sqlstore.LiveWork, []any{"tsk_1"}, "delegations_task"},
		{"due edits", sqlstore.CardsDue, []any{1, "tg"}, "cards_due"},
		{"overdue", s.OverdueQuery(), []any{1, 100}, "requests_overdue"},
	} {
		rows, err := s.Query(t.Context(), "explain query plan "+q.text, q.args...)
		plan, err := store.Collect(rows, err, func(row store.Scanner) (string, error) {
			var a, b, c int64
			var line string
			return line, row.Scan(&a, &b, &c, &line)
		})
		if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, q.want) {
			t.Errorf("%s reads more than it has to; want %q (%v):\n%s", q.name, q.want, err, text)
		}
	}
}
