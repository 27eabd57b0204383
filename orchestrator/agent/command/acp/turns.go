package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"gatehouse/orchestrator/agent"
)

// turn is the answer to a prompt.
type turn struct {
	StopReason string `json:"stopReason"`
	Usage      *struct {
		InputTokens  int64 `json:"inputTokens"`
		OutputTokens int64 `json:"outputTokens"`
		TotalTokens  int64 `json:"totalTokens"`
	} `json:"usage"`
}

// turns gives the task and then, as long as people said something, or no with words, those words.
func (t *Dialogue) turns(text string) error {
	heard, err := t.meanwhile()
	if err != nil {
		return err
	}
	end, err := t.prompt(join(text, heard))
	for refused := 0; ; end, err = t.prompt(text) {
		if err != nil {
			return err
		}
		t.cutSegment(true)
		if err := t.settle(end); err != nil {
			return err
		}
		if text = t.untold(); text != "" {
			if refused++; refused == maxPrompts {
				return agent.Fail(agent.CodeLoop, "%s was told %d times why its calls were not made, and made others that were not either. Look at what it is allowed, and word the task otherwise.", t.Program, maxPrompts)
			}
		}
		if heard, err = t.meanwhile(); err != nil {
			return err
		}
		if text = join(text, heard); text == "" {
			return cmp.Or(t.gate(), t.stopped(end.StopReason))
		}
	}
}

// meanwhile is what people said that the program was not told.
func (t *Dialogue) meanwhile() (string, error) {
	said, err := t.Host.Hear(t.ctx, false)
	return agent.ToldAll(said), err
}

// join is two texts that belong to one prompt.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// prompt is one turn. When the run ends in the middle of it the program is told.
func (t *Dialogue) prompt(text string) (turn, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.ctx))
	defer stop()
	halt := context.AfterFunc(t.ctx, func() {
		time.AfterFunc(CancelGrace, stop) // the program may not even read what it is told
		if t.begin() {
			defer t.open.Done()
			_ = t.conn.SendNotification(ctx, sdk.AgentMethodSessionCancel, sdk.CancelNotification{SessionId: sdk.SessionId(t.id)})
		}
	})
	defer halt()
	blocks := append([]sdk.ContentBlock{sdk.TextBlock(text)}, t.links()...)
	end, err := ask[turn](ctx, t, sdk.AgentMethodSessionPrompt, sdk.PromptRequest{SessionId: sdk.SessionId(t.id), Prompt: blocks})
	if cause := context.Cause(t.ctx); cause != nil {
		return turn{}, cause
	}
	if refused, ok := errors.AsType[*sdk.RequestError](err); ok {
		return turn{}, agent.Fail(agent.CodeModel, "%s ended its turn with an error: %s", t.Program, t.told(refused))
	}
	return end, err
}

// links are the files that came with the task, for the first prompt of a run: their folder is
// another in each.
func (t *Dialogue) links() []sdk.ContentBlock {
	var all []sdk.ContentBlock
	for _, a := range t.Job.Attachments {
		at := url.URL{Scheme: "file", Path: a.Path}
		block := sdk.ResourceLinkBlock(a.Name, at.String())
		block.ResourceLink.MimeType, block.ResourceLink.Size = new(a.MediaType), new(int(a.Size))
		all = append(all, block)
	}
	t.Job.Attachments = nil
	return all
}

// settle reports what the turn used.
func (t *Dialogue) settle(end turn) error {
	t.mu.Lock()
	spent := t.cost - t.billed
	t.billed = t.cost
	t.mu.Unlock()
	var u agent.Usage
	if n := end.Usage; n != nil {
		u.OutputTokens = bounded(n.OutputTokens)
		// Some count what came from a cache among the input, and some beside it; in the total it always is.
		u.InputTokens = max(bounded(n.InputTokens), bounded(n.TotalTokens)-u.OutputTokens)
	}
	if spent > 0 {
		u.USD = &spent
	}
	if u == (agent.Usage{}) {
		return nil
	}
	// Over the budget it fails, and the session is kept all the same.
	return errors.Join(t.Host.Usage(t.ctx, u), t.keep())
}

// gate tells, where the program made calls, whether it asked about any of them.
func (t *Dialogue) gate() error {
	t.mu.Lock()
	asked, made, left := t.asked, len(t.calls) > 0, t.left
	t.mu.Unlock()
	if left > 0 {
		t.Say(fmt.Sprintf("%s made more calls than are recorded: what was told of those behind the first %d is left out %d times.", t.Program, maxCalls, left))
	}
	if !made {
		return nil
	}
	return t.Host.Report(t.ctx, agent.Report{Asked: &asked})
}

func bounded(n int64) int64 { return min(max(n, 0), maxTokens) }

// spend takes the price of the whole session as the program says it.
func (t *Dialogue) spend(amount float64, currency string) {
	if currency != "USD" || math.IsNaN(amount) || amount < 0 || amount > maxTokens {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost = max(t.cost, amount)
}

// stopped is the failure of a turn that ended otherwise than with an answer.
func (t *Dialogue) stopped(reason string) error {
	switch sdk.StopReason(reason) {
	case sdk.StopReasonEndTurn:
		return nil
	case sdk.StopReasonMaxTokens:
		return agent.Fail(agent.CodeModel, "%s stopped in the middle, because its model may write no more tokens. Raise that limit in its own settings, or send a smaller task.", t.Program)
	case sdk.StopReasonMaxTurnRequests:
		return agent.Fail(agent.CodeTurns, "%s asked its model as often as it may, and had no answer. Raise that limit in its own settings, or send a smaller task.", t.Program)
	case sdk.StopReasonRefusal:
		return agent.Fail(agent.CodeModel, "The model of %s refused to go on. Word the task otherwise.", t.Program)
	case sdk.StopReasonCancelled:
		return agent.Fail(agent.CodeExit, "%s broke its turn off, and nobody had told it to. Send the task again.", t.Program)
	}
	return agent.Fail(agent.CodeProtocol, "%s ended its turn for a reason that is not known here, %q. Install another release of it.", t.Program, t.brief(reason, 80))
}
