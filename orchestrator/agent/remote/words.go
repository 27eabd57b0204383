package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/strictjson"
	"gatehouse/orchestrator/textcut"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// textOf joins the text of parts. Files are named, not taken.
func textOf(parts a2a.ContentParts) string {
	var texts []string
	for _, p := range parts {
		if p == nil {
			continue
		}
		switch c := p.Content.(type) {
		case a2a.Text:
			texts = append(texts, string(c))
		case a2a.Data:
			if b, err := json.Marshal(c.Value); err == nil {
				texts = append(texts, string(b))
			}
		case a2a.Raw:
			texts = append(texts, fmt.Sprintf("(a file of %d bytes, %q, which was not taken)", len(c), title(p.Filename)))
		case a2a.URL:
			texts = append(texts, fmt.Sprintf("(a file elsewhere, %q, which was not fetched)", title(string(c))))
		}
	}
	return strings.Join(texts, "\n")
}

// dataOf lists the structured parts.
func dataOf(parts a2a.ContentParts) []json.RawMessage {
	var all []json.RawMessage
	for _, p := range parts {
		if p == nil {
			continue
		}
		if d, ok := p.Content.(a2a.Data); ok {
			if b, err := json.Marshal(d.Value); err == nil {
				all = append(all, b)
			}
		}
	}
	return all
}

// clean makes a text that every database takes.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\u2400"), "\ufffd")
}

// title is a name or a reason on one line, of at most 200 characters.
func title(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, clean(textcut.Characters(s, 2000)))
	return textcut.Characters(strings.Join(strings.Fields(s), " "), 200)
}

// word is a state as people say it.
func word(s a2a.TaskState) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s), "TASK_STATE_")), "_", " ")
}

// reason is an error in one short line. The library quotes what the agent sent.
func reason(err error) string {
	if status, ok := errors.AsType[refusedStatus](err); ok {
		return status.Error()
	}
	for _, e := range []error{errElsewhere, errTooMuch} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if refused, ok := errors.AsType[*strictjson.Refusal](err); ok {
		return "its answer is not taken: " + title(refused.Sentence())
	}
	return title(err.Error())
}

// minToken is how long a token must be to be taken out of texts; a shorter one would blot
// out words.
const minToken = 12

// hide takes the agent's token out of what it sent: one that repeats it gets it into no
// answer, no failure and no page.
func (s *session) hide(text string) string {
	if len(s.job.Agent.Token) < minToken {
		return text
	}
	return strings.ReplaceAll(text, s.job.Agent.Token, "[token]")
}

// hidden is a result without the token.
func (s *session) hidden(r *agent.Result) *agent.Result {
	r.Text = s.hide(r.Text)
	if r.Data != nil {
		r.Data = json.RawMessage(s.hide(string(r.Data)))
	}
	for i, a := range r.Artifacts {
		r.Artifacts[i] = agent.Artifact{Name: s.hide(a.Name), Path: a.Path, Text: s.hide(a.Text)}
	}
	return r
}
