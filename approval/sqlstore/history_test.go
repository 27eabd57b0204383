package sqlstore_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/store"
)

var historyTests = map[string]func(*Suite){
	"requests are found by what they are and how they were decided": findsRequests,
	"a request is found as it is now, and not as it was":            findsTheNew,
	"requests are found by words of the task, answers and comments": findsWords,
	"pages of requests have each row once":                          pagesOfRequests,
	"delegations are found by a line":                               findsDelegations,
	"events are found along their indexes":                          findsEvents,
	"a forged cursor is refused":                                    refusesCursors,
	"a new request is listed as it is read later":                   listsTheNew,
}

// parse reads a line as of the suite's clock.
func (s *Suite) parse(list history.List, line string) history.Query {
	s.Helper()
	q, err := history.Parse(list, line, s.Clock.Now(), time.UTC)
	s.must(err)
	return q
}

// titles lists what a line finds, in pages of size.
func (s *Suite) titles(line string, size int) []string {
	s.Helper()
	var out []string
	for after := ""; ; {
		page, err := s.Store.History(s.ctx, s.parse(history.Requests, line), after, size)
		s.must(err)
		for _, r := range page.Rows {
			out = append(out, r.Title)
		}
		if after = page.Next; after == "" {
			return out
		}
		if len(page.Rows) != size {
			s.Fatalf("%q: a page of %d rows with a next one, want %d", line, len(page.Rows), size)
		}
	}
}

func (s *Suite) finds(line string, want ...string) {
	s.Helper()
	got := s.titles(line, 2)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("%q: %q, want %q", line, got, want)
	}
	n, err := s.Store.HistoryCount(s.ctx, s.parse(history.Requests, line), 100)
	if err != nil || n.N != int64(len(want)) || n.Least {
		s.Errorf("%q: counted %+v, %v, want %d", line, n, err, len(want))
	}
}

// listsTheNew holds what is written with a new request to what is made of its row later.
func listsTheNew(s *Suite) {
	task := s.task("Mend the “Door” <now>")
	one := func(change func(*approval.Request)) { s.request(s.delegation(task), change) }
	one(func(*approval.Request) {})
	one(func(r *approval.Request) {
		r.Kind, r.Agent, r.Via, r.Handover = approval.Handover, "Asked", origin.Parse("webhook ci-failed"), &orchestrator.HandoverQuestion{From: "a", To: "b", Text: "x"}
	})
	one(func(r *approval.Request) {
		decided := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("there", 3600))
		r.Title, r.Repository, r.RequesterID, r.Requester, r.Via = "A \x00 title \xff & more", "Shop", "usr_1", "Ann", origin.From(origin.CLI)
		r.Chain, r.Rule, r.RevertOf = chain.Names{"kik", "coder"}, policy.Rule{Name: "Two", Need: 2}, "apr_x"
		r.State, r.DecidedAt, r.CreatedAt, r.Landed = approval.Landed, &decided, decided.Add(-time.Hour), "abc"
		r.Lineage = []approval.Party{{UserID: "usr_1", User: "Ann"}}
		r.Revision = approval.Revision{Text: "An Answer \x00 \xff", Added: 3, Removed: 1, Made: approval.MadeByEdit, Base: patch.Base{Branch: "main"},
			Files: []patch.File{{Path: "a"}, {Path: "b"}}, Warnings: []patch.Warning{{Code: "large"}, {Code: "large"}, {Code: "ci_file"}},
			Checks: []orchestrator.Check{{Command: "go vet"}}}
	})
	read := func() (lines []string) {
		rows, err := s.Store.Query(s.ctx, `select r.id, r.facets, r.shown, t.text, coalesce((select count(*) from request_facets f where f.request_id = r.id), 0)
			from requests r join request_texts t on t.request_id = r.id order by r.id`)
		lines, err = store.Collect(rows, err, func(row store.Scanner) (string, error) {
			var id, facets, shown, text string
			var n int
			err := row.Scan(&id, &facets, &shown, &text, &n)
			return fmt.Sprintln(id, facets, shown, text, n), err
		})
		s.must(err)
		return lines
	}
	written := read()
	for _, text := range []string{"delete from request_facets", "delete from request_texts", "update requests set facets = '', shown = ''"} {
		_, err := s.Store.Exec(s.ctx, text)
		s.must(err)
	}
	s.open("later") // makes findable what is not
	if made := read(); len(written) != 3 || !slices.Equal(written, made) {
		s.Errorf("a new request is listed as\n%s\nand its row as\n%s", written, made)
	}
}

