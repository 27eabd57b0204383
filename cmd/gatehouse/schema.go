package main

import (
	"reflect"
	"strings"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/origin"
)

// ConfigSchemaCmd prints the JSON schema of gatehouse.yaml.
type ConfigSchemaCmd struct{}

// choices are the keys that take one of a few words.
var choices = map[string][]string{
	"agents.*.role":                 {"admin", "developer", "specialist", "cli"},
	"agents.*.protocol":             {"plain", "jsonl"},
	"agents.*.sandbox":              {"auto", "required", "off"},
	"agents.*.network":              {"open", "off"},
	"engine.agent_defaults.sandbox": {"auto", "required", "off"},
	"engine.agent_defaults.network": {"open", "off"},
	"approval.careful.[]":           {"no_checks", "no_sandbox", "need_two"},
	"approval.on_no":                {"tell", "end"},
	"approval.handovers.[].on_no":   {"tell", "end"},
	"engine.complexity":             {"auto", "off"},
	"engine.cycle":                  {"strict", "bounded"},
	"engine.handoffs":               {"on", "opt_in"},
	"engine.capacity":               {"queue", "refuse"},
	"engine.at_depth":               {"error", "hide"},
	"repositories.*.deliver":        {"merge", "branch"},
	"channels.webhooks.[].format":   {"slack", "standard"},
	"providers.*.kind":              {"anthropic", "openai"},
	"hooks.[].at":                   {"before_call", "after_call"},
	"triggers.[].kind":              {"webhook", "schedule"},
	"triggers.[].complexity":        {"simple", "medium", "complex", "auto"},
	"triggers.[].source":            {"github", "gitlab", "standard", "hmac"},
	"triggers.[].encoding":          {"hex", "base64"},
	"triggers.[].overlap":           {"skip", "queue", "allow"},
	"triggers.[].missed":            {"skip", "run"},
}

// Run prints it.
func (c *ConfigSchemaCmd) Run(sh *console.Shell) error {
	steps := reflect.TypeFor[config.Step]()
	schema := schemaOf(reflect.TypeFor[config.File](), "")
	schema["$defs"] = map[string]any{steps.Name(): structSchema(steps, "")}
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "gatehouse.yaml"
	return sh.Document(schema)
}

// structSchema describes the keys of a section; others are mistakes.
func structSchema(t reflect.Type, at string) map[string]any {
	properties := map[string]any{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
			property := schemaOf(f.Type, strings.TrimPrefix(at+"."+name, "."))
			if words := strings.Fields(f.Tag.Get("words")); len(words) > 0 {
				property["enum"] = words
			}
			properties[name] = property
		}
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// schemaOf describes a type by the keys that the file has for it; at is the path of
// the key, with * for any name and [] for any place in a list.
func schemaOf(t reflect.Type, at string) map[string]any {
	key := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	if t == reflect.TypeFor[config.Step]() { // a step may have steps
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), at)
	case reflect.Struct:
		return structSchema(t, at)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), key("*"))}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), key("[]"))}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		words := choices[at]
		switch at { // what others have as a list
		case "agents.*.kind":
			words = config.Kinds()
		case "agents.*.approval":
			words = origin.Modes()
		}
		if words != nil {
			return map[string]any{"type": "string", "enum": words}
		}
		return map[string]any{"type": "string"}
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}
