package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

const (
	// defaultOutput is how long an answer may be in bytes; an agent's output_limit is
	// another figure.
	defaultOutput = 1 << 20
	// maxArtifacts is how many artifacts of one answer are taken.
	maxArtifacts = 100
	// maxUsage bounds a figure of usage that can be true.
	maxUsage = 1e12
)

// conclude makes the result of the task that has ended, and stores it as turn 2.
func (s *session) conclude(ctx context.Context) (*agent.Result, error) {
	result, meta := &agent.Result{}, map[string]any(nil)
	switch {
	case s.reply != nil:
		gather(result, []*a2a.Artifact{{Parts: s.reply.Parts}})
		meta = s.reply.Metadata
	case s.final.Status.State == a2a.TaskStateCompleted:
		gather(result, s.final.Artifacts)
		if result.Text == "" {
			result.Text = lastWord(s.final)
		}
		meta = s.final.Metadata
	default:
		meta = s.final.Metadata
	}
	limit := int(s.job.Agent.OutputLimit)
	limit = cmp.Or(max(limit, 0), defaultOutput)
	result = s.hidden(result)
	failure := s.verdict()
	if size := sizeOf(result); failure == nil && size > limit {
		failure = agent.Fail(agent.CodeOutput, "%s answered with %d bytes; its limit is %d. Ask for less, or raise its `output_limit`.", s.job.Agent.Name, size, limit)
	}
	usage, err := s.usage(ctx, meta, sizeOf(result))
	if err != nil {
		return nil, hostError{err}
	}
	end := ending{Failure: failure}
	if failure == nil {
		end.Data, end.Artifacts = result.Data, result.Artifacts
	} else {
		result.Text = failure.Message
	}
	opaque, err := json.Marshal(end)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	err = s.save(ctx, agent.Turn{N: 2, Model: "a2a/" + s.job.Agent.Name, Usage: usage, Stop: word(s.state), Message: agent.Message{Role: agent.FromModel,
		Blocks: []agent.Block{{Type: agent.TextBlock, Text: result.Text}, {Type: agent.OpaqueBlock, Provider: provider, Opaque: opaque}}}})
	if err != nil {
		return nil, err
	}
	return end.of(result.Text)
}

// ending is what turn 2 remembers besides its text.
type ending struct {
	Failure   *agent.Failure   `json:"failure,omitempty"`
	Data      json.RawMessage  `json:"data,omitempty"`
	Artifacts []agent.Artifact `json:"artifacts,omitempty"`
}

func (e ending) of(text string) (*agent.Result, error) {
	if e.Failure != nil {
		return nil, e.Failure
	}
	return &agent.Result{Text: text, Data: e.Data, Artifacts: e.Artifacts}, nil
}

// stored is the end that an earlier attempt stored, if one did.
func stored(turns []agent.Turn) (result *agent.Result, done bool, err error) {
	if len(turns) < 2 {
		return nil, false, nil
	}
	var e ending
	for _, b := range turns[1].Message.Blocks {
		if b.Type == agent.OpaqueBlock && b.Provider == provider {
			if err := json.Unmarshal(b.Opaque, &e); err != nil {
				return nil, true, fmt.Errorf("read the second turn: %w", err)
			}
		}
	}
	result, err = e.of(turns[1].Message.Text())
	return result, true, err
}

