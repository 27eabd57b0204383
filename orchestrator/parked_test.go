package orchestrator_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// parkedTables are the tables with rows of a parked request.
var parkedTables = []string{"tasks", "delegations", "events", "requests", "revisions", "cards", "blobs"}

const (
	parkedCount  = 100_000
	idEnding     = 6  // characters of an id in which the copies differ
	parkedSample = 25 // decisions whose latency is measured
)

// BenchmarkParked asks people 100,000 questions and looks at what that costs while
// nobody answers, and how long it takes after an answer until a worker has the row.
// One question is real, with its commit, bundle, card and log; the others are copies of
// its rows made by SQL. Only the figures of b.ReportMetric mean something.
func BenchmarkParked(b *testing.B) {
	durably(b, func(b *testing.B, url string) {
		for range b.N {
			parked(b, url)
		}
	})
}

func parked(b *testing.B, url string) {
	w := newWorld(b, url, specs("coder")...)
	w.script("coder", writes("core/a.txt", "one\n2\nthree\n"))
	w.start()
	root := w.send("coder", "Fix the second line of the file core/a.txt, please")
	w.state(root.ID, orchestrator.AwaitingApproval)
	r := w.request(root.TaskID, 1)
	db := openRaw(b, url)
	for db.number("select count(*) from cards where open = 1") > 0 {
		time.Sleep(10 * time.Millisecond) // the card is still on its way
	}
	before, heapBefore, rssBefore := db.size(), heap(), rss(b)
	start := time.Now()
	db.multiply(root.TaskID, r)
	b.Logf("%d copies took %s", parkedCount, time.Since(start).Round(time.Second))
	bytes := float64(db.size()-before) / parkedCount
	// What the copying took is not the product's.
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	db = openRaw(b, url)
	debug.FreeOSMemory()

	calls, cpu := db.calls(), cpuTime(b)
	const idle = 5 * time.Second
	<-time.After(idle)
	b.ReportMetric(float64(db.calls()-calls)/idle.Seconds(), "idle-tx/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Milliseconds())/idle.Seconds(), "idle-cpu-ms/s")
	b.ReportMetric(float64(heap()-heapBefore)/1e6, "heap-growth-MB")
	b.ReportMetric(float64(rss(b)-rssBefore)/1e6, "rss-growth-MB")
	b.ReportMetric(bytes, "B/parked")
	decide, resume := resumeLatency(b, w, r)
	b.ReportMetric(float64(decide.Microseconds())/1e3, "p50-decide-ms")
	b.ReportMetric(float64(resume.Microseconds())/1e3, "p50-resume-ms")
	w.stop()
}

// resumeLatency says yes to some of the questions, one after the other, and returns the
// medians: until the decision is stored, and until a worker has claimed the landing.
func resumeLatency(b *testing.B, w *world, r approval.Request) (decided, resumed time.Duration) {
	var stored, taken []time.Duration
	for i := range parkedSample {
		n := 4000*i + 7
		id := copyID(r.DelegationID, n)
		parked, err := w.store.Delegation(context.Background(), id)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		_, err = w.gateway.Decide(context.Background(), approval.Ballot{RequestID: copyID(r.ID, n), Principal: people.As(w.bob, nil), Channel: "web",
			Verdict: approval.Approve, Digest: r.Revision.Digest})
		if err != nil {
			b.Fatalf("%s: %v", id, err)
		}
		stored = append(stored, time.Since(start))
		for d := parked; d.Attempt == parked.Attempt; {
			if d, err = w.store.Delegation(context.Background(), id); err != nil || time.Since(start) > 10*time.Second {
				b.Fatalf("nobody resumes %s: %v", id, err)
			}
		}
		taken = append(taken, time.Since(start))
		// The first one lands; the others are asked again, because the file has moved on.
		w.until(id, "landed or asked again", func(d orchestrator.Delegation) bool {
			return d.State.Ended() || d.State == orchestrator.AwaitingApproval
		})
	}
	slices.Sort(stored)
	slices.Sort(taken)
	return stored[len(stored)/2], taken[len(taken)/2]
}

// copyID is the id of the n-th copy.
func copyID(id string, n int) string { return fmt.Sprintf("%s%06d", id[:len(id)-idEnding], n) }

// raw is the database behind the product's back.
type raw struct {
	*sql.DB
	b    *testing.B
	path string // SQLite's
}

func openRaw(b *testing.B, url string) *raw {
	b.Helper()
	r := &raw{b: b}
	driver, dsn := "postgres", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, dsn, r.path = "sqlite", "file:"+path+"?_pragma=busy_timeout(60000)&_pragma=synchronous(OFF)", path
	}
	var err error
	if r.DB, err = sql.Open(driver, dsn); err != nil {
		b.Fatal(err)
	}
	r.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = r.Close() })
	return r
}

