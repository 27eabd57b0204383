package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
)

// ending is the input of finish.
type ending struct {
	Text      string          `json:"text"`
	Data      json.RawMessage `json:"data"`
	Artifacts []made          `json:"artifacts"`
}

// made is an artifact as a model gives it.
type made struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Text      string `json:"text"`
	Path      string `json:"path"`
}

// finishSchema describes ending; %s is the schema of the data.
const finishSchema = `"text":{"type":"string","description":"Your answer"},
"data":%s,
"artifacts":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"media_type":{"type":"string"},"text":{"type":"string"},"path":{"type":"string","description":"Of a file in your checkout"}},"required":["name"]}}`

// misfit begins what a model is told of an answer that does not fit its output schema. It
// is told once; the stored turns say whether it was.
const misfit = "bad_output: "

// taken is the result of a finish that stands.
const taken = "Your answer was taken. The work ends here."

func (c *conversation) finishTool() tool {
	data, required := `{"description":"Any JSON"}`, []string{"text"}
	if c.job.Agent.Output != nil {
		data, required = string(c.job.Agent.Output), append(required, "data")
	}
	return tool{Tool: describe(finishTool, fmt.Sprintf(finishSchema, data), required...), alone: true, run: func(_ context.Context, call agent.Block) (answer, error) {
		var in ending
		if a := decode(call, &in); a != nil {
			return *a, nil
		}
		if n := len(c.spawned); n > 0 {
			return sorry("%d agents that you spawned still work, and this would end them. End your message to wait for their results, then finish.", n), nil
		}
		return c.judge(in), nil
	}}
}

// judge says whether an answer can be taken.
func (c *conversation) judge(in ending) answer {
	if len(in.Text) > c.mostText() {
		return sorry("Your text has %d bytes and %d are the limit. Make it shorter, or give the long part as an artifact.", len(in.Text), c.mostText())
	}
	if len(in.Artifacts) > agent.MaxArtifacts {
		return sorry("There are %d artifacts; %d is the limit.", len(in.Artifacts), agent.MaxArtifacts)
	}
	for _, a := range in.artifacts() {
		if _, err := a.Read(c.job.Dir); err != nil {
			return sorry("%v", err)
		}
	}
	if err := c.job.Agent.Fits(in.data()); err != nil {
		return sorry("%s%v. Call %s again with data that fits.", misfit, err, finishTool)
	}
	return answer{Text: taken}
}

func (in ending) data() json.RawMessage {
	if bytes.Equal(bytes.TrimSpace(in.Data), []byte("null")) {
		return nil
	}
	return in.Data
}

func (in ending) artifacts() []agent.Artifact {
	return each.Of(in.Artifacts, func(a made) agent.Artifact {
		return agent.Artifact{Name: strings.TrimSpace(a.Name), MediaType: a.MediaType, Path: a.Path, Text: a.Text}
	})
}

// untimely takes back the yes to a finish beside which another call of the message failed:
// the model has not seen that yet.
func (w *work) untimely() {
	for i, call := range w.calls {
		if call.Name != finishTool || w.answers[i].IsError {
			continue
		}
		for j, other := range w.answers {
			if j != i && other.IsError {
				w.answers[i] = new(sorry("Not taken: another call of this message failed. Look at its result, then finish in a message of its own."))
				break
			}
		}
	}
}

// finished is the result that the last turn ended the run with, nil where it did not. It
// is read from the stored turns, so that a run that is lost just then ends the same way.
func (c *conversation) finished() *agent.Result {
	n := len(c.turns)
	if n < 2 || c.turns[n-1].Message.Role != agent.FromTools {
		return nil
	}
	for _, b := range c.turns[n-1].Message.Blocks {
		if b.Name != finishTool || b.IsError {
			continue
		}
		for _, call := range c.turns[n-2].Message.Calls() {
			var in ending
			if call.ID == b.ID && decode(call, &in) == nil {
				return &agent.Result{Text: in.Text, Data: in.data(), Artifacts: in.artifacts()}
			}
		}
	}
	return nil
}

// misfits counts the answers of this run that did not fit the output schema.
func (c *conversation) misfits() int {
	n := 0
	for _, t := range c.turns[c.job.Carried:] {
		switch t.Message.Role {
		case agent.FromUser:
			if strings.HasPrefix(t.Message.Text(), misfit) {
				n++
			}
		case agent.FromTools:
			for _, b := range t.Message.Blocks {
				if b.Name == finishTool && b.IsError && strings.HasPrefix(b.Text, misfit) {
					n++
				}
			}
		}
	}
	return n
}

// badOutput is the failure of a run whose answers did not fit twice.
func (c *conversation) badOutput() error {
	return agent.Fail(agent.CodeBadOutput, "The answers of %s did not fit its output schema, also after it was told so. Word its prompt so that the data is clear, or change `output` in gatehouse.yaml.", c.job.Agent.Name)
}

// plainAnswer is the result of a model that ended with a plain text. Where the agent has an
// output schema, a text that is JSON as a whole is the data, too.
func (c *conversation) plainAnswer(text string) (*agent.Result, error) {
	res := &agent.Result{Text: text}
	if c.job.Agent.Output == nil {
		return res, nil
	}
	if raw := unfenced(text); json.Valid([]byte(raw)) {
		res.Data = json.RawMessage(raw)
	}
	return res, c.job.Agent.Fits(res.Data)
}

// unfenced is a text without the fence of Markdown that models like to put around JSON.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	_, inner, ok = strings.Cut(inner, "\n")
	inner, closed := strings.CutSuffix(strings.TrimSpace(inner), "```")
	if !ok || !closed {
		return text
	}
	return strings.TrimSpace(inner)
}
