package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
)

// CutQuestion is how many bytes of a hand-over's question are shown in one piece, such
// as on a card of the chat; a longer one is approved on its page.
const CutQuestion = 4000

// errForeignTx: the engine and the gate work on different databases.
var errForeignTx = errors.New("the transaction is not one of the gate's store")

// handovers is the gate's part in hand-overs at one moment (H18, K44).
type handovers struct {
	g *Gateway
	c Config
	e Electorate
	// older: another node has other rules about hand-overs, by which this one might be
	// asked about. So it is, and the yes is given where the rules of today are.
	older bool
}

var _ orchestrator.Handovers = handovers{}

// Handovers says before which hand-overs people are asked; nil where that is before none.
func (g *Gateway) Handovers(ctx context.Context, first bool) (orchestrator.Handovers, error) {
	c := g.Config()
	older, err := g.olderHandovers(ctx, c)
	if err != nil {
		return nil, err
	}
	if !first && !older && c.Handovers == nil {
		return nil, nil
	}
	e, err := g.Electorate(ctx)
	if err != nil {
		return nil, err
	}
	return handovers{g, c, e, older}, nil
}

// ruling is what holds for a hand-over, with the people of whom a yes counts.
func (h handovers) ruling(now time.Time, t *orchestrator.Task, child *orchestrator.Delegation, q orchestrator.Handed, first bool) (policy.Ruling, bool) {
	ruling, asks := h.c.Handovers.Rule(handoverFacts(t, child, q, now.In(h.c.Location)), first || h.older)
	ruling.Rule.From, ruling.Rule.OnNo = h.c.from(ruling.Rule, child.Repository), cmp.Or(ruling.Rule.OnNo, h.c.OnNo)
	return ruling, asks
}

// Rule says what holds for a hand-over.
func (h handovers) Rule(now time.Time, t *orchestrator.Task, child *orchestrator.Delegation, q orchestrator.Handed, first bool) orchestrator.HandoverRule {
	ruling, asks := h.ruling(now, t, child, q, first)
	r := orchestrator.HandoverRule{Name: ruling.Rule.Name, Deny: ruling.Deny}
	if asks {
		r.Asks = ruling.Rule.Outcome()
	}
	return r
}

// Reads says whether rules or people would look at the files that travel.
func (h handovers) Reads(first bool) bool { return first || h.older || h.c.Handovers != nil }

// Ask puts a hand-over before people, in the transaction that made its child.
func (h handovers) Ask(ctx context.Context, tx orchestrator.Tx, child *orchestrator.Delegation, q orchestrator.Handed, first bool) error {
	t, ok := tx.(Tx)
	if !ok {
		return errForeignTx
	}
	digest, err := q.Digest(child.TaskID)
	if err != nil {
		return err
	}
	task, now := tx.Task(), tx.Now()
	r := &Request{
		ID: child.ApprovalID, TaskID: child.TaskID, DelegationID: child.ID, Kind: Handover, Handover: &q.HandoverQuestion,
		Agent: child.To, Title: q.Title(), Repository: child.Repository, RequesterID: task.RequesterID, Requester: task.Requester,
		Via: task.Via, Chain: child.Chain.Names(), Mode: h.c.Agents[child.To].Mode, CreatedAt: now,
		Revision: handoverRevision(q, digest, now),
	}
	if len(r.Chain) == 0 { // a trigger's task: nobody handed it on
		r.Chain = chain.Names{child.To}
	}
	r.Lineage = h.c.lineage(h.e, r, child.Lineage())
	ruling, _ := h.ruling(now, task, child, q, first)
	r.Revision.warnOfRules(ruling.Notes)
	if ruling.Rule.Need > 1 && slices.Contains(h.c.Careful, CarefulNeedTwo) {
		r.Revision.Warnings = append(r.Revision.Warnings, needsTwo(ruling.Rule))
	}
	r.open(ruling, h.c.Expires, now)
	r.begin(h.c, now)
	tx.OnCommit(h.g.look)
	return put(ctx, t, r, cardsFor(*r, h.c.Channels, h.e.voters(*r)))
}

// handoverRevision is what is asked about a hand-over: its words, and the files that travel
// as those of a patch on the branch.
func handoverRevision(q orchestrator.Handed, digest string, now time.Time) Revision {
	v := Revision{N: 1, Digest: digest, Text: q.Text, Warnings: questionWarnings(q.HandoverQuestion), At: now}
	if q.Tree != "" {
		v.Base, v.Tree, v.Commit, v.Bundle = q.Base, q.Tree, q.Commit, q.Bundle
	}
	if q.Review != nil {
		v.Files, v.Added, v.Removed = q.Review.Files, q.Review.Added, q.Review.Removed
		v.Warnings, v.Notes = append(v.Warnings, q.Review.Warnings...), policy.AddNotes(v.Notes, q.Review.Notes)
	}
	return v
}

// needsTwo is the warning that settings may want where several people must agree.
func needsTwo(r policy.Rule) patch.Warning {
	return patch.Warning{Code: CarefulNeedTwo, Text: fmt.Sprintf("Rule %q needs %d people.", r.Name, r.Need)}
}

// questionWarnings are the risky characters of what is asked, where whoever reads it may
// read something else than the agent would; secrets in it; and what steers programs.
func questionWarnings(q orchestrator.HandoverQuestion) []patch.Warning {
	all := each.Of(patch.TextRisks(q.Whole()), func(code string) patch.Warning {
		return patch.Warning{Code: code, Text: questionRisks[code]}
	})
	if patch.TextSecret(q.Text) || patch.TextSecret(q.Carried()) {
		all = append(all, patch.Warning{Code: patch.SecretLike, Text: "Part of what is handed on looks like a secret and is masked here."})
	}
	steering := patch.Warning{Code: SteeringFiles, Text: q.From + " changed this file, which steers programs. " + q.To + " gets it from " + q.Place() + " instead."}
	if q.Trusted {
		steering = patch.Warning{Code: TrustCheckout, Text: q.From + " changed this file, which steers programs, and " + q.To + " runs or reads it as it is: trust_checkout is set."}
	}
	for _, path := range q.Steering {
		steering.Path = path
		all = append(all, steering)
	}
	return all
}

// The warnings about files that steer programs and that the caller of a hand-over changed.
const (
	SteeringFiles = "steering_files" // the branch's travel in place of the caller's
	TrustCheckout = "trust_checkout" // the caller's travel
)

// questionRisks say what a risk means in the text of a hand-over.
var questionRisks = map[string]string{
	patch.RiskBidi:      "Text direction is switched: the task may read differently from what the agent is given.",
	patch.RiskInvisible: "The task has invisible characters.",
	patch.RiskLookalike: "A word mixes alphabets, or a mark poses as another.",
	patch.RiskControl:   "The task has control characters.",
}

// IsHandover reports whether r asks about a hand-over and not about a patch.
func (r Request) IsHandover() bool { return r.Kind == Handover && r.Handover != nil }

// Travels reports whether files go along with the hand-over that r asks about.
func (r Request) Travels() bool { return r.IsHandover() && r.Revision.Tree != "" }

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
