package approval

import (
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
)

// factsOf collects the facts of the current revision of r, asked at the given local
// time. They come from what is stored, so that a rule tried on a past request sees what
// it would have seen.
func factsOf(r *Request, at time.Time) policy.Facts {
	v := r.Revision
	f := policy.Facts{
		Patch:    policy.PatchFactsOf(v.Files, v.Added, v.Removed),
		Unseen:   []string{},
		Warnings: warningCodes(v), Notes: []string{}, Checks: []policy.CheckFacts{},
		Agent: r.Agent, Chain: r.Chain, Requester: r.Requester, Repository: r.Repository, Branch: v.Base.Branch,
		Hour: at.Hour(), Weekday: strings.ToLower(at.Weekday().String()), Depth: max(len(r.Chain)-1, 0),
	}
	for _, x := range v.Files {
		if x.Unseen {
			f.Unseen = append(f.Unseen, x.Path)
		}
	}
	f.Agents, f.Owners, f.Sandboxes = v.agents(r.Agent), r.owners(), v.sandboxes()
	for _, n := range v.Notes {
		f.Notes = appendOnce(f.Notes, n.Code)
	}
	for _, c := range v.Checks {
		f.Checks = append(f.Checks, policy.CheckFacts{Command: c.Command, OK: c.OK})
	}
	return f
}

// handoverFacts collects the facts of a hand-over at a local time.
func handoverFacts(t *orchestrator.Task, child *orchestrator.Delegation, q orchestrator.Handed, at time.Time) policy.HandoverFacts {
	f := policy.HandoverFacts{From: q.From, To: child.To, Text: child.Text, Context: q.Context, ContextText: q.Carried(), Files: []policy.FileFacts{}, Artifacts: q.Artifacts(),
		Chain: child.Chain.Names(), Requester: t.Requester,
		Depth: child.Depth, Repository: child.Repository, Complexity: t.Complexity, Hour: at.Hour(), Weekday: strings.ToLower(at.Weekday().String())}
	if f.Context == nil {
		f.Context = map[string]string{}
	}
	if child.ParentID == "" && child.From == "" {
		f.Chain = []string{child.To}
	}
	if q.Review != nil {
		f.Files = policy.PatchFactsOf(q.Review.Files, q.Review.Added, q.Review.Removed).Files
	}
	return f
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
