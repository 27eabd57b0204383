package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/textcut"
)

const (
	// defaultTurns is how often a model is asked in one run when its agent does not say.
	defaultTurns = 100
	// defaultText is how long an answer may be, in bytes, when its agent does not say.
	defaultText = 8 << 20
	// maxCut is how often an answer that was cut at its limit is gone on with.
	maxCut = 3
	// maxCalls is how many calls of one answer are run; the others are told so.
	maxCalls = 64
	// interim is how much of what a model says between calls is shown as progress, in
	// characters; the stored turn has the whole.
	interim = 500
)

// What is said to a model that cannot go on by itself.
const (
	goOn      = "Your answer was cut at its limit. Go on exactly where it stopped, without repeating anything."
	saySo     = "Your answer was empty. Say what you did and what came of it."
	emptySlot = "(no text)"
)

// conversation is one run: the stored turns and what is needed to add to them. It is
// used by one goroutine; only read-only tools run beside one another.
type conversation struct {
	job      agent.Job
	host     agent.Host
	client   model.Client
	settings Settings
	log      *slog.Logger
	now      func() time.Time

	turns    []agent.Turn
	system   string
	tools    []tool // as shown, in this order
	boxes    []Toolbox
	guarded  []tool          // that the model is not offered, and people are asked about when it calls one
	denied   map[string]bool // tools that a rule keeps from the agent
	hooks    hooks
	loop     *Detector
	view     view
	ids      map[string]bool // of all calls so far
	spawned  map[string]bool // live spawned children, by id
	members  []agent.Member
	final    *agent.Result          // of a hand-over that has just ended the run
	lastAct  time.Time              // when the act or ask that is going on began
	mayFetch func(netip.Addr) error // where fetch_url may connect
	commands Commands               // nil where run_command is not given
}

// run is the loop of doc.go.
func (c *conversation) run(ctx context.Context) (agent.Outcome, error) {
	if len(c.turns) == c.job.Carried {
		text := firstMessage(c.job)
		if c.job.Carried > 0 {
			text = nextMessage(c.job)
		}
		if told := c.attached(); told != "" && (c.job.Carried == 0 || c.job.Feedback == nil) { // else it knows them
			text += "\n\n" + told
		}
		if err := c.save(ctx, agent.Turn{Message: said(text)}, false); err != nil {
			return agent.Outcome{}, err
		}
	}
	for {
		last := c.turns[len(c.turns)-1]
		var out agent.Outcome
		var err error
		switch {
		case last.Message.Role != agent.FromModel:
			if result := c.handedOver(); result != nil {
				return agent.Outcome{Result: result}, nil
			}
			if result := c.finished(); result != nil {
				out, err = c.end(ctx, result)
			} else {
				err = c.ask(ctx)
			}
		case len(last.Message.Calls()) > 0:
			out, err = c.act(ctx, last)
		default:
			out, err = c.conclude(ctx, last)
		}
		if err != nil || out.Result != nil || out.Park != nil {
			return out, err
		}
	}
}

// ask asks the model for the next message and stores it.
func (c *conversation) ask(ctx context.Context) error {
	if last := c.turns[len(c.turns)-1].Message; last.Role != agent.FromUser || last.Text() != goOn { // which its answer has to follow
		told, err := c.news(ctx)
		if err != nil || told {
			return err // the news are a turn of their own; the loop comes back here
		}
	}
	if c.misfits() > 1 {
		return c.badOutput()
	}
	asked := 0
	for _, t := range c.turns[c.job.Carried:] {
		if t.Message.Role == agent.FromModel {
			asked++
		}
	}
	if most := c.mostTurns(); asked >= most {
		return agent.Fail(agent.CodeTurns, "%s asked its model %d times, which is its limit, and had no answer yet. Raise its `max_turns`, or send a smaller task.", c.job.Agent.Name, most)
	}
	c.lastAct = c.now()
	r, err := c.complete(ctx)
	if err != nil {
		return err
	}
	m := c.clean(r.Message, len(c.turns)+1)
	t := agent.Turn{Message: m, Model: r.Model, Stop: r.Stop, Usage: r.Usage}
	if !r.Reported {
		if t.Usage, err = c.estimate(ctx, m, r.Priced); err != nil {
			return err
		}
	}
	if err := c.save(ctx, t, false); err != nil {
		return err
	}
	if text := strings.TrimSpace(m.Text()); text != "" && len(m.Calls()) > 0 {
		return c.host.Progress(ctx, textcut.Characters(text, interim))
	}
	return nil
}

