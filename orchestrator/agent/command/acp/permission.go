package acp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/strictjson"
)

const (
	// inputTime is how long an input is waited for that comes behind its question.
	inputTime = time.Second
	// maxAsks is how often one run may ask.
	maxAsks = 1000
	// maxReason bounds one sentence of a person as the program is told it, in bytes.
	maxReason = 32 << 10
)

// asks are the requests of the program, and what it is still to be told of the answers.
type asks struct {
	asked   bool
	count   int
	counts  map[string]int // of each content
	passes  map[string]int // calls as people changed them, which pass once
	reasons []string
}

// handle answers requests of the program.
func (t *Dialogue) handle(_ context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
	if method != sdk.ClientMethodSessionRequestPermission {
		return nil, sdk.NewMethodNotFound(method)
	}
	if !t.begin() {
		return cancelled(), nil
	}
	defer t.open.Done()
	var p struct {
		Options  []option        `json:"options"`
		ToolCall json.RawMessage `json:"toolCall"`
	}
	var u update
	_ = json.Unmarshal(params, &p)
	_ = json.Unmarshal(p.ToolCall, &u)
	if len(p.Options) == 0 {
		return nil, sdk.NewInvalidParams(map[string]any{"error": "no options"})
	}
	return t.permit(u, p.Options), nil
}

// option is one of the answers that a program takes.
type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// permit puts a call before the host and chooses the option that fits the answer.
func (t *Dialogue) permit(u update, options []option) sdk.RequestPermissionResponse {
	t.mu.Lock()
	t.asked = true
	t.count++
	many := t.count > maxAsks
	t.mu.Unlock()
	if many {
		t.fail(agent.Fail(agent.CodeLoop, "%s asked %d times whether it may make a call, so it was ended. Let a rule answer what it asks often, or send a smaller task.", t.Program, maxAsks))
	}
	if t.ctx.Err() != nil {
		return cancelled()
	}
	action, err := t.action(u)
	if err != nil {
		return t.refuse(action, options, err.Error())
	}
	content := t.contentOf(action)
	if t.passed(content) {
		return t.allow(action, options)
	}
	t.Pause()
	answer, err := t.Host.Ask(t.ctx, agent.Ask{Ref: t.refOf(content), Action: &action, Place: t.Dir})
	t.Resume()
	if t.ctx.Err() != nil {
		return cancelled()
	}
	if err != nil {
		t.fail(fmt.Errorf("ask about a call: %w", err))
		return cancelled()
	}
	switch {
	case answer.State != agent.AskAllowed:
		return t.refuse(action, options, cmp.Or(answer.Text, "Nobody allowed it."))
	case answer.Begun:
		return t.refuse(action, options, "This call was allowed before, and the attempt that wanted to make it was lost: it may have been made. Look whether it was, and ask again where it was not.")
	case answer.Edited && !sameJSON(answer.Input, action.Input):
		edited := action
		edited.Input = answer.Input
		t.mu.Lock()
		t.passes[t.contentOf(edited)]++
		t.mu.Unlock()
		return t.refuse(action, options, "A person changed its input, and allowed it so. Make the call again with exactly this input: "+string(answer.Input))
	}
	return t.allow(action, options)
}

// action is the call that is asked about. Its input may come behind the question.
func (t *Dialogue) action(u update) (agent.Action, error) {
	asked := u
	asked.Update, asked.Status = "", "pending" // it is not made yet, whatever else is said
	input, err := t.input(u.RawInput)
	a := agent.Action{Tool: u.toolName(), Input: input}
	if a.Tool == "" && word(u.Title) && !says(u.RawInput, u.Title) {
		a.Tool = u.Title // opencode asks for a reason of its own under the id of another call
	}
	kind := u.Kind
	if c := t.noteCall(asked); c != nil {
		if input == nil && err == nil {
			a.Input, err = t.later(c)
		}
		t.mu.Lock()
		a.Tool, kind = cmp.Or(a.Tool, c.name), cmp.Or(kind, c.kind)
		t.mu.Unlock()
	}
	a.Tool = t.brief(cmp.Or(a.Tool, kind, "other"), maxID)
	a.Server, a.Tool = t.serverOf(a.Tool)
	if a.Server == "" { // of a server's tool the kind is a guess
		a.Hints = hintsOf(kind)
	}
	if a.Input == nil {
		a.Input = json.RawMessage("{}")
	}
	return a, err
}

