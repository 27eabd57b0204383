package agenttest

import (
	"context"

	"gatehouse/orchestrator/agent"
)

// Consult answers as OnAsk says; without it every call may be made, and every question is open.
func (h *Host) Consult(ctx context.Context, asks []agent.Ask) ([]agent.Answer, error) {
	if err := h.enter(ctx, "Consult"); err != nil {
		return nil, err
	}
	answers := make([]agent.Answer, len(asks))
	for i, a := range asks {
		answers[i] = h.answer(a)
	}
	return answers, nil
}

// Ask answers as OnAsk says, which may take its time.
func (h *Host) Ask(ctx context.Context, a agent.Ask) (agent.Answer, error) {
	if err := h.enter(ctx, "Ask"); err != nil {
		return agent.Answer{}, err
	}
	h.mu.Lock()
	h.asked = append(h.asked, a)
	h.mu.Unlock()
	answer := h.answer(a)
	return answer, ctx.Err()
}

// Proceed records the call that is about to be made.
func (h *Host) Proceed(ctx context.Context, a agent.Ask) error {
	if err := h.enter(ctx, "Proceed"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = append(h.begun, a.Ref)
	return nil
}

func (h *Host) answer(a agent.Ask) agent.Answer {
	said := agent.Answer{State: agent.AskOpen}
	switch {
	case h.OnAsk != nil:
		said = h.OnAsk(a)
	case a.Action != nil:
		said.State = agent.AskAllowed
	}
	said.Ref = a.Ref
	if a.Action != nil && said.State == agent.AskAllowed && said.Input == nil {
		said.Input = a.Action.Input
	}
	return said
}

// Asked returns what Ask was asked.
func (h *Host) Asked() []agent.Ask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]agent.Ask(nil), h.asked...)
}

// Begun returns the refs that Proceed was told.
func (h *Host) Begun() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.begun...)
}

// Report records what the program told.
func (h *Host) Report(ctx context.Context, what agent.Report) error {
	if err := h.enter(ctx, "Report"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, what)
	return nil
}

// Reports returns what Report was told.
func (h *Host) Reports() []agent.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]agent.Report(nil), h.reports...)
}

// KeepSession keeps it.
func (h *Host) KeepSession(ctx context.Context, session string) error {
	if err := h.enter(ctx, "KeepSession"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session = session
	return nil
}

// Session returns what KeepSession was told last.
func (h *Host) Session() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session
}
