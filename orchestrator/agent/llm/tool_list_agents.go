package llm

import (
	"context"
	"encoding/json"

	"gatehouse/orchestrator/agent"
)

// listed is one agent as list_agents shows it (P10).
type listed struct {
	agent.Member
	You bool `json:"you,omitempty"`
}

func (c *conversation) listAgents() tool {
	return tool{Tool: describe(listAgentsTool, ``), run: typed(func(ctx context.Context, _ struct{}) (answer, error) {
		members, err := c.host.Roster(ctx)
		if err != nil {
			return answer{}, err
		}
		all := make([]listed, 0, len(members))
		for _, m := range members {
			all = append(all, listed{Member: m, You: agent.Key(m.Name) == agent.Key(c.job.Agent.Name)})
		}
		text, err := json.MarshalIndent(all, "", " ")
		return answer{Text: string(text)}, err
	})}
}
