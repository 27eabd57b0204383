package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gatehouse/orchestrator/agent"
)

const (
	// maxCalls is how many calls of tools of one run are recorded.
	maxCalls = 1000
	// maxPlans is how many changes of its plan are recorded, and maxSteps how much of one.
	maxPlans = 200
	maxSteps = 50
	// maxHeld bounds the inputs of calls that are open at once, in bytes.
	maxHeld = 32 << 20
	// maxDiffs is how many files of one call are recorded, and maxDiff how many bytes of each side.
	maxDiffs = 20
	maxDiff  = 2 << 10
	// maxID is how long a call's id is taken as it is, in bytes.
	maxID = 200
)

// update is a session/update of any kind, and the call of a request for a permission.
type update struct {
	Update string                     `json:"sessionUpdate"`
	Meta   map[string]json.RawMessage `json:"_meta"`

	Content   json.RawMessage `json:"content"` // a block, or of a call a list
	MessageID string          `json:"messageId"`

	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name"` // of the tool, beside the protocol
	Title      string          `json:"title"`
	Kind       string          `json:"kind"`
	Status     string          `json:"status"`
	RawInput   json.RawMessage `json:"rawInput"`
	RawOutput  json.RawMessage `json:"rawOutput"`

	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`

	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
	CurrentModeID string `json:"currentModeId"`
}

// record is what was told of the program's calls and plan.
type record struct {
	calls map[string]*call
	ready []*call // that nothing was reported of
	held  int     // bytes of the inputs of calls that have not ended
	left  int     // calls that were too many
	plan  []agent.PlanStep
	plans int
}

// call is a call of a tool as far as the program has told.
type call struct {
	agent.ToolCall
	kind   string
	unfit  error         // why there is no input although one was told
	name   string        // of the tool, as the program said it first
	told   bool          // it keeps the name that it was told with
	wanted bool          // a question about it waits for its input
	filled chan struct{} // closed when there is an input that is no beginning of one
	whole  bool
	listed bool // among those of which nothing was reported, or was so
	ended  bool
}

// take takes one update. It is called for one at a time.
func (t *Dialogue) take(params json.RawMessage) {
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var u update
	_ = json.Unmarshal(params, &p)   // what does not fit stays empty,
	_ = json.Unmarshal(p.Update, &u) // and what is not known is passed over
	if u.Update == "usage_update" && u.Cost != nil {
		t.spend(u.Cost.Amount, u.Cost.Currency)
	}
	t.mu.Lock()
	mine := t.id != "" && p.SessionID == t.id
	t.mu.Unlock()
	if !mine || t.ctx.Err() != nil {
		return
	}
	t.noteReady(u.ToolCallID)
	switch u.Update {
	case "agent_message_chunk":
		t.follow(u.MessageID)
		t.hear(agent.DeltaText, u.Content)
	case "agent_thought_chunk":
		t.hear(agent.DeltaThinking, u.Content)
	case "tool_call", "tool_call_update":
		t.cutSegment(false)
		t.noteCall(u)
	case "plan":
		t.notePlan(u)
	case "current_mode_update":
		t.Say(t.Program + " is in the mode " + t.brief(u.CurrentModeID, 80) + " now.")
	}
}

// tell stores a report, and ends the run where that cannot be.
func (t *Dialogue) tell(r agent.Report) {
	if err := t.Host.Report(t.ctx, r); err != nil {
		t.fail(err)
	}
}

// noteCall records what is new of a call.
func (t *Dialogue) noteCall(u update) *call {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	c := t.merge(u)
	if c != nil && u.Update == "" {
		c.wanted = true
	}
	var reports []agent.Report
	if c != nil && !c.listed {
		c.listed = true
		t.ready = append(t.ready, c)
	}
	if u.Update == "" || u.Status != "" && u.Status != "pending" {
		reports = t.made(func(ready *call) bool { return ready == c })
	}
	if c != nil && !c.ended && (u.Status == "completed" || u.Status == "failed") {
		c.ended, c.Ended, c.OK = true, true, u.Status == "completed"
		made := c.ToolCall
		made.Input = nil
		reports = append(reports, agent.Report{Call: &made})
		t.held -= len(c.Input)
		c.Input, c.Text, c.Diffs = nil, "", nil // nobody asks for them any more
	}
	t.mu.Unlock()
	for _, r := range reports {
		t.tell(r)
	}
	return c
}

// noteReady records the calls that are made, but for the one that is being told: until
// something else is told its input may still grow.
func (t *Dialogue) noteReady(but string) {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	but = t.brief(but, maxID)
	reports := t.made(func(ready *call) bool { return ready.ID != but })
	t.mu.Unlock()
	for _, r := range reports {
		t.tell(r)
	}
}

// made are the reports of those ready calls that are picked. The caller holds mu.
func (t *Dialogue) made(pick func(*call) bool) []agent.Report {
	var reports []agent.Report
	t.ready = slices.DeleteFunc(t.ready, func(c *call) bool {
		if !pick(c) {
			return false
		}
		c.told = true
		made := c.ToolCall
		made.Text, made.Diffs = "", nil
		reports = append(reports, agent.Report{Call: &made})
		return true
	})
	return reports
}

// merge takes an update into its call; nil where there are too many. The caller holds mu.
func (t *Dialogue) merge(u update) *call {
	id := t.brief(u.ToolCallID, maxID)
	c := t.calls[id]
	if c == nil {
		if len(t.calls) >= maxCalls {
			t.left++
			return nil
		}
		c = &call{ToolCall: agent.ToolCall{ID: id}, filled: make(chan struct{})}
		t.calls[id] = c
	}
	if c.ended {
		return c
	}
	if name := u.toolName(); name != "" && c.name == "" {
		c.name = t.brief(name, maxID)
	}
	if u.Kind != "" {
		c.kind = t.brief(u.Kind, 40)
	}
	if u.Title != "" {
		if c.name == "" && word(u.Title) && !says(u.RawInput, u.Title) {
			c.name = t.brief(u.Title, maxID)
		}
		c.Title = t.near(t.brief(u.Title, 500))
	}
	if input, err := t.input(u.RawInput); input != nil || err != nil {
		if t.held += len(input) - len(c.Input); t.held > maxHeld {
			t.held -= len(input)
			input, err = nil, errLong
		}
		c.Input, c.unfit = input, err
		// Some begin a call with a part of its input, such as the folder.
		if !c.whole && (u.Update != "tool_call" || c.wanted) {
			c.whole = true
			close(c.filled)
		}
	}
	text, diffs := t.contents(u.Content)
	if text == "" && len(u.RawOutput) > 0 && c.Text == "" {
		text = t.output(u.RawOutput)
	}
	if text != "" {
		c.Text = text
	}
	if len(diffs) > 0 {
		c.Diffs = diffs
	}
	if !c.told {
		c.Tool = cmp.Or(c.name, c.kind)
	}
	return c
}

// toolName is the tool's name where a program says it beside the protocol, as Claude does.
func (u update) toolName() string {
	if u.Name != "" {
		return u.Name
	}
	for _, raw := range u.Meta {
		var m struct {
			ToolName string `json:"toolName"`
		}
		if json.Unmarshal(raw, &m) == nil && m.ToolName != "" {
			return m.ToolName
		}
	}
	return ""
}

// word reports whether a title is a name, as opencode writes that of its tools.
func word(title string) bool {
	return len(title) <= 80 && !strings.ContainsFunc(title, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	})
}

// says reports whether an input has a title as one of its texts: Codex titles a call with the
// command that it runs, which is no name of a tool.
func says(input json.RawMessage, title string) bool {
	return bytes.Contains(input, []byte(`"`+title+`"`))
}

// near names a file of the checkout as the repository does.
func (t *Dialogue) near(s string) string {
	return strings.ReplaceAll(s, t.Dir+string(filepath.Separator), "")
}

// contents are the texts of a call and what it changes.
func (t *Dialogue) contents(list json.RawMessage) (string, []agent.FileDiff) {
	var all []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Path    string          `json:"path"`
		OldText string          `json:"oldText"`
		NewText string          `json:"newText"`
	}
	if json.Unmarshal(list, &all) != nil {
		return "", nil
	}
	var texts []string
	var diffs []agent.FileDiff
	for _, c := range all {
		switch {
		case c.Type == "diff" && len(diffs) < maxDiffs:
			diffs = append(diffs, agent.FileDiff{Path: t.near(t.brief(c.Path, 500)), Old: t.brief(c.OldText, maxDiff), New: t.brief(c.NewText, maxDiff)})
		case c.Type == "content":
			if text := blockText(c.Content); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return t.brief(strings.Join(texts, "\n"), maxWords), diffs
}

// output is a raw output as a text.
func (t *Dialogue) output(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		if text = string(raw); text == "null" || text == "{}" {
			return ""
		}
	}
	return t.brief(text, maxWords)
}

// blockText is the text of a block of content, "" where it has none.
func blockText(block json.RawMessage) string {
	var b struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(block, &b) != nil || b.Type != "text" {
		return ""
	}
	return b.Text
}

// notePlan records a plan that differs from the one before.
func (t *Dialogue) notePlan(u update) {
	var steps []agent.PlanStep
	for _, e := range u.Entries[:min(len(u.Entries), maxSteps)] {
		steps = append(steps, agent.PlanStep{Text: t.brief(e.Content, 300), State: t.brief(e.Status, 20)})
	}
	t.mu.Lock()
	again := t.plans >= maxPlans || len(steps) == 0 || slices.Equal(steps, t.plan)
	if !again {
		t.plan, t.plans = steps, t.plans+1
	}
	t.mu.Unlock()
	if !again {
		t.tell(agent.Report{Plan: steps})
	}
}