func (r *raw) number(query string) int64 {
	r.b.Helper()
	var n int64
	if err := r.QueryRow(query).Scan(&n); err != nil {
		r.b.Fatalf("%s: %v", query, err)
	}
	return n
}

// size is the bytes of the tables and indexes.
func (r *raw) size() int64 {
	if r.path == "" {
		return r.number("select pg_database_size(current_database())")
	}
	return r.number("select page_count * page_size from pragma_page_count(), pragma_page_size()")
}

// calls is how many transactions the server has seen; SQLite does not count.
func (r *raw) calls() int64 {
	if r.path != "" {
		return 0
	}
	return r.number("select xact_commit + xact_rollback from pg_stat_database where datname = current_database()")
}

// multiply copies the rows of a task, with new endings of the ids.
func (r *raw) multiply(taskID string, q approval.Request) {
	r.b.Helper()
	owner := map[string]string{
		"tasks": "id = '" + taskID + "'", "delegations": "task_id = '" + taskID + "'", "events": "task_id = '" + taskID + "'",
		"requests": "task_id = '" + taskID + "'", "revisions": "request_id = '" + q.ID + "'", "cards": "request_id = '" + q.ID + "'",
		"blobs": "id = '" + q.Revision.Bundle + "'",
	}
	digits := "substr(cast(1000000 + g.copy_no as text), 2)"
	for _, table := range parkedTables {
		var into, from []string
		for _, c := range r.columns(table) {
			into = append(into, c)
			switch c {
			case "task_id", "root_id", "delegation_id", "request_id", "approval_id", "id":
				c = fmt.Sprintf("case when %[1]s = '' then '' else substr(%[1]s, 1, length(%[1]s) - %[2]d) || %[3]s end", c, idEnding, digits)
			}
			from = append(from, c)
		}
		text := fmt.Sprintf("insert into %s (%s) with recursive g(copy_no) as (select 1 union all select copy_no + 1 from g where copy_no < %d) select %s from %s cross join g where %s",
			table, strings.Join(into, ", "), parkedCount, strings.Join(from, ", "), table, owner[table])
		if _, err := r.Exec(text); err != nil {
			r.b.Fatalf("copy %s: %v", table, err)
		}
	}
	if r.path == "" {
		// What the sequencer does for each transaction.
		if _, err := r.Exec("insert into event_order (pos, task_id, n) select (select coalesce(max(pos), 0) from event_order) + row_number() over (order by e.task_id, e.n), e.task_id, e.n from events e where not exists (select 1 from event_order o where o.task_id = e.task_id and o.n = e.n)"); err != nil {
			r.b.Fatal(err)
		}
		if _, err := r.Exec("analyze"); err != nil {
			r.b.Fatal(err)
		}
		return
	}
	if _, err := r.Exec("pragma wal_checkpoint(truncate)"); err != nil {
		r.b.Fatal(err)
	}
}

// columns are those that are stored and not made by the database.
func (r *raw) columns(table string) []string {
	rows, err := r.Query("select * from " + table + " limit 0")
	if err != nil {
		r.b.Fatal(err)
	}
	defer rows.Close()
	all, err := rows.Columns()
	if err != nil {
		r.b.Fatal(err)
	}
	return slices.DeleteFunc(all, func(c string) bool {
		return c == "row" || c == "pos" || c == "words"
	})
}

// heap is what Go holds after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// rss is the memory of this process, in bytes.
func rss(b *testing.B) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
