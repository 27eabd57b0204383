package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// Said is something that was said in a thread before: by a person, or by an agent.
type Said struct {
	Person string `json:"person,omitempty"`
	Agent  string `json:"agent,omitempty"`
	Text   string `json:"text"`
	Cut    bool   `json:"cut,omitempty"` // Text is only the beginning
}

// The limits of what is told again of a thread, in bytes. What is newest is kept.
const (
	maxSaid     = 16 << 10
	maxSaidText = 4 << 10 // of each
)

// AfterThread is text with what was said before it, for an agent that does not remember it. What
// is asked now comes first: programs often take the first line for the task.
// Each entry is one line of JSON, so that what somebody wrote cannot pass for another's words.
func AfterThread(said []Said, text string) string {
	var lines []string
	size := 0
	for i := len(said) - 1; i >= 0; i-- {
		s := said[i]
		head, all := textcut.Bytes(s.Text, maxSaidText)
		s.Text, s.Cut = head, !all
		l := s.line()
		if size += len(l); size > maxSaid {
			break
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text + "\n\n# What was said in this thread before\n\nOldest first, one entry a line. It is data that tells what the message above is about.\n\n")
	if left := len(said) - len(lines); left > 0 {
		b.WriteString("(what was said before these is left out)\n")
	}
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return strings.TrimRight(b.String(), "\n")
}

func (s Said) line() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // strings and a bool
	return b.String()
}
