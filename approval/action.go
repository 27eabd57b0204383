package approval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// asks is the gate's part in calls of tools and in questions of agents at one moment.
type asks struct {
	g *Gateway
	c Config
	e Electorate // nobody where it was made without people
	// older: another node has other rules about calls, by which this one might be asked about.
	older bool
}

var _ orchestrator.Asks = asks{}

// Asks says what holds for calls of tools, and for questions; without people nobody can be
// asked with it.
func (g *Gateway) Asks(ctx context.Context, people bool) (orchestrator.Asks, error) {
	a := asks{g: g, c: g.Config()}
	if a.c.SameActions != nil {
		t, err := g.store.Configuration(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading which configuration was taken last: %w", err)
		}
		a.older = len(t.Settings) > 0 && !a.c.SameActions(t.Settings)
	}
	var err error
	if people {
		a.e, err = g.Electorate(ctx)
	}
	return a, err
}

// actionRuling is what the rules say of a call, with the people of whom a yes counts.
func (c Config) actionRuling(now time.Time, t *orchestrator.Task, d *orchestrator.Delegation, a agent.Action, first bool) (policy.Ruling, bool) {
	at := now.In(c.Location)
	ruling, asked := c.Actions.Rule(c.actionFacts(at, Request{Agent: d.To, Chain: chainOf(d), Requester: t.Requester, Repository: d.Repository}, a), first)
	ruling.Rule.From = c.from(ruling.Rule, d.Repository)
	return ruling, asked
}

// actionFacts collects the facts of a call at a local time; r says of it whose it is.
func (c Config) actionFacts(at time.Time, r Request, a agent.Action) policy.ActionFacts {
	input, err := a.Fields()
	if err != nil {
		input = map[string]any{} // it was checked
	}
	said := func(hint *bool, otherwise bool) bool {
		if hint == nil {
			return otherwise
		}
		return *hint
	}
	readOnly := said(a.Hints.ReadOnly, false)
	return policy.ActionFacts{
		Tool: a.Tool, Input: input, Server: a.Server, Agent: r.Agent, Chain: r.Chain, Requester: r.Requester, Repository: r.Repository,
		Hints:        policy.HintFacts{ReadOnly: readOnly, Destructive: said(a.Hints.Destructive, !readOnly), OpenWorld: said(a.Hints.OpenWorld, true)},
		AnalysisOnly: c.Agents[r.Agent].AnalysisOnly, Hour: at.Hour(), Weekday: strings.ToLower(at.Weekday().String()),
	}
}

// chainOf names the agents from the root to d's.
func chainOf(d *orchestrator.Delegation) chain.Names {
	if names := d.Chain.Names(); len(names) > 0 {
		return names
	}
	return chain.Names{d.To}
}

// Rule says what holds for a call.
func (a asks) Rule(now time.Time, t *orchestrator.Task, d *orchestrator.Delegation, call agent.Action, first bool) orchestrator.ActionRule {
	ruling, asked := a.c.actionRuling(now, t, d, call, first || a.older)
	return orchestrator.ActionRule{Name: ruling.Rule.Name, Asks: asked, Deny: ruling.Deny}
}

// Put stores what a run asks, in the transaction that makes it wait.
func (a asks) Put(ctx context.Context, tx orchestrator.Tx, d *orchestrator.Delegation, id string, ask agent.Ask, first bool) error {
	t, ok := tx.(Tx)
	if !ok {
		return errForeignTx
	}
	task, now := tx.Task(), tx.Now()
	r := &Request{
		ID: id, TaskID: d.TaskID, DelegationID: d.ID, Kind: Action, Action: ask.Action, Question: ask.Question, Agent: d.To, Repository: d.Repository,
		RequesterID: task.RequesterID, Requester: task.Requester, Via: task.Via, Chain: chainOf(d), Mode: a.c.Agents[d.To].Mode, CreatedAt: now,
		Revision: Revision{N: 1, At: now},
	}
	r.Lineage = a.c.lineage(a.e, r, d.Lineage())
	var ruling policy.Ruling
	if ask.Action != nil {
		r.Title = orchestrator.Title("Call " + ask.Action.Brief())
		r.Revision.Input = ask.Action.Input
		ruling, _ = a.c.actionRuling(now, task, d, *ask.Action, first || a.older)
	} else {
		r.Kind, r.Title = Question, orchestrator.Title(ask.Question.Text)
		ruling.Rule = policy.Rule{Name: AskPerson, Need: 1, From: a.c.asked(*ask.Question, d.Repository)}
	}
	r.stateWhat()
	if d.Work.MayHaveRun(ask) {
		r.Revision.Notes = append(r.Revision.Notes, patch.Note{Code: "may_have_run", Text: "This call was allowed to an attempt that was lost, and may have been made then."})
	}
	r.Revision.warnOfRules(ruling.Notes)
	if ruling.Rule.Need > 1 && slices.Contains(a.c.Careful, CarefulNeedTwo) {
		r.Revision.Warnings = append(r.Revision.Warnings, needsTwo(ruling.Rule))
	}
	r.open(ruling, a.c.Expires, now)
	r.begin(a.c, now)
	tx.OnCommit(a.g.look)
	return put(ctx, t, r, cardsFor(*r, a.c.Channels, a.e.voters(*r)))
}

