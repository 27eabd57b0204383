package telegram

import (
	"fmt"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
)

// sentence is words with a capital at their beginning.
func sentence(words string) string { return strings.ToUpper(words[:1]) + words[1:] }

// counted is the answer to a verdict that counts; turn is who is next, stuck that nobody can be.
func counted(r approval.Request, v approval.Verdict, turn string, stuck bool) string {
	delivery := r.Revision.Delivery().As(name)
	switch {
	case v == approval.Approve && r.Missed() != "":
		return r.Missed()
	case v == approval.Renew:
		return fmt.Sprintf("Nothing landed. %s makes revision %d on today's %s.", name(r.Agent), r.Revision.N+1, name(r.Revision.Base.Branch))
	case v == approval.Respond:
		return "Answered. " + name(r.Agent) + " goes on with it."
	case v == approval.Reject && r.IsQuestion():
		return "Rejected. " + name(r.Agent) + " is told that there is no answer."
	case v == approval.Reject && r.IsAction():
		return "Rejected. " + name(r.Agent) + " does not make this call."
	case v == approval.Reject && r.IsHandover():
		return "Rejected. " + name(r.Agent) + " is not asked to work."
	case v == approval.Reject:
		return "Rejected. Nothing lands."
	case v == approval.RequestChanges:
		return "Sent back to " + name(r.Agent) + ", with your words."
	case r.State == approval.Landed:
		return "Approved. " + sentence(delivery.Done()) + " as " + first(r.Landed, 7) + "."
	case r.State == approval.Pending && stuck:
		return fmt.Sprintf("Your yes counts: %d of %d, but nobody else can approve now. The card says why.", len(standing(r)), r.Rule.Need)
	case r.State == approval.Pending && turn != "":
		return fmt.Sprintf("Your yes counts: %d of %d. Next: %s.", len(standing(r)), r.Rule.Need, oneLine(turn))
	case r.State == approval.Pending:
		return fmt.Sprintf("Your yes counts: %d of %d.", len(standing(r)), r.Rule.Need)
	case r.ForTask():
		return "Approved for this task. " + name(r.Agent) + " may make such calls."
	case r.IsAction():
		return "Approved. " + name(r.Agent) + " may make this call, once."
	case r.IsHandover():
		return "Approved. The work is handed to " + name(r.Agent) + "."
	default:
		return "Approved. " + sentence(delivery.Doing()) + "."
	}
}

// absence is the gateway's sentence for somebody who is out of office, without the command
// that nobody has at hand in a chat; false for others.
func absence(e *orchestrator.Error) (string, bool) {
	if e == nil || e.Reason != orchestrator.ReasonAway {
		return "", false
	}
	return oneLine(e.Err.Error()) + ". An admin can end it.", true
}

// refusal is why a verdict did not count, short enough for the answer to a tap.
func (c clock) refusal(r approval.Request, b Bound, e *orchestrator.Error) string {
	switch e.Code {
	case orchestrator.CodeAlreadyDecided:
		if d := deciding(r); d != nil && r.State != approval.Pending {
			return "Too late: " + someone(*d) + " " + past(d.Verdict) + " at " + c.at(d.At) + "."
		}
	case orchestrator.CodeSuperseded:
		if b.Revision < r.Revision.N {
			return fmt.Sprintf("This is revision %d; %d is newer.", b.Revision, r.Revision.N)
		}
	case orchestrator.CodeExpired:
		switch {
		case r.ExpiresAt != nil && r.IsQuestion():
			return "Too late: it expired at " + c.at(*r.ExpiresAt) + ", not answered."
		case r.ExpiresAt != nil:
			return "Too late: it expired at " + c.at(*r.ExpiresAt) + ", not approved."
		}
	case orchestrator.CodeEnded:
		return "Too late: this request is " + strings.ReplaceAll(string(r.State), "_", " ") + "."
	case orchestrator.CodeStale:
		return name(r.Revision.Base.Branch) + " moved, so this is asked again with the difference."
	case orchestrator.CodeFourEyes:
		if e.Reason == orchestrator.ReasonAsked {
			return "You asked for this task, so another person must approve."
		}
	}
	if text, ok := absence(e); ok {
		return text
	}
	return oneLine(e.Message)
}

func past(v approval.Verdict) string {
	switch v {
	case approval.Reject:
		return "rejected"
	case approval.RequestChanges:
		return "requested changes"
	case approval.Respond:
		return "answered"
	default:
		return "approved"
	}
}
