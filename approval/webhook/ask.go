package webhook

import (
	"fmt"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
)

// maxQuestion is how many characters of a question stand in a message.
const maxQuestion = 1000

// actionShape is the call of a request of kind action. Its input does not leave by a webhook,
// as no diff does, but for its beginning, which is in the title.
type actionShape struct {
	Tool         string     `json:"tool"`
	Server       string     `json:"server"` // whose tool it is, "" for the agent's own
	Hints        hintsShape `json:"hints"`
	DelegationID string     `json:"delegation_id"`
	Scope        string     `json:"scope"`                // what a yes for the rest of the task would cover, "" where there is none
	ForTask      bool       `json:"for_task"`             // it was approved for the rest of the task
	Edited       bool       `json:"edited"`               // the input is one that a person wrote
	RevokedBy    string     `json:"revoked_by,omitempty"` // who ended that; such calls are asked again
	RevokedAt    *time.Time `json:"revoked_at,omitempty"`
}

// hintsShape is what a tool's server says of it, without what it does not say.
type hintsShape struct {
	ReadOnly    *bool `json:"read_only,omitempty"`
	Destructive *bool `json:"destructive,omitempty"`
	OpenWorld   *bool `json:"open_world,omitempty"`
}

// questionShape is what an agent asks in a request of kind question.
type questionShape struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices"`
	Answer  string   `json:"answer"` // "" while there is none
	By      string   `json:"by"`
}

// masked is at most so many characters of what a model wrote, without what looks like a secret.
func masked(s string, most int) string {
	return clip(mask.Text(strings.ToValidUTF8(s, "\uFFFD")), most)
}

// actionOf is nil for requests of other kinds.
func actionOf(r approval.Request) *actionShape {
	if !r.IsAction() {
		return nil
	}
	call := r.Call()
	s := &actionShape{Tool: masked(call.Tool, maxText), Server: masked(call.Server, maxText), Hints: hintsShape(call.Hints), DelegationID: r.DelegationID,
		ForTask: r.ForTask(), Edited: r.Revision.N > 1}
	if scope, ok := r.Scope(); ok {
		s.Scope = masked(scope.String(), maxComment)
	}
	if by, at := r.Revoked(); by != "" {
		s.RevokedBy, s.RevokedAt = clip(by, maxText), utc(&at)
	}
	return s
}

// questionOf is nil for requests of other kinds.
func questionOf(r approval.Request) *questionShape {
	if !r.IsQuestion() {
		return nil
	}
	answer, by := r.Reply()
	choices := each.Of(r.Question.Choices, func(c string) string { return masked(c, maxText) })
	return &questionShape{Text: masked(r.Question.Text, maxQuestion), Choices: some(choices), Answer: masked(answer, maxComment), By: clip(by, maxText)}
}

// called is the headline of a request about a call.
func called(n news, r approval.Request, view approval.CardView) string {
	who := foreign(r.Agent, slackText)
	switch r.State {
	case approval.Pending:
		switch n.kind {
		case Decided:
			return as(approval.Pending, fmt.Sprintf("Approval needed · %d of %d so far", view.Needs.Have, view.Needs.Count))
		case Revised:
			return as(approval.Pending, fmt.Sprintf("Approval needed · revision %d of a call that %s wants to make", r.Revision.N, who))
		}
		return as(approval.Pending, "Approval needed · "+who+" wants to call a tool")
	case approval.Approved:
		if by, _ := r.Revoked(); by != "" {
			return as(approval.Cancelled, "Revoked by "+foreign(by, slackText)+" · "+who+" asks about such calls again")
		}
		if r.ForTask() {
			return as(approval.Approved, "Approved for this task · "+who+" may make such calls")
		}
		return as(approval.Approved, "Approved · "+who+" may make this call")
	case approval.Rejected:
		return as(approval.Rejected, "Rejected · not called")
	case approval.Expired:
		return as(approval.Expired, "Expired, not approved · not called")
	}
	return as(r.State, sentence(r.State)+" · not called")
}

// heard is the headline of a request that is a question.
func heard(r approval.Request) string {
	who := foreign(r.Agent, slackText)
	switch r.State {
	case approval.Pending:
		return as(approval.Pending, who+" asks")
	case approval.Answered:
		return as(approval.Answered, "Answered · "+who+" goes on with it")
	case approval.Rejected:
		return as(approval.Rejected, "No answer · "+who+" was told so")
	case approval.Expired:
		return as(approval.Expired, "Nobody answered · "+who+" was told so")
	}
	return as(r.State, sentence(r.State)+" · no answer is needed")
}

// sentence is a state as the beginning of a sentence.
func sentence(s approval.State) string {
	text := strings.ReplaceAll(string(s), "_", " ")
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// subject are the lines that say what is asked, below whom it comes from.
func subject(r approval.Request, digest string) []string {
	switch {
	case r.IsHandover():
		lines := []string{"hand-over to " + foreign(r.Agent, slackText) + " · " + digest}
		if at := r.Handover.Stands(); at != "" {
			lines = append(lines, "starts from "+foreign(at, slackText))
		}
		return lines
	case r.IsAction():
		call := r.Call()
		line := "call of " + foreign(masked(call.Tool, maxText), slackText)
		if call.Server != "" {
			line += " of " + foreign(masked(call.Server, maxText), slackText)
		}
		lines := []string{line + " · " + digest}
		if e := r.Revision.Editor; e != nil {
			lines = append(lines, "input edited by "+foreign(e.User, slackText))
		}
		if scope, ok := r.Scope(); ok && r.ForTask() {
			lines = append(lines, "for this task: "+foreign(masked(scope.String(), maxComment), slackComment))
		}
		return lines
	case r.IsQuestion():
		lines := []string{"“" + foreign(masked(r.Question.Text, maxQuestion), maxQuestion) + "”"}
		for i, c := range r.Question.Choices {
			lines = append(lines, fmt.Sprintf("%d. %s", i+1, foreign(masked(c, maxText), slackText)))
		}
		return append(lines, digest)
	}
	v := r.Revision
	files := fmt.Sprintf("%d files", len(v.Files))
	if len(v.Files) == 1 {
		files = "1 file"
	}
	return []string{fmt.Sprintf("%s +%d −%d · %s", files, v.Added, v.Removed, digest)}
}

// titleOf is the title of r as others may read it. That of a call has the beginning of its
// input, and that of a question of its text.
func titleOf(r approval.Request) string {
	if r.IsPatch() || r.IsHandover() {
		return r.Title
	}
	return mask.Text(orchestrator.Title(r.Title))
}
