package approvaltest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
)

// Progress is a task in the given state, as a channel gets it. Whoever asked for it has the
// account 1001.
func Progress(ch approval.Channel, state orchestrator.State) approval.Progress {
	r := Request(approval.Pending)
	asker := Voters(ch.Name())[0]
	asker.Roles = people.Roles()
	p := approval.Progress{Asker: &asker, Requests: []approval.Request{r},
		Task: orchestrator.Task{ID: r.TaskID, RootID: r.DelegationID, Agent: "kik", Text: "Fix the retry loop", RequesterID: asker.ID, Requester: asker.Name,
			Via: origin.From(ch.Name()), LastN: 1, CreatedAt: r.CreatedAt},
		Root: orchestrator.Delegation{ID: r.DelegationID, TaskID: r.TaskID, To: "kik", State: state}}
	if !state.Ended() {
		p.Live = []approval.Work{{Agent: "kik", State: state}, {Agent: "coder", State: orchestrator.Running}}
		return p
	}
	at := r.CreatedAt.Add(time.Hour)
	p.Task.EndedAt, p.Root.EndedAt, p.Requests[0] = &at, &at, Request(approval.Landed)
	if p.Root.Result = (&agent.Result{Text: "Done."}); state != orchestrator.Completed {
		p.Root.Result, p.Root.Error = nil, &agent.Failure{Code: "boom", Message: "It broke."}
	}
	return p
}

// progresses are the states that a report may have to show.
var progresses = []orchestrator.State{orchestrator.Queued, orchestrator.Running, orchestrator.Waiting, orchestrator.AwaitingApproval, orchestrator.Completed,
	orchestrator.Failed, orchestrator.Rejected, orchestrator.Expired, orchestrator.Cancelled}

// Reporter runs the suite of those channels that tell how tasks go on. fresh returns a fresh
// one whose other side accepts everything, with an address that it reports to; live says
// that it does so from a task's beginning on.
func Reporter(t *testing.T, live bool, fresh func(t *testing.T) (approval.Channel, string)) {
	states := progresses
	if !live {
		states = []orchestrator.State{orchestrator.Completed, orchestrator.Failed, orchestrator.Cancelled}
	}
	open := func(t *testing.T) (approval.Channel, approval.Report, func(approval.Report, approval.Progress) (string, error)) {
		ch, to := fresh(t)
		r := approval.Report{TaskID: Request(approval.Pending).TaskID, Channel: ch.Name(), Address: to, Kind: approval.EndReport}
		if live {
			r.Kind = approval.LiveReport
		}
		reporter, ok := ch.(approval.Reporter)
		if !ok {
			t.Fatalf("%s reports nothing", ch.Name())
		}
		return ch, r, func(r approval.Report, p approval.Progress) (string, error) {
			return reporter.Report(t.Context(), r, p)
		}
	}
	t.Run("a report is there after each state, and the same one again is no error", func(t *testing.T) {
		ch, r, report := open(t)
		for _, s := range states {
			for range 2 {
				id, err := report(r, Progress(ch, s))
				if err != nil || id == "" {
					t.Fatalf("%s: %q, %v", s, id, err)
				}
				r.ExternalID = id
			}
		}
	})
	t.Run("hostile text is shown, not obeyed, and never an error", func(t *testing.T) {
		ch, r, report := open(t)
		for _, s := range states {
			p := Progress(ch, s)
			p.Task.Text, p.Task.Agent, p.Root.To, p.Requests[0].Agent, p.Requests[0].Title = hostile, hostile, hostile, hostile, hostile
			for i := range p.Live {
				p.Live[i].Agent = hostile
			}
			if p.Root.Result != nil {
				p.Root.Result.Text, p.Root.Result.Pushed, p.Root.Result.Commit = hostile, hostile, "4444444"
			}
			if p.Root.Error != nil {
				p.Root.Error.Message, p.Root.Error.Code = hostile, hostile
			}
			for range 30 {
				p.Requests = append(p.Requests, p.Requests[0])
			}
			id, err := report(r, p)
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			r.ExternalID = id
		}
	})
	t.Run("stops when it is told to", func(t *testing.T) {
		ch, r, _ := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := ch.(approval.Reporter).Report(ctx, r, Progress(ch, states[0])); !errors.Is(err, context.Canceled) || approval.IsGone(err) {
			t.Errorf("reported or given up after its context had ended: %v", err)
		}
	})
	t.Run("works for many at once", func(t *testing.T) {
		ch, r, report := open(t)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := report(r, Progress(ch, states[i%len(states)])); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}
