package views_test

import (
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
	chatview "gatehouse/views/chat"
	"gatehouse/views/diff"
	overviewview "gatehouse/views/overview"
	reviewview "gatehouse/views/review"
	settingsview "gatehouse/views/settings"
	taskview "gatehouse/views/task"
	teamview "gatehouse/views/team"

	"github.com/a-h/templ"
)

var now = time.Date(2026, 9, 28, 14, 2, 7, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

// hostile is text as an agent may send it: markup, a direction override, an escape sequence.
const hostile = "<script>alert(1)</script> \"'><img src=x onerror=alert(1)> abc\u202Edlrow\u200B \x1b[31mred"

const (
	taskID = "tsk_01k9m2c8w5q3z7x4v6b8n7f3k9q"
	kikID  = "dlg_01k9m2c8w5q3z7x4v6b8n7aaaaaa"
	codeID = "dlg_01k9m2c8w5q3z7x4v6b8n7bbbbbb"
	revID  = "dlg_01k9m2c8w5q3z7x4v6b8n7cccccc"
	aprID  = "apr_01k9m2c8w5q3z7x4v6b8c81m2x"
	digest = "9f2c1a7e5b1d44c0a1f7e62b9d3c8e0f9f2c1a7e5b1d44c0a1f7e62b9d3c8e0f"
	commit = "4be1f02c9a1d7e35b2c8f60a4d9e1b7c3f5a2d80"
)

func money(v float64) *float64 { return &v }

func chrome(section views.Section, title, path string) views.Chrome {
	return views.Chrome{
		Title: title, Section: section, Path: path, Now: now, ToDecide: 3, CanSend: true, StreamURL: "/events-stream?after=120",
		Person: person("ann", people.Operator, people.Approver),
	}
}

// person has the rights of the roles.
func person(name string, roles ...people.Role) *views.Person {
	p := &views.Person{Name: name}
	for _, s := range people.As(people.User{Roles: roles}, nil).Scopes {
		p.Rights = append(p.Rights, string(s))
	}
	for _, r := range roles {
		p.Roles = append(p.Roles, string(r))
	}
	return p
}

func approvalRows() []views.ApprovalRow {
	return []views.ApprovalRow{
		{ID: aprID, Title: "Fix the retry loop in the uploader", State: "pending", Whose: "you or bob", CanDecide: true, Chain: []string{"kik", "coder"}, Agent: "coder",
			Repository: "app", Target: "main", Added: 48, Removed: 12, Files: 3, Warnings: []string{"ci_file"}, ChecksBad: 1, Yes: 0, Need: 2,
			CreatedAt: before(4 * time.Minute), ExpiresAt: now.Add(21 * time.Hour)},
		{ID: "apr_01k9m2c8w5q3z7x4v6b8c8aaaa", Title: "Modernise loops and slices for Go 1.26", State: "pending", Whose: "you", CanDecide: true,
			Chain: []string{"kik", "coder"}, Agent: "coder", Repository: "sample", Target: "main", Added: 6, Removed: 2, Files: 1, Need: 1, CreatedAt: before(38 * time.Minute)},
		{ID: "apr_01k9m2c8w5q3z7x4v6b8c8bbbb", Title: "Update README", State: "pending", Whose: "bob", Chain: []string{"docs"}, Agent: "docs", Repository: "app", Target: "main",
			Added: 22, Removed: 1, Files: 1, Need: 1, CreatedAt: before(2 * time.Hour)},
	}
}

func runningRows() []views.DelegationRow {
	return []views.DelegationRow{
		{ID: "dlg_01k9m2c8w5q3z7x4v6b8n7dddddd", Title: "Nightly review of open changes", State: "running", Whose: "reviewer works", Chain: []string{"kik", "reviewer"}, Requester: "ann", Repository: "app",
			Since: before(12 * time.Second), CreatedAt: before(40 * time.Second), Usage: views.Usage{Reported: true, Tokens: 8100, USD: money(.04)}},
		{ID: "dlg_01k9m2c8w5q3z7x4v6b8n7eeeeee", Title: "Fix flaky test in the scheduler", State: "waiting", Whose: "coder is next in line", QueuedSince: before(40 * time.Second), Chain: []string{"kik"}, Requester: "bob", Repository: "app",
			Since: before(3 * time.Minute), CreatedAt: before(4 * time.Minute)},
		{ID: "dlg_01k9m2c8w5q3z7x4v6b8n7ffffff", Title: "Translate the error messages", State: "queued", Whose: "waits for a free worker", Chain: []string{"kik", "coder"}, Requester: "bob", Repository: "site",
			Since: before(40 * time.Second), CreatedAt: before(50 * time.Second)},
	}
}

func endedRows() []views.DelegationRow {
	return []views.DelegationRow{
		{ID: "dlg_01k9m2c8w5q3z7x4v6b8n7gggggg", Title: "Bump dependencies", State: "failed", Chain: []string{"coder"}, Requester: "ci", Repository: "app",
			CreatedAt: before(2 * time.Hour), EndedAt: before(100 * time.Minute), Code: "exit", Reason: "checks failed: go test ./…"},
		{ID: "dlg_01k9m2c8w5q3z7x4v6b8n7hhhhhh", Title: "Refactor core", State: "refused", Code: "max_depth", Chain: []string{"kik", "coder"}, Requester: "bob", Repository: "app",
			CreatedAt: before(3 * time.Hour), EndedAt: before(3 * time.Hour), Reason: "The chain kik → coder → reviewer → tester is 3 hops long, which is the limit."},
	}
}

func doneRow() views.DelegationRow {
	return views.DelegationRow{ID: "dlg_01k9m2c8w5q3z7x4v6b8n7iiiiii", Title: "Modernise the sample", State: "completed", Chain: []string{"kik", "coder", "reviewer"}, Requester: "ann", Repository: "sample",
		CreatedAt: before(26 * time.Hour), EndedAt: before(25 * time.Hour), Usage: views.Usage{Reported: true, Tokens: 41200, USD: nil}, Below: 2}
}

func sendForm() views.SendForm {
	return views.SendForm{Agents: []views.Choice{{Value: "kik", Text: "", Note: "workflow"}, {Value: "coder", Text: "", Note: "command"}, {Value: "reviewer", Text: "", Note: "command"}}, Repositories: []views.Choice{{Value: "sample", Text: "", Note: ""}, {Value: "app", Text: "", Note: ""}},
		Agent: "kik", Repository: "sample", Key: "k1"}
}

func overviewFull() overviewview.OverviewPage {
	c := chrome(views.SectionOverview, "Overview", "/")
	c.Demo = true
	until := now.Add(45 * time.Second)
	return overviewview.OverviewPage{Chrome: c, NeedsYou: approvalRows(), NeedsYouAll: 23, OldestNeed: before(2 * time.Hour), Running: runningRows(), RunningAll: 3,
		Wrong: endedRows(), WrongAll: 1, RefusedAll: 1, AnyTasks: true, Send: sendForm(), Parked: 1,
		Today: overviewview.TodayFigures{Since: now.Truncate(24 * time.Hour), Tasks: 41, Landed: 17, Rejected: 2, USD: money(3.2), MaxUSD: money(20), MedianYes: 6 * time.Minute},
		House: overviewview.House{Channels: []views.ChannelRow{{Name: "telegram", State: "connected", Links: true}}, Nodes: 2, Sealed: before(8 * time.Second), Breakers: []insight.Breaker{{Agent: "coder", State: "open", Until: &until}}},
		Examples: []views.Example{
			{Title: "A change that lands", Note: "Three agents, one diff, your yes, one commit.", Agent: "kik", Text: "Modernise this module", Repository: "sample", Key: "e1"},
			{Title: "A hand-over that is refused", Note: "coder tries to hand back to kik: the guards say no.", Agent: "coder", Text: "Ask kik to do it", Key: "e2"},
		}}
}

func overviewEmpty() overviewview.OverviewPage {
	c := chrome(views.SectionOverview, "Overview", "/")
	c.ToDecide = 0
	return overviewview.OverviewPage{Chrome: c, Send: sendForm()}
}

func treeRows() []taskview.TreeRow {
	t := before(2*24*time.Hour + 41*time.Second)
	at := func(s float64) time.Time { return t.Add(time.Duration(s * float64(time.Second))) }
	return []taskview.TreeRow{
		{ID: kikID, Name: "kik", From: "ann", Kind: "workflow", State: "waiting", At: at(0), Note: "handed to coder",
			Spans: []taskview.Span{{Kind: taskview.SpanQueued, From: at(0), To: at(1)}, {Kind: taskview.SpanWorking, From: at(1), To: at(6)}, {Kind: taskview.SpanChild, From: at(6), To: time.Time{}}}},
		{ID: codeID, Name: "coder", From: "kik", Kind: "command", Depth: 1, State: "awaiting_approval", At: at(6), Note: "+48 −12, 3 files, awaiting approval",
			Spans: []taskview.Span{{Kind: taskview.SpanQueued, From: at(6), To: at(9)}, {Kind: taskview.SpanWorking, From: at(9), To: at(19)}, {Kind: taskview.SpanChild, From: at(19), To: at(29)}, {Kind: taskview.SpanWorking, From: at(29), To: at(36)}, {Kind: taskview.SpanLanding, From: at(36), To: at(38)}, {Kind: taskview.SpanPerson, From: at(38), To: time.Time{}}}},
		{ID: revID, Name: "reviewer", From: "coder", Kind: "command", Depth: 2, State: "completed", At: at(19), EndedAt: at(29), Note: "build, vet and tests pass",
			Spans: []taskview.Span{{Kind: taskview.SpanQueued, From: at(19), To: at(21)}, {Kind: taskview.SpanWorking, From: at(21), To: at(29)}}},
		{ID: "evt-31", N: 31, Name: "kik", From: "coder", Depth: 2, State: "refused", Code: "cycle", At: at(30), Message: "coder cannot hand to kik: kik is already in the chain kik → coder. Answer with what you have, or hand to another agent."},
	}
}

func delegationPage(tab taskview.Tab) taskview.DelegationPage {
	c := chrome(views.SectionDelegations, "Fix the retry loop in the uploader", "/delegations/"+taskID+"?tab="+string(tab))
	c.State = "awaiting_approval"
	row := approvalRows()[0]
	p := taskview.DelegationPage{Chrome: c, TaskID: taskID, ID: codeID, Text: "Fix the retry loop in the uploader", TaskState: "awaiting_approval", Whose: "you or bob", Since: before(4 * time.Minute),
		Requester: "dora", Via: origin.Trigger(origin.Webhook, "ci-failed"), CreatedAt: before(48*time.Hour + 41*time.Second), Repository: "app/main",
		MaxHandOff: 5, Approval: &row, CanCancel: true, CanPause: true, Turns: 4, Tab: tab, Tree: treeRows(), TreeN: 3, TreeRows: 3, EventsN: 31, ViaHref: "/triggers",
		Meters: []taskview.Meter{taskview.NewMeter("tokens", "9.4k used · 40k reserved of 150k", 9400, 40000, 150000), taskview.NewMeter("money", "not reported of $5", 0, 0, 5), taskview.NewMeter("running time", "38 s used of 30 min", 38, 0, 1800), taskview.NewMeter("hand-overs", "2 of 5", 2, 0, 5)}}
	p.Selected = taskview.DelegationPane{ID: codeID, Name: "coder", From: "kik", Kind: "command", State: "awaiting_approval", Text: views.LongText{Text: "Fix the retry loop in the uploader.\n\nThe counter is reset inside the loop; see the failing test."}, ApprovalID: aprID,
		Chain: []string{"kik", "coder"}, Attempt: 1, Sandbox: "none: on this host there is no bubblewrap", Limits: "10 min, 1 MB of output", StartedAt: before(48 * time.Hour), EndedAt: before(47 * time.Hour),
		Result:    views.LongText{Text: "The **retry counter** was reset inside the loop; I moved it out and added a test:\n\n- `send` returns the last error\n- see [the issue](https://example.com/x)\n\n" + hostile},
		Data:      views.LongText{Text: "{\n  \"files\": 3\n}"},
		Artifacts: []taskview.Artifact{{N: 1, Name: "report " + hostile + ".md", Size: 18_222}, {N: 2, Name: "cover.html", Path: "out/cover.html"}},
		Guards:    []guard.Verdict{{Guard: "unknown", Allowed: true, Code: "", Message: ""}, {Guard: "self", Allowed: true, Code: "", Message: ""}, {Guard: "role", Allowed: true, Code: "", Message: ""}, {Guard: "cycle", Allowed: true, Code: "", Message: ""}, {Guard: "depth", Allowed: true, Code: "", Message: "1 of 3"}, {Guard: "hand-overs", Allowed: true, Code: "", Message: "2 of 5"}},
		LogTail:   []taskview.LogLine{{Text: "$ go test ./upload/..."}, {Text: "ok  \tapp/upload\t0.412s", Rest: 9_800_000, N: 12}, {Text: "wrote upload/retry.go"}}, LogMore: true,
		Rejected: []taskview.RejectedFile{{Path: "core/auth.go", Code: "path_protected", Text: "core/auth.go is protected in app."}}}
	types := []string{"approval.requested", "patch.validated", "delegation.resumed", "delegation.refused", "delegation.completed", "delegation.delegated", "delegation.acknowledged", "task.created"}
	p.EventTypes = types
	for i, kind := range types {
		p.Events = append(p.Events, taskview.EventRow{N: int64(31 - i), Type: kind, Actor: "agent:coder", Who: "coder", At: before(time.Duration(i) * 7 * time.Second), Text: "what happened " + hostile, JSON: "{\n  \"type\": \"" + kind + "\"\n}"})
	}
	p.OlderURL = "/delegations/" + taskID + "?tab=events&before=24"
	return p
}

// talkPage is a conversation with everything that one may have.
func talkPage() taskview.DelegationPage {
	p := delegationPage(taskview.TabTalk)
	p.TaskState, p.Selected.State, p.Approval = "running", "running", nil
	long := views.LongText{Text: hostile + "\n" + strings.Repeat("func send() error { return nil }\n", 60), Rest: 120_000, Href: "/api/v1/delegations/" + codeID + "/turns?limit=1&after=2"}
	child := taskview.TurnChild{ID: revID, Name: "reviewer"}
	p.Talk = taskview.Conversation{Model: true, Run: 2, Runs: 2, Last: 6, Live: true, OlderURL: "/delegations/" + codeID + "?tab=conversation&before=3", Turns: []taskview.Turn{
		{N: 1, Role: "user", Agent: "coder", From: "kik", At: before(50 * time.Second), Text: views.LongText{Text: "Fix the retry loop in the uploader.\n" + hostile}},
		{N: 2, Role: "assistant", Agent: "coder", Model: "anthropic/claude-sonnet-4-5", Stop: "tool_use", At: before(45 * time.Second), Took: 3200 * time.Millisecond,
			Usage: views.Usage{Reported: true, Tokens: 4100, USD: money(.02)}, Thinking: []views.LongText{{Text: "The counter is reset. " + hostile}}, Text: views.LongText{Text: "I read the file first."},
			Calls: []taskview.ToolCall{
				{ID: "a", Name: "read_file", About: "upload/retry.go", Input: views.LongText{Text: "{\n  \"path\": \"upload/retry.go\"\n}"}, Done: true, Result: long},
				{ID: "b", Name: "read_file", About: hostile, Input: views.LongText{Text: "{}"}, Done: true, Failed: true, Result: views.LongText{Text: "There is no file " + hostile}},
				{ID: "c", Name: "delegate_to_agent", About: "kik", Input: views.LongText{Text: "{\"to\": \"kik\"}"}, Done: true, Failed: true, Result: views.LongText{Text: "cycle: coder cannot hand to kik: kik is already in the chain kik → coder."}},
				{ID: "d", Name: "delegate_to_agent", About: "reviewer", Input: views.LongText{Text: "{\"to\": \"reviewer\"}"}, Done: true, Result: views.LongText{Text: "build, vet and tests pass"}, Child: &child}}},
		{N: 4, Role: "user", Agent: "coder", At: before(20 * time.Second), Told: []taskview.TurnChild{child}, Text: views.LongText{Text: "Delegation result from reviewer: passes."}},
		{N: 5, Role: "assistant", Agent: "coder", Model: hostile, Stop: "max_tokens", At: before(9 * time.Second), Took: 900 * time.Millisecond, Text: views.LongText{Text: "The retry counter was reset inside the loop; I moved"},
			Calls: []taskview.ToolCall{{ID: "e", Name: hostile, Input: views.LongText{Text: "{}"}}}}}}
	return p
}

func failedDelegation() taskview.DelegationPage {
	p := delegationPage(taskview.TabTree)
	p.TaskState, p.State, p.Approval, p.CanCancel, p.CanRetry = "failed", "failed", nil, false, true
	p.EndedAt, p.Whose = before(time.Minute), ""
	p.Failure = &views.Failure{What: "The agent's program was not found.", Where: "coder", Code: "not_started", Next: "Install it or change command in gatehouse.yaml, then Retry."}
	return p
}

func diffFiles() []diff.DiffFile {
	retry := []diff.RawLine{
		{Op: diff.OpContext, Old: 39, New: 39, Text: "// send uploads one part and tries again when the network fails."},
		{Op: diff.OpContext, Old: 40, New: 40, Text: "func (u *Uploader) send(ctx context.Context, part Part) error {"},
		{Op: diff.OpRemoved, Old: 41, Text: "\tfor n := 0; n < max; n++ {", Changed: [][2]int{{5, 26}}},
		{Op: diff.OpRemoved, Old: 42, Text: "\t\tn = 0"},
		{Op: diff.OpAdded, New: 41, Text: "\tfor n := range max {", Changed: [][2]int{{5, 19}}},
		{Op: diff.OpAdded, New: 42, Text: "\t\tif err := u.try(ctx, part, n); err == nil {"},
		{Op: diff.OpAdded, New: 43, Text: "\t\t\treturn nil // " + "abc\u202Edlrow" + " <script>alert(1)</script>"},
		{Op: diff.OpContext, Old: 43, New: 44, Text: "\t\t}"},
		{Op: diff.OpContext, Old: 44, New: 45, Text: "\t\tslog.Warn(\"upload failed\", \"try\", n, \"of\", 5)"},
		{Op: diff.OpContext, Old: 45, New: 46, Text: ""},
	}
	ci := []diff.RawLine{
		{Op: diff.OpContext, Old: 8, New: 8, Text: "jobs:"},
		{Op: diff.OpRemoved, Old: 9, Text: "  test: {timeout-minutes: 5}", Changed: [][2]int{{26, 27}}},
		{Op: diff.OpAdded, New: 9, Text: "  test: {timeout-minutes: 9}", Changed: [][2]int{{26, 27}}, NoEOL: true},
	}
	return []diff.DiffFile{
		{N: 1, Path: ".github/workflows/ci.yml", Status: "modified", Added: 1, Removed: 1, Warnings: []string{"ci_file"}, Hunks: []diff.DiffHunk{diff.NewHunk("ci.yml", 7, "", ci)}},
		{N: 2, Path: "upload/retry.go", Status: "modified", Added: 31, Removed: 9, Warnings: []string{"bidi"}, FullHref: "?whole=2#F2",
			Hunks: []diff.DiffHunk{diff.NewHunk("retry.go", 38, "func (u *Uploader) send", retry), {Skipped: 118, Lines: diff.NewHunk("retry.go", 0, "", []diff.RawLine{
				{Op: diff.OpContext, Old: 164, New: 166, Text: "type Part struct {"}, {Op: diff.OpAdded, New: 167, Text: "\tTries int `json:\"tries\"`"}, {Op: diff.OpContext, Old: 165, New: 168, Text: "}"}}).Lines}}},
		{N: 3, Path: "upload/retry_test.go", OldPath: "upload/again_test.go", Status: "renamed", Similarity: 92, Added: 16, Removed: 2,
			Hunks: []diff.DiffHunk{diff.NewHunk("retry_test.go", 0, "", []diff.RawLine{{Op: diff.OpAdded, New: 1, Text: "package upload"}, {Op: diff.OpRemoved, Old: 1, Text: "package up"}})}},
		{N: 4, Path: "go.sum", Status: "modified", Added: 1204, Removed: 0, Closed: "Lock file, 1,204 lines: closed to begin with."},
		{N: 5, Path: "logo.png", Status: "modified", Binary: &diff.BinaryChange{OldSize: 18222, NewSize: 20111, OldHash: commit, NewHash: digest[:40]}},
	}
}

func reviewPage(split bool) reviewview.ReviewPage {
	c := chrome(views.SectionApprovals, "Fix the retry loop in the uploader", "/approvals/"+aprID)
	c.State = "pending"
	return reviewview.ReviewPage{Chrome: c, ID: aprID, TaskID: taskID, Title: "Fix the retry loop in the uploader", State: "pending", Whose: "you or bob", Since: before(4 * time.Minute),
		ExpiresAt: now.Add(71 * time.Hour), Revision: 2, Newest: 2, Revisions: []int{1, 2}, Digest: digest, Repository: "app", Target: "main", Branch: "gatehouse/coder-fix-retry-9f2c1a", Base: commit,
		Requester: "dora", Via: origin.Trigger(origin.Webhook, "ci-failed"), Chain: []string{"kik", "coder"}, Agent: "coder", Says: "The retry counter was reset inside the loop; I moved it out.\n" + hostile,
		Rule: reviewview.RuleLine{Name: "core", Need: 2, From: []string{"ann", "bob"}, Yes: []string{"bob"}}, CanDecide: true,
		Decisions: []approval.Decision{{User: "bob", Channel: "telegram", Verdict: "approve", Comment: "Looks right to me.", Digest: digest, At: before(2 * time.Minute)}},
		Warnings: []patch.Warning{{Code: "ci_file", Path: ".github/workflows/ci.yml", Text: "A change here runs with the rights of your CI."},
			{Code: "bidi", Path: "upload/retry.go", Text: "Line 43 turns the direction of text."}},
		Notes:  []patch.Note{{Code: "no_sandbox", Text: "on this host there is no bubblewrap"}},
		Checks: []orchestrator.Check{{Command: "go vet ./...", OK: true, Took: 1200 * time.Millisecond}, {Command: "go test ./...", OK: false, Took: 14 * time.Second, Output: "--- FAIL: TestRetry (0.01s)\n" + hostile}},
		Files:  diffFiles(), Added: 48, Removed: 12, Split: split, FourEyes: false}
}

func reviewPlain() reviewview.ReviewPage {
	p := reviewPage(false)
	p.Warnings, p.Notes, p.Decisions, p.Revisions, p.Revision, p.Newest = nil, nil, nil, []int{1}, 1, 1
	p.Checks = p.Checks[:1]
	p.Rule = reviewview.RuleLine{Need: 1, From: []string{"ann"}}
	p.Files = p.Files[1:3]
	p.FourEyes = true
	return p
}

func reviewLanded() reviewview.ReviewPage {
	p := reviewPlain()
	p.State, p.Chrome.State, p.Commit, p.CanRevert = "landed", "landed", commit, true
	p.Outcome = &reviewview.Outcome{State: "landed", By: "bob", Channel: "telegram", At: before(5 * time.Second), Commit: commit}
	return p
}

func reviewSuperseded() reviewview.ReviewPage {
	p := reviewPage(false)
	p.Newest, p.NewestAt = 3, before(10*time.Second)
	return p
}

func agentRows() []teamview.AgentRow {
	return []teamview.AgentRow{
		{Name: "kik", Kind: "workflow", Role: "coordinator", Description: "Plans the work and hands it on.", Capabilities: []string{"plan"}, DelegatesTo: []string{"coder", "reviewer"}, Waiting: 1, LastAt: before(4 * time.Minute)},
		{Name: "coder", Kind: "command", Role: "worker", Description: "Changes code with the toolchain's own modernising tool.", Capabilities: []string{"code", "go"}, DelegatesTo: []string{"reviewer"}, Repository: "sample", Running: 2, Queued: 1, LastAt: before(12 * time.Second), LastError: "claude: not signed in " + hostile, FailedToday: 1203},
		{Name: "reviewer", Kind: "command", Role: "worker", Description: "Builds, vets and tests the result.", Capabilities: []string{"review"}, AnalysisOnly: true, LastAt: before(3 * time.Hour)},
	}
}

// addAgentFixture is what to do for Gemini CLI on a machine that has Claude Code.
func addAgentFixture() *teamview.AddAgent {
	return &teamview.AddAgent{Presets: []teamview.PresetRow{{Name: "claude", Title: "Claude Code", Path: "/usr/local/bin/claude", Used: []string{"coder"}}, {Name: "codex", Title: "Codex"}, {Name: "gemini", Title: "Gemini CLI"}}, Chosen: 2,
		Agent: "gemini", Program: "gemini", Key: "GEMINI_API_KEY", SignIn: "run gemini, then /auth", Notes: []string{"Each run has a fresh folder, which it would not trust."},
		YAML: "  gemini:\n    kind: command\n    repository: \"app\"\n    command: [\"gemini\", \"--approval-mode\", \"yolo\"]\n    env: {GEMINI_API_KEY: \"${GEMINI_API_KEY}\"}\n"}
}

func checkAsked(allowed bool) teamview.CheckForm {
	f := teamview.CheckForm{Names: []string{"kik", "coder", "reviewer"}, From: "coder", To: "kik", Asked: true, Allowed: allowed}
	f.Verdicts = []guard.Verdict{{Guard: "unknown target", Allowed: true, Code: "", Message: ""}, {Guard: "self", Allowed: true, Code: "", Message: ""}, {Guard: "role and allow-list", Allowed: allowed, Code: "not_allowed"}}
	if !allowed {
		f.Code, f.Message = "not_allowed", "coder may hand to reviewer only."
	}
	return f
}

// pages is every page in every state that matters, by file name.
func pages() map[string]templ.Component {
	list := taskview.DelegationsPage{Chrome: chrome(views.SectionDelegations, "Delegations", "/delegations"), Rows: append(append(runningRows(), endedRows()...), doneRow()),
		Filters: views.FilterBar{Path: "/delegations", Line: "is:root", Chips: []views.FilterChip{{Text: "is:root", Href: "/delegations?filter="}}}, NextHref: "/delegations?after=x", Send: sendForm()}
	nothing := list
	nothing.Rows, nothing.Filters.Line, nothing.Filtered, nothing.All.N = nil, "state:failed uploader", true, 482
	noApprovals := chrome(views.SectionApprovals, "Approvals", "/approvals")
	noApprovals.ToDecide = 0
	troubled := overviewFull()
	troubled.Demo = false
	troubled.Problems = []views.Problem{{Text: "The disk of the data folder is 98 % full.", Href: "/agents", Link: "What to do"}}
	troubled.Flash = &views.Flash{Text: "Sent to kik.", Href: views.DelegationHref(taskID), Link: "Open"}
	said, picking, editing := remarked(), remarked(), remarked()
	said.CommentAt, picking.Doing, editing.Doing = "F2R43", reviewview.Picking, reviewview.Editing
	editing.Files[1].Edit = &diff.FileEdit{Text: "package upload\n" + hostile, Hidden: 3}
	return join(settingsPages(), triggersPages(), auditPages(), outsidePages(), map[string]templ.Component{
		"review-remarks":     reviewview.Review(said),
		"context":            teamview.Context(contextFixture("", "")),
		"context-none":       teamview.Context(teamview.ContextPage{Chrome: chrome(views.SectionContext, "Context", views.ContextPath)}),
		"context-namespace":  teamview.Context(contextFixture("memory:"+hostile, "")),
		"context-value":      teamview.Context(contextFixture("memory:coder", hostile)),
		"context-gone":       teamview.Context(teamview.ContextPage{Chrome: chrome(views.SectionContext, "Context", views.ContextPath), Namespace: "notes", Key: "gone", Uses: []sharedctx.Use{{Kind: "delete", Agent: "bob", At: now}}}),
		"insights":           overviewview.Insights(insightsFixture()),
		"insights-empty":     overviewview.Insights(overviewview.InsightsPage{Chrome: chrome(views.SectionInsights, "Insights", views.InsightsPath), From: "2026-06-02", To: "2026-07-01", Error: "The days end before they begin."}),
		"waits":              overviewview.Waits(waitsFixture()),
		"waits-none":         overviewview.Waits(overviewview.WaitsPage{Chrome: chrome(views.SectionInsights, "Who waits for whom", views.WaitsPath), Slots: 8}),
		"flow":               taskview.FlowView(taskview.FlowPage{Chrome: chrome(views.SectionDelegations, "Flow", "/"), TaskID: taskID, Text: hostile, Flow: storyFlow()}),
		"flow-none":          taskview.FlowView(taskview.FlowPage{Chrome: chrome(views.SectionDelegations, "Flow", "/"), TaskID: taskID, Text: "x"}),
		"delegation-flow":    taskview.Delegation(flowTab()),
		"delegation-figures": taskview.Delegation(figuresTab()),
		"review-picking":     reviewview.Review(picking),
		"review-editing":     reviewview.Review(editing),
		"overview":           overviewview.Overview(overviewFull()),
		"chat":               chatview.Chat(chatFixture()),
		"overview-trouble":   overviewview.Overview(troubled),
		"channels":           settingsview.Channels(channelsPage()),
		"channels-calm":      settingsview.Channels(settingsview.ChannelsPage{Chrome: chrome(views.SectionSettings, "Channels", views.ChannelsPath), MaySee: true, Channels: channelsPage().Channels[:2]}),
		"channels-code":      settingsview.Channels(channelsCode()),
		"overview-empty":     overviewview.Overview(overviewEmpty()),
		"delegations":        taskview.Delegations(list),
		"delegations-none":   taskview.Delegations(nothing),
		"delegation-tree":    taskview.Delegation(delegationPage(taskview.TabTree)),
		"delegation-time":    taskview.Delegation(delegationPage(taskview.TabTimeline)),
		"delegation-events":  taskview.Delegation(delegationPage(taskview.TabEvents)),
		"delegation-talk":    taskview.Delegation(talkPage()),
		"delegation-result":  taskview.Delegation(delegationPage(taskview.TabResult)),
		"delegation-failed":  taskview.Delegation(failedDelegation()),
		"approvals":          reviewview.Approvals(reviewview.ApprovalsPage{Chrome: chrome(views.SectionApprovals, "Approvals", "/approvals"), State: "pending", Rows: approvalRows(), Total: 12}),
		"approvals-empty":    reviewview.Approvals(reviewview.ApprovalsPage{Chrome: noApprovals, State: "pending", Running: 4}),
		"review":             reviewview.Review(reviewPage(false)),
		"review-split":       reviewview.Review(reviewPage(true)),
		"review-plain":       reviewview.Review(reviewPlain()),
		"review-landed":      reviewview.Review(reviewLanded()),
		"review-superseded":  reviewview.Review(reviewSuperseded()),
		"review-threads":     reviewview.Review(threads()),
		"agents":             teamview.Agents(teamview.AgentsPage{Chrome: chrome(views.SectionAgents, "Agents", "/agents"), Agents: agentRows(), Check: checkAsked(false), Add: addAgentFixture()}),
		"agents-empty":       teamview.Agents(teamview.AgentsPage{Chrome: chrome(views.SectionAgents, "Agents", "/agents")}),
		"agent":              teamview.Agent(teamview.AgentPage{Chrome: chrome(views.SectionAgents, "coder", "/agents/coder"), Agent: agentRows()[1], Facts: []teamview.Fact{{Name: "command", Value: "gatehouse-modernise --all", Code: true}, {Name: "time limit", Value: "10 min", Code: false}, {Name: "sandbox", Value: "none: no bubblewrap here", Code: false}}, Recent: append(runningRows(), endedRows()...), Judged: true, Landed: 17, Refused: 2, Check: teamview.CheckForm{Names: []string{"kik", "coder", "reviewer"}, From: "coder", To: "reviewer"}, Send: sendForm()}),
	})
}

// outsidePages are those of nobody in particular.
func outsidePages() map[string]templ.Component {
	signedOut := views.Chrome{Title: "Sign in", Now: now, Path: "/login"}
	wrong := chrome(views.SectionNone, "Not found", "/delegations/7f3k9q")
	return map[string]templ.Component{
		"login":         views.Login(views.LoginPage{Chrome: signedOut}),
		"login-refused": views.Login(views.LoginPage{Chrome: signedOut, Name: "ann", Error: "That name and password do not fit. Try again, or ask for a sign-in link."}),
		"link":          views.Link(views.LinkPage{Chrome: signedOut, Code: "abc", AutoPress: true}),
		"error":         views.Error(views.ErrorPage{Chrome: wrong, Status: 404, Heading: "No task ends in 7f3k9q", Text: "It may be in another database.", Nearest: []views.Crumb{{Text: "Fix the retry loop", Href: views.DelegationHref(taskID)}}}),
		"error-server":  views.Error(views.ErrorPage{Chrome: wrong, Status: 500, Heading: "That failed on our side", Text: "Nothing was decided.", ErrorID: "5f2a"}),
	}
}
