package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many read-only tools run beside one another.
const atOnce = 4

// maxAnswer is the longest result of a tool, in bytes. What other agents answered is
// kept whole (O22): the engine limits it.
const maxAnswer = 64 << 10

// answer is the result of one call.
type answer struct {
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
	Changed bool   `json:"changed,omitempty"` // files may have changed
}

// sorry is an answer that says what was wrong with a call.
func sorry(format string, args ...any) answer {
	return answer{Text: fmt.Sprintf(format, args...), IsError: true}
}

// memo is what a parked run keeps: the answers of the calls that stood beside the hops,
// so that they are not run twice.
type memo struct {
	Turn    int               `json:"turn"`
	Answers map[string]answer `json:"answers"`
	// Hooked are the calls that hooks were asked about, each with why it is not run, "" where
	// it may be. A memo of before that was kept has none.
	Hooked map[string]string `json:"hooked,omitempty"`
}

// work is the calls of one turn and what came of them so far.
type work struct {
	turn     int
	calls    []agent.Block
	hooked   []Call
	blocks   []string // by call: why hooks do not let it run
	answers  []*answer
	hops     [][]agent.Hop // by call; nil where nothing is handed on
	asks     []agent.Ask   // that people have not answered yet
	wait     int           // the first call that waits for people; those from there on are not run yet
	allowed  []permission  // by call: what people allowed
	children []string
	result   *agent.Result // of a hand-over that ended the run
}

// act runs the calls of a turn. Those that hand work on come last: the run parks for
// them with the answers of the others in its memo, and stores one turn with the results
// of all once the children have ended (O17, O18).
func (c *conversation) act(ctx context.Context, turn agent.Turn) (agent.Outcome, error) {
	c.lastAct = c.now()
	w := c.take(turn)
	for i, call := range w.hooked {
		if v := c.hooks.before(ctx, call); !call.Again {
			w.blocks[i] = v.Block
		}
		if ctx.Err() != nil {
			return agent.Outcome{}, context.Cause(ctx)
		}
		if w.blocks[i] != "" && w.answers[i] == nil {
			w.answers[i] = new(sorry("%s", w.blocks[i]))
			w.hooked[i].Blocked = true
		}
	}
	if err := c.consult(ctx, w); err != nil {
		return agent.Outcome{}, err
	}
	if err := c.runLocal(ctx, w); err != nil {
		return agent.Outcome{}, err
	}
	if len(w.asks) > 0 {
		return agent.Outcome{Park: &agent.Park{Asks: w.asks, Memo: w.memo()}}, nil
	}
	if park := c.handOn(w); park != nil {
		return agent.Outcome{Park: park}, nil
	}
	return agent.Outcome{}, c.finish(ctx, w)
}

// take lays out the calls of a turn with the answers that a parked run has kept.
func (c *conversation) take(turn agent.Turn) *work {
	w := &work{turn: turn.N, calls: turn.Message.Calls()}
	w.answers, w.allowed, w.wait = make([]*answer, len(w.calls)), make([]permission, len(w.calls)), len(w.calls)
	w.hops, w.blocks = make([][]agent.Hop, len(w.calls)), make([]string, len(w.calls))
	var kept memo
	if err := json.Unmarshal(c.job.Memo, &kept); err != nil || kept.Turn != turn.N {
		kept = memo{}
	}
	for i, call := range w.calls {
		again := false
		w.blocks[i], again = kept.Hooked[call.ID]
		w.hooked = append(w.hooked, Call{ID: call.ID, Tool: call.Name, Input: call.Input, Again: again})
		if a, ok := kept.Answers[call.ID]; ok {
			w.answers[i] = &a
		}
	}
	return w
}

// runLocal runs the calls that hand nothing on: neighbours that only read run beside one
// another, all else in order.
func (c *conversation) runLocal(ctx context.Context, w *work) error {
	for i := 0; i < w.wait; {
		next := i
		var g errgroup.Group
		g.SetLimit(atOnce)
		for ; next < w.wait; next++ {
			t := c.tool(w.calls[next].Name)
			reads := t != nil && !t.alone && t.hops == nil
			if !reads && next > i {
				break
			}
			at := next
			g.Go(func() error { return c.call(ctx, w, at, t) })
			if !reads {
				next++
				break
			}
		}
		if err := g.Wait(); err != nil {
			return err
		}
		i = next
	}
	return nil
}

