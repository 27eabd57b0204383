package acp

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"gatehouse/orchestrator/agent"
)

// askingModes are the modes in which known programs ask before they act: Claude and Gemini
// call theirs default, Codex read-only. The first that a session offers is set before the
// first prompt; without one the program has only one way, such as opencode.
var askingModes = []string{"default", "read-only"}

// safeMeta goes with a session when it is made and again when it is loaded. Claude would else
// take hooks, servers and addresses from the checkout's own settings, and run them. It reads no
// settings of its user either: these lie in its state, which a call that people allowed can
// write, so that the next session would allow itself everything.
func safeMeta() map[string]any {
	return map[string]any{"claudeCode": map[string]any{"options": map[string]any{"settingSources": []string{}}}}
}

// obeyed are the files of a checkout that a program obeys whatever its settings are, by a part
// of its own name. opencode 1.18 runs the plugins that they name, also with --pure. codex-acp 2.6
// trusts every folder of a session, so its .codex starts servers and sets the mode; Gemini is
// told to trust it, which it would not start without.
var obeyed = map[string][]string{
	"opencode": {".opencode", "opencode.json", "opencode.jsonc"},
	"codex":    {".codex"},
	"gemini":   {".gemini", ".env"},
}

// obeys is such a file that is in the checkout; "" where none is.
func (t *Dialogue) obeys(can capabilities) string {
	for name, paths := range obeyed {
		if !can.named(t.Program, name) {
			continue
		}
		for _, path := range paths {
			if _, err := os.Lstat(filepath.Join(t.Dir, path)); err == nil {
				return path
			}
		}
	}
	return ""
}

// bound are programs that go on with a session in the folder alone in which it began, which is
// gone. opencode 1.18 never hears the answer to what it asks in another one.
var bound = []string{"opencode"}

// named reports whether the name of the program has one of these in it.
func (can capabilities) named(program string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool {
		return strings.Contains(strings.ToLower(can.AgentInfo.Name+" "+program), part)
	})
}

// capabilities are what a program says of itself.
type capabilities struct {
	ProtocolVersion int `json:"protocolVersion"`
	AgentInfo       struct {
		Name string `json:"name"`
	} `json:"agentInfo"`
	AgentCapabilities struct {
		LoadSession     bool `json:"loadSession"`
		MCPCapabilities struct {
			HTTP bool `json:"http"`
		} `json:"mcpCapabilities"`
	} `json:"agentCapabilities"`
	AuthMethods []struct {
		ID string `json:"id"`
	} `json:"authMethods"`
}

// keyMethod is the way to sign in that takes a key out of the program's own environment, ""
// where there is none: Codex wants to be told to take it.
func (c capabilities) keyMethod() string {
	for _, m := range c.AuthMethods {
		if strings.HasSuffix(m.ID, "api-key") {
			return m.ID
		}
	}
	return ""
}

// session is the answer to session/new and session/load.
type session struct {
	ID    string `json:"sessionId"`
	Modes *struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
}

// asking is the mode to set, "" for none.
func (s session) asking() string {
	if s.Modes == nil {
		return ""
	}
	for _, mode := range askingModes {
		for _, offered := range s.Modes.Available {
			if offered.ID == mode {
				return mode
			}
		}
	}
	return ""
}

// servers are the MCP servers of the agent as the protocol names them.
func servers(spec agent.Spec, can capabilities) ([]sdk.McpServer, error) {
	all := []sdk.McpServer{}
	for _, m := range spec.MCP {
		if m.URL == "" {
			s := sdk.McpServerStdio{Name: m.Name, Command: m.Command[0], Args: append([]string{}, m.Command[1:]...), Env: []sdk.EnvVariable{}}
			for _, name := range slices.Sorted(maps.Keys(m.Env)) {
				s.Env = append(s.Env, sdk.EnvVariable{Name: name, Value: m.Env[name]})
			}
			all = append(all, sdk.McpServer{Stdio: &s})
			continue
		}
		if !can.AgentCapabilities.MCPCapabilities.HTTP {
			return nil, agent.Fail(agent.CodeStart, "%s takes no MCP server by its address, and %s has one. Give the server a `command`, or take it out of `mcp`.", spec.Name, m.Name)
		}
		s := sdk.McpServerHttpInline{Name: m.Name, Url: m.URL, Headers: []sdk.HttpHeader{}}
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			s.Headers = append(s.Headers, sdk.HttpHeader{Name: name, Value: m.Headers[name]})
		}
		all = append(all, sdk.McpServer{Http: &s})
	}
	return all, nil
}

// use makes a session the one that is talked in, once it is in a mode in which it asks; billed is
// what was reported of its price.
func (t *Dialogue) use(ctx context.Context, s session, billed float64) error {
	if s.ID == "" || len(s.ID) > maxSession {
		return agent.Fail(agent.CodeProtocol, "%s began a session without a name that can be kept. Install another release of it.", t.Program)
	}
	if mode := s.asking(); mode != "" {
		_, err := ask[struct{}](ctx, t, sdk.AgentMethodSessionSetMode, sdk.SetSessionModeRequest{SessionId: sdk.SessionId(s.ID), ModeId: sdk.SessionModeId(mode)})
		if refused, ok := errors.AsType[*sdk.RequestError](err); ok {
			return agent.Fail(agent.CodeStart, "%s offers the mode %s, in which it asks before it acts, and did not take it, so it was not given the task: %s", t.Program, mode, t.told(refused))
		}
		if err != nil {
			return err
		}
	}
	t.mu.Lock()
	t.id = s.ID
	t.billed = billed
	t.cost = billed // what a replay says of it may be of the lost attempt, too
	t.mu.Unlock()
	return t.keep()
}
