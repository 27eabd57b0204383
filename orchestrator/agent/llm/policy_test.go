package llm_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/budget"
)

var (
	delegation = []string{"list_agents", "delegate_to_agent", "handoff_to_agent", "accept_handoff", "spawn_agent"}
	fileTools  = []string{"read_file", "list_files", "search", "write_file", "propose_patch"}
)

// Which tools a model is shown, by a pipeline of policies (P25): what is denied is never
// among them. The README lists the runs that do not carry the tools of delegation (O24b).
func TestWhichToolsAModelIsShown(t *testing.T) {
	everything := slices.Concat(delegation, []string{"shared_context", "ask_person"}, fileTools, []string{"run_checks", "finish"})
	zero, two := 0, 2
	for _, c := range []struct {
		name string
		job  func(*agent.Job)
		host func(*agenttest.Host)
		hide bool
		want []string
	}{
		{name: "no policy is full access (P23)", want: everything},
		{name: "without a repository there are no files", job: func(j *agent.Job) { j.Dir = "" }, want: append(slices.Clone(delegation), "shared_context", "ask_person", "finish")},
		{name: "one agent alone delegates to nobody (P16, O2)", host: func(h *agenttest.Host) { h.Members = h.Members[:1] }, want: slices.Concat([]string{"shared_context", "ask_person"}, fileTools, []string{"run_checks", "finish"})},
		{name: "the simple tier hands nothing on (O3, H19)", host: func(h *agenttest.Host) { h.Left = budget.Limits{Handoffs: &zero} }, want: slices.Concat([]string{"shared_context", "ask_person"}, fileTools, []string{"run_checks", "finish"})},
		{name: "a tier with hand-overs does", host: func(h *agenttest.Host) { h.Left = budget.Limits{Handoffs: &two} }, want: everything},
		{name: "groups expand (P22)", job: policy([]string{"group:context", "group:checks"}, nil), want: []string{"shared_context", "run_checks", "finish"}},
		{name: "the web is given by its name alone (P22)", job: policy([]string{"group:web", "search"}, nil), want: []string{"search", "fetch_url", "finish"}},
		{name: "and so are commands (P22)", job: policy([]string{"group:all", "run_command"}, []string{"group:delegation", "group:fs"}), want: []string{"shared_context", "ask_person", "run_checks", "run_command", "finish"}},
		{name: "but not to an analysis (K45)", job: func(j *agent.Job) {
			policy([]string{"search", "group:exec"}, nil)(j)
			j.Agent.AnalysisOnly = true
		}, want: []string{"search", "finish"}},
		{name: "the web is not given where it is denied, or the network is off", job: func(j *agent.Job) {
			policy([]string{"fetch_url", "search"}, nil)(j)
			j.Agent.Network = agent.NetworkOff
		}, want: []string{"search", "finish"}},
		{name: "deny wins over allow (P23)", job: policy([]string{"group:all"}, []string{"group:delegation", "write_file", "propose_patch"}), want: []string{"shared_context", "ask_person", "read_file", "list_files", "search", "run_checks", "finish"}},
		{name: "unknown names, empty groups and repetitions change nothing (P22)", job: policy([]string{"group:nothing", "", "group:mcp", "search", "search", "rm"}, []string{"who"}), want: []string{"search", "finish"}},
		{name: "an empty allow-list allows nothing (P23)", job: policy([]string{}, nil), want: nil},
		{name: "not even the end of the work, which needs no name in a list", job: policy([]string{"search"}, []string{"finish"}), want: []string{"search"}},
		{name: "but for an agent whose answers have a schema", job: func(j *agent.Job) {
			j.Agent.Output = json.RawMessage(`{"type":"object"}`)
			policy([]string{}, nil)(j)
		}, want: []string{"finish"}},
		{name: "at the depth limit the tools stay (P59, X4)", host: atDepth, want: everything},
		{name: "or are hidden from a leaf by the setting (P24, X4)", host: atDepth, hide: true, want: slices.Concat([]string{"shared_context", "ask_person"}, fileTools, []string{"run_checks", "finish"})},
		{name: "whatever refuses each of the others (P24, X1)", host: refusedByMany, hide: true, want: slices.Concat([]string{"shared_context", "ask_person"}, fileTools, []string{"run_checks", "finish"})},
		{name: "an analysis is given what changes nothing (K45)", job: func(j *agent.Job) { j.Agent.AnalysisOnly = true }, want: slices.Concat(delegation, []string{"shared_context", "ask_person", "read_file", "list_files", "search", "run_checks", "finish"})},
		{name: "which still reads what was handed over (H7)", host: atDepth, job: func(j *agent.Job) { j.Handover = &agent.Handover{} }, hide: true, want: slices.Concat([]string{"accept_handoff", "shared_context", "ask_person"}, fileTools, []string{"run_checks", "finish"})},
		{name: "who was handed work keeps the tools when the last hand-over was used (P59)", host: func(h *agenttest.Host) { h.Left = budget.Limits{Handoffs: &zero} }, job: func(j *agent.Job) { j.From = "helper" }, want: everything},
		{name: "in the middle of a chain they stay in any case (P24)", hide: true, want: everything},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, host := task("Work."), team()
			job.Dir = t.TempDir()
			if c.job != nil {
				c.job(&job)
			}
			if c.host != nil {
				c.host(host)
			}
			s := &script{steps: []step{says("{}")}}
			r := runnerOf(s, func(o *llm.Options) {
				o.Settings, o.Commands = func() llm.Settings { return llm.Settings{HideAtDepth: c.hide} }, noCommands{}
			})
			if _, err := agenttest.Drive(t.Context(), r, job, host); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range s.requests()[0].Tools {
				got = append(got, tool.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("shown %v; want %v", got, c.want)
			}
		})
	}
}

