package store_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/store/storetest"
)

// TestSearchesFindEachMatchOnce: a search that widens from the newest rows to all finds, page
// by page, as many as are counted in no order, newest first and none twice.
func TestSearchesFindEachMatchOnce(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		now := time.Now()
		storetest.Seed(t, url, 12_000, now)
		s := open(t, url)
		for _, line := range []string{"word0", "word37", "word1 is:root", "word0 -agent:coder", "fix app word2", "nothing"} {
			q, err := history.Parse(history.Delegations, line, now, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			want, err := s.HistoryCount(t.Context(), q, math.MaxInt32)
			if err != nil || want.Least {
				t.Fatalf("%q: %+v, %v", line, want, err)
			}
			var found int64
			for last, after := "", ""; ; {
				page, err := s.List(t.Context(), orchestrator.Filter{Line: q, After: after, Limit: 20})
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				for _, d := range page.Items {
					if last != "" && d.ID >= last {
						t.Fatalf("%q: %s comes after %s", line, d.ID, last)
					}
					last = d.ID
					found++
				}
				if after = page.Next; after == "" {
					break
				}
			}
			if found != want.N || found == 0 != (line == "nothing") {
				t.Errorf("%q: %d found, %d counted", line, found, want.N)
			}
		}
	})
}

// TestCountsOfWholeLists: what is known of a list answers only what asks for less.
func TestCountsOfWholeLists(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		storetest.Seed(t, url, 500, time.Now())
		s := open(t, url)
		for _, list := range []history.List{history.Requests, history.Delegations, history.Events} {
			all, err := s.HistoryCount(t.Context(), history.Query{List: list}, 1_000_000)
			if err != nil || all.Least || all.N == 0 {
				t.Fatalf("%s: %+v, %v", list, all, err)
			}
			for _, most := range []int{1, int(all.N) - 1, int(all.N), 1_000_000} {
				n, err := s.HistoryCount(t.Context(), history.Query{List: list}, most)
				if want := (history.Count{N: min(all.N, int64(most)), Least: all.N > int64(most)}); err != nil || n != want {
					t.Errorf("%s up to %d: %+v, %v, want %+v", list, most, n, err, want)
				}
			}
		}
	})
}

// A question repeats its task in its title and in its answer; it is searched once.
func TestSearchedOnce(t *testing.T) {
	got := store.Searched("Wash the car", "Ask before: Wash the car?", "Wash the car", "", "Yes")
	if want := "wash the car\nask before: wash the car?\nyes\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := strings.Repeat("ä", 40<<10)
	if got := store.Searched(long, "more"); len(got) > 64<<10 || !strings.HasPrefix(got, "ää") || strings.Contains(got, "more") {
		t.Errorf("%d bytes of a long text", len(got))
	}
}
