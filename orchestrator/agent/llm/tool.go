package llm

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/strictjson"
	"gatehouse/orchestrator/textcut"
)

// prompts are what the models read about the tools, each beside its tool's file.
//
//go:embed tool_*.md
var prompts embed.FS

// tool is one tool of one run. It either runs or hands on.
type tool struct {
	model.Tool
	alone bool // changes something: it is not run beside others
	// changes says that it may change the files or the world beyond the task, so that an
	// agent that only analyses is not given it (K45).
	changes bool
	run     func(ctx context.Context, call agent.Block) (answer, error)
	server  string                                            // whose tool it is, "" for our own
	hints   agent.Hints                                       // that its server gives
	asks    func(call agent.Block) (*agent.Question, *answer) // what it asks people; nil for the others
	// hops are the hand-overs that the call asks for, or the answer that says what is
	// wrong with it. They must be the same each time.
	hops func(call agent.Block) ([]agent.Hop, *answer)
}

// describe makes what a model sees of a tool. The schema is an object's properties.
func describe(name, schema string, required ...string) model.Tool {
	prompt, err := prompts.ReadFile("tool_" + name + ".md")
	if err != nil {
		prompt = []byte(name) // a test holds that every tool has its file
	}
	if required == nil {
		required = []string{}
	}
	whole, err := json.Marshal(map[string]any{"type": "object", "properties": json.RawMessage("{" + schema + "}"), "required": required})
	if err != nil {
		whole = []byte(`{"type":"object"}`)
	}
	return model.Tool{Name: name, Description: strings.TrimSpace(string(prompt)), Schema: whole}
}

// typed makes a tool's run from a function of its input.
func typed[In any](run func(ctx context.Context, in In) (answer, error)) func(context.Context, agent.Block) (answer, error) {
	return func(ctx context.Context, call agent.Block) (answer, error) {
		var in In
		if a := decode(call, &in); a != nil {
			return *a, nil
		}
		return run(ctx, in)
	}
}

// decode reads a call's input. Fields that the tool does not know are ignored, as models
// like to add some.
func decode(call agent.Block, in any) *answer {
	err := strictjson.Into(call.Input, in, strictjson.MaxDepth)
	if err == nil {
		return nil
	}
	a := sorry("The input of %s cannot be read: %v.", call.Name, err)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		a = sorry("The input of %s is wrong: %q must be of type %s, not %s.", call.Name, wrong.Field, kindOf(wrong.Type.Kind().String()), wrong.Value)
	}
	return &a
}

// kindOf says a Go kind as JSON's.
func kindOf(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"), strings.HasPrefix(kind, "float"):
		return "number"
	case kind == "slice":
		return "array"
	case kind == "map", kind == "struct":
		return "object"
	case kind == "bool":
		return "boolean"
	}
	return kind
}

// Toolbox is a set of further tools, such as those of an MCP server.
type Toolbox interface {
	// Tools lists what there is. Their names begin with mcp_.
	Tools() []model.Tool
	// ReadOnly reports whether a tool changes nothing, as its server or the settings say.
	ReadOnly(name string) bool
	// Origin says whose tool it is, and what its server says of it.
	Origin(name string) (server string, hints agent.Hints)
	// Away says what could not be reached, as sentences for the model.
	Away() []string
	// Call runs one. A tool that fails, or whose server is away, is a text and true; an
	// error ends the run.
	Call(ctx context.Context, name string, input json.RawMessage) (text string, isError bool, err error)
	// Close ends everything that was started.
	Close() error
}

// Opener opens a toolbox for one run; nil when the agent has nothing in it.
type Opener func(ctx context.Context, job agent.Job, host agent.Host) (Toolbox, error)

// open gets everything ready that the stored turns do not hold.
func (c *conversation) open(ctx context.Context, o Options) error {
	c.ids, c.spawned = map[string]bool{}, map[string]bool{}
	for _, t := range c.turns {
		for _, call := range t.Message.Calls() {
			c.ids[call.ID] = true
		}
	}
	for _, child := range c.job.Children {
		if child.Spawn && child.ID != "" && !child.Ended {
			c.spawned[child.ID] = true
		}
	}
	var err error
	if c.members, err = c.host.Roster(ctx); err != nil {
		return err
	}
	for _, opener := range o.Toolboxes {
		box, err := opener(ctx, c.job, c.host)
		if err != nil {
			return err
		}
		if box != nil {
			c.boxes = append(c.boxes, box)
		}
	}
	if err := c.chooseTools(ctx); err != nil {
		return err
	}
	c.system = c.systemPrompt()
	c.loop = NewDetector(c.settings.Loop)
	c.loop.Replay(ctx, c.turns[c.job.Carried:])
	if c.mayFetch = o.MayFetch; c.mayFetch == nil {
		c.mayFetch = publicOnly
	}
	c.hooks = hooks{c.loop}
	for _, hook := range o.Hooks {
		c.hooks = append(c.hooks, hook(c.job))
	}
	c.hooks = append(c.hooks, c.programHooks(o.Commands)...)
	return nil
}