// call answers one call unless it has its answer or hands on. Only what ends the run is
// an error.
func (c *conversation) call(ctx context.Context, w *work, i int, t *tool) error {
	if w.answers[i] != nil || t != nil && t.hops != nil {
		return nil
	}
	a, err := c.attempt(ctx, w, i, t)
	if err != nil {
		return err
	}
	if len(a.Text) > maxAnswer {
		a.Text = strings.ToValidUTF8(a.Text[:maxAnswer], "") + fmt.Sprintf("\n… (cut: the result has %d bytes)", len(a.Text))
	}
	if strings.TrimSpace(a.Text) == "" {
		a.Text = "(the result is empty)"
	}
	w.answers[i] = &a
	return nil
}

func (c *conversation) attempt(ctx context.Context, w *work, i int, t *tool) (answer, error) {
	call := w.calls[i]
	if a, bad := c.unfit(call, i); bad {
		return a, nil
	}
	if a, err := c.proceed(ctx, w, i, t); a != nil || err != nil {
		return a.orZero(), err
	}
	a, err := t.run(ctx, call)
	a.Text = w.allowed[i].note + a.Text
	failed, ok := errors.AsType[*agent.Failure](err)
	switch {
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case ok:
		return sorry("%s: %s", failed.Code, failed.Message), nil
	}
	return a, err
}

// unfit answers a call that cannot be run at all, the i-th of its message.
func (c *conversation) unfit(call agent.Block, i int) (answer, bool) {
	switch {
	case i >= maxCalls:
		return sorry("At most %d calls are run of one message. Make this one again in your next message.", maxCalls), true
	case c.denied[call.Name] && c.tool(call.Name) == nil:
		return refusedAction(c.job.Agent.Name, call.Name), true
	case c.tool(call.Name) == nil:
		return sorry("There is no tool %q. You have: %s.", call.Name, strings.Join(c.toolNames(), ", ")), true
	case call.IsError:
		return sorry("The input of %s is no JSON object: %s. Call it again with a whole object; if your message was cut, write less at once.", call.Name, textcut.Characters(call.Text, 200)), true
	}
	return answer{}, false
}

// handOn answers the calls that hand work on from the children that have ended, and
// returns the park for the others, nil when there is none.
func (c *conversation) handOn(w *work) *agent.Park {
	children := map[string]agent.Child{}
	for _, child := range c.job.Children {
		if child.Ref != "" && !child.Spawn {
			children[child.Ref] = child
		}
	}
	var open []agent.Hop
	for i, call := range w.calls {
		t := c.tool(call.Name)
		if w.answers[i] != nil || t == nil || t.hops == nil {
			continue
		}
		if a, bad := c.unfit(call, i); bad {
			w.answers[i] = &a
			continue
		}
		hops, a := t.hops(call)
		if a != nil {
			w.answers[i] = a
			continue
		}
		w.hops[i] = hops
		var came []agent.Child
		for _, h := range hops {
			if child, ok := children[h.Ref]; ok && child.Ended {
				came = append(came, child)
			}
		}
		if len(came) < len(hops) {
			open = append(open, hops...)
			continue
		}
		c.receive(w, i, came)
	}
	if len(open) == 0 {
		return nil
	}
	return &agent.Park{Hops: open, Memo: w.memo()}
}

// receive makes the answer of a call from the children that it led to.
func (c *conversation) receive(w *work, i int, came []agent.Child) {
	a := answer{Changed: c.job.Dir != ""}
	var texts []string
	for _, child := range came {
		text, bad := outcome(child)
		if len(came) > 1 { // quoted, so that no answer can pass for another agent's
			text = child.To + ": " + quote(text)
		}
		texts = append(texts, text)
		a.IsError = a.IsError || bad
		if child.ID != "" {
			w.children = append(w.children, child.ID)
		}
	}
	a.Text = strings.Join(texts, "\n\n")
	if w.calls[i].Name == handoffTool && slices.ContainsFunc(came, func(child agent.Child) bool { return child.State == "failed" }) {
		a.Text += "\n\nThe hand-over failed, so the work is yours again: go on by yourself, and answer with what you can do alone." // H29
	}
	w.answers[i] = &a
	if w.calls[i].Name == handoffTool && !a.IsError && len(came) == 1 {
		w.result = came[0].Result
	}
}

