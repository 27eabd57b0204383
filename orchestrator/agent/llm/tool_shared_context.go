package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"
)

const (
	// defaultLimit and mostEntries bound what one call lists.
	defaultLimit = 20
	mostEntries  = 100
	// preview is how much of each value is shown where there are several, in characters.
	preview = 2000
	// maxNames is more than any namespace, key or prefix may have, in bytes.
	maxNames = 1 << 10
)

// sharing is the input of shared_context.
type sharing struct {
	Action     string          `json:"action"`
	Namespace  string          `json:"namespace"`
	Key        string          `json:"key"`
	Value      json.RawMessage `json:"value"`
	Prefix     string          `json:"prefix"`
	Limit      int             `json:"limit"`
	TTLSeconds int64           `json:"ttl_seconds"`
	Extend     bool            `json:"extend"`
}

const sharingSchema = `"action":{"type":"string","enum":["get","set","query","prefix","structured","touch","delete","list"]},
"namespace":{"type":"string","description":"Up to 64 characters; the board of this task when absent"},
"key":{"type":"string","description":"Up to 128 characters"},
"value":{"type":"string"},
"prefix":{"type":"string","description":"Taken literally"},
"limit":{"type":"integer","description":"1 to 100; 20 when absent"},
"ttl_seconds":{"type":"integer","description":"The value's life; it never expires when absent"},
"extend":{"type":"boolean","description":"With set: a value that exists lives on for 90 days"}`

func (c *conversation) sharedContext() tool {
	return tool{Tool: describe(sharedContextTool, sharingSchema, "action"), alone: true, run: typed(func(ctx context.Context, in sharing) (answer, error) {
		in.Namespace = cmp.Or(in.Namespace, c.job.Board)
		if in.Limit <= 0 || in.Limit > mostEntries {
			in.Limit = defaultLimit
		}
		return in.do(ctx, c.host.Shared())
	})}
}

// name is the entry as it is written in messages.
func (in sharing) name() string { return strings.TrimSuffix(in.Namespace+"/"+in.Key, "/") }

func (in sharing) do(ctx context.Context, s agent.Shared) (answer, error) {
	if n := max(len(in.Namespace), len(in.Key), len(in.Prefix)); n > maxNames {
		return sorry("A name of %d bytes is too long. A namespace has up to 64 characters, a key up to 128.", n), nil // and is not repeated
	}
	switch in.Action { // a model that says read or write is understood
	case "read":
		in.Action = "get"
	case "write":
		in.Action = "set"
	}
	switch in.Action {
	case "query", "list":
		found, err := s.Prefix(ctx, in.Namespace, "", in.Limit)
		return in.several(found, "Nothing is stored under "+in.Namespace+" yet."), err
	case "prefix":
		found, err := s.Prefix(ctx, in.Namespace, in.Prefix, in.Limit)
		return in.several(found, fmt.Sprintf("Nothing under %s begins with %q.", in.Namespace, in.Prefix)), err
	case "get", "set", "structured", "touch", "delete":
	default:
		return sorry("There is no action %q. Use get, set, query, prefix, structured, touch, delete or list.", in.Action), nil
	}
	if in.Key == "" {
		return sorry("%s needs a key.", in.Action), nil
	}
	switch in.Action {
	case "set":
		return in.set(ctx, s)
	case "touch":
		ok, err := s.Touch(ctx, in.Namespace, in.Key, in.TTLSeconds)
		return in.found(ok, "The life of "+in.name()+" was prolonged."), err
	case "delete":
		return answer{Text: in.name() + " is gone."}, s.Delete(ctx, in.Namespace, in.Key)
	}
	e, ok, err := s.Get(ctx, in.Namespace, in.Key)
	if err != nil || !ok {
		return in.found(ok, ""), err
	}
	if in.Action == "structured" {
		return in.structured(e), nil
	}
	return answer{Text: fmt.Sprintf("%s, written by %s:\n%s", in.name(), e.Agent, e.Value)}, nil
}

// found answers for an entry that may be missing.
func (in sharing) found(ok bool, text string) answer {
	if !ok {
		return answer{Text: "There is no " + in.name() + "."}
	}
	return answer{Text: text}
}

// set writes a text; any other JSON is stored as it is written.
func (in sharing) set(ctx context.Context, s agent.Shared) (answer, error) {
	if len(in.Value) == 0 {
		return sorry("set needs a value."), nil
	}
	if in.TTLSeconds < 0 {
		return sorry("ttl_seconds: %d is below 0. Leave it out for a value that never expires.", in.TTLSeconds), nil
	}
	var text string
	if json.Unmarshal(in.Value, &text) != nil {
		text = string(in.Value)
	}
	err := s.Set(ctx, agent.ContextWrite{Namespace: in.Namespace, Key: in.Key, Value: text, TTLSeconds: in.TTLSeconds, Extend: in.Extend})
	return answer{Text: "Stored " + in.name() + "."}, err
}

// structured shows a value that is JSON (K42).
func (in sharing) structured(e agent.ContextEntry) answer {
	var v any
	if err := json.Unmarshal([]byte(e.Value), &v); err != nil {
		return sorry("%s, written by %s, is no JSON: %v. Read it with get.", in.name(), e.Agent, err)
	}
	text, err := json.MarshalIndent(map[string]any{"namespace": e.Namespace, "key": e.Key, "agent": e.Agent, "value": v}, "", " ")
	if err != nil {
		return sorry("%s cannot be shown: %v.", in.name(), err)
	}
	return answer{Text: string(text)}
}

// several lists entries, one JSON object a line; list leaves the values out. An empty
// list says so (P5).
func (in sharing) several(found []agent.ContextEntry, none string) answer {
	if len(found) == 0 {
		return answer{Text: none}
	}
	var b strings.Builder
	for _, e := range found {
		if in.Action == "list" {
			fmt.Fprintf(&b, "%s (written by %s, %d bytes)\n", e.Key, e.Agent, len(e.Value))
			continue
		}
		b.WriteString(line(e, preview))
	}
	if len(found) == in.Limit {
		fmt.Fprintf(&b, "(the limit of %d was reached; there may be more)", in.Limit)
	}
	return answer{Text: strings.TrimSpace(b.String())}
}

// line is an entry as one line of JSON: no value can look like another entry, or like
// the end of the list.
func line(e agent.ContextEntry, most int) string {
	if shown := textcut.Characters(e.Value, most); shown != e.Value {
		e.Whole = max(e.Whole, len(e.Value))
		e.Value = shown
	}
	b, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}
