package orchestrator

import (
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
)

// withoutSecrets is an agent's result as it is stored, shown and told to whoever called:
// what looks like a secret in its text, its data and the texts of its artifacts is masked.
// Its patch is files, and stays as it is.
func withoutSecrets(res *agent.Result) *agent.Result {
	if res == nil {
		return nil
	}
	told := *res
	told.Text, told.Data = mask.Text(res.Text), mask.JSON(res.Data)
	told.Artifacts = slices.Clone(res.Artifacts)
	for i, a := range told.Artifacts {
		told.Artifacts[i].Name, told.Artifacts[i].Text = mask.Text(a.Name), mask.Text(a.Text)
	}
	return &told
}
