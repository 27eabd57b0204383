package command

import (
	"encoding/json"

	"gatehouse/orchestrator/agent"
)

// sourceJSON is what the task is about elsewhere, as a program reads it from
// GATEHOUSE_SOURCE; "" where nobody said.
func sourceJSON(s *agent.Source) string {
	if s == nil {
		return ""
	}
	text, _ := json.Marshal(s) // cannot fail: it is made of strings
	return string(text)
}
