package llm

import (
	"context"
	"encoding/json"
)

func (c *conversation) acceptHandoff() tool {
	return tool{Tool: describe(acceptHandoffTool, ``), run: typed(func(context.Context, struct{}) (answer, error) {
		if c.job.Handover == nil {
			return answer{Text: "This work came without a hand-over: the task is all there is."}, nil
		}
		text, err := json.MarshalIndent(c.job.Handover, "", " ")
		return answer{Text: string(text)}, err
	})}
}
