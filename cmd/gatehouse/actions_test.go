package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callingTeam is a program that asks before it publishes, and then asks a person a question.
const callingTeam = `
agents:
  coder: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null;
    if said=$(gatehouse permit --tool Bash --input "{\"command\":\"npm publish\"}"); then echo published >> DIR/ran; else echo refused >> DIR/ran; fi;
    colour=$(gatehouse ask "Which colour?" --choice red --choice blue); echo "$said $colour"']}
approval:
  actions:
    - {name: shell, when: tool == "Bash", need: 1}
`

// A program's call waits for a yes from the command line, over kill -9 of the server, and is
// made once; its question is answered from there, too.
func TestACallIsApprovedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, callingTeam)
		n := p.Start(p.Config, "")
		root := n.Send("coder", "", "one")
		r := p.Asked(root)
		if r.Kind != approval.Action || r.Title != "Call Bash: npm publish" {
			t.Fatalf("asked %s %q", r.Kind, r.Title)
		}
		if out, code := p.Cli(n, "approve", r.ID); code != 1 || !strings.Contains(out, "You have not read") {
			t.Errorf("approved unread: exit %d\n%s", code, out)
		}
		n.Kill()
		n = p.Start(p.Config, "")
		out, code := p.Cli(n, "review", r.ID)
		if code != 0 || !strings.Contains(out, "coder wants to call Bash with") || !strings.Contains(out, "command: npm publish") || !strings.Contains(out, "for the rest of the task: Bash with commands that begin: npm publish") {
			t.Errorf("review: exit %d\n%s", code, out)
		}
		if out, code = p.Cli(n, "approve", r.ID, "--for-task"); code != 0 || !strings.Contains(out, "coder may make the call") {
			t.Fatalf("approve: exit %d\n%s", code, out)
		}
		q := p.Asked(root)
		if ran, err := os.ReadFile(filepath.Join(p.Dir, "ran")); err != nil || string(ran) != "published\n" {
			t.Errorf("it ran %q, %v", ran, err)
		}
		if out, code = p.Cli(n, "grants", root); code != 0 || !strings.Contains(out, "coder: Bash with commands that begin: npm publish") {
			t.Errorf("grants: exit %d\n%s", code, out)
		}
		if out, code = p.Cli(n, "answer", q.ID, "blue"); code != 0 || !strings.Contains(out, "answered") {
			t.Errorf("answer: exit %d\n%s", code, out)
		}
		p.Until("the end", func() bool { return p.Root(root).State == orchestrator.Completed })
		if text := p.Root(root).Result.Text; !strings.Contains(text, `{"behavior":"allow","updatedInput":{"command":"npm publish"}} blue`) {
			t.Errorf("it answered %q", text)
		}
		if code, err := n.Decide(r); err != nil || code != http.StatusConflict {
			t.Errorf("decided again: %d, %v", code, err)
		}
	})
}

// waitingTeam leaves the environment of its run outside, and waits.
const waitingTeam = `
agents:
  coder: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null; env > DIR/env.tmp; mv DIR/env.tmp DIR/env; while [ ! -f DIR/done ]; do sleep 0.05; done; echo done']}
approval:
  actions:
    - {name: never, when: 'input.command contains "rm -rf /"', deny: true}
    - {name: shell, when: tool == "Bash", need: 1}
`

