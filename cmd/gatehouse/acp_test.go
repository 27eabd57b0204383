package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

const acpTeam = `
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, protocol: acp, repository: app, sandbox: off, command: [sh, DIR/agent.sh]}
  free: {kind: command, protocol: acp, sandbox: off, command: [sh, DIR/agent.sh], env: {FREE: "1"}}
approval:
  actions:
    - {name: shell, when: tool == "execute", need: 1}
`

// acpScript is an agent of the Agent Client Protocol that asks before it writes.
const acpScript = `
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
end() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; reply "$prompt" '{"stopReason":"end_turn"}'; }
while read -r line; do
	id=$(printf %s "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\),.*/\1/p')
	case "$line" in
	*'"method":"initialize"'*) reply "$id" '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
	*'"method":"session/new"'*) echo new >> DIR/sessions; reply "$id" '{"sessionId":"s1"}' ;;
	*'"method":"session/load"'*) echo load >> DIR/sessions; reply "$id" '{}' ;;
	*'"method":"session/prompt"'*Louder*) prompt=$id; printf 'HELLO\n' > hello.txt; end "I was louder." ;;
	*'"method":"session/prompt"'*) prompt=$id
		if [ -n "$FREE" ]; then
			update '{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"write","status":"in_progress"}]}'
			update '{"sessionUpdate":"tool_call","toolCallId":"c2","title":"Edit a.txt","kind":"edit","status":"completed","rawInput":{"path":"a.txt"},"content":[{"type":"diff","path":"a.txt","oldText":"one","newText":"two"}]}'
			end "I asked nobody."; continue
		fi
		update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"make hello","kind":"execute","status":"pending","rawInput":{"command":"make hello"}}'
		printf '%s\n' '{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c1","title":"make hello","kind":"execute","rawInput":{"command":"make hello"}},"options":[{"optionId":"always","kind":"allow_always","name":"a"},{"optionId":"once","kind":"allow_once","name":"o"},{"optionId":"no","kind":"reject_once","name":"n"}]}}' ;;
	*'"id":77'*'"once"'*) echo ran >> DIR/ran; printf 'hello\n' > hello.txt
		update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}'; end "I did it." ;;
	*'"id":77'*) end "I was not allowed." ;;
	esac
done
`

// A program of the Agent Client Protocol asks before a call. The question stands over kill -9
// of the server, the yes counts for the attempt after it, and the call is made once. After
// "request changes" the work goes on in the program's session.
func TestAProgramAsksOverItsProtocol(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, acpTeam)
		p.Must(os.WriteFile(filepath.Join(p.Dir, "agent.sh"), []byte(strings.ReplaceAll(acpScript, "DIR", p.Dir)), 0o600))
		n := p.Start(p.Config, "")
		task := n.Send("coder", "app", "once")
		r := p.Asked(task)
		if r.Kind != approval.Action || !strings.Contains(r.Title, "make hello") {
			t.Fatalf("asked %s %q", r.Kind, r.Title)
		}
		n.Kill()
		if p.Exists("ran") {
			t.Fatal("it ran without a yes")
		}
		n = p.Start(p.Config, "")
		if code, err := n.Decide(p.Asked(task)); err != nil || code != http.StatusOK {
			t.Fatalf("the yes: %d, %v", code, err)
		}
		var patch approval.Request
		p.Until("the patch", func() bool { patch = p.Asked(task); return patch.Kind == approval.Patch })
		if code, said := casts(n, p.Approver, patch, map[string]any{"verdict": "request_changes", "comment": "Louder, please."}); code != http.StatusOK {
			t.Fatalf("request changes: %d %+v", code, said)
		}
		if root := n.Through(task); root.State != orchestrator.Completed || root.Result.Text != "I was louder." || root.Work.NeverAsked {
			t.Errorf("it ended %s: %+v %+v", root.State, root.Result, root.Error)
		}
		if got := onMain(p, "hello.txt"); got != "HELLO" {
			t.Errorf("landed %q", got)
		}
		for name, want := range map[string]string{"ran": "ran\n", "sessions": "new\nload\nload\n"} {
			if got, err := os.ReadFile(filepath.Join(p.Dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v; want %q", name, got, err, want)
			}
		}
		actions := 0
		for _, e := range p.Events(task) {
			if e.Type == event.Requested && strings.Contains(string(e.Data), `"action"`) {
				actions++
			}
		}
		if actions != 1 {
			t.Errorf("people were asked about the call %d times", actions)
		}
		if called := placetest.Count(p.Events(task), event.ToolCalled, "coder"); called == 0 {
			t.Error("the call is in no event")
		}
	})
}

// What a program did by itself stands on the page of its task, and that it asked about none of it.
func TestAProgramThatNeverAsksIsNamedSo(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, acpTeam)
		p.Must(os.WriteFile(filepath.Join(p.Dir, "agent.sh"), []byte(strings.ReplaceAll(acpScript, "DIR", p.Dir)), 0o600))
		n := p.Start(p.Config, "")
		root := n.Through(n.Send("free", "", "once"))
		if root.State != orchestrator.Completed || root.Result.Text != "I asked nobody." || !root.Work.NeverAsked {
			t.Fatalf("it ended %s: %+v %+v", root.State, root.Result, root.Error)
		}
		ann := n.Browser("ann")
		page := n.Page(ann, "/delegations/"+root.ID)
		for _, words := range []string{"its own sandbox is the gate", "calls edit: Edit a.txt", "has done 1 of 2 steps of its plan, now: write"} {
			if !strings.Contains(page, words) {
				t.Errorf("the page lacks %q", words)
			}
		}
		if rows := n.Page(ann, "/delegations/"+root.ID+"?tab=events"); !strings.Contains(rows, "edit: Edit a.txt") || !strings.Contains(rows, "tool.completed") {
			t.Error("the call's end is no event")
		}
	})
}
