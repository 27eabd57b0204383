package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// hearers are agents that hear what people say, and one that does not.
const hearers = `
repositories:
  app: {path: "REPO", branch: main}
providers:
  anthropic: {api_keys: [key-one], base_url: "ANTHROPIC"}
agents:
  kik: {kind: llm, model: anthropic/small, prompt: "You plan.", tools: {allow: [group:delegation]}}
  lines: {kind: command, protocol: jsonl, sandbox: off, command: [sh, -c, 'read -r task; touch DIR/begun; read -r said; echo "$said" > DIR/said; echo "{\"type\":\"result\",\"text\":\"heard\"}"']}
  session: {kind: command, protocol: acp, sandbox: off, command: [sh, DIR/agent.sh]}
  plain: {kind: command, sandbox: off, command: [sh, -c, 'cat > /dev/null; touch DIR/plain; while [ ! -f DIR/done ]; do sleep 0.05; done; echo done']}
`

// hearingScript is an agent of the Agent Client Protocol whose first turn waits for a file.
const hearingScript = `
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
end() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"; reply "$id" '{"stopReason":"end_turn"}'; }
while read -r line; do
	id=$(printf %s "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\),.*/\1/p')
	case "$line" in
	*'"method":"initialize"'*) reply "$id" '{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) reply "$id" '{"sessionId":"s1"}' ;;
	*'"method":"session/prompt"'*'in French'*) end "Bonjour." ;;
	*'"method":"session/prompt"'*) touch DIR/prompted; while [ ! -f DIR/go ]; do sleep 0.05; done; end "Hello." ;;
	esac
done
`

func hearingPlace(t *testing.T, database string, script modeltest.Script) *placetest.Place {
	t.Helper()
	s := modeltest.Start(script)
	t.Cleanup(s.Close)
	p := placetest.New(t, database, strings.ReplaceAll(hearers, "ANTHROPIC", s.Anthropic()))
	p.Must(os.WriteFile(filepath.Join(p.Dir, "agent.sh"), []byte(strings.ReplaceAll(hearingScript, "DIR", p.Dir)), 0o600))
	return p
}

// tells runs gatehouse tell as whoever asks for the tasks.
func tells(p *placetest.Place, n *placetest.Node, words ...string) (string, int) {
	return asAsker(p, n, append([]string{"tell"}, words...)...)
}

// asAsker runs a command as whoever asks for the tasks.
func asAsker(p *placetest.Place, n *placetest.Node, args ...string) (string, int) {
	approver := p.Approver
	defer func() { p.Approver = approver }()
	p.Approver = p.Asker
	return p.Cli(n, args...)
}

// A model turns round in the middle of its task: what people say comes before its next turn, in
// their order, once, also where the server was killed in between. It stays in the conversation.
func TestAModelTurnsRoundWhenPeopleSaySo(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		asked, let := make(chan struct{}, 8), make(chan struct{})
		p := hearingPlace(t, database, func(a modeltest.Ask) modeltest.Answer {
			if a.Turn > 1 {
				var said []string
				for _, m := range a.Messages {
					if m.Role != agent.FromModel && strings.Contains(m.Text(), " says, at ") {
						said = append(said, m.Text())
					}
				}
				return modeltest.Say(strings.Join(said, "\n"))
			}
			asked <- struct{}{}
			<-let
			return modeltest.Use("list_agents", map[string]any{})
		})
		goOn := sync.OnceFunc(func() { close(let) })
		defer goOn()
		n := p.Start(p.Config, "")
		task := n.Send("kik", "", "plan it")
		<-asked
		if out, code := tells(p, n, task, "Keep", "it", "short"); code != 0 || !strings.Contains(out, "kik is told as soon as it can hear") {
			t.Fatalf("tell: exit %d\n%s", code, out)
		}
		n.Kill()
		n = p.Start(p.Config, "")
		<-asked
		if out, code := tells(p, n, task, "and polite"); code != 0 {
			t.Fatalf("tell: exit %d\n%s", code, out)
		}
		goOn()
		root := n.Through(task)
		if root.State != orchestrator.Completed {
			t.Fatalf("it ended %s: %v", root.State, root.Error)
		}
		first, second := strings.Index(root.Result.Text, "Keep it short"), strings.Index(root.Result.Text, "and polite")
		if first < 0 || second < first || strings.Count(root.Result.Text, "Keep it short") != 1 {
			t.Errorf("the model was told %q", root.Result.Text)
		}
		var said wire.Messages
		if code, err := n.Call(http.MethodGet, "/api/v1/delegations/"+root.ID+"/messages", p.Approver, nil, &said); err != nil || code != http.StatusOK || len(said.Items) != 2 || said.Items[0].State != "delivered" || said.Items[0].DeliveredAt == nil {
			t.Errorf("messages: %d %v %+v", code, err, said)
		}
		if out, code := tells(p, n, task, "too late"); code != 1 || !strings.Contains(out, "has ended already") {
			t.Errorf("told after its end: exit %d\n%s", code, out)
		}
		if page := n.Page(n.Browser("ann"), "/delegations/"+root.ID+"?tab=talk"); !strings.Contains(page, "Keep it short") {
			t.Error("the conversation does not show what was said")
		}
	})
}

