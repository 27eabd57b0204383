package views_test

import (
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/views"
	auditview "gatehouse/views/audit"
	evidenceview "gatehouse/views/evidence"

	"github.com/a-h/templ"
)

// auditRequestRows are requests with everything that a row may say.
func auditRequestRows() []history.Row {
	at := func(d time.Duration) *time.Time { t := before(d); return &t }
	rows := []history.Row{
		{ID: aprID, TaskID: taskID, At: before(2 * time.Hour), Title: "Fix the retry loop in the uploader", State: "landed", Requester: "ann", Via: origin.From(origin.Web), Agent: "coder", Chain: chain.ParseNames("kik → coder"),
			Repository: "app", Target: "main", Rule: "core", Need: 2, Files: 3, Added: 48, Removed: 12, Warnings: []string{"ci_file"}, Flags: []string{"viewed:no", "warnings:overruled", "fast:yes"},
			Deciders: []history.Decider{{Name: "bob", Channel: "telegram", Verdict: "approve"}, {Name: "cleo", Channel: "web", Verdict: "approve"}}, DecidedAt: at(time.Hour), Landed: commit, USD: money(.06)},
		{ID: "apr_01k9m2c8w5q3z7x4v6b8c8bbbb", At: before(26 * time.Hour), Title: "Bump dependencies", State: "landed", Requester: "ci", Via: origin.Trigger(origin.Webhook, "ci-failed"), Agent: "deps", Chain: chain.ParseNames("kik → coder → deps"),
			Repository: "app", Rule: "docs", Need: 0, Files: 1, Added: 2, Removed: 2, Flags: []string{"is:auto"}, Deciders: []history.Decider{{Name: "rule:docs", Verdict: "approve"}}, DecidedAt: at(26 * time.Hour), Landed: digest[:40]},
		{ID: "apr_01k9m2c8w5q3z7x4v6b8c8cccc", At: before(50 * time.Hour), Title: hostile, State: "rejected", Requester: "dora" + hostile, Via: origin.From(hostile), Chain: chain.ParseNames("kik → " + hostile), Repository: hostile, Rule: hostile,
			Need: 3, Deciders: []history.Decider{{Name: "bob", Channel: "web", Verdict: "reject"}}, DecidedAt: at(49 * time.Hour), USD: money(1.2)},
		{ID: "apr_01k9m2c8w5q3z7x4v6b8c8dddd", At: before(70 * time.Hour), State: "pending", Requester: "bob", Via: origin.From(origin.CLI), Chain: chain.ParseNames("docs"), Repository: "site", Rule: "rest", Need: 1, Flags: []string{"four_eyes:no"}},
	}
	for i := range 12 {
		r := rows[i%2]
		r.ID, r.At, r.Title, r.Flags = fmt.Sprintf("apr_01k9m2c8w5q3z7x4v6b8c9%04d", i), before(time.Duration(80+i)*time.Hour), fmt.Sprintf("Chore %d of many", i), nil
		rows = append(rows, r)
	}
	return rows
}

// auditFixture is the page of a list.
func auditFixture(list history.List) auditview.AuditPage {
	line := "approver:bob repository:app time:30d"
	c := chrome(views.SectionAudit, "Audit", views.FilterHref(views.AuditPath, list, line))
	c.Person.Roles = []string{"auditor", "admin"}
	p := auditview.AuditPage{Chrome: c, List: list, Columns: auditview.AuditColumns(list, nil), Count: history.Count{N: 11}, All: history.Count{N: 482}, NextHref: "/audit?after=x", Zone: "Europe/Berlin", Loc: time.FixedZone("Europe/Berlin", 7200),
		MaySave: true, MayShare: true, LiveHref: "/audit?live=1",
		Proof: auditview.AuditProof{SealedAt: now, Last: &proof.Verification{At: before(2 * time.Hour), Who: "ann", Tasks: 482, Seals: 1200, Took: 3 * time.Second}},
		Views: []auditview.AuditView{{ID: "viw_1", Name: "Quarter " + hostile, Owner: "ann", Mine: true, Delete: true, Href: "/audit"}, {ID: "viw_2", Name: "Without four eyes", Owner: "bob", Shared: true, Href: "/audit"}}}
	for _, l := range []history.List{history.Requests, history.Delegations, history.Events} {
		p.Tabs = append(p.Tabs, auditview.AuditTab{List: l, Href: views.FilterHref(views.AuditPath, l, line)})
	}
	for i, q := range []string{"without four eyes", "approved by rule", "within 10 s of opening", "without all files viewed", "warnings overruled", "failed checks overruled", "refused by guard", "expired", "reverted"} {
		p.Ready = append(p.Ready, auditview.AuditQuestion{Text: q, Href: "/audit?filter=x", On: i == 3})
	}
	p.Filters = views.FilterBar{Path: views.AuditPath, List: list, Line: line, Clear: "/audit?filter=", Hint: "approver:bob", Keep: []views.FilterParam{{Name: "list", Value: string(list)}},
		Chips: []views.FilterChip{{Text: "approver:bob", Href: "/audit"}, {Text: "repository:app", Href: "/audit"}, {Text: "time:30d", Href: "/audit"}, {Text: hostile, Href: "/audit"}},
		Picks: []views.FilterPick{{Key: "state", Label: "State", Options: []string{"pending", "landed"}, Value: "landed"}, {Key: "agent", Label: "Agent", Suggest: []string{"coder"}, Value: "coder"},
			{Key: "time", Label: "Time", Options: views.Periods, Other: true}, {Key: "rule", Label: "Rule", Other: true, Hint: "docs"}}}
	switch list {
	case history.Requests:
		p.Requests = auditRequestRows()
	case history.Delegations:
		p.Tasks = append(append(runningRows(), endedRows()...), doneRow())
		p.Tasks[0].Title = hostile
	default:
		for i, kind := range []string{"audit.exported", "approval.decided", "delegation.refused", "patch.landed", "task.created"} {
			id := taskID
			if i == 0 {
				id = "system"
			}
			p.Events = append(p.Events, auditview.AuditEvent{Found: history.Found{ID: fmt.Sprintf("evt_01k9m2c8w5q3z7x4v6b8n7%04d", i), TaskID: id, N: int64(40 - i), Type: kind, Actor: "bob" + hostile, At: before(time.Duration(i) * time.Minute), Hash: digest}, Text: hostile})
		}
		p.LookedTo = before(48 * time.Hour)
	}
	return p
}