// noCommands gives the tool and runs nothing.
type noCommands struct{ llm.Commands }

func (noCommands) Confines(context.Context, agent.Spec) (string, error) { return "landlock", nil }

func policy(allow, deny []string) func(*agent.Job) {
	return func(j *agent.Job) { j.Agent.Tools = agent.ToolPolicy{Allow: allow, Deny: deny} }
}

func atDepth(h *agenttest.Host) {
	for i := range h.Members {
		h.Members[i].Refused = "max_depth"
	}
	h.Members[0].Refused = "self"
}

// refusedByMany is the last of a chain under a strict cycle: those above are refused first.
func refusedByMany(h *agenttest.Host) {
	for i := range h.Members {
		h.Members[i].Refused = []string{"cycle", "max_depth", "not_allowed"}[i%3]
	}
	h.Members[0].Refused = "self"
}

// A denied tool that is called all the same is not run (P23).
func TestADeniedToolIsNotRun(t *testing.T) {
	job, host := task("Work."), team()
	job.Dir = t.TempDir()
	job.Agent.Tools.Deny = []string{"write_file"}
	if _, _, err := play(t, host, job, calls(call("a", "write_file", `{"path":"x","content":"x"}`)), says("done")); err != nil {
		t.Fatal(err)
	}
	has(t, results(t, host.Turns(), 0)[0].Text, `no tool "write_file"`)
	if _, err := os.Stat(job.Dir + "/x"); err == nil {
		t.Error("the file was written")
	}
}

// A team that changes between two attempts does not change the tools in mid-talk: once
// work was handed on, they stay (P59).
func TestToolsStayInMidTalk(t *testing.T) {
	zero := 0
	host := team()
	first := &script{steps: []step{calls(call("a", "delegate_to_agent", `{"agent":"helper","task":"x"}`)), says("done")}}
	if _, err := agenttest.Drive(t.Context(), runnerOf(first), task("Work."), host); err != nil {
		t.Fatal(err)
	}
	host.Left = budget.Limits{Handoffs: &zero}
	again := team()
	again.Left = host.Left
	again.Begin(host.Turns()[:3])
	s := &script{steps: []step{says("done")}}
	if _, err := agenttest.Drive(t.Context(), runnerOf(s), task("Work."), again); err != nil {
		t.Fatal(err)
	}
	if s.requests()[0].Tools[1].Name != "delegate_to_agent" {
		t.Errorf("tools are %+v", s.requests()[0].Tools)
	}
}

