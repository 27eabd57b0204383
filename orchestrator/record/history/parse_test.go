package history

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	vienna = time.FixedZone("CEST", 2*60*60)
	noon   = time.Date(2026, 9, 30, 12, 30, 15, 0, vienna)
)

func day(month time.Month, d int) time.Time { return time.Date(2026, month, d, 0, 0, 0, 0, vienna) }

func term(key Key, values ...string) Term { return Term{Key: key, Values: values} }

func not(key Key, values ...string) Term { return Term{Key: key, Not: true, Values: values} }

// TestLines: what a person types, what it means, and the line that pages write back.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want Query
		back string // "" is the line itself
	}{
		{"", Query{}, ""},
		{"  ", Query{}, "-"},
		{"approver:bob", Query{Terms: []Term{term(Approver, "bob")}}, ""},
		{"Approver:bob  retry   loop", Query{Terms: []Term{term(Approver, "bob")}, Words: []string{"retry", "loop"}}, "approver:bob retry loop"},
		{"retry approver:bob retry", Query{Terms: []Term{term(Approver, "bob")}, Words: []string{"retry"}}, "approver:bob retry"},
		{"-repository:app,docs,app", Query{Terms: []Term{not(Repository, "app", "docs")}}, "-repository:app,docs"},
		{`agent:"two words",c`, Query{Terms: []Term{term(Agent, "c", "two words")}}, `agent:c,"two words"`},
		{`rule:"a \"b\" \\ c"`, Query{Terms: []Term{term(Rule, `a "b" \ c`)}}, ""},
		{`"approver:bob" "two words"`, Query{Words: []string{"approver:bob", "two words"}}, ""},
		{`src/main.go:12 -race 50% a"b`, Query{Words: []string{"src/main.go:12", "-race", "50%", `a"b`}}, ""},
		{"agent:a agent:a -agent:a", Query{Terms: []Term{term(Agent, "a"), not(Agent, "a")}}, "agent:a -agent:a"},
		{`state:"Changes requested",pending`, Query{Terms: []Term{term(State, "changes_requested", "pending")}}, "state:changes_requested,pending"},
		{"cost:>0.5 cost:1..3", Query{Terms: []Term{term(Cost, ">0.5"), term(Cost, "1..3")}}, ""},
		{"time:2026-07-01..2026-09-30", Query{From: day(7, 1), To: day(10, 1)}, ""},
		{"time:2026-07-01..", Query{From: day(7, 1)}, ""},
		{"time:..2026-07-01", Query{To: day(7, 2)}, ""},
		{"time:2026-07-01", Query{From: day(7, 1), To: day(7, 2)}, ""},
		{"time:2026-07", Query{From: day(7, 1), To: day(8, 1)}, "time:2026-07-01..2026-07-31"},
		{"time:today", Query{From: day(9, 30), To: day(10, 1)}, "time:2026-09-30"},
		{"time:yesterday..", Query{From: day(9, 29)}, "time:2026-09-29.."},
		{"time:30d", Query{From: day(8, 31), Last: "30d"}, ""},
		{"time:2w x", Query{From: day(9, 16), Last: "2w", Words: []string{"x"}}, ""},
		{"time:2H", Query{From: time.Date(2026, 9, 30, 10, 30, 0, 0, vienna), Last: "2h"}, "time:2h"},
		{"time:2026-07-01T10:30..2026-07-01T10:30:05Z", Query{From: day(7, 1).Add(10*time.Hour + 30*time.Minute), To: day(7, 1).Add(12*time.Hour + 30*time.Minute + 5*time.Second)},
			"time:2026-07-01T10:30:00+02:00..2026-07-01T12:30:05+02:00"},
		{"four_eyes:NO warnings:overruled is:auto,landed", Query{Terms: []Term{term(FourEyes, "no"), term(Warnings, "overruled"), term(Is, "auto", "landed")}}, "four_eyes:no warnings:overruled is:auto,landed"},
	} {
		c.want.List = Requests
		got, err := Parse(Requests, c.line, noon, vienna)
		if err != nil || !same(got, c.want) {
			t.Errorf("%q: %+v, %v; want %+v", c.line, got, err, c.want)
			continue
		}
		back := c.back
		if back == "" {
			back = c.line
		}
		if s := got.String(); s != strings.TrimPrefix(back, "-") && s != back {
			t.Errorf("%q is written back as %q, want %q", c.line, s, back)
		}
	}
}

// same compares times as moments.
func same(a, b Query) bool {
	equal := a.From.Equal(b.From) && a.To.Equal(b.To)
	a.From, a.To, b.From, b.To = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return equal && reflect.DeepEqual(a, b)
}