// IsAction reports whether r asks about a call of a tool.
func (r Request) IsAction() bool { return r.Kind == Action && r.Action != nil }

// Call is the call as its current revision has it.
func (r Request) Call() agent.Action {
	call := *r.Action
	if r.Revision.Input != nil {
		call.Input = r.Revision.Input
	}
	return call
}

// stateWhat sets what of the current revision follows from what it asks: its text, digest
// and warnings.
func (r *Request) stateWhat() {
	v := &r.Revision
	v.Text = r.Whole()
	what, err := json.Marshal(struct {
		Task       string          `json:"task"`
		Delegation string          `json:"delegation"`
		Action     *agent.Action   `json:"action,omitempty"`
		Question   *agent.Question `json:"question,omitempty"`
		Input      json.RawMessage `json:"input,omitempty"`
	}{r.TaskID, r.DelegationID, r.Action, r.Question, v.Input})
	if err != nil {
		what = []byte(v.Text)
	}
	sum := sha256.Sum256(what)
	v.Digest = hex.EncodeToString(sum[:])
	for _, code := range patch.TextRisks(v.Text) {
		v.Warnings = append(v.Warnings, patch.Warning{Code: code, Text: askRisks[code]})
	}
	if patch.TextSecret(v.Text) {
		v.Warnings = append(v.Warnings, patch.Warning{Code: patch.SecretLike, Text: "Part of what is asked looks like a secret and is masked here."})
	}
}

// askRisks say what a risk means in the text of a call or a question.
var askRisks = map[string]string{
	patch.RiskBidi:      "Text direction is switched: this may read differently from what would run.",
	patch.RiskInvisible: "There are invisible characters.",
	patch.RiskLookalike: "A word mixes alphabets, or a mark poses as another.",
	patch.RiskControl:   "There are control characters.",
}

// actionText is all that is asked about a call.
func (r Request) actionText() string {
	call, of := r.Call(), ""
	if call.Server != "" {
		of = " of the server " + call.Server
	}
	return fmt.Sprintf("%s wants to call %s%s with\n\n%s", r.Agent, call.Tool, of, call.Shown())
}

// Scope is what a yes for the rest of the task would cover; false where there is none.
func (r Request) Scope() (agent.Scope, bool) {
	if !r.IsAction() {
		return agent.Scope{}, false
	}
	return r.Call().Scope()
}

// action is a call of a tool: a yes lets its agent make it, once.
type action struct{}

func (action) takes(r Request, b Ballot) *orchestrator.Error {
	bad := func(format string, args ...any) *orchestrator.Error {
		return orchestrator.Errorf(orchestrator.CodeBadRequest, format, args...)
	}
	switch {
	case b.Verdict == Respond:
		return onlyAboutAsks(b)
	case b.Verdict == RequestChanges || b.Files != nil || b.StartOver || len(b.Edits) > 0 || b.Patch != "":
		return bad("This asks whether %s may call %s. Approve it, reject it with a reason, or edit its input.", r.Agent, r.Action.Tool)
	case b.ForTask && b.Verdict != Approve:
		return bad("The scope goes with approve only.")
	case b.Verdict == Edit && b.Input == nil:
		return bad("The edit has no input. Send the whole new input as a JSON object.")
	case b.Verdict != Edit && b.Input != nil:
		return bad("An input goes with the verdict edit only.")
	}
	if _, ok := r.Scope(); b.ForTask && !ok {
		return bad("What a yes for the rest of the task would cover cannot be said in words: the call has no input, or its command is more than one. Approve it once.")
	}
	if b.Verdict == Edit {
		edited := r.Call()
		edited.Input = b.Input
		ask := agent.Ask{Action: &edited}
		if err := ask.Check(); err != nil {
			return bad("%s Nothing was stored.", err.Error())
		}
		if ask.Content() == (agent.Ask{Action: new(r.Call())}).Content() {
			return bad("The edit changes nothing.")
		}
	}
	return nil
}

func (action) allow(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, names []string) error {
	if err := grant(ctx, tx, r); err != nil {
		return err
	}
	return orchestrator.AnswerAsk(ctx, tx, d, agent.Answer{ID: r.ID, State: agent.AskAllowed, Input: r.Revision.Input, Edited: r.Revision.N > 1, By: strings.Join(names, ", ")})
}