// verdict is the failure that the task ended with, nil when it completed.
func (s *session) verdict() *agent.Failure {
	if s.reply != nil {
		return nil
	}
	name, said := s.job.Agent.Name, ""
	if m := s.final.Status.Message; m != nil {
		said = strings.TrimSpace(textcut.Characters(s.hide(clean(textOf(m.Parts))), maxLine))
	}
	quoted := "It gave no reason."
	if said != "" {
		quoted = "It said: " + said
	}
	switch s.final.Status.State {
	case a2a.TaskStateCompleted:
		return nil
	case a2a.TaskStateRejected:
		return agent.Fail(agent.CodeRemote, "%s declined the task. Send it to another agent, or word it differently. %s", name, quoted)
	case a2a.TaskStateCanceled:
		return agent.Fail(agent.CodeRemote, "The task was cancelled where %s works. Ask those who run it, then retry. %s", name, quoted)
	case a2a.TaskStateInputRequired:
		return agent.Fail(agent.CodeInput, "%s asks back, and nobody can answer it there. Send the task again with the answer in it. %s", name, quoted)
	case a2a.TaskStateAuthRequired:
		return agent.Fail(agent.CodeInput, "%s needs somebody to sign in where it works, and the task was given up. Sign in there, then retry. %s", name, quoted)
	default:
		return agent.Fail(agent.CodeRemote, "%s failed. Retry, or send the task to another agent. %s", name, quoted)
	}
}

// gather fills the result from what the agent made. Its text is all text of the artifacts;
// where there are several, or one has a name, they are listed as well. Data comes as data
// where there is one piece of it.
func gather(r *agent.Result, made []*a2a.Artifact) {
	var texts []string
	var data []json.RawMessage
	for _, a := range made[:min(len(made), maxArtifacts)] {
		if a == nil {
			continue
		}
		text := strings.TrimSpace(clean(textOf(a.Parts)))
		if text != "" {
			texts = append(texts, text)
		}
		data = append(data, dataOf(a.Parts)...)
		if name := title(a.Name); name != "" || len(made) > 1 {
			if name == "" {
				name = title(string(a.ID))
			}
			r.Artifacts = append(r.Artifacts, agent.Artifact{Name: name, Text: text})
		}
	}
	r.Text = strings.Join(texts, "\n\n")
	if len(data) == 1 {
		r.Data = data[0]
	}
}

// lastWord is what the agent said last, for one that made no artifact.
func lastWord(t *a2a.Task) string {
	if m := t.Status.Message; m != nil {
		if text := strings.TrimSpace(clean(textOf(m.Parts))); text != "" {
			return text
		}
	}
	for i := len(t.History) - 1; i >= 0; i-- {
		if m := t.History[i]; m != nil && m.Role == a2a.MessageRoleAgent {
			return strings.TrimSpace(clean(textOf(m.Parts)))
		}
	}
	return ""
}

func sizeOf(r *agent.Result) int {
	n := len(r.Text) + len(r.Data)
	for _, a := range r.Artifacts {
		n += len(a.Name) + len(a.Text)
	}
	return n
}

// usage is what the agent says that it used. Where it says nothing, or what cannot be,
// all that is left of the reservation counts, and no less than a token for four bytes.
func (s *session) usage(ctx context.Context, meta map[string]any, size int) (agent.Usage, error) {
	if u, ok := reported(meta); ok {
		return u, nil
	}
	left, err := s.host.Remaining(ctx)
	if err != nil {
		return agent.Usage{}, err
	}
	u := agent.Usage{InputTokens: int64(len(s.text())/4 + 1), OutputTokens: int64(size/4 + 1)}
	if left.Tokens != nil {
		u.InputTokens = max(u.InputTokens, *left.Tokens-u.OutputTokens)
	}
	return u, nil
}

// reported reads usage: {input_tokens, output_tokens, usd} of a task's metadata.
func reported(meta map[string]any) (agent.Usage, bool) {
	m, ok := meta["usage"].(map[string]any)
	if !ok {
		return agent.Usage{}, false
	}
	in, okIn := figure(m["input_tokens"])
	out, okOut := figure(m["output_tokens"])
	if !okIn || !okOut {
		return agent.Usage{}, false
	}
	u := agent.Usage{InputTokens: int64(in), OutputTokens: int64(out)}
	if said, has := m["usd"]; has && said != nil {
		usd, ok := figure(said)
		if !ok {
			return agent.Usage{}, false
		}
		u.USD = &usd
	}
	return u, true
}

func figure(v any) (float64, bool) {
	f, ok := v.(float64)
	return f, ok && f >= 0 && f <= maxUsage && !math.IsNaN(f)
}