// Claude Code asks through an MCP server of its run: what rules pass is allowed at once, what
// they deny is not, and the rest waits for people, whose edit is what runs. Whoever asked for
// the task reads and answers its questions, and nothing else.
func TestClaudeCodeAsksThroughTheGate(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, waitingTeam)
		cleo, olga := p.Person("cleo", people.Approver), p.Person("olga", people.Operator)
		n := p.Start(p.Config, "")
		p.Asker = olga
		root := n.Send("coder", "", "one")
		p.Until("the run", func() bool { return p.Exists("env") })
		env, err := os.ReadFile(filepath.Join(p.Dir, "env"))
		p.Must(err)
		inRun := func(args ...string) *exec.Cmd {
			cmd := exec.CommandContext(t.Context(), "gatehouse", args...)
			cmd.Env = strings.Split(strings.TrimSpace(string(env)), "\n")
			return cmd
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "claude", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: inRun("mcp", "permission")}, nil)
		p.Must(err)
		defer session.Close() //nolint:errcheck // the test is over
		call := func(id string, input map[string]any) string {
			got, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "approve", Arguments: map[string]any{"tool_name": "Bash", "input": input, "tool_use_id": id}})
			if err != nil || len(got.Content) != 1 {
				return fmt.Sprint(got, err)
			}
			return got.Content[0].(*mcp.TextContent).Text
		}
		if said := call("a", map[string]any{"command": "rm -rf /"}); !strings.Contains(said, `"behavior":"deny"`) || !strings.Contains(said, `rule \"never\"`) {
			t.Errorf("denied: %s", said)
		}
		answer := make(chan string, 1)
		go func() { answer <- call("b", map[string]any{"command": "npm publish"}) }()
		r := p.Asked(root)
		if code, said := casts(n, p.Approver, r, map[string]any{"verdict": "edit", "input": map[string]any{"command": "npm publish --dry-run"}}); code != http.StatusOK {
			t.Fatalf("edited: %d %+v", code, said)
		}
		r = p.Asked(root)
		if code, said := casts(n, p.Approver, r, map[string]any{"verdict": "approve"}); code != http.StatusForbidden || said.Code != "four_eyes" {
			t.Errorf("the editor's yes: %d %+v", code, said)
		}
		if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, olga, nil, nil); err != nil || code != http.StatusForbidden {
			t.Errorf("an operator reads a call: %d, %v", code, err)
		}
		if code, said := casts(n, cleo, r, map[string]any{"verdict": "approve", "scope": "once"}); code != http.StatusOK {
			t.Fatalf("approved: %d %+v", code, said)
		}
		if said := <-answer; said != `{"behavior":"allow","updatedInput":{"command":"npm publish --dry-run"}}` {
			t.Errorf("allowed: %s", said)
		}
		go func() { answer <- call("b", map[string]any{"command": "npm publish"}) }() // a model names its calls as it likes
		again := p.Asked(root)
		if again.ID == r.ID {
			t.Error("it is the same request")
		}
		if code, said := casts(n, cleo, again, map[string]any{"verdict": "reject", "comment": "once is enough"}); code != http.StatusOK {
			t.Fatalf("rejected: %d %+v", code, said)
		}
		if said := <-answer; !strings.Contains(said, "once is enough") {
			t.Errorf("the same call under the same name: %s", said)
		}

		asks := inRun("ask", "Which colour?", "--choice", "red")
		var out strings.Builder
		asks.Stdout = &out
		p.Must(asks.Start())
		q := p.Asked(root)
		var shown wire.Request
		if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+q.ID, olga, nil, &shown); err != nil || code != http.StatusOK || shown.Question.Text != "Which colour?" || !slices.Contains(shown.May, "answer") {
			t.Errorf("who asked reads the question: %d, %v, %+v", code, err, shown)
		}
		if code, said := casts(n, olga, q, map[string]any{"verdict": "approve"}); code != http.StatusForbidden {
			t.Errorf("who asked approves: %d %+v", code, said)
		}
		if code, said := casts(n, olga, q, map[string]any{"verdict": "answer", "choice": "red"}); code != http.StatusOK {
			t.Errorf("who asked answers: %d %+v", code, said)
		}
		if err := asks.Wait(); err != nil || out.String() != "red\n" {
			t.Errorf("the answer is %q, %v", out.String(), err)
		}
		p.Touch("done")
		p.Until("the end", func() bool { return p.Root(root).State == orchestrator.Completed })
	})
}

// nestedTeam is a chain whose last agent asks about a call, and then a question.
const nestedTeam = `
groups: {gone: [bob]}
agents:
  kik: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null; gatehouse delegate lead "Lead it"']}
  lead: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null; gatehouse delegate coder "Publish it"']}
  coder: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null;
    gatehouse permit --tool Bash --input "{\"command\":\"npm publish\"}"; gatehouse ask "Which colour?" --to gone']}
approval:
  actions:
    - {name: shell, when: tool == "Bash", need: 1}
`

