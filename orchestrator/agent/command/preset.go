package command

import (
	"strconv"
	"strings"

	"gatehouse/orchestrator/agent"
)

// Preset is a coding program that is known to work as an agent: what to write into the
// configuration for it, and what else it needs.
type Preset struct {
	Name     string   // of the agent that the configuration makes
	Title    string   // how its makers call it
	Protocol string   // "" is plain
	Command  []string // the first is the program
	Key      string   // the variable with the secret of the usual provider
	Env      []string // further variables, NAME=VALUE
	SignIn   string   // what to do in place of a key
	Notes    []string // what surprises people, one sentence or two each
	// Played says that our tests play the real program; of the others the command is
	// the one of their documentation.
	Played bool
}

// Presets are the known programs, first those that our tests play. The first ones read their
// task from standard input, write into the folder that they start in, and ask nobody;
// claude-asks and those of protocol acp ask before they act.
func Presets() []Preset {
	return append([]Preset{
		{Name: "claude", Title: "Claude Code", Played: true, Key: "ANTHROPIC_API_KEY", SignIn: "run claude, then /login",
			Command: []string{"claude", "-p", "--permission-mode", "acceptEdits", "--allowedTools", "Write,Edit,Bash"},
			Notes:   []string{"It asks nobody here, so --allowedTools names what it may use."}},
		{Name: "codex", Title: "Codex", Played: true, Key: "CODEX_API_KEY", SignIn: "run codex login",
			Command: []string{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "-c", "allow_login_shell=false", "-"},
			Notes: []string{"Its own sandbox cannot be set up inside ours; the long flag leaves the confining to Gatehouse. Without bubblewrap and Landlock nothing confines it.",
				"It does not read OPENAI_API_KEY."}},
		{Name: "gemini", Title: "Gemini CLI", Key: "GEMINI_API_KEY", SignIn: "run gemini, then /auth",
			Command: []string{"gemini", "--approval-mode", "yolo"}, Env: []string{"GEMINI_CLI_TRUST_WORKSPACE=true"},
			Notes: []string{"Each run has a fresh folder, which it would not trust: GEMINI_CLI_TRUST_WORKSPACE says that it may."}},
		{Name: "opencode", Title: "opencode", Key: "ANTHROPIC_API_KEY", SignIn: "run opencode auth login",
			Command: []string{"opencode", "run"},
			Notes:   []string{"Another provider has another key. Add --model PROVIDER/NAME to command to choose one."}},
		{Name: "crush", Title: "Crush", Key: "ANTHROPIC_API_KEY", SignIn: "run crush and choose a model",
			Command: []string{"crush", "run", "--quiet"},
			Notes:   []string{"Another provider has another key. Add --model PROVIDER/NAME to command to choose one."}},
		{Name: "aider", Title: "Aider", Key: "ANTHROPIC_API_KEY",
			Command: []string{"aider", "--message-file", "/dev/stdin", "--yes-always", "--no-auto-commits", "--no-gitignore", "--no-check-update"},
			Notes: []string{"Commit .aider* to the repository's .gitignore; else its notes become part of every change.",
				"Another provider has another key. Add --model NAME to command to choose one."}},
		{Name: "claude-asks", Title: "Claude Code, asking first", Played: true, Key: "ANTHROPIC_API_KEY", SignIn: "run claude, then /login",
			Command: []string{"claude", "-p", "--permission-mode", "default", "--permission-prompt-tool", "mcp__gatehouse__approve", "--mcp-config",
				`{"mcpServers":{"gatehouse":{"command":"gatehouse","args":["mcp","permission"]}}}`, "--strict-mcp-config", "--setting-sources", ""},
			Notes: []string{"It asks through an MCP server of its run, gatehouse mcp permission, about whatever its mode default asks about.",
				"Neither a checkout's .claude/settings.json and .mcp.json nor the user's settings are read."}},
	}, acpPresets()...)
}

// acpPresets are programs of the Agent Client Protocol. What their sessions need to be safe
// is no part of the configuration: package acp has it.
func acpPresets() []Preset {
	return []Preset{
		{Name: "claude-acp", Title: "Claude Code, asking first (ACP)", Played: true, Protocol: agent.ACP, Key: "ANTHROPIC_API_KEY", SignIn: "run claude, then /login",
			Command: []string{"claude-agent-acp"}, Env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1", "ENABLE_TOOL_SEARCH=false"},
			Notes: []string{"npm install -g @agentclientprotocol/claude-agent-acp", "Neither a checkout's .claude/settings.json and .mcp.json nor the user's settings are read."}},
		{Name: "codex-acp", Title: "Codex, asking first (ACP)", Played: true, Protocol: agent.ACP, Key: "CODEX_API_KEY", SignIn: "run codex login",
			Command: []string{"codex-acp"}, Env: []string{"INITIAL_AGENT_MODE=read-only", "NO_BROWSER=1"},
			Notes: []string{"npm install -g @agentclientprotocol/codex-acp", "It asks where its own sandbox does not let a command pass; what passes there is not asked.",
				"It trusts its folder, so it is not started where a checkout has .codex, unless trust_checkout: true."}},
		{Name: "opencode-acp", Title: "opencode, asking first (ACP)", Played: true, Protocol: agent.ACP, Key: "ANTHROPIC_API_KEY", SignIn: "run opencode auth login",
			Command: []string{"opencode", "acp", "--pure"},
			Env: []string{`OPENCODE_PERMISSION={"*":"ask"}`, "OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
			Notes: []string{"Another provider has another key. OPENCODE_CONFIG under env names a file with the model.",
				"It runs plugins of the checkout whatever it is told, so it is not started where there is a .opencode or opencode.json, unless trust_checkout: true.",
				"Of ~/.config/opencode it reads which model answers, in a copy of the run's own, and nothing that allows a call.",
				"After \"request changes\" it begins a new session: in one of before it never hears the answer to what it asks.",
				"A tool of its subagents hangs instead of asking; the agent's timeout ends it."}},
		{Name: "gemini-acp", Title: "Gemini CLI, asking first (ACP)", Protocol: agent.ACP, Key: "GEMINI_API_KEY", SignIn: "run gemini, then /auth",
			Command: []string{"gemini", "--acp", "--skip-trust"},
			Notes:   []string{"Each run has a fresh folder, which it would not trust: --skip-trust says that it may. So it is not started where a checkout has .gemini or .env, unless trust_checkout: true."}},
	}
}

// YAML is the preset as lines below `agents:`, for an agent that works on a repository.
// What is written in quotes is JSON, which YAML reads as the same text.
func (p Preset) YAML(repository string) string {
	quoted := func(words []string) []string {
		out := make([]string, len(words))
		for i, word := range words {
			out[i] = strconv.Quote(word)
		}
		return out
	}
	env := []string{p.Key + `: "${` + p.Key + `}"`}
	for _, e := range p.Env {
		name, value, _ := strings.Cut(e, "=")
		env = append(env, name+": "+strconv.Quote(value))
	}
	protocol := ""
	if p.Protocol != "" {
		protocol = "    protocol: " + p.Protocol + "\n"
	}
	return "  " + p.Name + ":\n" +
		"    kind: command\n" + protocol +
		"    repository: " + strconv.Quote(repository) + "\n" +
		"    command: [" + strings.Join(quoted(p.Command), ", ") + "]\n" +
		"    env: {" + strings.Join(env, ", ") + "}\n"
}
