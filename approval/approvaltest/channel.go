// Package approvaltest is the contract suite that every approval channel passes.
// It imports approval and the values that a request is made of.
package approvaltest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
)

// Request is a request in the given state, as a channel gets it.
func Request(state approval.State) approval.Request {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	end := at.Add(72 * time.Hour)
	r := approval.Request{
		ID: "apr_01k9zzzzzzzzzzzzzzzzc81m2x", TaskID: "tsk_01k9zzzzzzzzzzzzzzzz7f3k9q", DelegationID: "dlg_01k9zzzzzzzzzzzzzzzzab3c4d",
		State: state, Version: 1, Agent: "coder", Title: "Fix the retry loop", Repository: "app", RequesterID: "usr_dora", Requester: "dora",
		Via: origin.From(origin.Web), Chain: chain.Names{"kik", "coder"}, Rule: policy.Rule{Name: "rest", When: "true", Need: 1, From: []string{}}, ExpiresAt: &end, CreatedAt: at,
		Revision: approval.Revision{N: 1, State: state, Digest: strings.Repeat("9f2c1a7e", 8), Deliver: "merge",
			Base: patch.Base{Branch: "main", Commit: strings.Repeat("b", 40), Tree: strings.Repeat("a", 40)}, Tree: strings.Repeat("1", 40),
			Branch: "gatehouse/coder-fix-9f2c1a", Commit: strings.Repeat("c", 40), Text: "The counter was reset inside the loop.",
			Files: []patch.File{{Path: "upload/retry.go", Status: patch.Modified, Added: 31, Removed: 9}}, Added: 31, Removed: 9,
			Checks: []orchestrator.Check{{Command: "go vet ./...", OK: true, Took: time.Second}}, At: at},
	}
	if state == approval.Pending {
		return r
	}
	r.Version, r.DecidedAt = 2, &at
	verdict := approval.Approve
	if state == approval.Rejected {
		verdict = approval.Reject
	}
	r.Decisions = []approval.Decision{{ID: "dec_1", Revision: 1, UserID: "usr_bob", User: "bob", Channel: "web", Verdict: verdict, Digest: r.Revision.Digest, At: at}}
	if state == approval.Landed {
		r.Landed = strings.Repeat("4", 40)
	}
	return r
}

// Handover is a request about a hand-over in the given state, as a channel gets it.
func Handover(state approval.State) approval.Request {
	r := Request(state)
	r.Kind, r.Handover = approval.Handover, &orchestrator.HandoverQuestion{From: "kik", To: "coder", Text: "Deploy to production\nwith the new key",
		Context: map[string]string{"branch": "main"}}
	r.Title, r.Repository, r.Landed = r.Handover.Title(), "", ""
	r.Revision = approval.Revision{N: 1, State: state, Digest: r.Revision.Digest, Text: r.Handover.Text, At: r.Revision.At}
	return r
}

// Action is a request about a call of a tool in the given state, as a channel gets it.
func Action(state approval.State) approval.Request {
	return asked(state, approval.Action, "Call Bash: npm test", func(r *approval.Request) {
		r.Action = &agent.Action{Tool: "Bash", Input: json.RawMessage(`{"command":"npm test","description":"Run the tests"}`)}
		r.Revision.Input = r.Action.Input
	})
}

// Question is what an agent asks, in the given state, as a channel gets it.
func Question(state approval.State) approval.Request {
	return asked(state, approval.Question, "Which colour?", func(r *approval.Request) {
		r.Question = &agent.Question{Text: "Which colour?\nThe old one was grey.", Choices: []string{"red", "blue"}}
		for i := range r.Decisions {
			if state == approval.Answered {
				r.Decisions[i].Verdict, r.Decisions[i].Comment = approval.Respond, "blue"
			}
		}
	})
}

// asked is a request of coder's about no files.
func asked(state approval.State, kind approval.Kind, title string, what func(*approval.Request)) approval.Request {
	r := Request(state)
	r.Kind, r.Title, r.Landed = kind, title, ""
	r.Revision = approval.Revision{N: 1, State: state, Digest: r.Revision.Digest, At: r.Revision.At}
	what(&r)
	r.Revision.Text = r.Whole()
	return r
}

// hostile is text as an agent may make it: control bytes, markup, a direction
// override, and more than any channel shows.
var hostile = "\x1b[31m<b>*x*</b> `\u202egpj.exe\u202c` @everyone \x00 {{.}} " + strings.Repeat("long ", 5000)