func (c *conversation) mostTurns() int {
	if c.job.Agent.MaxTurns > 0 {
		return c.job.Agent.MaxTurns
	}
	return defaultTurns
}

// mostText is how long an answer may be, in bytes, as for programs.
func (c *conversation) mostText() int {
	if c.job.Agent.OutputLimit > 0 {
		return int(c.job.Agent.OutputLimit)
	}
	return defaultText
}

// save numbers a turn, stores it, and only then goes on with it.
func (c *conversation) save(ctx context.Context, t agent.Turn, changed bool) error {
	t.N, t.At = len(c.turns)+1, c.now().UTC()
	if !c.lastAct.IsZero() {
		t.Took, c.lastAct = t.At.Sub(c.lastAct), time.Time{}
	}
	err := c.host.SaveTurn(ctx, t, changed)
	if err == nil {
		c.turns = append(c.turns, t)
	}
	return err
}

// estimate is the usage of an answer whose provider reported none: all that is left of
// the reservation, in money, too, where the model has a price, and no less than a token
// for four bytes.
func (c *conversation) estimate(ctx context.Context, m agent.Message, priced bool) (agent.Usage, error) {
	left, err := c.host.Remaining(ctx)
	if err != nil {
		return agent.Usage{}, err
	}
	u := agent.Usage{InputTokens: c.sent(), OutputTokens: int64(weight(m)/4 + 1)}
	if left.Tokens != nil {
		u.InputTokens = max(u.InputTokens, *left.Tokens-u.OutputTokens)
	}
	if priced && left.MicroUSD != nil {
		usd := float64(max(*left.MicroUSD, 1)) / 1e6 // the next such call goes beyond it
		u.USD = &usd
	}
	return u, nil
}

// weight is the size of a message in bytes.
func weight(m agent.Message) int {
	n := 0
	for _, b := range m.Blocks {
		n += len(b.Text) + len(b.Input) + len(b.Opaque)
	}
	return n
}

// conclude ends the run with what the model said last, unless there is a reason to ask
// it again.
func (c *conversation) conclude(ctx context.Context, last agent.Turn) (agent.Outcome, error) {
	text, cuts := c.answer()
	switch {
	case last.Stop == model.StopRefusal:
		return agent.Outcome{}, agent.Fail(agent.CodeModel, "The model of %s declined to answer%s. Word the task differently, or give it to another agent.", c.job.Agent.Name, colon(textcut.Characters(text, interim)))
	case last.Stop == model.StopMaxTokens && cuts > maxCut:
		return agent.Outcome{}, agent.Fail(agent.CodeModel, "The answer of %s was cut at its limit %d times. Raise its `max_tokens`, or ask for a shorter answer.", c.job.Agent.Name, cuts)
	case last.Stop == model.StopMaxTokens:
		return agent.Outcome{}, c.say(ctx, goOn)
	case len(text) > c.mostText():
		return agent.Outcome{}, agent.Fail(agent.CodeOutput, "The answer of %s has %d bytes and %d are its limit. Ask for a shorter answer, have it written to a file, or raise its `output_limit`.", c.job.Agent.Name, len(text), c.mostText())
	case strings.TrimSpace(text) == "" && c.toldBefore(saySo):
		return agent.Outcome{}, agent.Fail(agent.CodeModel, "The model of %s answered with nothing, twice. Try again, or give the task to another agent or model.", c.job.Agent.Name)
	case strings.TrimSpace(text) == "":
		return agent.Outcome{}, c.say(ctx, saySo)
	}
	result, unfit := c.plainAnswer(text)
	switch {
	case unfit != nil && c.misfits() > 0:
		return agent.Outcome{}, c.badOutput()
	case unfit != nil:
		return agent.Outcome{}, c.say(ctx, fmt.Sprintf("%s%v. Call %s with data that fits.", misfit, unfit, finishTool))
	}
	return c.end(ctx, result)
}

// news stores what people said and what spawned agents answered since the last turn, and
// reports whether there was anything.
func (c *conversation) news(ctx context.Context) (bool, error) {
	if heard, err := c.hear(ctx); err != nil || heard {
		return heard, err
	}
	return c.announce(ctx)
}

