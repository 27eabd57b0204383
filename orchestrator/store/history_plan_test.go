package store_test

import (
	"regexp"
	"testing"
	"time"

	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/store/storetest"
)

// wholeHistory finds a step that reads all rows of a table that grows for ever.
var wholeHistory = regexp.MustCompile(`Seq Scan on (?:delegations|listing|events|requests|request_facets|request_texts|event_codes|tasks)|SCAN (?:d|e|f|c|r|t|m)\b(?: *\n| *$)`)

// How the two planners name the way by a facet, and by words.
const (
	facets = `request_facets_pkey|SEARCH [fx] USING PRIMARY KEY \(key=\? AND value=\?`
	texts  = `request_words|SCAN w VIRTUAL`
)

// TestHistoryPlans: each filter is a walk along its index, from the newest row or from a
// cursor, and reads no whole table.
func TestHistoryPlans(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		now := time.Now()
		storetest.Seed(t, url, 40_000, now)
		s := open(t, url)
		if s.Dialect() == "PostgreSQL" { // it reads a small table as a whole where it may
			if err := s.Spoil(t.Context(), "do $$ begin execute 'alter database ' || quote_ident(current_database()) || ' set enable_seqscan = off'; end $$"); err != nil {
				t.Fatal(err)
			}
			s = open(t, url)
		}
		page, err := s.History(t.Context(), history.Query{List: history.Requests}, "", 50)
		if err != nil || page.Next == "" {
			t.Fatalf("%d rows, %v", len(page.Rows), err)
		}
		for _, c := range []struct {
			list       history.List
			line, want string
		}{
			{history.Requests, "approver:bob", facets}, {history.Requests, "approver:bob,ann state:landed", facets}, {history.Requests, "four_eyes:no -rule:core", facets},
			{history.Requests, "time:30d", ""}, {history.Requests, "", ""}, {history.Requests, "-state:landed", facets}, {history.Requests, "state:pushed", facets}, {history.Requests, "-state:pushed", facets}, {history.Requests, "needle", texts}, {history.Requests, "word1 state:landed", texts},
			{history.Delegations, "agent:release", "listing_agent"}, {history.Delegations, "state:failed", "listing_state"}, {history.Delegations, "code:cycle", "event_codes"},
			{history.Delegations, "is:refused", "event_codes"}, {history.Delegations, "agent:coder state:failed", "listing_"}, {history.Delegations, "needle", "listing_words_words|SCAN t VIRTUAL"},
			{history.Events, "", ""}, {history.Events, "type:approval.decided", "events_type"}, {history.Events, "code:cycle", "event_codes"}, {history.Events, "approver:hal", "events_actor"},
			{history.Events, "requester:hal", "events_actor"}, {history.Events, "type:delegation.progress word3", ""},
		} {
			q, err := history.Parse(c.list, c.line, now, time.UTC)
			if err != nil {
				t.Fatal(err)
			}
			after := ""
			if c.list == history.Requests {
				after = page.Next
			}
			for _, cursor := range []string{"", after} {
				text, args, err := s.HistoryQuery(t.Context(), q, cursor)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := s.Explain(t.Context(), text, args...)
				if err != nil {
					t.Errorf("%s %q: %v\n%s", c.list, c.line, err, text)
					continue
				}
				if wholeHistory.MatchString(plan) || !regexp.MustCompile(c.want).MatchString(plan) {
					t.Errorf("%s %q reads more than it has to; want %q:\n%s\n%s", c.list, c.line, c.want, plan, text)
				}
			}
		}
	})
}
