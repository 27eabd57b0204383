package main

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/store/storetest"
)

// What lists read is made anew while the server works, whoever has spoilt it.
func TestListsAreMadeAnewWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		storetest.Seed(t, storetest.Ready(t, database), 5_000, time.Now())
		p := placetest.New(t, database, decideTeam)
		n := p.Start(p.Config, "")
		task := n.Send("coder", "app", "needles")
		p.Asked(task)
		driver, dsn := "postgres", database
		if path, isFile := strings.CutPrefix(database, "sqlite:"); isFile {
			driver, dsn = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
		}
		db, err := sql.Open(driver, dsn)
		p.Must(err)
		defer db.Close()
		for _, text := range []string{"update listing set state = 'running', requester = 'nobody'", "delete from listing where id in (select id from listing order by id limit 300)"} {
			_, err := db.ExecContext(t.Context(), text)
			p.Must(err)
		}
		out, code := p.Cli(n, "--config", p.Config, "reindex")
		if code != 0 || !strings.Contains(out, "are made anew, of ") {
			t.Fatalf("exit %d: %s", code, out)
		}
		var wrong int
		p.Must(db.QueryRowContext(t.Context(), storetest.Unlisted).Scan(&wrong))
		if wrong != 0 {
			t.Errorf("%d rows are not as their delegations are", wrong)
		}
		var page struct{ Items []struct{ ID string } }
		if code, err := n.Call("GET", "/api/v1/delegations?q=needles", p.Asker, nil, &page); err != nil || code != 200 || len(page.Items) != 1 {
			t.Errorf("the search: %d, %+v, %v", code, page, err)
		}
		n.Stop()
	})
}