// states are those that a card may have to show.
var states = []approval.State{approval.Pending, approval.Approved, approval.Rejected, approval.ChangesRequested, approval.Expired,
	approval.Stale, approval.Landed, approval.Reverted, approval.Failed, approval.Cancelled}

// Channel runs the suite. fresh returns a fresh channel whose other side accepts
// everything; it is called once for each part.
func Channel(t *testing.T, fresh func(t *testing.T) approval.Channel) {
	t.Run("has a name that configuration can use", func(t *testing.T) {
		ch := fresh(t)
		name := ch.Name()
		if name == "" || strings.Trim(string(name), "abcdefghijklmnopqrstuvwxyz") != "" || ch.Name() != name {
			t.Errorf("name %q, then %q", name, ch.Name())
		}
		if name.Title() == string(name) || name.About() == "" {
			t.Errorf("the channel %q has no row with a title and what it is for in the table of orchestrator/origin/channel.go", name)
		}
	})
	t.Run("a card keeps its message through all states", func(t *testing.T) { keepsMessage(t, fresh(t), Request, states) })
	t.Run("the same version again is no error", func(t *testing.T) {
		ch := fresh(t)
		card := cardOf(t, ch)
		card.ExternalID = deliver(t, ch, card, Request(approval.Pending))
		deliver(t, ch, card, Request(approval.Pending))
	})
	t.Run("a request that ended before its first card is shown", func(t *testing.T) {
		ch := fresh(t)
		deliver(t, ch, cardOf(t, ch), Request(approval.Landed))
	})
	t.Run("hostile text is shown, not obeyed, and never an error", func(t *testing.T) {
		ch := fresh(t)
		r := Request(approval.Pending)
		r.Title, r.Revision.Text, r.Revision.Base.Branch = hostile, hostile, "feature/<i>"
		for range 300 {
			r.Revision.Files = append(r.Revision.Files, patch.File{Path: hostile, Status: patch.Added})
			r.Revision.Warnings = append(r.Revision.Warnings, patch.Warning{Code: "bidi", Path: hostile, Text: hostile})
		}
		deliver(t, ch, cardOf(t, ch), r)
	})
	t.Run("a hand-over is asked about and ends in one message", func(t *testing.T) {
		keepsMessage(t, fresh(t), Handover, []approval.State{approval.Pending, approval.Approved, approval.Rejected, approval.Expired, approval.Failed, approval.Cancelled})
	})
	t.Run("a hostile hand-over is shown, not obeyed, and never an error", func(t *testing.T) {
		ch := fresh(t)
		r := Handover(approval.Pending)
		r.Handover.Text, r.Handover.Context = strings.Repeat(hostile, 8), map[string]string{hostile[:100]: hostile} // 200 kB
		r.Title, r.Revision.Text = r.Handover.Title(), r.Handover.Text
		deliver(t, ch, cardOf(t, ch), r)
	})
	t.Run("a call is asked about and ends in one message", func(t *testing.T) {
		keepsMessage(t, fresh(t), Action, []approval.State{approval.Pending, approval.Approved, approval.Rejected, approval.Expired, approval.Cancelled})
	})
	t.Run("a hostile call is shown, not obeyed, and never an error", func(t *testing.T) {
		for _, state := range []approval.State{approval.Pending, approval.Approved, approval.Rejected} {
			ch := fresh(t)
			r := Action(state)
			input, err := json.Marshal(map[string]string{"command": strings.Repeat(hostile, 8), hostile[:100]: "x"}) // 200 kB
			if err != nil {
				t.Fatal(err)
			}
			r.Action = &agent.Action{Tool: hostile[:200], Server: hostile[:200], Input: input}
			r.Revision.Input, r.Title = input, orchestrator.Title("Call "+r.Action.Brief())
			r.Revision.Text = r.Whole()
			deliver(t, ch, cardOf(t, ch), r)
		}
	})
	t.Run("a question is asked and ends in one message", func(t *testing.T) {
		keepsMessage(t, fresh(t), Question, []approval.State{approval.Pending, approval.Answered, approval.Rejected, approval.Expired, approval.Cancelled})
	})
	t.Run("a hostile question is shown, not obeyed, and never an error", func(t *testing.T) {
		for _, text := range []string{hostile[:600], strings.Repeat(hostile, 8)} {
			ch := fresh(t)
			r := Question(approval.Pending)
			r.Question = &agent.Question{Text: text, Choices: []string{hostile[:200], "Approve", "\u200b\n\u202e", "red", "red "}}
			r.Title, r.Revision.Text = orchestrator.Title(text), r.Whole()
			deliver(t, ch, cardOf(t, ch), r)
			r.State, r.Revision.State = approval.Answered, approval.Answered
			r.Decisions = []approval.Decision{{ID: "dec_1", Revision: 1, User: hostile[:100], Channel: "web", Verdict: approval.Respond, Comment: strings.Repeat(hostile, 8)}}
			deliver(t, ch, cardOf(t, ch), r)
		}
	})
	t.Run("stops when it is told to", func(t *testing.T) { stops(t, fresh(t)) })
	t.Run("works for many at once", func(t *testing.T) {
		ch := fresh(t)
		card := cardOf(t, ch)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := ch.Deliver(t.Context(), card, Request(states[i%len(states)]), View(Request(states[i%len(states)]))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// keepsMessage checks that a card has one message in all these states.
func keepsMessage(t *testing.T, ch approval.Channel, of func(approval.State) approval.Request, in []approval.State) {
	t.Helper()
	card := cardOf(t, ch)
	for _, s := range in {
		id := deliver(t, ch, card, of(s))
		if card.ExternalID != "" && id != card.ExternalID {
			t.Fatalf("%s: the message changed from %q to %q", s, card.ExternalID, id)
		}
		card.ExternalID = id
	}
}

// stops checks that a delivery whose context has ended fails soon and as such.
func stops(t *testing.T, ch approval.Channel) {
	ctx, cancel := context.WithCancel(t.Context())
	card := cardOf(t, ch)
	cancel()
	done := make(chan error, 1)
	go func() {
		_, err := ch.Deliver(ctx, card, Request(approval.Pending), View(Request(approval.Pending)))
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) || approval.IsGone(err) {
			t.Errorf("delivered or given up after its context had ended: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("still at work 10 s after its context had ended")
	}
}

// Voters are two people who could say yes, each with an account in the channel.
func Voters(channel origin.Channel) []people.User {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	return []people.User{
		{ID: "usr_ann", Name: "ann", Roles: []people.Role{people.Approver}, Accounts: []people.Account{{Channel: channel, ID: 1001, UserID: "usr_ann", Name: "ann", LinkedAt: at}}},
		{ID: "usr_bob", Name: "bob", Roles: []people.Role{people.Approver}, Accounts: []people.Account{{Channel: channel, ID: 1002, UserID: "usr_bob", Name: "bob", LinkedAt: at}}},
	}
}

// View is what the gateway says of r beside the request.
func View(r approval.Request) approval.CardView {
	v := approval.CardView{Needs: approval.Needs{Count: r.Rule.Need, From: []string{}, Missing: []approval.Voter{}}, Risk: approval.RiskOf(r)}
	if r.State != approval.Pending {
		return v
	}
	v.Needs.Missing, v.Turn = []approval.Voter{{Name: "ann"}, {Name: "bob"}}, "ann or bob"
	if r.IsQuestion() {
		v.Verdicts = []approval.Verdict{approval.Respond, approval.Reject}
		return v
	}
	v.Verdicts = []approval.Verdict{approval.Reject, approval.RequestChanges}
	if !r.IsPatch() {
		v.Verdicts = v.Verdicts[:1]
	}
	if v.Risk.Level == approval.Plain {
		v.Verdicts = append([]approval.Verdict{approval.Approve}, v.Verdicts...)
	}
	return v
}

// cardOf is a card that was not sent yet, at the channel's first address.
func cardOf(t *testing.T, ch approval.Channel) approval.Card {
	t.Helper()
	card := approval.Card{RequestID: Request(approval.Pending).ID, Channel: ch.Name()}
	if a, ok := ch.(approval.Addresser); ok {
		addresses := a.Addresses(Request(approval.Pending), Voters(ch.Name()))
		if len(addresses) == 0 {
			t.Fatal("no address, though somebody can decide")
		}
		card.Address = addresses[0]
	}
	return card
}

func deliver(t *testing.T, ch approval.Channel, card approval.Card, r approval.Request) string {
	t.Helper()
	id, err := ch.Deliver(t.Context(), card, r, View(r))
	if err != nil {
		t.Fatalf("%s: %v", r.State, err)
	}
	return id
}
