package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// field is one field of an input, in the order in which it came.
type field struct {
	name  string
	value json.RawMessage
}

// fields are those of the input; nil where it is no object, or names one twice.
func (a Action) fields() []field {
	in := json.NewDecoder(bytes.NewReader(a.Input))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var all []field
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil
		}
		f := field{name: fmt.Sprint(name)}
		if in.Decode(&f.value) != nil || slices.ContainsFunc(all, func(o field) bool { return o.name == f.name }) {
			return nil
		}
		all = append(all, f)
	}
	return all
}

// quoteMark begins every line of a text that has several, so that none of them passes for a
// field of its own.
const quoteMark = "│ "

// Shown is the input as people read it: every field with all of its value, nothing left out
// and nothing made visible.
func (a Action) Shown() string {
	var b strings.Builder
	for _, f := range a.fields() {
		fmt.Fprintf(&b, "%s:", oneName(f.name))
		var text string
		switch {
		case json.Unmarshal(f.value, &text) != nil:
			text = spelledOut(f.value)
			fallthrough
		case strings.ContainsAny(text, "\n\r") || text == "":
			b.WriteString("\n" + quoteMark + strings.NewReplacer("\r\n", "\n"+quoteMark, "\n", "\n"+quoteMark).Replace(text) + "\n")
		default:
			b.WriteString(" " + text + "\n")
		}
	}
	if b.Len() == 0 {
		return "(no input)\n"
	}
	return b.String()
}

// spelledOut is a value that is no text, with its texts as they read: no letter is hidden behind
// its number.
func spelledOut(raw json.RawMessage) string {
	var value any
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	if in.Decode(&value) != nil {
		return string(raw)
	}
	var pretty strings.Builder
	out := json.NewEncoder(&pretty)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if out.Encode(value) != nil {
		return string(raw)
	}
	return strings.TrimSpace(pretty.String())
}

// oneName is a field's name as it can stand before a colon in one line.
func oneName(name string) string {
	if strings.ContainsAny(name, "\n\r:\"") || name == "" {
		quoted, err := json.Marshal(name)
		if err == nil {
			return string(quoted)
		}
	}
	return name
}

// Command is the command line that the call would run, "" where it runs none that is known.
func (a Action) Command() string {
	for _, f := range a.fields() {
		var text string
		if f.name == "command" && json.Unmarshal(f.value, &text) == nil {
			return text
		}
	}
	return ""
}

// Brief is the call in one line: the tool, and the command or the beginning of the input.
func (a Action) Brief() string {
	about := a.Command()
	if about == "" && len(a.fields()) > 0 {
		var tight bytes.Buffer
		if json.Compact(&tight, a.Input) == nil {
			about = tight.String()
		}
	}
	if about = strings.Join(strings.Fields(about), " "); about == "" {
		return a.Tool
	}
	return a.Tool + ": " + textcut.Characters(about, 160)
}

// Scope is what a yes "for the rest of this task" covers.
type Scope struct {
	Tool   string `json:"tool"`
	Server string `json:"server,omitempty"`
	// Words are those that the command begins with; nil where the tool runs none, and then any
	// input is covered. With one word it is the command without anything behind it.
	Words []string `json:"words,omitempty"`
	// Rest is the input without what Words stand for: it has to be the same.
	Rest string `json:"rest,omitempty"`
}

// wordsOfScope is how many words of a command a scope names.
const wordsOfScope = 2

// besides are fields of a command's input that change nothing of what it does.
var besides = []string{"command", "description", "timeout"}

// Scope is what a yes for the rest of the task would cover; false where that cannot be
// said in words: a call without input, or a command line that is more than one command.
func (a Action) Scope() (Scope, bool) {
	s := Scope{Tool: a.Tool, Server: a.Server}
	fields := a.fields()
	if len(fields) == 0 {
		return s, false
	}
	if !slices.ContainsFunc(fields, func(f field) bool { return f.name == "command" }) {
		return s, true
	}
	words, simple := simpleCommand(a.Command())
	if !simple {
		return s, false
	}
	s.Words = words[:min(len(words), wordsOfScope)]
	rest := []string{}
	for _, f := range fields {
		if !slices.Contains(besides, f.name) {
			rest = append(rest, oneName(f.name)+"="+string(f.value))
		}
	}
	slices.Sort(rest)
	s.Rest = strings.Join(rest, "\n")
	return s, true
}

// Covers reports whether a yes with this scope holds for the call.
func (s Scope) Covers(a Action) bool {
	if s.Tool != a.Tool || s.Server != a.Server {
		return false
	}
	would, sayable := a.Scope()
	return sayable && would.Rest == s.Rest && (would.Words == nil) == (s.Words == nil) && slices.Equal(would.Words, s.Words)
}

// String says what the scope covers.
func (s Scope) String() string {
	tool := s.Tool
	if s.Server != "" {
		tool += " of " + s.Server
	}
	switch len(s.Words) {
	case 0:
		return tool + " with any input"
	case 1:
		return tool + " with exactly: " + s.Words[0]
	}
	text := tool + " with commands that begin: " + strings.Join(s.Words, " ")
	if s.Rest != "" {
		text += " (and with " + strings.ReplaceAll(s.Rest, "\n", ", ") + ")"
	}
	return text
}

// simpleCommand takes a command line apart that a shell would take as one command of these
// words and nothing else. What has any sign that means something to a shell is none.
func simpleCommand(line string) (words []string, simple bool) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:@%, "
	if strings.Trim(line, plain) != "" || strings.ContainsFunc(line, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return nil, false
	}
	words = strings.Fields(line)
	return words, len(words) > 0
}
