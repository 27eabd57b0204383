package web_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/store/storetest"
)

// seedEvents is how many events the figures are taken with where nobody says; the aims
// are for a million and five, which `make bench-history` asks for.
const seedEvents = 3_000

// figure is one page, and the query that it shows.
type figure struct {
	path  string
	query func(ctx context.Context) error
}

// TestHistoryFigures logs how long pages take through HTTP, signed in, beside their
// query alone, on both databases. It measures and judges nothing but that each answers.
func TestHistoryFigures(t *testing.T) {
	events, rounds := seedEvents, 2
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_EVENTS")); err == nil && n > 0 {
		events, rounds = n, 200
	}
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_ROUNDS")); err == nil && n > 0 {
		rounds = n
	}
	for name, seeded := range map[string]func(testing.TB, int) string{"SQLite": storetest.SeededSQLite, "PostgreSQL": storetest.SeededPostgres} {
		t.Run(name, func(t *testing.T) {
			address := seeded(t, events)
			begin := time.Now()
			h := openAt(t, address)
			t.Logf("opened, and made findable, in %v", time.Since(begin))
			h.measure(rounds)
		})
	}
}

func (h *house) measure(rounds int) {
	b := h.signIn(h.user("zoe-"+strconv.FormatInt(time.Now().UnixNano(), 36), people.Admin, people.Approver, people.Auditor))
	h.Logf("%-64s %9s %9s | %9s %9s | %s", "page", "p50", "p99", "query p50", "p99", "p99 ratio")
	for _, f := range h.figures50() {
		var page, query []time.Duration
		for i := range rounds + 3 {
			begin := time.Now()
			a := b.get(f.path)
			took := time.Since(begin)
			if a.StatusCode != http.StatusOK {
				h.Errorf("%s: %d %.200s", f.path, a.StatusCode, a.body)
				break
			}
			begin = time.Now()
			h.must(f.query(h.ctx))
			if i >= 3 { // the first ones warm up
				page, query = append(page, took), append(query, time.Since(begin))
			}
		}
		if len(page) == 0 {
			continue
		}
		h.Logf("%-64s %9v %9v | %9v %9v | %.2f", f.path, at(page, 50), at(page, 99), at(query, 50), at(query, 99), float64(at(page, 99))/float64(at(query, 99)))
	}
	h.bare(b, rounds)
	h.timeVerify()
}

// at is a percentile.
func at(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[min(len(all)*percent/100, len(all)-1)].Round(10 * time.Microsecond)
}

// figures50 are the lists, filters and searches that people open, 50 rows each.
func (h *house) figures50() []figure {
	var all []figure
	for _, f := range []orchestrator.Filter{{RootsOnly: true}, {Agent: "coder"}, {RootsOnly: true, Requester: "hal"}, {RootsOnly: true, Repository: "archive"}, {RootsOnly: true, States: []orchestrator.State{orchestrator.Failed}},
		{RootsOnly: true, Query: "needle"}, {RootsOnly: true, Query: "word0 word1"}} {
		v := url.Values{}
		for key, value := range map[string]string{"agent": f.Agent, "requester": f.Requester, "repository": f.Repository, "q": f.Query} {
			if value != "" {
				v.Set(key, value)
			}
		}
		if len(f.States) > 0 {
			v.Set("state", string(f.States[0]))
		}
		all = append(all, figure{"/delegations?" + v.Encode(), func(ctx context.Context) error {
			_, err := h.store.List(ctx, f)
			return err
		}})
	}
	for _, line := range []string{"", "via:schedule", "code:cycle", "cost:>4", "-agent:coder state:completed", "agent:release code:exit", "needle", "word1 word2 time:90d"} {
		all = append(all, figure{"/api/v1/delegations?filter=" + url.QueryEscape(line), func(ctx context.Context) error {
			q, err := history.Parse(history.Delegations, line, time.Now(), time.UTC)
			if err == nil {
				_, err = h.store.List(ctx, orchestrator.Filter{Line: q})
			}
			return err
		}})
	}
	all = append(all, figure{"/approvals", func(ctx context.Context) error {
		_, err := h.store.Requests(ctx, approval.Filter{States: []approval.State{approval.Pending}})
		return err
	}})
	return append(all, h.audits()...)
}

// audits are the pages of the auditors.
func (h *house) audits() []figure {
	var all []figure
	for _, line := range []string{"time:30d", "", "approver:bob", "approver:hal state:rejected", "four_eyes:no", "fast:yes time:30d", "warnings:overruled -rule:rest", "is:auto repository:archive",
		"cost:>4.5", "state:expired", "needle", "word0 word1", "word0 approver:bob time:2020-01-01.."} {
		all = append(all, figure{"/audit?filter=" + url.QueryEscape(line), func(ctx context.Context) error {
			q, err := history.Parse(history.Requests, line, time.Now(), time.UTC)
			if err == nil {
				_, err = h.store.History(ctx, q, "", 50)
			}
			return err
		}})
	}
	for _, line := range []string{"", "type:approval.decided", "code:cycle", "approver:hal", "needle", "type:delegation.progress word3"} {
		all = append(all, figure{"/audit?list=events&filter=" + url.QueryEscape(line), func(ctx context.Context) error {
			q, err := history.Parse(history.Events, line, time.Now(), time.UTC)
			if err == nil {
				_, err = h.store.HistoryEvents(ctx, q, "", 50)
			}
			return err
		}})
	}
	return all
}