// later waits a moment for the input of a call that is asked about without one; nil where it
// does not come.
func (t *Dialogue) later(c *call) (json.RawMessage, error) {
	timer := time.NewTimer(inputTime)
	defer timer.Stop()
	select {
	case <-c.filled:
	case <-timer.C:
	case <-t.ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.whole {
		return nil, nil
	}
	return c.Input, c.unfit
}

// What people cannot be asked about. The program reads it.
var (
	errLong    = fmt.Errorf("its input has more than %d kB, which nobody can judge. Make it shorter", agent.MaxActionInput>>10)
	errTwoWays = errors.New("its input can be read in two ways, or is nested too deep, so nobody can judge it. Write it otherwise")
)

// input is a raw input as an object in one spelling, without secrets; nil where it says nothing.
func (t *Dialogue) input(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > agent.MaxActionInput {
		return nil, errLong
	}
	if len(raw) > 0 && strictjson.Check(raw, strictjson.MaxDepth) != nil {
		return nil, errTwoWays
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if len(raw) == 0 || dec.Decode(&value) != nil || value == nil {
		return nil, nil
	}
	if fields, ok := value.(map[string]any); !ok {
		value = map[string]any{"input": value}
	} else if len(fields) == 0 {
		return nil, nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	safe := []byte(t.Safe(strings.ReplaceAll(strings.TrimSpace(text.String()), `\u0000`, "\uFFFD")))
	if !json.Valid(safe) || len(safe) > agent.MaxActionInput {
		return nil, errLong
	}
	return safe, nil
}

// serverOf is the MCP server of a tool, and the tool's name as models here are told it.
func (t *Dialogue) serverOf(tool string) (server, name string) {
	for _, m := range t.Job.Agent.MCP {
		for _, prefix := range []string{"mcp__" + m.Name + "__", m.Name + "_"} {
			if own, ok := strings.CutPrefix(tool, prefix); ok {
				return m.Name, "mcp_" + m.Name + "_" + own
			}
		}
	}
	return "", tool
}

// hintsOf is what the protocol's kind of a tool says of its calls. That one reads is no hint:
// Codex calls it reading when a shell lists files.
func hintsOf(kind string) agent.Hints {
	yes := true
	switch sdk.ToolKind(kind) {
	case sdk.ToolKindDelete:
		return agent.Hints{Destructive: &yes}
	case sdk.ToolKindFetch:
		return agent.Hints{OpenWorld: &yes}
	}
	return agent.Hints{}
}

// contentOf is what a call is, wherever its checkout lies.
func (t *Dialogue) contentOf(a agent.Action) string {
	var input bytes.Buffer
	if json.Compact(&input, a.Input) != nil {
		input.Reset()
	}
	sum := sha256.Sum256([]byte(a.Tool + "\x00" + a.Server + "\x00" + strings.ReplaceAll(input.String(), t.Dir, ".")))
	return hex.EncodeToString(sum[:12])
}

// refOf names an ask by what is asked, and by how often that was asked in this attempt: the
// ids of programs are used twice, and are others when an attempt begins again.
func (t *Dialogue) refOf(content string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[content]++
	return fmt.Sprintf("acp-%s-%d", content, t.counts[content])
}

// passed reports whether a call is one that a person made out of another.
func (t *Dialogue) passed(content string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.passes[content] == 0 {
		return false
	}
	t.passes[content]--
	return true
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// allow chooses the option for this one time, and never one for longer.
func (t *Dialogue) allow(a agent.Action, options []option) sdk.RequestPermissionResponse {
	for _, o := range options {
		if o.Kind == string(sdk.PermissionOptionKindAllowOnce) {
			return chosen(o)
		}
	}
	return t.refuse(a, options, "It was allowed once, and can only be allowed for good, which nobody may do here.")
}

// refuse chooses the option that says no this once, and keeps why for the next prompt.
func (t *Dialogue) refuse(a agent.Action, options []option, why string) sdk.RequestPermissionResponse {
	line := t.brief(fmt.Sprintf("- %s with the input %s: %s", a.Tool, t.brief(string(a.Input), 500), why), maxReason+500)
	t.mu.Lock()
	if len(t.reasons) < maxPrompts {
		t.reasons = append(t.reasons, line)
	}
	t.mu.Unlock()
	for _, fits := range []func(option) bool{
		func(o option) bool { return o.Kind == string(sdk.PermissionOptionKindRejectOnce) },
		func(o option) bool {
			return slices.Contains([]string{"cancel", "reject", "deny", "abort", "no"}, strings.ToLower(o.ID))
		},
		func(o option) bool { return o.Kind == string(sdk.PermissionOptionKindRejectAlways) },
	} {
		if i := slices.IndexFunc(options, fits); i >= 0 {
			return chosen(options[i])
		}
	}
	return cancelled()
}

// untold is the prompt with what was said to calls that were not made, "" for nothing.
func (t *Dialogue) untold() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reasons) == 0 {
		return ""
	}
	text := "These calls were not made, for these reasons:\n" + strings.Join(t.reasons, "\n") + "\n\nGo on with the task as far as you can, and say at the end what you could not do."
	t.reasons = nil
	return text
}

func chosen(o option) sdk.RequestPermissionResponse {
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(o.ID))}
}

func cancelled() sdk.RequestPermissionResponse {
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
}