// hear stores what people said as the next message.
func (c *conversation) hear(ctx context.Context) (bool, error) {
	unread, err := c.host.Unread(ctx)
	if err != nil || len(unread) == 0 {
		return false, err
	}
	t := agent.Turn{Message: agent.Message{Role: agent.FromUser}}
	for _, m := range unread {
		t.Message.Blocks = append(t.Message.Blocks, agent.Block{Type: agent.TextBlock, Text: m.Told()})
		t.Messages = append(t.Messages, m.ID)
	}
	return true, c.save(ctx, t, false)
}

// end ends the run with a result, unless people or spawned agents have news or still work.
func (c *conversation) end(ctx context.Context, result *agent.Result) (agent.Outcome, error) {
	if told, err := c.news(ctx); err != nil || told {
		return agent.Outcome{}, err
	}
	if len(c.spawned) > 0 {
		return agent.Outcome{Park: &agent.Park{ForSpawned: true}}, nil
	}
	return agent.Outcome{Result: result}, nil
}

// say stores a message of the runner's own.
func (c *conversation) say(ctx context.Context, text string) error {
	return c.save(ctx, agent.Turn{Message: said(text)}, false)
}

// answer joins the last text with those before it that were cut, and counts the cuts.
func (c *conversation) answer() (text string, cuts int) {
	for i := len(c.turns) - 1; i >= 0; i-- {
		t := c.turns[i]
		switch {
		case t.Message.Role == agent.FromUser && t.Message.Text() == goOn:
			continue
		case t.Message.Role != agent.FromModel || i < len(c.turns)-1 && (t.Stop != model.StopMaxTokens || len(t.Message.Calls()) > 0):
			return text, cuts
		}
		if t.Stop == model.StopMaxTokens {
			cuts++
		}
		text = t.Message.Text() + text
	}
	return text, cuts
}

// toldBefore reports whether the message before the last is this one of the runner's.
func (c *conversation) toldBefore(text string) bool {
	n := len(c.turns)
	return n > 1 && c.turns[n-2].Message.Role == agent.FromUser && c.turns[n-2].Message.Text() == text
}

// said is a message of the user's role.
func said(text string) agent.Message {
	return agent.Message{Role: agent.FromUser, Blocks: []agent.Block{{Type: agent.TextBlock, Text: text}}}
}

func colon(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return ": " + strings.TrimSpace(text)
}

// maxMalformed is how much of an input that is no JSON object is kept, in characters.
const maxMalformed = 1000

// clean makes a model's message one that can be stored and sent again by any provider:
// ids are unique in the conversation, inputs are JSON objects, and no text holds bytes
// that are no text.
func (c *conversation) clean(m agent.Message, turn int) agent.Message {
	out := agent.Message{Role: agent.FromModel}
	for i, b := range m.Blocks {
		b.Text = strings.ToValidUTF8(strings.ReplaceAll(b.Text, "\x00", ""), "\uFFFD")
		switch b.Type {
		case agent.TextBlock:
			if b.Text == "" {
				continue
			}
		case agent.CallBlock:
			if !plainID(b.ID) || c.ids[b.ID] {
				b.ID = c.newID(turn, i)
			}
			c.ids[b.ID] = true
			b.Name = textcut.Characters(strings.ToValidUTF8(b.Name, "\uFFFD"), 128)
			b = wellFormed(b)
		case agent.OpaqueBlock:
			if !json.Valid(b.Opaque) {
				continue
			}
		default:
			continue // results are not the model's to give
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out
}

// newID makes an id that no call of the conversation has.
func (c *conversation) newID(turn, i int) string {
	id := fmt.Sprintf("call_%d_%d", turn, i+1)
	for c.ids[id] {
		id += "_"
	}
	return id
}

// plainID reports whether an id can be sent to any provider and be the name of a hop.
func plainID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// wellFormed gives a call an input that is a JSON object: what is stored and sent again
// must always be one. Another is kept as the call's text, and the call is in error; no
// input is an empty object.
func wellFormed(call agent.Block) agent.Block {
	var fields map[string]json.RawMessage
	switch raw := strings.TrimSpace(string(call.Input)); {
	case call.IsError: // the provider's adapter found it
	case raw == "":
		call.Text, call.Input = "", json.RawMessage("{}")
		return call
	case json.Unmarshal(call.Input, &fields) == nil && fields != nil:
		call.Text = ""
		return call
	default:
		call.Text, call.IsError = strings.ToValidUTF8(raw, "\uFFFD"), true
	}
	call.Text, call.Input = textcut.Characters(call.Text, maxMalformed), json.RawMessage("{}")
	return call
}