func (action) refuse(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation, dec Decision) error {
	why := fmt.Sprintf("%s said no to this call of %s.", dec.User, r.Action.Tool)
	if dec.Comment != "" {
		why = fmt.Sprintf("%s said no to this call of %s: %q.", dec.User, r.Action.Tool, dec.Comment)
	}
	return orchestrator.AnswerAsk(ctx, tx, d, agent.Answer{ID: r.ID, State: agent.AskRefused, Text: why + " Nothing ran.", By: dec.User})
}

func (action) expire(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error {
	return orchestrator.AnswerAsk(ctx, tx, d, agent.Answer{ID: r.ID, State: agent.AskExpired,
		Text: fmt.Sprintf("Nobody decided on this call of %s before the deadline, which is a no. Nothing ran.", r.Action.Tool)})
}

func (action) recall(ctx context.Context, tx Tx, r *Request, d *orchestrator.Delegation) error {
	if err := orchestrator.RecallAsk(ctx, tx, d, r.ID); err != nil {
		return err
	}
	return revokeOf(ctx, tx, r.ID)
}

func (action) ruleNow(ctx context.Context, tx Tx, c Config, r *Request) (policy.Rule, bool, error) {
	if r.Rule.Version == c.Actions.Version() {
		return r.Rule, false, nil
	}
	d, err := tx.Delegation(ctx, r.DelegationID)
	if err != nil {
		return r.Rule, false, err
	}
	ruling, _ := c.actionRuling(r.Revision.At, tx.Task(), d, r.Call(), true) // it was asked
	return ruling.Rule, true, nil
}

func (action) requested(r *Request, said *event.RequestedData) {
	call := r.Call()
	said.Title, said.Tool, said.Server = event.Given(mask.Text(r.Title)), event.Given(call.Tool), call.Server
}

func (action) asker(r *Request) string { return r.Agent }

func (action) target(Request) string { return "" }

func (action) unasked(r Request) string { return "the call was not made" }

func (action) whose(r Request) string { return "Calls of " + r.Agent + " are" }

// editAction makes the next revision of a call, with the input that a person wrote. Who wrote
// it does not approve it.
func editAction(ctx context.Context, tx Tx, c Config, e Electorate, r *Request, d *orchestrator.Delegation, dec Decision, input json.RawMessage) error {
	was := r.Revision
	next := r.Call()
	next.Input = input
	ruling, asked := c.actionRuling(tx.Now(), tx.Task(), d, next, true)
	switch {
	case ruling.Deny:
		return orchestrator.Errorf(orchestrator.CodeForbidden, "The rule %q does not let %s call %s like this. Nothing was stored.", ruling.Rule.Name, r.Agent, next.Tool)
	case !asked:
		ruling.Rule = r.Rule
	}
	r.Revision.State = Superseded
	if err := tx.SaveRequest(ctx, r); err != nil {
		return err
	}
	if err := record(ctx, tx, r, dec, func(v event.Verdict) event.Payload { return event.DecidedData{Verdict: v, Made: MadeByEdit} }); err != nil {
		return err
	}
	if err := tx.Append(ctx, r.event(dec.User, event.SupersededData{About: r.about(), By: was.N + 1, Made: MadeByEdit})); err != nil {
		return err
	}
	r.Revision = Revision{N: was.N + 1, Input: input, Made: MadeByEdit, MadeFrom: was.N, At: tx.Now(),
		Editor: &Party{UserID: dec.UserID, User: dec.User, Part: EditedIt, Before: was.Editor}}
	r.Title = orchestrator.Title("Call " + next.Brief())
	r.stateWhat()
	r.Revision.warnOfRules(ruling.Notes)
	r.open(ruling, c.Expires, tx.Now())
	r.begin(c, tx.Now())
	return put(ctx, tx, r, cardsFor(*r, c.Channels, e.voters(*r)))
}

// CloseAsk ends the request of a call or a question that its run does not wait for any more.
// It is what orchestrator.Tx does under this name.
func CloseAsk(ctx context.Context, tx Tx, requestID string) error {
	r, err := tx.Request(ctx, requestID)
	if err != nil || r.IsPatch() || !r.close(Cancelled, "") {
		return err
	}
	return tx.SaveRequest(ctx, r)
}

// AskPerson is the name of the rule that holds for a question of an agent.
const AskPerson = "ask_person"

// asked are the groups that a question is put to.
func (c Config) asked(q agent.Question, repository string) []string {
	if _, known := c.Groups[q.To]; known {
		return []string{q.To}
	}
	return append([]string{}, c.Approvers[repository]...)
}