// close ends what open started.
func (c *conversation) close() error {
	var all error
	for _, box := range c.boxes {
		all = errors.Join(all, box.Close())
	}
	return all
}

// chooseTools gathers the tools that fit the run and passes them through the policy.
func (c *conversation) chooseTools(ctx context.Context) error {
	alone, err := c.standsAlone(ctx)
	if err != nil {
		return err
	}
	all := c.builtIn()
	for _, box := range c.boxes {
		for _, t := range box.Tools() {
			server, hints := box.Origin(t.Name)
			all = append(all, tool{Tool: t, alone: true, changes: !box.ReadOnly(t.Name), server: server, hints: hints, run: func(ctx context.Context, call agent.Block) (answer, error) {
				text, isError, err := box.Call(ctx, call.Name, call.Input)
				return answer{Text: text, IsError: isError, Changed: c.job.Dir != ""}, err
			}})
		}
	}
	all = shown(all,
		func(t tool) bool { return !alone || !delegating(t.Name) || c.accepts(t.Name) },
		func(t tool) bool {
			return Allowed(c.job.Agent.Tools, t.Name) || t.Name == finishTool && mayFinish(c.job.Agent)
		})
	c.tools, c.guarded, c.denied = analysing(c.job.Agent, all)
	return nil
}

// builtIn are the tools that need no server: those for files only where there are some.
func (c *conversation) builtIn() []tool {
	all := []tool{c.listAgents(), c.delegate(), c.handoff(), c.acceptHandoff(), c.spawn(), c.sharedContext(), askPerson()}
	switch {
	case c.job.Dir == "" && c.job.AttachmentsDir != "":
		all = append(all, c.readFile(), c.listFiles(), c.search())
	case c.job.Dir != "":
		all = append(all, c.readFile(), c.listFiles(), c.search(), c.writeFile(), c.proposePatch(), c.runChecks())
	}
	if c.commands != nil {
		all = append(all, c.runCommand())
	}
	if fetches(c.job.Agent) {
		all = append(all, c.fetchURL())
	}
	return append(all, c.finishTool())
}

// accepts reports whether a tool is the one that reads the hand-over that came.
func (c *conversation) accepts(name string) bool {
	return name == acceptHandoffTool && c.job.Handover != nil
}

// standsAlone reports whether the run has nobody to hand work to: there is one agent only
// (P16), a person's task is of a tier that allows no hand-over (O3), or the settings hide
// what every guard would refuse (P24). Once work was handed on, the tools stay: its answer
// has to come back, and refusals say what the limit is (P59).
func (c *conversation) standsAlone(ctx context.Context) (bool, error) {
	switch {
	case len(c.members) <= 1:
		return true, nil
	case c.handsOn():
		return false, nil
	case c.leaf():
		return true, nil
	case c.job.From != "":
		return false, nil
	}
	left, err := c.host.Remaining(ctx)
	return left.Handoffs != nil && *left.Handoffs == 0, err
}

// handsOn reports whether the conversation has called a tool that hands work on.
func (c *conversation) handsOn() bool {
	for _, t := range c.turns {
		for _, call := range t.Message.Calls() {
			if delegating(call.Name) && call.Name != listAgentsTool && call.Name != acceptHandoffTool {
				return true
			}
		}
	}
	return false
}

// leaf reports whether the delegating tools are hidden because every other agent would be
// refused now, for whatever reason: in the chain of a strict cycle those above are refused
// before depth is asked. An agent in the middle of a chain keeps all (P24).
func (c *conversation) leaf() bool {
	if !c.settings.HideAtDepth {
		return false
	}
	return !slices.ContainsFunc(c.members, func(m agent.Member) bool {
		return agent.Key(m.Name) != agent.Key(c.job.Agent.Name) && m.Refused == ""
	})
}

// tool finds a tool by its name, nil when the run has none.
func (c *conversation) tool(name string) *tool {
	for _, all := range [][]tool{c.tools, c.guarded} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

func (c *conversation) toolNames() []string {
	all := each.Of(c.tools, func(t tool) string { return t.Name })
	if all == nil {
		return []string{"none"}
	}
	return all
}

// team lists the agents for a tool's description (P14): at most 50, each in a line.
func (c *conversation) team() string {
	var b strings.Builder
	for i, m := range c.members {
		if i == 50 {
			fmt.Fprintf(&b, "\n- and %d more: call %s", len(c.members)-i, listAgentsTool)
			break
		}
		if agent.Key(m.Name) == agent.Key(c.job.Agent.Name) {
			continue
		}
		fmt.Fprintf(&b, "\n- %s", m.Name)
		if m.Role != "" {
			fmt.Fprintf(&b, " (%s)", m.Role)
		}
		if len(m.Capabilities) > 0 {
			fmt.Fprintf(&b, ", can: %s", strings.Join(m.Capabilities, ", "))
		}
		if m.About != "" {
			fmt.Fprintf(&b, ". %s", textcut.Characters(m.About, 120))
		}
	}
	return b.String()
}
