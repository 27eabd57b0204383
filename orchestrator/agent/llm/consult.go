package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gatehouse/orchestrator/agent"
)

// permission is what people allowed of one call.
type permission struct {
	asked bool   // people did, and no rule
	begun bool   // an attempt before this one may have made the call
	by    string // who allowed it
	note  string // what the model is told before the result: that the input was changed
}

// consult learns of every call that has no answer yet whether it may be made, and of every
// question whether it has its answer. What people have to be asked is kept for the park;
// from the first such call on nothing is run, so that calls keep their order.
func (c *conversation) consult(ctx context.Context, w *work) error {
	var asks []agent.Ask
	var at []int
	for i, call := range w.calls {
		if _, bad := c.unfit(call, i); bad || w.answers[i] != nil {
			continue
		}
		a, unasked := c.askOf(call)
		if unasked != nil {
			w.answers[i] = unasked
			continue
		}
		asks, at = append(asks, a), append(at, i)
	}
	if len(asks) == 0 {
		return nil
	}
	answers, err := c.host.Consult(ctx, asks)
	if err != nil {
		return err
	}
	for k, said := range answers {
		i := at[k]
		if said.State == agent.AskOpen {
			w.asks, w.wait = append(w.asks, asks[k]), min(w.wait, i)
			continue
		}
		w.answers[i] = w.told(i, said)
	}
	return nil
}

// askOf is what a call asks; or the answer that says what is wrong with it.
func (c *conversation) askOf(call agent.Block) (agent.Ask, *answer) {
	t := c.tool(call.Name)
	if t.asks != nil {
		q, a := t.asks(call)
		return agent.Ask{Ref: call.ID, Question: q}, a
	}
	hints := t.hints
	if t.server == "" {
		hints = agent.Hints{ReadOnly: new(!t.changes), Destructive: new(t.changes)}
	}
	return agent.Ask{Ref: call.ID, Action: &agent.Action{Tool: call.Name, Input: call.Input, Server: t.server, Hints: hints}}, nil
}

// told is the answer of a call that is not run because of what was said of its ask; nil where
// it may be run.
func (w *work) told(i int, said agent.Answer) *answer {
	call := &w.calls[i]
	switch said.State {
	case agent.AskAllowed:
		w.allowed[i] = permission{asked: said.ID != "", begun: said.Begun, by: said.By}
		if said.Edited {
			w.allowed[i].note = fmt.Sprintf("(%s changed the input of this call to %s before allowing it.)\n\n", said.By, said.Input)
			call.Input = said.Input
		}
		return nil
	case agent.AskAnswered:
		return &answer{Text: fmt.Sprintf("%s answers: %s", said.By, quote(said.Text))}
	case agent.AskExpired:
		return &answer{Text: said.Text, IsError: call.Name != askPersonTool}
	}
	if call.Name == askPersonTool {
		return new(sorry("%s", said.Text))
	}
	return new(sorry("%s: %s", agent.CodeActionRefused, said.Text))
}

// proceed notes that a call which people allowed is made now. One that an attempt before this
// one may have made is not made again where it may have changed more than the checkout, which
// is as it was when the last turn was stored.
func (c *conversation) proceed(ctx context.Context, w *work, i int, t *tool) (*answer, error) {
	p := w.allowed[i]
	switch {
	case !p.asked && p.by == "":
		return nil, nil // by a rule
	case p.begun && t.changes && (t.server != "" || t.Name == commandTool):
		return new(sorry("%s allowed this call, and it may have been made already: the node that was about to make it went away. It is not made again. "+
			"Look whether its effect is there. If it is not, make the call again, and people are asked again.", p.by)), nil
	}
	if p.note != "" { // hooks have seen another input
		if v := c.hooks.before(ctx, Call{ID: w.calls[i].ID, Tool: w.calls[i].Name, Input: w.calls[i].Input}); v.Block != "" {
			return new(sorry("%s", v.Block)), nil
		}
	}
	made, _ := c.askOf(w.calls[i])
	err := c.host.Proceed(ctx, made)
	if failed, ok := errors.AsType[*agent.Failure](err); ok {
		return new(sorry("%s: %s", failed.Code, failed.Message)), nil
	}
	return nil, err
}

// orZero is the answer, or nothing.
func (a *answer) orZero() answer {
	if a == nil {
		return answer{}
	}
	return *a
}

// asking is the input of ask_person.
type asking struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
	To       string   `json:"to"`
}

// askPerson is the tool that asks people. No slot is held while they think.
func askPerson() tool {
	t := tool{Tool: describe(askPersonTool, `"question":{"type":"string","description":"What you want to know, with all that somebody needs to answer it"},`+
		`"choices":{"type":"array","items":{"type":"string"},"description":"Answers to choose from, at most 12"},`+
		`"to":{"type":"string","description":"The group of people to ask"}`, "question"), alone: true}
	t.asks = func(call agent.Block) (*agent.Question, *answer) {
		var in asking
		if a := decode(call, &in); a != nil {
			return nil, a
		}
		q := agent.Question{Text: in.Question, Choices: slices.Clip(in.Choices), To: in.To}
		if err := (agent.Ask{Question: &q}).Check(); err != nil {
			return nil, new(sorry("%s", err.Error()))
		}
		return &q, nil
	}
	t.run = func(context.Context, agent.Block) (answer, error) { return answer{}, nil } // people answer it
	return t
}
