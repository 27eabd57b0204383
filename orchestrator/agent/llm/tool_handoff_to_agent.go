package llm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
)

// maxSends is how many agents one call may hand over to.
const maxSends = 20

// handingOver is the input of handoff_to_agent.
type handingOver struct {
	handing
	Completed        string              `json:"completed"`
	ArtifactsCreated []string            `json:"artifacts_created"`
	Artifacts        map[string]*string  `json:"artifacts"`
	WorkflowState    agent.HandoverState `json:"workflow_state"`
	Sends            []send              `json:"sends"`
}

// send is one of several hand-overs made at once; an agent may occur twice (H27).
type send struct {
	handing
	Target  string          `json:"target"`
	Payload json.RawMessage `json:"payload"`
}

const handoffSchema = `"agent_name":{"type":"string","description":"Name of the agent, or END"},
"capability":{"type":"string","description":"Used without agent_name: the first agent that has it"},
"task":{"type":"string","description":"What is left to do; without it task_description of context"},
"context":{"type":"object","description":"task_description, completed, and whatever else the receiver must know","additionalProperties":true},
"completed":{"type":"string","description":"What you did; with END the answer of the whole flow"},
"artifacts_created":{"type":"array","items":{"type":"string"}},
"artifacts":{"type":"object","description":"Name and path of each artifact; null for one that is still to be made","additionalProperties":{"type":["string","null"]}},
"workflow_state":{"type":"object","properties":{"phase":{"type":"string"},"next_phase":{"type":"string"},"completed_steps":{"type":"array","items":{"type":"string"}},"remaining_steps":{"type":"array","items":{"type":"string"}}}},
"sends":{"type":"array","description":"Several hand-overs at once","items":{"type":"object","properties":{"target":{"type":"string"},"task":{"type":"string"},"payload":{"type":"object"}},"required":["target","task"]}}`

func (c *conversation) handoff() tool {
	t := tool{Tool: describe(handoffTool, handoffSchema), alone: true, hops: c.handoffHops}
	t.Description += "\n\nThe agents:" + c.team()
	return t
}

// handoffHops makes the hops of a hand-over. END makes none: its answer is there at once.
func (c *conversation) handoffHops(call agent.Block) ([]agent.Hop, *answer) {
	var in handingOver
	if a := decode(call, &in); a != nil {
		return nil, a
	}
	in.fill()
	if n := len(c.spawned); n > 0 && !c.hasChild(call.ID) {
		return nil, new(sorry("%d agents that you spawned still work, and a hand-over would end them. End your message to wait for their results, then hand over.", n))
	}
	if len(in.Sends) > 0 {
		return c.sendHops(call.ID, in)
	}
	if in.to() == agent.End {
		return nil, &answer{Text: firstOf(in.Completed, in.Task, "The flow was ended.")}
	}
	hop, a := in.hop(call.ID)
	if a != nil {
		return nil, a
	}
	hop.Handover = c.command(in, firstOf(hop.To, hop.Capability), hop.Text)
	return []agent.Hop{hop}, nil
}

// sendHops makes one hop for each send (H27).
func (c *conversation) sendHops(ref string, in handingOver) ([]agent.Hop, *answer) {
	if len(in.Sends) > maxSends {
		return nil, new(sorry("sends has %d hand-overs; %d is the limit.", len(in.Sends), maxSends))
	}
	var hops []agent.Hop
	for i, s := range in.Sends {
		s.Agent = firstOf(s.Target, s.Agent)
		s.Task = firstOf(s.Task, in.Task)
		if len(s.Payload) > 0 {
			s.Context = s.Payload
		}
		if s.to() == agent.End {
			return nil, new(sorry("sends[%d]: END cannot be one of several targets.", i))
		}
		hop, a := s.hop(fmt.Sprintf("%s.%d", ref, i+1))
		if a != nil {
			a.Text = fmt.Sprintf("sends[%d]: %s", i, a.Text)
			return nil, a
		}
		hop.Handover = c.command(in, firstOf(hop.To, hop.Capability), hop.Text)
		hops = append(hops, hop)
	}
	return hops, nil
}

// fill takes from the context what has a field of its own (H3).
func (in *handingOver) fill() {
	var known struct {
		TaskDescription  string   `json:"task_description"`
		Completed        any      `json:"completed"`
		ArtifactsCreated []string `json:"artifacts_created"`
	}
	var text string
	if json.Unmarshal(in.Context, &text) == nil {
		in.Task = firstOf(in.Task, text)
		return
	}
	if json.Unmarshal(in.Context, &known) != nil {
		return // contextOf says what is wrong
	}
	in.Task = firstOf(in.Task, known.TaskDescription)
	if in.Completed == "" && known.Completed != nil {
		in.Completed = fmt.Sprint(known.Completed)
	}
	if in.ArtifactsCreated == nil {
		in.ArtifactsCreated = known.ArtifactsCreated
	}
}

// command is the command object that the receiver reads (H2–H6).
func (c *conversation) command(in handingOver, target, task string) *agent.Handover {
	m := agent.HandoverMetrics{}
	seconds := 0.0
	for _, t := range c.turns {
		m.TokensUsed += t.Usage.InputTokens + t.Usage.OutputTokens
		seconds += t.Took.Seconds()
		for _, call := range t.Message.Calls() {
			m.DeepwikiUsed = m.DeepwikiUsed || strings.HasPrefix(call.Name, mcpPrefix+"deepwiki_")
		}
		for _, b := range t.Message.Blocks {
			if b.Type == agent.AnswerBlock && b.Name == handoffTool && b.IsError {
				m.RetryCount++
			}
		}
	}
	m.TimeElapsed = int64(seconds)
	return &agent.Handover{Goto: target, Graph: "parent", Update: agent.HandoverUpdate{
		Context:       agent.HandoverContext{PreviousAgent: c.job.Agent.Name, TaskDescription: task, Completed: in.Completed, ArtifactsCreated: in.ArtifactsCreated},
		Artifacts:     in.Artifacts,
		WorkflowState: in.WorkflowState,
		Metrics:       m,
	}}
}

// hasChild reports whether a hop of this call was made already.
func (c *conversation) hasChild(ref string) bool {
	return slices.ContainsFunc(c.job.Children, func(child agent.Child) bool {
		return child.Ref == ref || strings.HasPrefix(child.Ref, ref+".")
	})
}

// firstOf returns the first text that says something.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if strings.TrimSpace(t) != "" {
			return t
		}
	}
	return ""
}
