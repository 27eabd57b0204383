package views_test

import (
	"fmt"
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
	"gatehouse/views"
	evidenceview "gatehouse/views/evidence"
)

// evidenceFixture has everything that a request may have.
func evidenceFixture() evidenceview.EvidencePage {
	opened, expires := before(65*time.Minute), now.Add(time.Hour)
	r := approval.Request{ID: aprID, TaskID: taskID, DelegationID: codeID, State: approval.Landed, Agent: "coder", Title: "Fix the retry loop", Repository: "app",
		Requester: "dora", Via: origin.Trigger(origin.Webhook, "ci-failed"), Chain: chain.ParseNames("kik → coder"), Landed: commit, CreatedAt: before(2 * time.Hour), ExpiresAt: &expires, RevertedBy: "apr_01k9m2c8w5q3z7x4v6b8c8aaaa",
		Rule:    policy.Rule{Name: "core", When: "any(patch.files, .path startsWith 'core/')", Need: 2, From: []string{"maintainers"}, Version: "9f2c1a7e5b1d", Widened: 1},
		Lineage: []approval.Party{{User: "dora", Part: approval.AskedForIt}},
		Decisions: []approval.Decision{
			{User: "bob", Channel: "web", Verdict: approval.RequestChanges, ID: "dec_a", Digest: digest, Revision: 1, At: before(90 * time.Minute), Comment: "Say why. " + hostile,
				Comments: []agent.LineComment{{Path: "upload/\u202Eretry.go", Line: 42, Text: "needs ctx here?"}}, Seen: approval.Seen{Surface: "page", Files: 3, FilesViewed: 3}},
			{User: "bob", For: "ann", Channel: "telegram", Verdict: approval.Approve, Digest: digest, Revision: 2, At: before(time.Hour), Files: []string{"upload/retry.go"},
				Seen: approval.Seen{Surface: "page", Files: 3, FilesViewed: 1, WarningsTicked: []string{"ci_file"}, OpenedAt: &opened}}}}
	files := []patch.File{{Path: "upload/retry.go", Status: patch.Modified, Added: 31, Removed: 9, OldMode: "100644", NewMode: "100755"},
		{Path: "docs/\u202Eog.exe", OldPath: "docs/" + hostile, Status: patch.Renamed, Binary: true}}
	base := patch.Base{Branch: "main", Commit: strings.Repeat("a", 40), Tree: strings.Repeat("b", 40)}
	v := approval.Revision{N: 2, State: approval.Landed, Digest: digest, Base: base, Tree: strings.Repeat("c", 40), Commit: strings.Repeat("d", 40), Files: files, Added: 31, Removed: 9,
		Text: "I moved it out of the loop.\n" + hostile, At: before(80 * time.Minute), Sandbox: "bubblewrap", Made: approval.MadeByFiles, MadeFrom: 1, Declined: []string{"web/logo.bin"},
		Warnings: []patch.Warning{{Code: "ci_file", Path: ".github/workflows/ci.yml", Text: "It changes what runs in CI."}}, Notes: []patch.Note{{Code: "no_checks", Text: "No check ran."}},
		Checks: []orchestrator.Check{{Command: "go vet ./…", OK: true}, {Command: "go test ./…", Output: "--- FAIL: TestRetry\n" + strings.Repeat("x", 5000) + hostile}}}
	first := approval.Revision{N: 1, State: approval.ChangesRequested, Digest: digest, Base: base, Tree: v.Tree, Commit: v.Commit, Files: files[:1], Added: 31, Removed: 9, At: before(2 * time.Hour)}
	r.Revision = v
	p := evidenceview.EvidencePage{Chrome: chrome(views.SectionAudit, "Evidence "+aprID, views.EvidenceHref(aprID)), Request: r, Task: "Fix the retry loop in the uploader.\n" + hostile, TaskAt: before(3 * time.Hour),
		Revisions: []approval.Revision{first, v}, Files: []evidenceview.EvidenceFiles{{Shown: files[:1]}, {Shown: files, More: 700}}, EventsAll: 1412, Head: digest, Dropped: 3,
		Seal: &evidenceview.EvidenceSeal{At: now, Pos: 120441, N: 1412, Key: "9f2c1a7e5b1d44c0"}}
	for i, act := range []approval.Act{approval.Reply, approval.Resolve, approval.Reopen} {
		p.Answers = append(p.Answers, approval.Answer{N: i + 1, Thread: fmt.Sprintf("dec_a.%d", 1+i/2), Act: act, User: "cleo", Channel: "web", Text: map[approval.Act]string{approval.Reply: "It has one. " + hostile}[act], At: before(80 * time.Minute)})
	}
	for i, kind := range []event.Type{event.TaskCreated, event.Requested, event.Decided, event.PatchLanded} {
		p.Events = append(p.Events, event.Event{TaskID: taskID, N: int64(i + 1), Type: kind, Actor: "user:bob" + hostile, At: before(time.Hour), Hash: digest})
	}
	return p
}

// evidenceQuestion is a hand-over that nobody has decided.
func evidenceQuestion() evidenceview.EvidencePage {
	p := evidenceFixture()
	p.Request.State, p.Request.Kind, p.Request.Decisions, p.Request.Landed, p.Request.Repository, p.Request.RevertedBy = approval.Pending, approval.Handover, nil, "", "", ""
	p.Request.Handover = &orchestrator.HandoverQuestion{From: "kik", To: "coder", Text: "Please do it. " + hostile}
	p.Revisions, p.Files, p.Seal, p.Dropped = []approval.Revision{{N: 1, State: approval.Pending, Digest: digest, At: now}}, nil, nil, 0
	return p
}
