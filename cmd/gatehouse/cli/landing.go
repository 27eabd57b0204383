package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// How long approve looks whether the change lands, and how often. Mostly it takes less
// than a second; what takes longer goes on without the command.
const (
	landWithin = 10 * time.Second
	landLook   = 200 * time.Millisecond
)

// heldUp says that a landing waits for a person, and why; "" when it does not.
func heldUp(d wire.Delegation) string {
	if d.State != "landing" || d.Problem == "" {
		return ""
	}
	return fmt.Sprintf("%s When that is mended: gatehouse retry %s", sentenceOf(d.Problem), handle(d))
}

// sentenceOf ends what somebody else says with a full stop.
func sentenceOf(s string) string {
	if s = console.Line(strings.TrimSpace(s)); s != "" && !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// staleOf reads whether the newest question on a delegation is asked because the yes
// to the one before became stale, or, with asked false, is about to be asked; why is a
// sentence.
func staleOf(ctx context.Context, api *client.Client, id string) (why string, asked, found bool) {
	events, err := api.Events(ctx, id, 0)
	if err != nil {
		return why, false, false // it is a remark; what it is about has been said
	}
	for _, e := range slices.Backward(events.Items) {
		if e.DelegationID != id {
			continue
		}
		switch d := e.Payload().(type) {
		case event.RequestedData:
			if asked {
				return why, true, false // the question before; nothing became stale between
			}
			asked = true
		case event.ChangesRequestedData, event.DecidedData:
			return why, asked, false
		case event.WithdrawnRightData: // the event itself asks again
			return cmp.Or(d.Message, "The approvals do not suffice any more."), true, true
		case event.StaleData:
			return cmp.Or(d.Message, "The branch moved."), asked, true
		}
	}
	return why, asked, false
}

// askedAgain is the remark that a question is a new one; "" when it is not.
func askedAgain(ctx context.Context, api *client.Client, delegationID, requestID string, r *wire.Request) string {
	why, asked, found := staleOf(ctx, api, delegationID)
	if !found || !asked {
		return ""
	}
	revision := "a new revision"
	if r != nil {
		revision = fmt.Sprintf("revision %d", r.Revision)
	}
	return fmt.Sprintf("%s Asked again as %s; gatehouse review %s", sentenceOf(why), revision, console.Short(requestID))
}

// workedAgain is the remark that d, which has no question now, runs again because the
// yes became stale; "" when it runs for another reason.
func workedAgain(ctx context.Context, api *client.Client, d wire.Delegation) string {
	why, asked, found := staleOf(ctx, api, d.ID)
	if !found || asked {
		return ""
	}
	return fmt.Sprintf("%s %s works on it again; gatehouse wait %s", sentenceOf(why), console.Line(d.To), handle(d))
}

// followLanding says what has become of a yes. Where nothing lands of it that is an error,
// with why and what to do; one that is held up lands later, and one that takes its time goes
// on without the command.
func followLanding(ctx context.Context, sh *console.Shell, api *client.Client, yes wire.Request) error {
	limited, cancel := context.WithTimeout(ctx, landWithin)
	defer cancel()
	tick := time.NewTicker(landLook)
	defer tick.Stop()
	for {
		r, err := api.Request(limited, yes.ID)
		if err == nil {
			if done, err := sayLanding(limited, sh, api, yes, r.Value); done || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-limited.Done():
			if yes.Missed != "" {
				return console.Fail(console.ExitFailed, "The next revision is not there yet. Follow: gatehouse wait %s", console.Short(yes.TaskID))
			}
			sh.Hint("  follow: gatehouse wait %s", console.Short(yes.TaskID))
			return nil
		case <-tick.C:
		}
	}
}

// sayLanding says what r, which was approved as yes, has come to; done is false while that is
// open.
func sayLanding(ctx context.Context, sh *console.Shell, api *client.Client, yes, r wire.Request) (done bool, err error) {
	switch {
	case r.State == "landed" || r.State == "reverted":
		if sh.JSON { // the document was printed
			return true, nil
		}
		return true, sh.Say("%s %s", console.Line(r.ID), arrived(r))
	case r.State == "pending" && inPart(yes) && r.Needs.Have > 0: // it counts there, and others are needed
		sh.Hint("%s", outcome(r, "approve"))
		return true, nil
	case r.State == "pending":
		return true, nothingLanded(againAsked(ctx, api, yes, r))
	case r.State != "approved" && r.State != "stale" && r.State != "changes_requested" && !(inPart(yes) && inPart(r)):
		return true, nothingLanded(fmt.Sprintf("%s is %s.", console.Line(r.ID), strings.ReplaceAll(console.Line(r.State), "_", " ")) + because(ctx, api, r))
	}
	found, err := api.Delegation(ctx, r.DelegationID)
	if err != nil {
		return false, nil // it is looked again
	}
	d := found.Value
	if r.State == "approved" {
		if why := heldUp(d); why != "" {
			sh.Hint("%s", why)
			return true, nil
		}
		return false, nil
	}
	if d.Ended() {
		return true, nothingLanded(because(ctx, api, r))
	}
	if d.State != "queued" && d.State != "running" {
		return false, nil
	}
	if why := workedAgain(ctx, api, d); why != "" {
		return true, nothingLanded(why)
	}
	return false, nil
}

// nothingLanded ends approve where its yes has landed nothing.
func nothingLanded(why string) error {
	return console.Fail(console.ExitFailed, "%s", strings.TrimSpace("Nothing landed. "+strings.TrimSpace(why)))
}

// againAsked says why people are asked again after a yes.
func againAsked(ctx context.Context, api *client.Client, yes, r wire.Request) string {
	if why := askedAgain(ctx, api, r.DelegationID, r.ID, &r); why != "" {
		return why
	}
	if inPart(yes) {
		return fmt.Sprintf("Revision %d, of the files that you approved, has other checks or warnings than you have read, so it is asked; gatehouse review %s", r.Revision, console.Short(r.ID))
	}
	if r.Revision > yes.Revision { // events may not be read with this token
		return fmt.Sprintf("%s moved. Asked again as revision %d; gatehouse review %s", console.Line(r.Target), r.Revision, console.Short(r.ID))
	}
	return fmt.Sprintf("It waits for a yes again: somebody took theirs back, or it does not count any more; gatehouse review %s", console.Short(r.ID))
}

// because is how the delegation of a request ended, as a sentence behind another one.
func because(ctx context.Context, api *client.Client, r wire.Request) string {
	d, err := api.Delegation(ctx, r.DelegationID)
	if err != nil || d.Value.Error == nil {
		return ""
	}
	return " " + sentenceOf(d.Value.Error.Message)
}
