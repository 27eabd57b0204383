package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// IsQuestion reports whether r is what an agent asks people.
func (r Request) IsQuestion() bool { return r.Kind == Question && r.Question != nil }

// questionText is all that is asked.
func (r Request) questionText() string {
	text := r.Agent + " asks:\n\n" + strings.TrimSpace(r.Question.Text) + "\n"
	if len(r.Question.Choices) > 0 {
		text += "\nChoices:\n"
		for _, c := range r.Question.Choices {
			text += "- " + c + "\n"
		}
	}
	return text
}

// Reply is the answer to a question, "" while there is none.
func (r Request) Reply() (answer, by string) {
	for _, d := range r.Decisions {
		if d.Verdict == Respond {
			answer, by = d.Comment, d.User
		}
	}
	return answer, by
}

// question is what an agent asks people: one answer ends it.
type question struct{}

func (question) takes(r Request, b Ballot) *orchestrator.Error {
	bad := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, format, args...)
	}
	switch {
	case b.Verdict == Reject:
		return nil
	case b.Verdict != Respond:
		return bad("%s asks a question. Answer it, or reject it with a reason.", r.Agent)
	case b.ForTask || b.Input != nil || b.Files != nil || b.StartOver:
		return bad("An answer has a text or a choice, and nothing else.")
	case b.Choice != "" && !slices.Contains(r.Question.Choices, b.Choice):
		return bad("%q is none of the choices: %s.", b.Choice, strings.Join(r.Question.Choices, ", "))
	case b.Comment == "" && b.Choice == "":
		return bad("The answer is empty. Write one, or choose one.")
	}
	return nil
}

// answered is the text of an answer: the choice, what was written, or both.
func (b Ballot) answered() string {
	switch {
	case b.Choice == "":
		return b.Comment
	case b.Comment == "" || b.Comment == b.Choice:
		return b.Choice
	}
	return b.Choice + "\n\n" + b.Comment
}

// respond stores the answer and gives it to the agent.
func respond(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error {
	r.end(Answered, tx.Now())
	if err := saveWith(ctx, tx, r, dec); err != nil {
		return err
	}
	return orchestrator.AnswerAsk(ctx, tx, d, agent.Answer{ID: r.ID, State: agent.AskAnswered, Text: dec.Comment, By: dec.User})
}

func (question) allow(context.Context, Tx, *Request, *orchestrator.Delegation, []string) error {
	return nil // takes lets no approval through
}

func (question) refuse(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error {
	why := dec.User + " does not answer this."
	if dec.Comment != "" {
		why = fmt.Sprintf("%s does not answer this: %q.", dec.User, dec.Comment)
	}
	return orchestrator.AnswerAsk(ctx, tx, d, agent.Answer{ID: r.ID, State: agent.AskRefused, Text: why, By: dec.User})
}

func (question) expire(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error {
	return orchestrator.AnswerAsk(ctx, tx, d, agent.Answer{ID: r.ID, State: agent.AskExpired, Text: "Nobody answered. Go on as you think best, and say in your answer what you assumed."})
}

func (question) recall(context.Context, Tx, *Request, *orchestrator.Delegation) error { return nil }

func (question) ruleNow(_ context.Context, _ Tx, _ Config, r *Request) (policy.Rule, bool, error) {
	return r.Rule, false, nil
}

func (question) requested(r *Request, said *event.RequestedData) {
	said.Title = event.Given(mask.Text(r.Title))
}

func (question) asker(r *Request) string { return r.Agent }

func (question) target(Request) string { return "" }

func (question) unasked(r Request) string { return r.Agent + " was told that nobody answered" }

func (question) whose(r Request) string { return "Questions of " + r.Agent + " are" }

// MayAnswer reports whether somebody may read and answer r beside who the rule names: who asked
// for the task.
func (r Request) MayAnswer(userID string) bool {
	return r.IsQuestion() && userID != "" && userID == r.RequesterID
}