// Each tool has its prompt in the file beside it, and a schema that providers take.
func TestEveryToolHasItsPrompt(t *testing.T) {
	job, host := task("Work."), team()
	job.Dir = t.TempDir()
	job.Agent.Tools.Allow = []string{"group:all", "group:web", "group:exec"}
	s := &script{steps: []step{says("done")}}
	if _, err := agenttest.Drive(t.Context(), runnerOf(s, func(o *llm.Options) { o.Commands = noCommands{} }), job, host); err != nil {
		t.Fatal(err)
	}
	tools := s.requests()[0].Tools
	if len(tools) != len(slices.DeleteFunc(llm.KnownTools(), func(n string) bool { return strings.HasPrefix(n, "group:") })) {
		t.Errorf("%d tools are shown, KnownTools has %v", len(tools), llm.KnownTools())
	}
	for _, tool := range tools {
		if _, err := fs.Stat(os.DirFS("."), "tool_"+tool.Name+".md"); err != nil {
			t.Error(err)
		}
		has(t, string(tool.Schema), `"type":"object"`, `"required":[`)
		if len(tool.Description) < 60 {
			t.Errorf("%s says only %q", tool.Name, tool.Description)
		}
	}
	for _, tool := range tools[1:3] { // P14
		has(t, tool.Description, "- helper, can: review. Reads what others wrote.")
	}
}

// recorder is a hook that remembers what it saw, and blocks a tool.
type recorder struct {
	blocks string
	seen   []string
}

func (h *recorder) Before(_ context.Context, c llm.Call) llm.Verdict {
	h.seen = append(h.seen, "before "+c.Tool)
	if c.Tool == h.blocks {
		return llm.Verdict{Block: "not today"}
	}
	return llm.Verdict{}
}

func (h *recorder) After(_ context.Context, c llm.Call, text string, isError bool) llm.Verdict {
	word := "after "
	if c.Blocked {
		word = "after blocked "
	}
	h.seen = append(h.seen, word+c.Tool)
	return llm.Verdict{Note: "seen"}
}

// Hooks stand before and after each call, in a chain: before may block, after always
// comes, also for a tool that nobody knows (P20).
func TestHooksStandAroundEachCall(t *testing.T) {
	one, two := &recorder{blocks: "list_agents"}, &recorder{}
	host := team()
	s := &script{steps: []step{calls(call("a", "list_agents", `{}`), call("b", "who_knows", `{}`), call("c", "delegate_to_agent", `{"agent":"helper","task":"x"}`)), says("done")}}
	r := runnerOf(s, func(o *llm.Options) {
		o.Hooks = []func(agent.Job) llm.Hook{func(agent.Job) llm.Hook { return one }, func(agent.Job) llm.Hook { return two }}
	})
	if _, err := agenttest.Drive(t.Context(), r, task("Work."), host); err != nil {
		t.Fatal(err)
	}
	got := results(t, host.Turns(), 0)
	if !got[0].IsError || !strings.HasPrefix(got[0].Text, "not today") {
		t.Errorf("the blocked call answered %+v", got[0])
	}
	has(t, got[1].Text, "no tool", "Note: seen seen")
	for _, h := range []*recorder{one, two} {
		// The message was worked on twice: before its hop was made, and after it came back.
		want := "before list_agents, before who_knows, before delegate_to_agent, after blocked list_agents, after who_knows, after delegate_to_agent"
		if all := strings.Join(h.seen, ", "); !strings.HasSuffix(all, want) {
			t.Errorf("saw %s", all)
		}
	}
}