// decided makes a request with that title and decisions, a minute after the one before.
func (s *Suite) decided(task orchestrator.Task, title string, state approval.State, change func(r *approval.Request), decisions ...approval.Decision) *approval.Request {
	s.Helper()
	s.Clock.Add(time.Minute)
	d := s.delegation(task)
	r := s.request(d, func(r *approval.Request) {
		r.Title, r.RequesterID, r.Requester, r.Via, r.Chain = title, "usr_ann", "ann", origin.From(origin.Web), chain.Names{"kik", "coder"}
		r.Revision.Files = []patch.File{{Path: "a"}, {Path: "b"}}
		if change != nil {
			change(r)
		}
	})
	s.gate(task.ID, func(tx approval.Tx) error {
		for i, one := range decisions {
			one.Revision, one.At = 1, s.Clock.Now()
			if one.UserID == "" && !strings.HasPrefix(one.User, approval.RuleActor) {
				one.UserID = "usr_" + one.User
			}
			one.ID = fmt.Sprintf("dec_%s_%d", r.ID, i)
			s.must(tx.InsertDecision(s.ctx, r.ID, one))
		}
		r, err := tx.Request(s.ctx, r.ID)
		s.must(err)
		at := s.Clock.Now()
		r.State, r.DecidedAt = state, &at
		return tx.SaveRequest(s.ctx, r)
	})
	return r
}

func yes(user, channel string, seen approval.Seen) approval.Decision {
	return approval.Decision{User: user, Channel: origin.Channel(channel), Verdict: approval.Approve, Seen: seen}
}

// requests fills a database with one of each kind.
func (s *Suite) requests() orchestrator.Task {
	s.Helper()
	task := s.task("Fix the retry loop")
	before := func(d time.Duration) *time.Time {
		t := s.Clock.Now().Add(time.Minute - d) // decided makes it a minute later
		return &t
	}
	all := approval.Seen{Surface: "page", Files: 2, FilesViewed: 2}
	s.decided(task, "good", approval.Landed, nil, yes("bob", "web", all))
	quick := all
	quick.OpenedAt = before(3 * time.Second)
	s.decided(task, "fast", approval.Landed, nil, yes("bob", "web", quick))
	slow := approval.Seen{Surface: "telegram", Files: 2, Read: []approval.Read{{Surface: "telegram", Files: 2, Whole: true}}}
	slow.OpenedAt = before(10 * time.Second)
	s.decided(task, "slow", approval.Landed, nil, yes("Cleo", "telegram", slow))
	s.decided(task, "alone", approval.Approved, nil, yes("ann", "web", all), yes("bob", "web", all))
	s.decided(task, "owner", approval.Landed, func(r *approval.Request) {
		r.Lineage = []approval.Party{{UserID: "usr_eve", User: "eve", Before: &approval.Party{UserID: "usr_dan", User: "dan"}}}
	}, yes("dan", "cli", approval.Seen{Surface: "cli"}))
	s.decided(task, "rule", approval.Landed, func(r *approval.Request) { r.Rule.Name, r.Repository = "docs", "site" }, yes("rule:docs", "", approval.Seen{}))
	s.decided(task, "warned", approval.Reverted, func(r *approval.Request) {
		r.Revision.Warnings = []patch.Warning{{Code: "ci_file", Path: "a"}, {Code: "ci_file", Path: "b"}}
		r.Revision.Checks = []orchestrator.Check{{Command: "go vet", OK: true}, {Command: "go test"}}
	}, yes("bob", "web", all))
	s.decided(task, "no", approval.Rejected, func(r *approval.Request) { r.Revision.Warnings = []patch.Warning{{Code: "large"}} },
		yes("cleo", "web", all), approval.Decision{User: "bob", Channel: "telegram", Verdict: approval.Reject})
	s.decided(task, "late", approval.Expired, nil)
	return task
}

