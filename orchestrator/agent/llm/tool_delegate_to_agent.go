package llm

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
)

// handing is what the tools that hand on have in common (P13).
type handing struct {
	Agent      string          `json:"agent"`
	AgentID    string          `json:"agent_id"` // as some models call it
	AgentName  string          `json:"agent_name"`
	Capability string          `json:"capability"`
	Task       string          `json:"task"`
	Context    json.RawMessage `json:"context"` // an object, or a text
	Budget     *allowance      `json:"budget"`
}

// allowance is the most that a child may use.
type allowance struct {
	Tokens  *int64   `json:"tokens"`
	USD     *float64 `json:"usd"`
	Minutes *float64 `json:"minutes"`
}

const handingSchema = `"agent":{"type":"string","description":"Name of the agent"},
"capability":{"type":"string","description":"Used without agent: the first agent that has it"},
"task":{"type":"string","description":"What should be done, complete in itself"},
"context":{"type":"object","description":"What the other agent must know: names and texts","additionalProperties":{"type":"string"}},
"budget":{"type":"object","description":"The most that it may use","properties":{"tokens":{"type":"integer"},"usd":{"type":"number"},"minutes":{"type":"number"}}}`

func (c *conversation) delegate() tool {
	t := tool{Tool: describe(delegateTool, handingSchema, "task"), alone: true, hops: func(call agent.Block) ([]agent.Hop, *answer) {
		var in handing
		if a := decode(call, &in); a != nil {
			return nil, a
		}
		hop, a := in.hop(call.ID)
		return []agent.Hop{hop}, a
	}}
	t.Description += "\n\nThe agents:" + c.team()
	return t
}

// to is the agent that was named, "" when none was.
func (h handing) to() string {
	for _, name := range []string{h.Agent, h.AgentName, h.AgentID} {
		if name = strings.TrimSpace(name); name != "" {
			return name
		}
	}
	return ""
}

// hop makes the hop, or the answer that says what is missing.
func (h handing) hop(ref string) (agent.Hop, *answer) {
	hop := agent.Hop{Ref: ref, To: h.to(), Capability: strings.TrimSpace(h.Capability), Text: h.Task}
	if a := h.lacks(hop); a != nil {
		return hop, a
	}
	var a *answer
	if hop.Context, a = contextOf(h.Context); a != nil {
		return hop, a
	}
	hop.Budget, a = h.Budget.limits()
	return hop, a
}

func (h handing) lacks(hop agent.Hop) *answer {
	var a answer
	switch {
	case hop.To == "" && hop.Capability == "":
		a = sorry("Neither agent nor capability was given. Name the agent, or say what it must be able to do. %s shows who there is.", listAgentsTool)
	case strings.TrimSpace(hop.Text) == "":
		a = sorry("There is no task. Say what %s should do.", hop.To+hop.Capability)
	default:
		return nil
	}
	return &a
}

// contextOf reads what goes with a hop: an object whose values become texts, or a text.
func contextOf(raw json.RawMessage) (map[string]string, *answer) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		return map[string]string{"context": text}, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, new(sorry("context must be an object of names and texts."))
	}
	texts := make(map[string]string, len(fields))
	for name, value := range fields {
		if json.Unmarshal(value, &text) != nil || string(value) == "null" {
			text = string(value)
		}
		texts[name] = text
	}
	return texts, nil
}

func (a *allowance) limits() (*budget.Limits, *answer) {
	if a == nil || a.Tokens == nil && a.USD == nil && a.Minutes == nil {
		return nil, nil
	}
	for _, n := range []*float64{a.USD, a.Minutes} {
		if n != nil && (*n < 0 || *n > 1e6 || math.IsNaN(*n)) {
			return nil, new(sorry("budget: %v is out of range. Give an amount from 0 to a million.", *n))
		}
	}
	if a.Tokens != nil && *a.Tokens < 1 { // it would be asked once all the same
		return nil, new(sorry("budget: %d tokens is below 1. Give more, or leave it out.", *a.Tokens))
	}
	l := budget.Limits{Tokens: a.Tokens}
	if a.USD != nil {
		l.MicroUSD = new(int64(*a.USD * 1e6))
	}
	if a.Minutes != nil {
		l.Time = new(time.Duration(*a.Minutes * float64(time.Minute)))
	}
	return &l, nil
}
