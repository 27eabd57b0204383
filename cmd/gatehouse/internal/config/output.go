package config

import (
	"encoding/json"

	"gatehouse/orchestrator/agent"
)

// output reads the JSON Schema that an agent's answers must fit; nil without one.
func (b *builder) output(where []any, name string, written map[string]any) json.RawMessage {
	if written == nil {
		return nil
	}
	schema, err := json.Marshal(written)
	if err == nil {
		err = agent.CheckSchema(schema)
	}
	if err != nil {
		b.bad(where, "agent %s: output is no JSON Schema: %v. Write one such as {type: object, properties: {score: {type: integer}}, required: [score]}.", name, err)
		return nil
	}
	return schema
}