func findsRequests(s *Suite) {
	day := s.Clock.Now()
	task := s.requests()
	other := s.task("Another")
	s.decided(other, "other", approval.Pending, func(r *approval.Request) {
		r.Agent, r.Via, r.Requester, r.RequesterID = "Coder", origin.From(origin.CLI), "bob", "usr_bob"
	})
	s.finds("", "good", "fast", "slow", "alone", "owner", "rule", "warned", "no", "late", "other")
	for line, want := range map[string]string{
		"state:landed":               "good fast slow owner rule",
		"state:landed,expired":       "good fast slow owner rule late",
		"-state:landed":              "alone warned no late other",
		"approver:bob":               "good fast alone warned no",
		"approver:cleo":              "slow no",
		"approver:bob approver:cleo": "no",
		"approver:bob,CLEO":          "good fast slow alone warned no",
		"approver:bob -channel:web":  "",
		"channel:telegram":           "slow no",
		"approver:rule:docs":         "rule",
		"rule:docs":                  "rule",
		"repository:site":            "rule",
		"-repository:site,x":         "good fast slow alone owner warned no late other",
		"agent:coder":                "other",
		"via:cli requester:bob":      "other",
		"four_eyes:no":               "alone owner",
		"four_eyes:yes":              "good fast slow warned",
		"viewed:no":                  "owner",
		"fast:yes":                   "fast",
		"fast:no":                    "slow",
		"warnings:overruled":         "warned",
		"checks:overruled":           "warned",
		"is:auto":                    "rule",
		"is:reverted":                "warned",
		"is:refused,expired":         "no late",
		"is:landed -rule:docs four_eyes:yes approver:bob": "good fast",
		"task:" + task.ID:                    "good fast slow alone owner rule warned no late",
		"-task:" + task.ID:                   "other",
		"task:" + other.ID[len(other.ID)-6:]: "other",
		"agent:nobody":                       "",
		"time:" + day.Add(90*time.Second).Format(time.RFC3339) + ".." + day.Add(200*time.Second).Format(time.RFC3339): "fast slow",
		"time:2026-07-02..": "",
		"time:..2026-06-30": "",
	} {
		s.finds(line, strings.Fields(want)...)
	}
	page, err := s.Store.History(s.ctx, s.parse(history.Requests, "is:reverted"), "", 50)
	s.must(err)
	r := page.Rows[0]
	if r.State != "reverted" || r.Requester != "ann" || r.Via != origin.From(origin.Web) || r.Agent != "kik" || r.Chain.String() != "kik → coder" || r.Repository != "app" || r.Target != "main" || r.Rule != "rest" || r.Need != 1 ||
		r.Files != 2 || !slices.Equal(r.Warnings, []string{"ci_file"}) || !slices.Equal(r.Flags, []string{"is:reverted", "warnings:overruled", "checks:overruled"}) ||
		len(r.Deciders) != 1 || r.Deciders[0].Name != "bob" || r.DecidedAt == nil || r.USD != nil || r.TaskID != task.ID || r.At.IsZero() {
		s.Errorf("row %+v", r)
	}
}

func findsTheNew(s *Suite) {
	task := s.task("Fix")
	usd := 0.75
	d := s.delegation(task)
	s.in(task.ID, func(tx orchestrator.Tx) error { tx.Task().RootID = d.ID; return nil })
	r := s.request(d)
	s.finds("state:pending", "Fix")
	s.finds("cost:>0.5")
	s.gate(task.ID, func(tx approval.Tx) error {
		s.must(tx.InsertDecision(s.ctx, r.ID, approval.Decision{User: "bob", UserID: "usr_bob", Verdict: approval.Reject, Channel: "web", Revision: 1}))
		r, err := tx.Request(s.ctx, r.ID)
		s.must(err)
		r.State = approval.Rejected
		return tx.SaveRequest(s.ctx, r)
	})
	s.finds("state:pending")
	s.finds("state:rejected approver:bob", "Fix")
	s.in(task.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(s.ctx, d.ID)
		s.must(err)
		d.State, d.Usage.USD, d.Error = orchestrator.Failed, &usd, &agent.Failure{Code: "exit", Message: "It broke."}
		s.must(tx.Append(s.ctx, event.Event{Type: event.Failed, DelegationID: d.ID, Data: event.Data(map[string]any{"code": "Exit"})}))
		return tx.Move(s.ctx, d, orchestrator.Queued, 0)
	})
	for line, found := range map[string]bool{"code:exit": true, "-code:exit": false, "cost:>0.5": true, "cost:0.75": true, "cost:>0.75": false, "cost:<0.5,0.7..": true, "-cost:>0.5": false, "-cost:<0.5 state:rejected": true} {
		if got := len(s.titles(line, 2)) == 1; got != found {
			s.Errorf("%q: found is %t", line, got)
		}
	}
	page, err := s.Store.History(s.ctx, s.parse(history.Requests, ""), "", 1)
	if err != nil || page.Rows[0].USD == nil || *page.Rows[0].USD != usd {
		s.Errorf("page %+v, %v", page, err)
	}
}