// Programs hear by their protocols; one without a protocol says that it cannot, and what to do.
func TestProgramsHearByTheirProtocols(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := hearingPlace(t, database, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("unused") })
		n := p.Start(p.Config, "")
		lines := n.Send("lines", "", "listen")
		p.Until("the program", func() bool { return p.Exists("begun") })
		if out, code := asAsker(p, n, "send", "--follow", lines, "in French"); code != 0 || !strings.Contains(out, "said to lines, which is at work") {
			t.Fatalf("tell: exit %d\n%s", code, out)
		}
		if root := n.Through(lines); root.State != orchestrator.Completed {
			t.Fatalf("it ended %s: %v", root.State, root.Error)
		}
		line, err := os.ReadFile(filepath.Join(p.Dir, "said"))
		if err != nil || !strings.Contains(string(line), `"type":"message"`) || !strings.Contains(string(line), `"text":"in French"`) || !strings.Contains(string(line), `"from":"`) {
			t.Errorf("the program read %s, %v", line, err)
		}

		session := n.Send("session", "", "say hello")
		p.Until("the prompt", func() bool { return p.Exists("prompted") })
		if out, code := tells(p, n, session, "in French"); code != 0 {
			t.Fatalf("tell: exit %d\n%s", code, out)
		}
		p.Must(os.WriteFile(filepath.Join(p.Dir, "go"), nil, 0o600))
		if root := n.Through(session); root.State != orchestrator.Completed || root.Result.Text != "Bonjour." {
			t.Errorf("it ended %s: %+v %v", root.State, root.Result, root.Error)
		}
		if n := placetest.Count(p.Events(session), event.MessageDelivered, "session"); n != 1 {
			t.Errorf("told %d times", n)
		}

		plain := n.Send("plain", "", "wait")
		p.Until("the program", func() bool { return p.Exists("plain") })
		var no struct{ Code string }
		if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+p.Root(plain).ID+"/messages", p.Asker, wire.Words{Text: "hello"}, &no); err != nil || code != http.StatusConflict || no.Code != "cannot_hear" {
			t.Errorf("told a plain program: %d %v %+v", code, err, no)
		}
		if out, code := tells(p, n, plain, "hello"); code != 1 || !strings.Contains(out, "Cancel it and send a new task") {
			t.Errorf("told a plain program: exit %d\n%s", code, out)
		}
		p.Must(os.WriteFile(filepath.Join(p.Dir, "done"), nil, 0o600))
		n.Through(plain)
	})
}

// The page of a task has a box for it, for whoever asked for the task and who may control it; what
// is refused keeps its text.
func TestThePageOfATaskSaysItToItsAgent(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := hearingPlace(t, database, func(modeltest.Ask) modeltest.Answer { return modeltest.Say("unused") })
		olga := p.Person("olga", people.Operator)
		n := p.Start(p.Config, "")
		p.Asker = olga
		task := n.Send("lines", "", "listen")
		p.Until("the program", func() bool { return p.Exists("begun") })
		root := p.Root(task)
		cleo := p.Person("cleo", people.Approver)
		if code, err := n.Call(http.MethodPost, "/api/v1/delegations/"+root.ID+"/messages", cleo, wire.Words{Text: "hello"}, nil); err != nil || code != http.StatusForbidden {
			t.Errorf("told by somebody else: %d %v", code, err)
		}
		browser := n.Browser("olga")
		href := "/delegations/" + root.ID
		if page := n.Page(browser, href); !strings.Contains(page, "Say something to lines") {
			t.Fatal("the page has no box")
		}
		if page := n.Page(n.Browser("cleo"), href); strings.Contains(page, "Say something to lines") {
			t.Error("the page offers the box to somebody who may not use it")
		}
		long := strings.Repeat("x", orchestrator.MaxMessage+1)
		if code, page := n.Post(browser, href+"/messages", url.Values{"text": {long}}); code != http.StatusBadRequest || !strings.Contains(page, "8192 is the limit") || !strings.Contains(page, long) {
			t.Errorf("too long: %d", code)
		}
		if code, _ := n.Post(browser, href+"/messages", url.Values{"text": {"in <French>"}, "key": {"one"}}); code != http.StatusOK {
			t.Errorf("said on the page: %d", code)
		}
		n.Through(task)
		if page := n.Page(browser, href); !strings.Contains(page, "in &lt;French&gt;") || strings.Contains(page, "not told yet") {
			t.Error("the page does not show what was said and read")
		}
	})
}
