package api

import (
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/mask"
	"gatehouse/web/wire"
)

// shapeOf is what is published of a delegation.
func shapeOf(d orchestrator.Delegation) wire.Delegation {
	s := wire.Delegation{
		ID: d.ID, TaskID: d.TaskID, ParentID: wire.Maybe(d.ParentID), From: d.From, To: d.To, Text: mask.Text(d.Text), State: string(d.State),
		Depth: d.Depth, Chain: maskedChain(d.Chain), Error: d.Error, Usage: d.Usage, ApprovalID: wire.Maybe(d.ApprovalID),
		CreatedAt: d.CreatedAt.UTC(), StartedAt: utc(d.StartedAt), EndedAt: utc(d.EndedAt), Since: d.Since.UTC(),
		Repository: d.Repository, Branch: d.Work.Branch, Tag: d.Work.Tag, Requester: d.Requester, Attempt: d.Attempt, Sandbox: d.Work.Sandbox, Problem: d.Work.Problem,
		Discarded: d.Work.Discarded,
		Budget:    budgetOf(d.Work.Budget), Handover: d.Work.Handover,
	}
	if d.Result != nil {
		s.Result = &wire.Result{Text: d.Result.Text, Data: d.Result.Data, Artifacts: d.Result.Artifacts, Commit: d.Result.Commit, Pushed: d.Result.Pushed, Declined: d.Result.Declined}
		for i, a := range s.Result.Artifacts {
			if a.URL == "" { // of before it was stored with the result
				s.Result.Artifacts = slices.Clone(s.Result.Artifacts)
				s.Result.Artifacts[i].URL = orchestrator.ArtifactURL(d.ID, a.Name)
			}
		}
		s.Result.Artifacts = wire.Items(s.Result.Artifacts)
	}
	return s
}

// maskedChain is a chain whose texts have no secrets. What a person or an agent sent is
// stored as it was sent, since an agent is given that; who looks on reads it masked.
func maskedChain(c chain.Chain) []chain.Step {
	steps := c.Steps()
	for i := range steps {
		steps[i].Task = mask.Text(steps[i].Task)
	}
	return steps
}

func shapesOf(all []orchestrator.Delegation) []wire.Delegation {
	return each.Of(all, shapeOf)
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// known is a time that may not be known; null then.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return utc(&t)
}

func budgetOf(a *budget.Account) *wire.Budget {
	if a == nil {
		return nil
	}
	return &wire.Budget{Limits: a.Limits.Published(), Used: a.Used.Published(), Settled: a.Settled.Published(), Reserved: a.Reserved.Published(), Exceeded: a.Exceeded}
}