func findsWords(s *Suite) {
	one, two := s.task("Fix the retry loop in upload/retry.go"), s.task("Bump deps")
	s.decided(one, "one", approval.Landed, func(r *approval.Request) { r.Revision.Text = "The counter was reset inside." }, yes("bob", "web", approval.Seen{}))
	s.decided(one, "two", approval.Rejected, nil, approval.Decision{User: "bob", Channel: "web", Verdict: approval.Reject, Comment: "Breaks resume; see line 42.",
		Comments: []agent.LineComment{{Path: "a", Line: 1, Text: "Übersetzung fehlt"}}})
	s.decided(two, "three", approval.Landed, nil)
	for line, want := range map[string]string{
		"retry": "one two", "RETRY.go": "one two", "loop state:landed": "one", "loop -state:landed": "two", "counter": "one", "resume 42": "two", "übersetzung": "two", "deps": "three",
		"deps retry": "", `"retry loop"`: "one two", "three": "three", "deps time:2026-07-02..": "", "deps time:2026-07-01": "three", "(": "one two three", "'": "one two three",
		`"x OR y"`: "", "approver:bob counter": "one",
	} {
		s.finds(line, strings.Fields(want)...)
	}
	// A new answer is found, and an old one still.
	page, err := s.Store.History(s.ctx, s.parse(history.Requests, "deps"), "", 1)
	s.must(err)
	s.gate(two.ID, func(tx approval.Tx) error {
		r, err := tx.Request(s.ctx, page.Rows[0].ID)
		s.must(err)
		r.Revision.N, r.Revision.Text = 2, "Pinned instead"
		return tx.SaveRequest(s.ctx, r)
	})
	s.finds("pinned deps", "three")
}

func pagesOfRequests(s *Suite) {
	task := s.task("Fix")
	var want []string
	for i := range 23 {
		title := fmt.Sprint("r", i)
		want = append(want, title)
		s.decided(task, title, approval.Landed, nil, yes([]string{"bob", "cleo"}[i%2], "web", approval.Seen{}), yes("dan", "web", approval.Seen{}))
	}
	slices.Reverse(want)
	for _, line := range []string{"", "approver:bob,cleo,dan", "state:landed", "fix", "fix approver:dan"} {
		if got := s.titles(line, 5); !slices.Equal(got, want) {
			s.Errorf("%q: %q", line, got)
		}
	}
	n, err := s.Store.HistoryCount(s.ctx, s.parse(history.Requests, "approver:dan"), 10)
	if err != nil || n.N != 10 || !n.Least {
		s.Errorf("counted %+v, %v", n, err)
	}
}

func refusesCursors(s *Suite) {
	s.requests()
	for _, cursor := range []string{"x", "1", "apr_", "apr_01", "dlg_01k9zzzzzzzzzzzzzzzzzzzzzz", "apr_01K9ZZZZZZZZZZZZZZZZZZZZZZ", "apr_01k9zzzzzzzzzzzzzzzzzzzzz'", "evt_zzzzzzzzzzzzzzzzzzzzzzzzzz", strings.Repeat("x", 1<<16)} {
		_, err := s.Store.History(s.ctx, history.Query{List: history.Requests}, cursor, 10)
		_, events := s.Store.HistoryEvents(s.ctx, history.Query{List: history.Events}, cursor, 10)
		if orchestrator.CodeOf(err) != orchestrator.CodeBadRequest || orchestrator.CodeOf(events) != orchestrator.CodeBadRequest {
			s.Errorf("%.40q: %v, %v", cursor, err, events)
		}
	}
	// A true one that names nothing is a place all the same.
	page, err := s.Store.History(s.ctx, history.Query{List: history.Requests}, "apr_7zzzzzzzzzzzzzzzzzzzzzzzzz", 1000)
	if err != nil || len(page.Rows) != 9 {
		s.Errorf("%d rows, %v", len(page.Rows), err)
	}
}
