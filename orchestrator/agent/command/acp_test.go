package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

func TestAnACPAgentTellsAStory(t *testing.T) {
	job := acpAgent(t, "works", func(job *agent.Job) {
		job.Agent.MCP = []agent.MCPServer{
			{Name: "deploy", Command: []string{"deployer", "--stdio"}, Env: map[string]string{"B": "2", "A": "1"}},
			{Name: "docs", URL: "http://127.0.0.1:1/mcp", Headers: map[string]string{"X-Team": "us"}}}
		job.Handover = &agent.Handover{Update: agent.HandoverUpdate{}}
	})
	host := agenttest.NewHost()
	res, err := run(t, job, host)
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "All is done." {
		t.Errorf("answer %q", res.Text)
	}
	if u := host.Used(); u.InputTokens != 10 || u.OutputTokens != 2 || u.USD == nil || *u.USD != 0.25 {
		t.Errorf("usage %+v", u)
	}
	if shown, _ := host.Shown(); !strings.Contains(shown, "I look around.") || !strings.Contains(shown, "a line of its logger") || strings.Contains(shown, "All is done.") {
		t.Errorf("progress %q", shown)
	}
	parts := map[string]string{}
	for _, d := range host.Deltas() {
		parts[fmt.Sprint(d.Kind, d.Turn)] += d.Text
	}
	if parts["text1"] != "I look around." || parts["text2"] != "All is done." || parts["thinking1"] != "hm" || len(parts) != 3 {
		t.Errorf("parts %v", parts)
	}
	asked := false
	want := []agent.Report{
		{Plan: []agent.PlanStep{{Text: "read", State: "in_progress"}, {Text: "write", State: "pending"}}},
		{Call: &agent.ToolCall{ID: "t1", Tool: "Edit", Title: "Edit a.txt", Input: json.RawMessage(`{"path":"` + filepath.Join(job.Dir, "a.txt") + `"}`)}},
		{Call: &agent.ToolCall{ID: "t1", Tool: "Edit", Title: "Edit a.txt", Ended: true, OK: true, Text: "edited", Diffs: []agent.FileDiff{{Path: "a.txt", Old: "one", New: "two"}}}},
		{Asked: &asked},
	}
	got, _ := json.Marshal(host.Reports())
	if wanted, _ := json.Marshal(want); string(got) != string(wanted) {
		t.Errorf("reports\n%s, want\n%s", got, wanted)
	}
	if host.Session() != "0 0.25 s1" {
		t.Errorf("session %q", host.Session())
	}
	began := heard(t, job, "session/new")
	if len(began) != 1 || !strings.Contains(began[0], `"_meta":{"claudeCode":{"options":{"settingSources":[]}}}`) || !strings.Contains(began[0], `"cwd":"`+job.Dir+`"`) ||
		!strings.Contains(began[0], `"command":"deployer","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]`) || !strings.Contains(began[0], `"url":"http://127.0.0.1:1/mcp"`) {
		t.Errorf("session/new: %s", began)
	}
	log := mustRead(t, filepath.Join(job.Dir, "acp.log"))
	mode, prompt := strings.Index(log, `"modeId":"default"`), strings.Index(log, `"session/prompt"`)
	if mode < 0 || mode > prompt || !strings.Contains(log[prompt:], "fix it") || !strings.Contains(log[prompt:], agent.HandoverHeading) {
		t.Errorf("what it heard: %s", log)
	}
}

// answering lets people say one thing to every call.
func answering(said agent.Answer) *agenttest.Host {
	host := agenttest.NewHost()
	host.OnAsk = func(agent.Ask) agent.Answer { return said }
	return host
}

