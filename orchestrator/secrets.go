package orchestrator

import (
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
)

// withoutSecrets is an agent's result as it is stored, shown and told to whoever called:
// what looks like a secret in its text and data is masked. Its patch and its artifacts are
// files, and stay as they are.
func withoutSecrets(res *agent.Result) *agent.Result {
	if res == nil {
		return nil
	}
	told := *res
	told.Text, told.Data = mask.Text(res.Text), mask.JSON(res.Data)
	return &told
}
