package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"gatehouse/orchestrator/agent"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// maxTask is the longest text of a task in bytes, the engine's own limit.
const maxTask = 256 << 10

// data is what templates and conditions read.
type data struct {
	task      string
	all       map[string]view // every step of the plan by id, also what has not run
	artifacts map[string]agent.Artifact
}

// view is one step as templates (capital) and conditions (tags) see it.
type view struct {
	State string `expr:"state"` // a delegation's, refused, skipped, or "" before it ran
	Text  string `expr:"text"`
	Data  any    `expr:"data"`
	Agent string `expr:"agent"`
	Code  string `expr:"code"`  // why it did not complete
	Error string `expr:"error"` // the same as a sentence
	Runs  int    `expr:"runs"`  // how often it has run
	// Artifacts are those that the agent returned, by name: their texts.
	Artifacts map[string]string `expr:"artifacts"`
	raw       json.RawMessage
}

func newData(task string, steps []agent.Step) data {
	d := data{task: task, all: map[string]view{}, artifacts: map[string]agent.Artifact{}}
	for i, s := range steps {
		d.all[nameOf(s, i)] = view{}
		for _, b := range s.Parallel {
			d.all[b.ID] = view{}
		}
	}
	return d
}

// viewOf reads a child that ended.
func viewOf(name string, c agent.Child) (view, error) {
	v := view{State: c.State, Agent: name}
	if c.Error != nil {
		v.Code, v.Error = c.Error.Code, c.Error.Message
	}
	if c.Result == nil {
		return v, nil
	}
	v.Text = c.Result.Text
	for _, a := range c.Result.Artifacts {
		if v.Artifacts == nil {
			v.Artifacts = map[string]string{}
		}
		v.Artifacts[a.Name] = textOf(a)
	}
	if len(c.Result.Data) == 0 {
		return v, nil
	}
	v.raw = c.Result.Data
	dec := json.NewDecoder(bytes.NewReader(c.Result.Data))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return v, fmt.Errorf("its data is not JSON: %w", err)
	}
	v.Data = numbers(value)
	return v, nil
}

// numbers makes whole numbers integers, so that 1000000 is not written as 1e+06.
func numbers(value any) any {
	switch value := value.(type) {
	case json.Number:
		if n, err := value.Int64(); err == nil {
			return n
		}
		f, err := value.Float64()
		if err != nil {
			return value.String()
		}
		return f
	case map[string]any:
		for k := range value {
			value[k] = numbers(value[k])
		}
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	}
	return value
}

// reason says why a step did not complete, and what can be done. What people or time
// decided on its change is told as that: its code only repeats the state.
func (v view) reason(id string) string {
	why := v.Error
	if v.Code != "" && v.Code != v.State {
		why = strings.TrimSpace(v.Code + ": " + v.Error)
	}
	why = cmp.Or(why, "no reason was given")
	ended := "ended " + v.State
	switch v.State {
	case agent.Refused:
		ended = "was refused"
	case rejected, "cancelled":
		ended = "was " + v.State
	}
	return fmt.Sprintf("Step %s (agent %s) %s: %s", id, v.Agent, ended, why)
}

func (d data) runs(id string) int { return d.all[id].Runs }

func (d data) record(id string, v view) {
	v.Runs = d.all[id].Runs + 1
	d.all[id] = v
}

// skip marks a step that never ran; what an earlier pass of a loop answered stays.
func (d data) skip(id string) {
	if d.all[id].Runs == 0 {
		d.all[id] = view{State: skipped}
	}
}

// words is what a template sees. What has not run has no entry.
type words struct {
	Task      string
	Steps     map[string]*view
	Artifacts map[string]string
}

// texts are the artifacts as words: their text, or else where they are.
func (d data) texts() map[string]string {
	texts := map[string]string{}
	for name, a := range d.artifacts {
		texts[name] = textOf(a)
	}
	return texts
}

// textOf is an artifact as a word: its text, or where it is.
func textOf(a agent.Artifact) string {
	switch {
	case a.Text != "":
		return a.Text
	case a.URL != "":
		return a.URL
	}
	return a.Path
}

// render writes the task of a step.
func (d data) render(s agent.Step) (string, error) {
	if s.Task == "" {
		return d.task, nil
	}
	t, err := parseTask(s.ID, s.Task)
	if err != nil {
		return "", err
	}
	w := words{Task: d.task, Steps: map[string]*view{}, Artifacts: d.texts()}
	for id, v := range d.all {
		if v.Runs > 0 {
			w.Steps[id] = &v
		}
	}
	out := limited{left: maxTask}
	if err := t.Execute(&out, w); err != nil {
		return "", fmt.Errorf("its template reads what is not there: %w", err)
	}
	if strings.TrimSpace(out.String()) == "" {
		return "", errors.New("its template came out empty")
	}
	return out.String(), nil
}

func parseTask(id, text string) (*template.Template, error) {
	return template.New(id).Option("missingkey=error").Funcs(template.FuncMap{"json": toJSON}).Parse(text)
}

func toJSON(value any) (string, error) {
	b, err := json.Marshal(value)
	return string(b), err
}

// limited is a buffer that refuses to grow past its limit.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, fmt.Errorf("it has more than %d bytes, which is the limit of a task", maxTask)
	}
	return l.Buffer.Write(b)
}

// holds decides a condition; an empty one is true.
func (d data) holds(condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	program, err := compile(condition)
	if err != nil {
		return false, err
	}
	answer, err := expr.Run(program, map[string]any{"task": d.task, "steps": d.all, "artifacts": d.texts()})
	if err != nil {
		return false, firstLine(err)
	}
	yes, ok := answer.(bool)
	if !ok {
		return false, fmt.Errorf("it gave %T in place of true or false", answer)
	}
	return yes, nil
}

// compile prepares a condition. The functions whose answer changes from call to
// call are off: the same children must always lead to the same next step.
func compile(condition string) (*vm.Program, error) {
	options := []expr.Option{
		expr.Env(map[string]any{"task": "", "steps": map[string]view{}, "artifacts": map[string]string{}}),
		expr.AsBool(),
	}
	for _, name := range []string{"now", "keys", "values", "toPairs"} {
		options = append(options, expr.DisableBuiltin(name))
	}
	program, err := expr.Compile(condition, options...)
	if err != nil {
		return nil, firstLine(err)
	}
	return program, nil
}

// firstLine drops the drawing that expr adds below its message.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return errors.New(line)
}
