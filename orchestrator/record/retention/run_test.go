package retention_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// Texts that figures still read stay until they are counted; then all that is old goes, in batches, and nothing else.
func TestARunRemovesWhatIsOldAndCounted(t *testing.T) {
	url := storetest.Ready(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"))
	storetest.Seed(t, url, 4000, time.Now())
	log := slog.New(slog.DiscardHandler)
	s, err := sqlstore.Open(t.Context(), url, store.Options{Node: "one", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
	var uncounted int64 = 1001
	rules := retention.Rules{}
	run := retention.Run[store.After]{Store: s, Log: log, Rules: func() retention.Rules { return rules },
		Uncounted: func(context.Context) (int64, error) { return uncounted, nil }}
	all := func(what string, wantMore bool, wantTexts int) {
		t.Helper()
		more, err := run.Once(t.Context(), time.Now())
		for end := time.Now().Add(time.Minute); more && !wantMore && err == nil && time.Now().Before(end); {
			more, err = run.Once(t.Context(), time.Now()) // a run has only so much time
		}
		if err != nil || more != wantMore {
			t.Errorf("%s: more is %t, want %t: %v", what, more, wantMore, err)
		}
		if got := oldTexts(t, url, rules.Data); got != wantTexts {
			t.Errorf("%s: %d texts are older than the rules allow, want %d", what, got, wantTexts)
		}
	}
	all("no rules", false, 0)
	rules.Data = 90 * 24 * time.Hour
	old := oldTexts(t, url, rules.Data)
	if old < 100 {
		t.Fatalf("only %d texts are old", old)
	}
	all("figures are behind", true, old)
	uncounted = 1000
	all("figures have come", false, 0)
	if young := oldTexts(t, url, time.Hour); young == 0 {
		t.Error("the texts of younger tasks went, too")
	}
}

// oldTexts counts the tasks that ended longer ago than an age and whose text is there; none where the age is 0.
func oldTexts(t *testing.T, url string, age time.Duration) (n int) {
	t.Helper()
	if age == 0 {
		return 0
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	err = db.QueryRowContext(t.Context(), "select count(*) from tasks where ended_at < ? and text <> ?", time.Now().Add(-age).UnixMicro(), retention.GoneText).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