// TestWrongLines: the sentence names the part and what to write.
func TestWrongLines(t *testing.T) {
	many := func(n int, one string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, one, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		list       List
		line, want string
	}{
		{Requests, "aprover:bob", "Did you mean approver?"},
		{Requests, "repo:app", "Did you mean repository?"},
		{Requests, "http://x", "put it in quotes"},
		{Requests, "xyzzyquux:1", "There are state, agent,"},
		{Delegations, "approver:bob", "that is a filter of events and requests"},
		{Events, "cost:>1", "that is a filter of delegations and requests"},
		{Requests, "state:landet", "Did you mean landed?"},
		{Delegations, "state:landed", "Did you mean landing?"},
		{Requests, "fast:maybe", "It is yes, no."},
		{Requests, "agent:", "agent has no value"},
		{Requests, "agent: coder", "agent has no value"},
		{Requests, "agent:a,,b", "agent has no value"},
		{Requests, `agent:""`, "agent has no value"},
		{Requests, `agent:"a`, "A quote is not closed"},
		{Requests, `agent:"a"b`, "After the closing quote"},
		{Requests, "cost:cheap", "is no sum"}, {Requests, "cost:3..1", "is no sum"}, {Requests, "cost:-1", "is no sum"}, {Requests, "cost:1e9", "is no sum"},
		{Requests, "cost:..", "is no sum"}, {Requests, "cost:99999999999999", "is no sum"},
		{Requests, "time:later", "is no day"}, {Requests, "time:2026-02-30", "is no day"}, {Requests, "time:1969-12-31", "is no day"}, {Requests, "time:9999-12-31", "is no day"},
		{Requests, "time:..", "no begin and no end"}, {Requests, "time:2026-07-02..2026-07-01", "ends before it begins"}, {Requests, "-time:30d", "no opposite"},
		{Requests, "time:30d time:2026-07-01", "two periods"}, {Requests, "time:30d,40d", "one period"},
		{Requests, "a\x00b", "cannot be seen"}, {Requests, "a\nb", "cannot be seen"}, {Requests, "a\xffb", "cannot be seen"},
		{Requests, strings.Repeat("x", MaxLine+1), "2048 are the most"},
		{Requests, many(21, "agent:a%d "), "more than 20 terms"}, {Requests, "agent:" + many(21, "%d,") + "x", "more than 20 values"}, {Requests, many(21, "w%d "), "more than 20 words"},
		{"people", "x", "There is no list"},
	} {
		_, err := Parse(c.list, c.line, noon, vienna)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.line, err, c.want)
		}
	}
}

// TestLinks: pages add and remove terms for their links without changing the query.
func TestLinks(t *testing.T) {
	q, err := Parse(Requests, "agent:a,b -agent:c time:30d loop", noon, vienna)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got  Query
		want string
	}{
		{q.With(term(Agent, "z", "d")), "-agent:c agent:d,z time:30d loop"},
		{q.With(term(FourEyes, "no")), "agent:a,b -agent:c four_eyes:no time:30d loop"},
		{q.Without(Agent), "time:30d loop"},
		{q.Without(Time), "agent:a,b -agent:c loop"},
		{q, "agent:a,b -agent:c time:30d loop"},
	} {
		if c.got.String() != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if !slices.Equal(q.Values(Agent), []string{"a", "b"}) || q.Empty() || !(Query{}).Empty() {
		t.Errorf("values %v", q.Values(Agent))
	}
}

func TestCostRange(t *testing.T) {
	for value, want := range map[string][2]int64{
		">0.5": {500_001, maxMicros}, ">=0.5": {500_000, maxMicros}, "<2": {0, 1_999_999}, "<=2": {0, 2_000_000}, "1..3": {1_000_000, 3_000_000},
		"1..": {1_000_000, maxMicros}, "..3": {0, 3_000_000}, "0.1": {100_000, 100_000},
	} {
		least, most, ok := CostRange(value)
		if !ok || [2]int64{least, most} != want {
			t.Errorf("%s: %d to %d, %t", value, least, most, ok)
		}
	}
}

// TestDaysThatAreNot24Hours: where clocks change, a day is from midnight to midnight.
func TestDaysThatAreNot24Hours(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	for line, hours := range map[string]float64{"time:2026-03-29": 23, "time:2026-10-25": 25, "time:2026-07-01": 24} {
		q, err := Parse(Requests, line, noon, zone)
		if err != nil || q.To.Sub(q.From).Hours() != hours || q.String() != line {
			t.Errorf("%s: %v, %v, %q", line, q.To.Sub(q.From), err, q)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{"approver:bob -agent:a,b x", `rule:"a \"b" "c:d"`, "time:2026-07-01..", "time:30d cost:1..3", "state:pending", "-", `"`, "a:b:c", "agent:,"} {
		f.Add(line)
	}
	zone, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for list := range lists {
			q, err := Parse(list, line, noon, zone)
			if err != nil || len(q.String()) > MaxLine {
				continue
			}
			again, err := Parse(list, q.String(), noon, zone)
			if err != nil || !same(q, again) || again.String() != q.String() {
				t.Fatalf("%q is %+v, written as %q and read as %+v, %v", line, q, q.String(), again, err)
			}
		}
	})
}
