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
			of := property
			if items, ok := property["items"].(map[string]any); ok {
				of = items
			}
			if words := config.Words(f.Tag); len(words) > 0 {
				of["enum"] = words
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
		switch at { // what others have as a list
		case "agents.*.kind":
			return map[string]any{"type": "string", "enum": config.Kinds()}
		case "agents.*.approval":
			return map[string]any{"type": "string", "enum": origin.Modes()}
		}
		return map[string]any{"type": "string"}
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}