func TestACallIsMadeOnceAndForNobodyElse(t *testing.T) {
	for name, c := range map[string]struct {
		behaviour string
		said      agent.Answer
		answer    string
		tool      string
		input     string
		told      string // in the next prompt, "" where there is none
	}{
		"yes":             {"asks", agent.Answer{State: agent.AskAllowed}, "chose once;", "Bash", `{"command":"git push"}`, ""},
		"no":              {"asks", agent.Answer{State: agent.AskRefused}, "chose no;", "Bash", `{"command":"git push"}`, "Nobody allowed it."},
		"no, with words":  {"asks", agent.Answer{State: agent.AskRefused, Text: "Not on a Friday."}, "chose no;", "Bash", `{"command":"git push"}`, "Not on a Friday."},
		"nobody answered": {"asks", agent.Answer{State: agent.AskExpired, Text: "Nobody decided in time."}, "chose no;", "Bash", `{"command":"git push"}`, "Nobody decided in time."},
		"begun before":    {"asks", agent.Answer{State: agent.AskAllowed, Begun: true}, "chose no;", "Bash", `{"command":"git push"}`, "it may have been made"},
		"codex, yes":      {"asks as codex", agent.Answer{State: agent.AskAllowed}, "", "execute", `{"command":["ls"]}`, ""},
		"for good alone":  {"asks for good", agent.Answer{State: agent.AskAllowed}, "chose cancelled", "Bash", `{"command":"git push"}`, "for good"},
		"early":           {"asks early", agent.Answer{State: agent.AskAllowed}, "chose once", "mcp_deploy_restart", `{"host":"web1"}`, ""},
		"without words":   {"asks without words", agent.Answer{State: agent.AskAllowed}, "chose once", "mcp_deploy_restart", `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := acpAgent(t, c.behaviour, func(job *agent.Job) { job.Agent.MCP = []agent.MCPServer{{Name: "deploy", Command: []string{"x"}}} })
			host := answering(c.said)
			first := true
			host.OnAsk = func(agent.Ask) agent.Answer {
				if !first { // what is asked again is allowed, so that the story ends
					return agent.Answer{State: agent.AskAllowed}
				}
				first = false
				return c.said
			}
			res, err := run(t, job, host)
			if c.behaviour == "asks as codex" {
				if f, ok := errors.AsType[*agent.Failure](err); !ok || !strings.Contains(f.Message, "broke its turn off") {
					t.Fatalf("ended with %v", err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			asks := host.Asked()
			if len(asks) == 0 || asks[0].Action == nil || asks[0].Action.Tool != c.tool || string(asks[0].Action.Input) != c.input || asks[0].Ref == "" {
				t.Fatalf("asked %+v", asks)
			}
			if want := map[bool]string{true: "deploy"}[strings.HasPrefix(c.tool, "mcp_")]; asks[0].Action.Server != want {
				t.Errorf("of the server %q", asks[0].Action.Server)
			}
			prompts := heard(t, job, "session/prompt")
			if c.told == "" {
				if len(prompts) != 1 || res.Text != c.answer {
					t.Errorf("%d prompts, answer %q", len(prompts), res.Text)
				}
				return
			}
			if len(prompts) < 2 || !strings.Contains(prompts[1], c.told) {
				t.Errorf("prompts %q", prompts)
			}
			if shown := mustRead(t, filepath.Join(job.Dir, "acp.log")); strings.Contains(shown, `"optionId":"always"`) {
				t.Error("it was allowed for good")
			}
		})
	}
}

func TestCodexIsRefusedByItsOwnWord(t *testing.T) {
	job := acpAgent(t, "asks as codex")
	no := true
	host := agenttest.NewHost()
	host.OnAsk = func(agent.Ask) agent.Answer {
		if no {
			no = false
			return agent.Answer{State: agent.AskRefused, Text: "Too dear."}
		}
		return agent.Answer{State: agent.AskAllowed}
	}
	_, _ = run(t, job, host)
	if log := mustRead(t, filepath.Join(job.Dir, "acp.log")); !strings.Contains(log, `"optionId":"cancel"`) || !strings.Contains(log, "Too dear.") {
		t.Errorf("it heard %s", log)
	}
}

func TestAsksUnderOneIDAreSeveral(t *testing.T) {
	job := acpAgent(t, "asks twice under one id")
	host := agenttest.NewHost()
	all := make(chan struct{})
	seen := make(chan string, 3)
	host.OnAsk = func(a agent.Ask) agent.Answer {
		seen <- a.Action.Tool
		if len(seen) == 3 {
			close(all) // so they are open at once
		}
		<-all
		return agent.Answer{State: agent.AskAllowed}
	}
	res, err := run(t, job, host)
	if err != nil || res.Text != "chose once once once" {
		t.Fatalf("%q, %v", res.Text, err)
	}
	var refs, tools []string
	for _, a := range host.Asked() {
		refs, tools = append(refs, a.Ref), append(tools, a.Action.Tool)
	}
	slices.Sort(refs)
	slices.Sort(tools)
	if len(slices.Compact(refs)) != 3 || !slices.Equal(tools, []string{"edit", "edit", "external_directory"}) {
		t.Errorf("refs %v of %v", refs, tools)
	}
}

// What a person made of a call passes once, and only so.
func TestAnEditedCallIsMadeAnewAndPassesOnce(t *testing.T) {
	job := acpAgent(t, "pushes until it may")
	host := agenttest.NewHost()
	host.OnAsk = func(a agent.Ask) agent.Answer {
		if string(a.Action.Input) == `{"command":"git push"}` {
			return agent.Answer{State: agent.AskAllowed, Edited: true, Input: json.RawMessage(`{"command": "git push --dry-run"}`)}
		}
		return agent.Answer{State: agent.AskRefused, Text: "Once is enough."}
	}
	_, err := run(t, job, host)
	if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Code != agent.CodeLoop { // it never stops asking
		t.Fatalf("ended with %v", err)
	}
	prompts := heard(t, job, "session/prompt")
	if !strings.Contains(prompts[1], `git push --dry-run`) || !strings.Contains(prompts[1], "exactly this input") {
		t.Errorf("told %s", prompts[1])
	}
	if shown, _ := host.Shown(); strings.Count(shown, "once no") > 1 {
		t.Errorf("shown %s", shown)
	}
	if n := len(host.Asked()); n != 2+2*(len(prompts)-2) {
		t.Errorf("asked %d times in %d prompts", n, len(prompts))
	}
}

func TestWhatNobodyCanJudgeIsNotAsked(t *testing.T) {
	for behaviour, why := range map[string]string{
		"can be read in two ways": "two ways", "tells late what can be read in two ways": "two ways", "asks too much": "256 kB"} {
		t.Run(behaviour, func(t *testing.T) {
			job, host := acpAgent(t, behaviour), agenttest.NewHost()
			mustNot(t, job, host, agent.CodeLoop)
			if len(host.Asked()) > 0 {
				t.Errorf("asked %+v", host.Asked())
			}
			if log := mustRead(t, filepath.Join(job.Dir, "acp.log")); strings.Contains(log, `"optionId":"once"`) || !strings.Contains(log, why) {
				t.Error("it was allowed, or not told why not")
			}
		})
	}
}

// mustNot runs a job that fails with a code.
func mustNot(t *testing.T, job agent.Job, host agent.Host, code string, words ...string) {
	t.Helper()
	res, err := run(t, job, host)
	f, ok := errors.AsType[*agent.Failure](err)
	if !ok || f.Code != code {
		t.Fatalf("answer %q, error %v; want code %s", res.Text, err, code)
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("the failure lacks %q: %s", w, f.Message)
		}
	}
}

func TestAnACPAgentIsToldToEndItsTurn(t *testing.T) {
	for behaviour, within := range map[string]time.Duration{"waits to be cancelled": 10 * time.Second, "answers after cancel": 10 * time.Second, "deaf": 10 * time.Second} {
		t.Run(behaviour, func(t *testing.T) {
			job := acpAgent(t, behaviour)
			host := agenttest.NewHost()
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := testRunner(t).Run(ctx, job, host)
				ended <- err
			}()
			agenttest.Eventually(t, "it is at work", func() bool { shown, _ := host.Shown(); return strings.Contains(shown, "begun") })
			over := errors.New("cancelled by ann")
			at := time.Now()
			cancel(over)
			if err := <-ended; !errors.Is(err, over) {
				t.Errorf("ended with %v", err)
			}
			if took := time.Since(at); took > within {
				t.Errorf("took %s", took)
			} else {
				t.Logf("gone after %s", took)
			}
			if len(heard(t, job, "session/cancel")) != 1 {
				t.Error("it was not told")
			}
		})
	}
}

func TestAnOpenQuestionIsCancelledWithItsRun(t *testing.T) {
	job := acpAgent(t, "waits for a permission")
	host := agenttest.NewHost()
	ctx, cancel := context.WithCancel(t.Context())
	host.OnAsk = func(agent.Ask) agent.Answer {
		cancel()
		time.Sleep(50 * time.Millisecond)
		return agent.Answer{State: agent.AskAllowed} // too late
	}
	if _, err := testRunner(t).Run(ctx, job, host); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := mustRead(t, filepath.Join(job.Dir, "chosen")); got != "cancelled" {
		t.Errorf("it was answered %q", got)
	}
}

func TestWaitingForAYesDoesNotCountAsRunning(t *testing.T) {
	job := acpAgent(t, "asks", func(job *agent.Job) { job.Agent.Timeout = 2 * time.Second })
	host := agenttest.NewHost()
	host.OnAsk = func(agent.Ask) agent.Answer {
		time.Sleep(3500 * time.Millisecond)
		return agent.Answer{State: agent.AskAllowed}
	}
	if res, err := run(t, job, host); err != nil || res.Text != "chose once;" {
		t.Fatalf("%q, %v", res.Text, err)
	}
}

func TestASessionIsGoneOnWith(t *testing.T) {
	remarks := &agent.Feedback{Comment: "Shorter, please.", Revision: 1}
	for name, c := range map[string]struct {
		behaviour string
		change    func(*agent.Job)
		loads     int
		news      int
		prompt    string
		not       string
		shown     string
	}{
		"after request changes": {"", func(j *agent.Job) { j.Session, j.Generation, j.Feedback = "0 0 s1", 1, remarks }, 1, 0, "Shorter, please.", "fix it", ""},
		"after a lost attempt":  {"", func(j *agent.Job) { j.Session, j.Generation = "1 0 s1", 1 }, 1, 0, "was interrupted", "Shorter", ""},
		"the first time":        {"", func(*agent.Job) {}, 0, 1, "fix it", "interrupted", ""},
		"from the start": {"", func(j *agent.Job) {
			j.Session, j.Feedback = "0 0 s1", &agent.Feedback{Comment: "Anew.", StartOver: true}
		}, 0, 1, "fix it", "interrupted", ""},
		"that is gone":    {"loses", func(j *agent.Job) { j.Session, j.Generation, j.Feedback = "0 0 s1", 1, remarks }, 1, 1, "fix it", "interrupted", "so it begins a new one: No conversation found"},
		"by who can not":  {"forgets", func(j *agent.Job) { j.Session, j.Generation, j.Feedback = "0 0 s1", 1, remarks }, 0, 1, "fix it", "interrupted", "so it begins a new one."},
		"of opencode":     {"OpenCode", func(j *agent.Job) { j.Session, j.Generation, j.Feedback = "0 0 s1", 1, remarks }, 0, 1, "Shorter, please.", "interrupted", "so it begins a new one."},
		"of another kind": {"", func(j *agent.Job) { j.Session = "nonsense" }, 0, 1, "fix it", "interrupted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			job, host := acpAgent(t, c.behaviour, c.change), agenttest.NewHost()
			job.Agent.Env[asACP] += " " // an empty value is no behaviour
			if c.behaviour != "" {
				job.Agent.Env[asACP] = c.behaviour
			}
			res, err := run(t, job, host)
			if err != nil || res.Text != "done" {
				t.Fatalf("%q, %v", res.Text, err)
			}
			loads, news, prompts := heard(t, job, "session/load"), heard(t, job, "session/new"), heard(t, job, "session/prompt")
			if len(loads) != c.loads || len(news) != c.news || len(prompts) != 1 {
				t.Fatalf("%d loads, %d new, %d prompts", len(loads), len(news), len(prompts))
			}
			if !strings.Contains(prompts[0], c.prompt) || strings.Contains(prompts[0], c.not) {
				t.Errorf("prompt %s", prompts[0])
			}
			for _, line := range loads {
				if !strings.Contains(line, `"settingSources":[]`) {
					t.Errorf("loaded with %s", line)
				}
			}
			if len(heard(t, job, "session/set_mode")) != 1 {
				t.Error("its mode was not set")
			}
			if shown, _ := host.Shown(); !strings.Contains(shown, c.shown) || strings.Contains(shown, "said before") {
				t.Errorf("shown %q", shown)
			}
			if len(host.Reports()) > 0 {
				t.Errorf("what was replayed is reported: %+v", host.Reports())
			}
			if want := fmt.Sprintf("%d 0 s1", job.Generation); host.Session() != want {
				t.Errorf("session %q, want %q", host.Session(), want)
			}
		})
	}
}

func TestHowAnACPAgentFails(t *testing.T) {
	for behaviour, c := range map[string]struct {
		code  string
		words []string
	}{
		"dies":              {agent.CodeExit, []string{"ended with code 7", "out of luck"}},
		"leaves":            {agent.CodeProtocol, []string{"before its turn was over"}},
		"huge line":         {agent.CodeProtocol, []string{"a line of more than 8 MB"}},
		"asks without end":  {agent.CodeLoop, []string{"64 things at once"}},
		"talks without end": {agent.CodeOutput, []string{"1000000 bytes"}},
		"not signed in":     {agent.CodeStart, []string{"is not signed in", "Authentication required"}},
		"keeps its mode":    {agent.CodeStart, []string{"did not take it", "no such mode"}},
	} {
		t.Run(behaviour, func(t *testing.T) {
			host := agenttest.NewHost()
			if behaviour == "asks without end" {
				host.OnAsk = func(agent.Ask) agent.Answer {
					time.Sleep(time.Second)
					return agent.Answer{State: agent.AskAllowed}
				}
			}
			mustNot(t, acpAgent(t, behaviour, func(job *agent.Job) { job.Agent.OutputLimit = 1_000_000 }), host, c.code, c.words...)
		})
	}
	for stop, c := range map[string]struct{ code, words string }{
		"max_tokens":        {agent.CodeModel, "no more tokens"},
		"max_turn_requests": {agent.CodeTurns, "as often as it may"},
		"refusal":           {agent.CodeModel, "refused to go on"},
		"cancelled":         {agent.CodeExit, "nobody had told it to"},
		"moonrise":          {agent.CodeProtocol, `"moonrise"`},
	} {
		t.Run("stops by "+stop, func(t *testing.T) {
			mustNot(t, acpAgent(t, "stops", func(job *agent.Job) { job.Agent.Env["STOP"] = stop }), agenttest.NewHost(), c.code, c.words)
		})
	}
}

// Programs that are no agents of this protocol.
func TestWhatIsNoACPAgentIsToldApart(t *testing.T) {
	speaks := func(job *agent.Job) { job.Agent.Protocol = agent.ACP }
	mustFail(t, shell(t, `echo hello; exit 0`, speaks), agent.CodeProtocol, "before its turn was over", "--acp")
	mustFail(t, shell(t, `echo unknown flag >&2; exit 2`, speaks), agent.CodeExit, "unknown flag")
	mustFail(t, shell(t, `cat`, speaks), agent.CodeStart, "began no session")
	mustFail(t, shell(t, `read x; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}'; sleep 100`, speaks), agent.CodeProtocol, "version 7")
}

// A replay of a long session is thousands of updates at once.
func TestAFloodOfUpdatesIsTakenAndBounded(t *testing.T) {
	host := agenttest.NewHost()
	res, err := run(t, acpAgent(t, "floods"), host)
	if err != nil || res.Text != "done" {
		t.Fatalf("%q, %v", res.Text, err)
	}
	if n := len(host.Reports()); n != 1002 {
		t.Errorf("%d reports", n)
	}
	if shown, _ := host.Shown(); !strings.Contains(shown, "more calls than are recorded") {
		t.Error("nobody says that calls are left out")
	}
}

func TestAnACPAgentDoesNotTellItsSecrets(t *testing.T) {
	const key = "correct-horse-battery-staple"
	host := agenttest.NewHost()
	res, err := run(t, acpAgent(t, "tells secrets", func(job *agent.Job) { job.Agent.Env["MY_API_KEY"] = key }), host)
	if err != nil || res.Text != "the key is [secret]" {
		t.Fatalf("%q, %v", res.Text, err)
	}
	said := ""
	for _, d := range host.Deltas() {
		said += d.Text
	}
	all, _ := json.Marshal([]any{host.Reports(), host.Asked()})
	shown, _ := host.Shown()
	if strings.Contains(said+string(all)+shown, key) || !strings.Contains(said, "the key is [secret], in two pieces") || !strings.Contains(string(all), "[secret]") {
		t.Errorf("told %q, %s, %q", said, all, shown)
	}
}

func TestTheNewestMessageIsTheAnswer(t *testing.T) {
	host := agenttest.NewHost()
	res, err := run(t, acpAgent(t, "speaks twice"), host)
	if shown, _ := host.Shown(); err != nil || res.Text != "All is done." || shown != "Warning: no metadata." {
		t.Errorf("%q, %v, shown %q", res.Text, err, shown)
	}
}

func TestAnACPAgentIsToldToTakeItsKey(t *testing.T) {
	if got := mustAnswer(t, acpAgent(t, "takes its key")).Text; got != "done" {
		t.Errorf("got %q", got)
	}
}

// What opencode obeys in a checkout, no setting of it turns off.
func TestAProgramThatObeysTheCheckoutIsNotStartedInIt(t *testing.T) {
	job := acpAgent(t, "OpenCode")
	if got := mustAnswer(t, job).Text; got != "done" {
		t.Fatalf("got %q", got)
	}
	write(t, filepath.Join(job.Dir, "opencode.json"), "{}", 0o600)
	mustNot(t, job, agenttest.NewHost(), agent.CodeStart, "opencode.json", "trust_checkout: true")
	if n := len(heard(t, job, "session/new")); n != 1 {
		t.Errorf("it began %d sessions", n)
	}
	job.Agent.TrustCheckout = true
	if got := mustAnswer(t, job).Text; got != "done" {
		t.Fatalf("got %q", got)
	}
}

func TestAnACPAgentThatStaysIsEnded(t *testing.T) {
	at := time.Now()
	if got := mustAnswer(t, acpAgent(t, "lingers")).Text; got != "done" {
		t.Fatalf("got %q", got)
	}
	t.Logf("ended after %s", time.Since(at))
}