// memo keeps the answers so far.
func (w *work) memo() json.RawMessage {
	m := memo{Turn: w.turn, Answers: map[string]answer{}, Hooked: map[string]string{}}
	for i, a := range w.answers {
		m.Hooked[w.calls[i].ID] = w.blocks[i]
		if a != nil && w.hops[i] == nil && !w.hooked[i].Blocked {
			m.Answers[w.calls[i].ID] = *a
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil // strings and flags always marshal
	}
	return b
}

// finish stores the results of a turn's calls, in the order of the calls.
func (c *conversation) finish(ctx context.Context, w *work) error {
	t := agent.Turn{Message: agent.Message{Role: agent.FromTools}, Children: w.children}
	changed := false
	w.untimely()
	var stop *agent.Failure
	for i, call := range w.calls {
		a := w.answers[i]
		if v := c.hooks.after(ctx, w.hooked[i], *a); v.Note != "" || v.Stop != nil {
			stop = v.Stop
			a.Text += note(v.Note)
		}
		changed = changed || a.Changed
		t.Message.Blocks = append(t.Message.Blocks, agent.Block{Type: agent.AnswerBlock, ID: call.ID, Name: call.Name, Text: strings.ToValidUTF8(a.Text, "\uFFFD"), IsError: a.IsError})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // hooks may have been cut short
	}
	if err := c.save(ctx, t, changed); err != nil {
		return err
	}
	c.final = w.result
	if stop != nil {
		return stop
	}
	return nil
}

// noteMark begins what hooks add to a result.
const noteMark = "\n\nNote: "

func note(text string) string {
	if text == "" {
		return ""
	}
	return noteMark + text
}

// unnoted is a result without what hooks added.
func unnoted(text string) string {
	if i := strings.LastIndex(text, noteMark); i >= 0 {
		return text[:i]
	}
	return text
}

// handedOver returns the run's result when the last turn says that a hand-over took
// place: the caller ends with what came of it (H2).
func (c *conversation) handedOver() *agent.Result {
	n := len(c.turns)
	if n < 2 || c.turns[n-1].Message.Role != agent.FromTools {
		return nil
	}
	if c.final != nil {
		return c.final
	}
	var texts []string
	for _, b := range c.turns[n-1].Message.Blocks {
		if b.Name != handoffTool {
			continue
		}
		if b.IsError {
			return nil
		}
		texts = append(texts, b.Text)
	}
	if len(texts) == 0 {
		return nil
	}
	return &agent.Result{Text: strings.Join(texts, "\n\n")}
}

// outcome is what came of a child, as its caller reads it (K11).
func outcome(c agent.Child) (text string, isError bool) {
	switch {
	case c.Error != nil:
		return c.Error.Code + ": " + c.Error.Message, true
	case c.Result == nil:
		return c.State + ": " + c.To + " ended without an answer.", c.State != "completed"
	}
	r := c.Result
	parts := []string{r.Text}
	if len(r.Data) > 0 {
		parts = append(parts, "Data: "+string(r.Data))
	}
	for _, a := range r.Artifacts {
		parts = append(parts, a.Words())
	}
	switch {
	case r.Pushed != "":
		parts = append(parts, "Its changes were pushed to "+r.Pushed+" as commit "+r.Commit+", for people to merge.")
	case r.Commit != "":
		parts = append(parts, "Its changes landed as commit "+r.Commit+".")
	}
	if len(r.Declined) > 0 {
		parts = append(parts, "People left out its changes to: "+strings.Join(r.Declined, ", "))
	}
	text = cmp.Or(strings.TrimSpace(strings.Join(parts, "\n\n")), "("+c.To+" ended without a text)")
	return text, false
}
