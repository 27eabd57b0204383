package llm

import (
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
)

// The tools' names, as the contract has them.
const (
	listAgentsTool    = "list_agents"
	delegateTool      = "delegate_to_agent"
	handoffTool       = "handoff_to_agent"
	acceptHandoffTool = "accept_handoff"
	spawnTool         = "spawn_agent"
	sharedContextTool = "shared_context"
	readFileTool      = "read_file"
	listFilesTool     = "list_files"
	searchTool        = "search"
	writeFileTool     = "write_file"
	proposePatchTool  = "propose_patch"
	runChecksTool     = "run_checks"
	fetchTool         = "fetch_url"
	commandTool       = "run_command"
	finishTool        = "finish"
	askPersonTool     = "ask_person"
)

// mcpPrefix begins the name of a tool of an MCP server: mcp_SERVER_TOOL.
const mcpPrefix = "mcp_"

// groups are the names that stand for several tools in a policy (P22).
var groups = map[string][]string{
	"group:delegation": {listAgentsTool, delegateTool, handoffTool, acceptHandoffTool, spawnTool},
	"group:context":    {sharedContextTool},
	"group:fs":         {readFileTool, listFilesTool, searchTool, writeFileTool, proposePatchTool},
	"group:checks":     {runChecksTool},
	"group:web":        {fetchTool},
	"group:exec":       {commandTool},
	"group:answer":     {finishTool},
	"group:people":     {askPersonTool},
	"group:mcp":        nil, // all tools of MCP servers, whose names are known only in a run
	"group:all":        nil,
}

// KnownTools returns the names that a policy may use, groups first. Names that begin
// with mcp_ are known, too.
func KnownTools() []string {
	var names, tools []string
	for g, members := range groups {
		names = append(names, g)
		tools = append(tools, members...)
	}
	slices.Sort(names)
	slices.Sort(tools)
	return append(names, tools...)
}

// KnownTool reports whether a policy may use a name.
func KnownTool(name string) bool {
	return strings.HasPrefix(name, mcpPrefix) || slices.Contains(KnownTools(), name)
}

// Allowed reports whether a policy gives a tool to an agent: deny wins, and no allow-list
// allows all (P23). Names that nobody knows, empty groups and repetitions change nothing
// (P22). A tool that leads out of the task is given only where its name or its own group
// stands in the list: no policy does not give it, nor does group:all.
func Allowed(p agent.ToolPolicy, name string) bool {
	if names(p.Deny, name) {
		return false
	}
	if leadsOut(name) {
		return slices.ContainsFunc(p.Allow, func(entry string) bool { return entry == name || slices.Contains(groups[entry], name) })
	}
	return p.Allow == nil || names(p.Allow, name)
}

// leadsOut reports whether a tool reaches beyond the task and its files: to the web, or to
// whatever a program may do.
func leadsOut(name string) bool {
	return slices.Contains(groups["group:web"], name) || slices.Contains(groups["group:exec"], name)
}

// RunsCommands reports whether an agent's model may run commands.
func RunsCommands(s agent.Spec) bool {
	return s.Kind == agent.LLM && !s.AnalysisOnly && Allowed(s.Tools, commandTool)
}

// mayFinish reports whether an agent is offered the tool that ends its work. It gives no
// power, so that an allow-list need not name it; an empty one leaves it out unless the
// agent's answers have a schema.
func mayFinish(s agent.Spec) bool {
	return !names(s.Tools.Deny, finishTool) && (s.Tools.Allow == nil || len(s.Tools.Allow) > 0 || s.Output != nil)
}

// names reports whether a list names a tool, by itself or by a group.
func names(list []string, tool string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		switch entry {
		case "group:all", tool:
			return true
		case "group:mcp":
			return strings.HasPrefix(tool, mcpPrefix)
		}
		return slices.Contains(groups[entry], tool)
	})
}

// filter is one stage of the pipeline that decides which tools are shown (P25). It gets
// a copy of the list and may only leave tools out; the tools themselves are shared.
type filter func(tool) bool

// shown runs the pipeline. What is left out is never seen by the model (P23).
func shown(all []tool, stages ...filter) []tool {
	var kept []tool
	for _, t := range all {
		if !slices.ContainsFunc(stages, func(keep filter) bool { return !keep(t) }) {
			kept = append(kept, t)
		}
	}
	return kept
}

// delegating reports whether a tool needs other agents.
func delegating(name string) bool { return slices.Contains(groups["group:delegation"], name) }

// analysing leaves an agent that only analyses the tools that change nothing (K45), and
// names the others: a model that calls one all the same is told why it is refused, or people
// are asked where it is a server's tool, since what that does lands nowhere. What it hands on
// is judged at the agent that gets it.
func analysing(spec agent.Spec, all []tool) (given, guarded []tool, denied map[string]bool) {
	if !spec.AnalysisOnly {
		return all, nil, nil
	}
	denied = map[string]bool{}
	given = shown(all, func(t tool) bool {
		denied[t.Name] = t.changes
		return !t.changes
	})
	return given, shown(all, func(t tool) bool { return t.changes && t.server != "" }), denied
}

// refusedAction answers a call of a tool that the rule for analyses keeps from the agent.
func refusedAction(name, tool string) answer {
	return sorry("%s: The rule analysis-only refuses %s: it may change something, and %s only analyses, so nobody is asked about what it does. "+
		"Go on without it, and say in your answer what should be done.", agent.CodeActionRefused, tool, name)
}