// auditEmpty is the page when no row matches, when nothing is there at all, and when the
// line was not understood.
func auditEmptyFixture(all int64, problem *views.FilterProblem) auditview.AuditPage {
	p := auditFixture(history.Requests)
	p.Requests, p.NextHref, p.Count, p.All, p.Views, p.Proof = nil, "", history.Count{}, history.Count{N: all}, nil, auditview.AuditProof{}
	p.Filters.Problem = problem
	if problem != nil {
		p.Filters.Line, p.Filters.Chips = "aprover:bob time:30d "+strings.Repeat("long ", 30), nil
	}
	return p
}

// allColumns shows every column that a list has.
func allColumns(list history.List) auditview.AuditPage {
	p := auditFixture(list)
	for i := range p.Columns {
		p.Columns[i].On = true
	}
	p.SaveBad, p.SaveName = "You have as many views as can be kept. Delete one first.", hostile
	return p
}

func brokenProof() auditview.AuditVerifyPage {
	return auditview.AuditVerifyPage{Chrome: chrome(views.SectionAudit, "Verify the history", views.AuditVerifyPath), Keys: []proof.Key{{ID: "9f2c1a7e5b1d44c0", Node: "one", At: now}},
		Proof: auditview.AuditProof{SealedAt: now, Last: &proof.Verification{At: now, Who: "ann", Tasks: 482, Problems: []proof.Broken{{TaskID: taskID, Message: "event evt_1 was changed after it was written " + hostile}, {Message: "a checkpoint was removed"}}}}}
}

// auditPages are the auditor's pages in every state that matters.
func auditPages() map[string]templ.Component {
	return map[string]templ.Component{
		"evidence":          evidenceview.Evidence(evidenceFixture()),
		"evidence-question": evidenceview.Evidence(evidenceQuestion()),
		"audit":             auditview.Audit(auditFixture(history.Requests)),
		"audit-delegations": auditview.Audit(auditFixture(history.Delegations)),
		"audit-events":      auditview.Audit(auditFixture(history.Events)),
		"audit-columns":     auditview.Audit(allColumns(history.Requests)),
		"audit-no-match":    auditview.Audit(auditEmptyFixture(482, nil)),
		"audit-nothing":     auditview.Audit(auditEmptyFixture(0, nil)),
		"audit-problem":     auditview.Audit(auditEmptyFixture(482, &views.FilterProblem{Part: "aprover:bob" + hostile, Text: "There is no filter \"aprover\". Did you mean approver?"})),
		"audit-verify":      auditview.AuditVerify(auditview.AuditVerifyPage{Chrome: chrome(views.SectionAudit, "Verify the history", views.AuditVerifyPath), Proof: auditFixture(history.Requests).Proof}),
		"audit-broken":      auditview.AuditVerify(brokenProof()),
		"audit-export":      auditview.AuditExport(auditview.AuditExportPage{Chrome: chrome(views.SectionAudit, "Export", views.AuditExportPath), List: history.Requests, Line: "approver:bob " + hostile, Count: history.Count{N: 482}, Zone: "Europe/Berlin", Back: views.AuditPath}),
	}
}
