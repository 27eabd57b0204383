package command

import (
	"context"
	"fmt"

	"gatehouse/orchestrator/agent"
)

// askLine is a question to people.
type askLine struct {
	Ref      string   `json:"ref"`
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
	To       string   `json:"to"`
}

// saidLine tells a program what people answered, or why nobody did: State is answered, refused
// or expired, and By whoever answered.
type saidLine struct {
	Type  string            `json:"type"`
	Ref   string            `json:"ref"`
	State agent.AnswerState `json:"state"`
	Text  string            `json:"text"`
	By    string            `json:"by"`
}

// ask puts a question to people. Questions are waited for side by side, and no slot is held
// while people think; what nobody can be asked is answered at once.
func (d *dialogue) ask(ctx context.Context, n int, line []byte) error {
	var l askLine
	if what := decode(line, &l); what != "" {
		return d.broken(n, what)
	}
	q := agent.Question{Text: d.safe(l.Question), To: clean(l.To)}
	for _, choice := range l.Choices {
		q.Choices = append(q.Choices, d.safe(choice))
	}
	d.open.Go(func() {
		d.watch.pause()
		said, err := d.host.Ask(ctx, agent.Ask{Ref: clean(l.Ref), Question: &q})
		d.watch.resume()
		switch {
		case err == nil:
			d.tell(saidLine{Type: "answer", Ref: l.Ref, State: said.State, Text: said.Text, By: said.By})
		case ctx.Err() == nil:
			d.cancel(fmt.Errorf("ask people: %w", err))
		}
	})
	return nil
}