// Everybody reads where the work is stopped: the rows above say which agent waits for which
// people and lead there; who may not read requests learns that people are asked. A question has
// people enough as long as who asked for the task may answer it.
func TestWhatANestedAgentWaitsFor(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, nestedTeam)
		p.Person("olga", people.Operator)
		n := p.Start(p.Config, "")
		p.Asker = p.Person("otto", people.Operator)
		root := n.Send("kik", "", "one")
		r := p.Asked(root)
		olga, ann := n.Browser("olga"), n.Browser("ann")
		if page := n.Page(olga, "/"); !strings.Contains(page, "waits for a person, with a call or a question") || strings.Contains(page, "waits for others") {
			t.Error("an operator does not read that people are asked")
		}
		if page := n.Page(ann, "/"); !strings.Contains(page, "waits for bob, about a call") {
			t.Error("the overview does not say who is asked")
		}
		for path, who := range map[string]string{"/delegations/" + p.Root(root).ID: "bob, about a call", "/delegations": "waits for lead: coder waits for bob, about a call"} {
			if page := n.Page(ann, path); !strings.Contains(page, who) {
				t.Errorf("%s does not say where the work is stopped", path)
			}
		}
		if page := n.Page(olga, "/delegations/"+p.Root(root).ID); !strings.Contains(page, "a person, with a call or a question") {
			t.Error("an operator does not read on the page of the task that people are asked")
		}
		var waits wire.Waits
		if code, err := n.Call(http.MethodGet, "/api/v1/waits?task="+root, p.Asker, nil, &waits); err != nil || code != http.StatusOK || len(waits.Items) != 3 {
			t.Fatalf("waits: %d, %v, %+v", code, err, waits)
		}
		for _, w := range waits.Items {
			if w.ApprovalID != r.ID || !slices.Equal(w.People, []string{"bob"}) || !strings.Contains(w.Says, "its call of Bash waits for a yes") {
				t.Errorf("%s waits for %s (%v, %s)", w.Agent, w.Says, w.People, w.ApprovalID)
			}
		}
		if page := n.Page(ann, "/waits"); strings.Count(page, "/approvals/"+r.ID) < 3 {
			t.Error("the rows above do not lead to the request")
		}
		if code, err := n.Decide(r); err != nil || code != http.StatusOK {
			t.Fatalf("the yes: %d, %v", code, err)
		}

		q := p.Asked(root)
		bob, err := p.Store.UserByName(t.Context(), "bob")
		p.Must(err)
		p.Must(p.Store.SetDisabled(t.Context(), "test", bob.ID, true))
		var shown wire.Request
		if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+q.ID, p.Asker, nil, &shown); err != nil || code != http.StatusOK || shown.Needs.Problem != "" || !slices.Equal(shown.Needs.Missing, []string{"otto"}) {
			t.Errorf("the question: %d, %v, %+v", code, err, shown.Needs)
		}
		p.Approver = p.Person("vera", people.Approver)
		if out, code := p.Cli(n, "approvals"); code != 0 || strings.Contains(out, "⚠") || !strings.Contains(out, "needs otto") {
			t.Errorf("approvals: exit %d\n%s", code, out)
		}
		if out, code := p.Cli(n, "waits", root); code != 0 || !strings.Contains(out, "its question waits for an answer; who can give one: otto") {
			t.Errorf("waits: exit %d\n%s", code, out)
		}
		if code, said := casts(n, p.Asker, q, map[string]any{"verdict": "answer", "comment": "blue"}); code != http.StatusOK {
			t.Fatalf("otto answers: %d %+v", code, said)
		}
		p.Until("the end", func() bool { return p.Root(root).State == orchestrator.Completed })
	})
}

// pastCalls is a program that has made three calls, about each of which a person was asked.
const pastCalls = `
agents:
  coder: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null;
    for c in "npm test" "npm publish" "rm -rf build"; do gatehouse permit --tool Bash --input "{\"command\":\"$c\"}"; done; true']}
approval:
  actions:
    - {name: shell, when: tool == "Bash", need: 1}
`

// Other rules about calls are tried on the calls that people were asked about: which would be
// denied, asked about otherwise, and pass. Nothing is decided by it.
func TestOtherRulesAreTriedOnPastCalls(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, pastCalls)
		n := p.Start(p.Config, "")
		root := n.Send("coder", "", "one")
		for range 3 {
			if code, err := n.Decide(p.Asked(root)); err != nil || code != http.StatusOK {
				t.Fatalf("the yes: %d, %v", code, err)
			}
		}
		p.Until("the end", func() bool { return p.Root(root).State == orchestrator.Completed })
		next := filepath.Join(p.Dir, "next.yaml")
		p.Must(os.WriteFile(next, []byte(`approval:
  actions:
    - {name: never, when: 'input.command contains "rm -rf"', deny: true}
    - {name: release, when: 'input.command startsWith "npm publish"', need: 2}
`), 0o600))
		out, code := p.Cli(n, "policy", "test", "--rules", next)
		for _, says := range []string{"never: denied", "release: 2 of all approvers", "no rule: passes", "3 calls in 30d: 3 would go otherwise (2 stricter, 1 looser, 0 decided by others).",
			"Of these calls 1 would be denied, 1 asked about, and 1 pass."} {
			if code != 0 || !strings.Contains(out, says) {
				t.Errorf("exit %d, without %q:\n%s", code, says, out)
			}
		}
		if out, code := p.Cli(n, "policy", "test"); code != 0 || !strings.Contains(out, "3 calls in 30d: 0 would go otherwise") {
			t.Errorf("the rules in force: exit %d\n%s", code, out)
		}
		var trial wire.PolicyTrial
		body := wire.PolicyTest{Actions: &[]wire.PolicyRule{{Name: "bad", When: `tol == "Bash"`}}}
		if code, err := n.Call(http.MethodPost, "/api/v1/policy/test", p.Asker, body, &trial); err != nil || code != http.StatusBadRequest {
			t.Errorf("a rule with a typo: %d, %v", code, err)
		}
	})
}

// linesTeam is a program of protocol jsonl that asks a question with choices, and one that is none.
const linesTeam = `
agents:
  coder: {kind: command, protocol: jsonl, sandbox: off, command: [sh, DIR/lines.sh]}
`

const linesScript = `read -r task
echo '{"type":"ask","question":" ","ref":"none"}'
read -r refused; echo "$refused" >> DIR/said
echo '{"type":"ask","question":"Which colour?","choices":["red","blue"],"ref":"q"}'
read -r answer; echo "$answer" >> DIR/said
echo '{"type":"result","text":"done"}'
`

// A program of protocol jsonl asks people by a line, holds no slot while they think, and reads
// the answer as a line; what is no question it reads at once.
func TestAProgramOfLinesAsksAPerson(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, linesTeam)
		p.Must(os.WriteFile(filepath.Join(p.Dir, "lines.sh"), []byte(strings.ReplaceAll(linesScript, "DIR", p.Dir)), 0o600))
		n := p.Start(p.Config, "")
		root := n.Send("coder", "", "one")
		q := p.Asked(root)
		if q.Kind != approval.Question || !slices.Equal(q.Question.Choices, []string{"red", "blue"}) {
			t.Fatalf("asked %+v", q.Question)
		}
		var waits wire.Waits
		p.Until("the wait without a slot", func() bool {
			code, err := n.Call(http.MethodGet, "/api/v1/waits?task="+root, p.Asker, nil, &waits)
			return err == nil && code == http.StatusOK && waits.Slots.Used == 0
		})
		if out, code := p.Cli(n, "answer", q.ID, "blue"); code != 0 {
			t.Fatalf("answer: exit %d\n%s", code, out)
		}
		p.Until("the end", func() bool { return p.Root(root).State == orchestrator.Completed })
		said, err := os.ReadFile(filepath.Join(p.Dir, "said"))
		p.Must(err)
		for _, line := range []string{`{"type":"answer","ref":"none","state":"refused","text":"The question has 1 bytes. Ask with 1 to 16384 bytes of text.","by":""}`, `{"type":"answer","ref":"q","state":"answered","text":"blue","by":"bob"}`} {
			if !strings.Contains(string(said), line) {
				t.Errorf("it read %q, without %s", said, line)
			}
		}
	})
}
