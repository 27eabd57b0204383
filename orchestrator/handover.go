package orchestrator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/sharedctx"
)

// HandoverQuestion is what a person is asked before a hand-over is made (H18), as the child
// would be given it.
type HandoverQuestion struct {
	From     string            `json:"from"`
	To       string            `json:"to"`
	Text     string            `json:"text"`
	Context  map[string]string `json:"context,omitempty"`
	Handover *agent.Handover   `json:"handover,omitempty"`

	// The files that travel, where the child starts from its caller's: Tree against BaseTree,
	// the tree of BaseCommit on Branch, or of the tag Tag. Requests of before they were asked about have none.
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Tag        string `json:"tag,omitempty"`
	BaseCommit string `json:"base,omitempty"`
	BaseTree   string `json:"base_tree,omitempty"`
	Tree       string `json:"tree,omitempty"`
	FilesHash  string `json:"files_sha256,omitempty"` // over every path that differs, with modes and ids
	// Steering are the paths that steer programs and that the caller had changed: Tree has
	// them as the branch does, or as the caller does where Trusted is set.
	Steering []string `json:"steering,omitempty"`
	Trusted  bool     `json:"trust_checkout,omitempty"`
	// Attachments are the files of the task, which every delegation of it is given.
	Attachments []agent.Attachment `json:"attachments,omitempty"`
}

// Place names what the files that travel are compared with: a branch, or a tag.
func (q HandoverQuestion) Place() string { return placeName(q.Branch, q.Tag) }

// Stands is what work starts from where no files of a caller travel: the branch or tag, its
// repository and the commit that people are asked about; "" where files travel, or none are there.
func (q HandoverQuestion) Stands() string {
	if q.Tree == "" || q.Tree != q.BaseTree {
		return ""
	}
	return fmt.Sprintf("%s of %s at %s", patch.Shown(q.Place()), patch.Shown(q.Repository), q.BaseCommit[:min(len(q.BaseCommit), 12)])
}

// Title is the question as one line (H18), in which nothing hides.
func (q HandoverQuestion) Title() string {
	return fmt.Sprintf("Approve handoff to %s? Context: %s", q.To, patch.Shown(Title(q.Text)))
}

// Digest names exactly what is asked, within its task: 64 lower-case hex digits. A
// decision is on a digest, so that a yes to one text is never one to another.
func (q HandoverQuestion) Digest(taskID string) (string, error) {
	text, err := json.Marshal(struct {
		Task string `json:"task"`
		HandoverQuestion
	}{taskID, q})
	if err != nil {
		return "", fmt.Errorf("the digest of a question: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Handovers says which hand-overs people are asked about first, as that stands at one
// moment. The gate makes one before the transaction in which it is used.
type Handovers interface {
	// Rule says what holds for the hand-over that would make child; first is set where
	// its agent wants a person asked in any case. It only computes.
	Rule(now time.Time, t *Task, child *Delegation, h Handed, first bool) HandoverRule
	// Ask stores the question about a child that was just inserted, in its transaction.
	// child.ApprovalID is the id of the request. People are told soon after the commit.
	Ask(ctx context.Context, tx Tx, child *Delegation, h Handed, first bool) error
	// Reads says whether rules or people would look at the files that travel to such an agent.
	Reads(first bool) bool
}

// HandoverRule is what holds for one hand-over.
type HandoverRule struct {
	Name string // of the rule that matched, "" for none
	Asks string // who is asked, in words: "1 of maintainers"; "" asks nobody
	Deny bool
}

// refusal is the sentence for a caller whose hand-over a rule denies.
func (r HandoverRule) refusal(from, to string) string {
	return fmt.Sprintf("The rule %q does not let %s hand work to %s. Answer with what you have, or hand to another agent.", r.Name, from, to)
}

// human is the last guard: it lets pass, says that a person is asked first, or refuses
// where a rule denies. It stands in for what guard.Check says of that stage.
func human(verdicts []guard.Verdict, r HandoverRule, from, to string) ([]guard.Verdict, *guard.Verdict) {
	v := guard.Verdict{Guard: guard.Human, Allowed: true, Message: "nobody is asked"}
	switch {
	case r.Deny:
		v.Allowed, v.Code, v.Message = false, guard.CodeHumanRefused, r.refusal(from, to)
	case r.Asks != "":
		v.Message = "a person is asked first: " + r.Asks
	}
	if n := len(verdicts); n > 0 && verdicts[n-1].Guard == guard.Human {
		verdicts = verdicts[:n-1]
	}
	verdicts = append(verdicts, v)
	if r.Deny {
		return verdicts, &v
	}
	return verdicts, nil
}

// handovers is who is asked before which hand-over now, read before a transaction; first
// is set where its agent wants a person asked in any case.
func (e *Engine) handovers(ctx context.Context, first bool) (Handovers, error) {
	if e.Gate == nil {
		return nil, nil
	}
	return e.Gate.Handovers(ctx, first)
}

// ruled is what holds for the hand-over that would make child; h may be nil.
func ruled(h Handovers, now time.Time, t *Task, child *Delegation, handed Handed, first bool) HandoverRule {
	if h == nil {
		return HandoverRule{}
	}
	return h.Rule(now, t, child, handed, first)
}

// handContext writes what goes with a hand-over into the task's context. Of one that
// people are asked about first it is only checked: their yes writes it.
func handContext(ctx context.Context, tx Tx, child *Delegation, from string, context map[string]string) error {
	for key, value := range context {
		entry, err := sharedctx.New(tx.Now(), sharedctx.Handoff(child.TaskID), key, value, from, 0)
		if err != nil {
			return Errorf(CodeBadRequest, "The context of the hand-over to %s was not taken: %w", child.To, err)
		}
		if child.State == AwaitingApproval {
			continue
		}
		if _, err := putEntry(ctx, tx, child.ParentID, entry); err != nil {
			return err
		}
	}
	return nil
}

// wouldAsk is the last guard of a dry run, which asks nobody. Without a task t is zero.
func (e *Engine) wouldAsk(ctx context.Context, verdicts []guard.Verdict, t Task, child *Delegation, target agent.Spec) ([]guard.Verdict, *guard.Verdict, error) {
	asks, err := e.handovers(ctx, target.AskFirst)
	if err != nil {
		return nil, nil, err
	}
	repo, err := e.Config().bind(target.Repository, t.Repository, "")
	if err == nil {
		child.Repository = repo
	}
	verdicts, refused := human(verdicts, ruled(asks, e.Now(), &t, child, Handed{HandoverQuestion: HandoverQuestion{From: child.From, To: child.To}}, target.AskFirst), child.From, child.To)
	return verdicts, refused, nil
}

// AllowHandover gives a child that was born waiting its yes: it is queued like any other.
func AllowHandover(ctx context.Context, tx Tx, d *Delegation, q HandoverQuestion, actor string) error {
	if err := allow(ctx, tx, d, Pinned{q.Context}); err != nil {
		return err
	}
	if err := handContext(ctx, tx, d, q.From, q.Context); err != nil {
		return err
	}
	return tx.Append(ctx, event.Of(d.ID, actor, event.QueuedData{Agent: d.To, From: event.Given(d.From), Why: event.Given("the hand-over was approved")}))
}

// RefuseHandover ends a child whose hand-over got a no. Its caller reads that as data.
func RefuseHandover(ctx context.Context, tx Tx, d *Delegation, actor, reason string) error {
	message := fmt.Sprintf("%s said no to handing this to %s.", actor, d.To)
	if reason != "" {
		message = fmt.Sprintf("%s said no to handing this to %s: %q.", actor, d.To, reason)
	}
	d.Error = &agent.Failure{Code: guard.CodeHumanRefused, Message: message + refusedAdvice(d)}
	return end(ctx, tx, d, Rejected, actor, "")
}

// refusedAdvice is what whoever wanted to hand on does next: an agent reads it, or whoever
// looks at the task of a trigger.
func refusedAdvice(d *Delegation) string {
	if d.ParentID == "" {
		return " Nothing ran. Retry the task to ask again."
	}
	return " Answer with what you have, or hand to another agent."
}

// ExpireHandover ends a child on whose hand-over nobody decided in time.
func ExpireHandover(ctx context.Context, tx Tx, d *Delegation) error {
	d.Error = &agent.Failure{Code: string(Expired), Message: fmt.Sprintf(
		"Nobody decided before the deadline, so %s was not asked to work.%s", d.To, refusedAdvice(d))}
	return end(ctx, tx, d, Expired, "gatehouse", "")
}

// contextText is a context as lines in a fixed order, for pages and cards.
func (q HandoverQuestion) contextText() string {
	text, err := json.MarshalIndent(q.Context, "", "  ") // keys are sorted
	if err != nil {
		return fmt.Sprint(q.Context)
	}
	return string(text)
}

// Carried is the context and the command object as one text, "" without either. It is what
// rules search.
func (q HandoverQuestion) Carried() string {
	parts := each.Of(slices.Sorted(maps.Keys(q.Context)), func(key string) string { return key + ": " + q.Context[key] })
	if text := q.Command(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "\n")
}

// Whole is all that is asked, as one text in a fixed order: who hands what to whom, the
// context and the command object that go with it. Nothing is left out or made visible.
func (q HandoverQuestion) Whole() string {
	var b strings.Builder
	fmt.Fprintf(&b, "From: %s\nTo: %s\n\n%s\n", q.From, q.To, strings.TrimRight(q.Text, "\n"))
	if len(q.Context) > 0 {
		fmt.Fprintf(&b, "\nContext:\n%s\n", q.contextText())
	}
	if text := q.Command(); text != "" {
		fmt.Fprintf(&b, "\nHand-over:\n%s\n", text)
	}
	writeNamed(&b, "Files that came with the task:", each.Of(q.Attachments, func(a agent.Attachment) string {
		return fmt.Sprintf("%s (%s, sha256 %s)", a.Name, agent.Size(a.Size), a.SHA256)
	}))
	if at := q.Stands(); at != "" {
		fmt.Fprintf(&b, "\nStarts from: %s\n", at)
	}
	if q.Trusted {
		writeNamed(&b, "Changed by "+q.From+", and run or read as "+q.From+" left them:", q.Steering)
	} else {
		writeNamed(&b, "Changed by "+q.From+", and taken from "+q.Place()+" instead:", q.Steering)
	}
	return b.String()
}

// Command is the command object of the hand-over as JSON, "" without one.
func (q HandoverQuestion) Command() string {
	if q.Handover == nil {
		return ""
	}
	text, err := json.MarshalIndent(q.Handover, "", "  ")
	if err != nil {
		return fmt.Sprint(*q.Handover)
	}
	return string(text)
}

// triggered says what holds for a task that a webhook or a schedule makes: nobody asked for
// it at that moment, so ask_first and the rules about hand-overs hold as they do between
// agents. A person's own task asks nobody. A rule that denies is an *Error.
func (e *Engine) triggered(ctx context.Context, t *Task, root *Delegation, spec agent.Spec) (Handovers, HandoverRule, error) {
	if !t.ByTrigger() {
		return nil, HandoverRule{}, nil
	}
	asks, err := e.handovers(ctx, spec.AskFirst)
	if err != nil {
		return nil, HandoverRule{}, err
	}
	rule := ruled(asks, e.Now(), t, root, rootHanded(t, root, nil), spec.AskFirst)
	if rule.Deny {
		return nil, rule, Errorf(guard.CodeHumanRefused, "The rule %q does not let %s hand work to %s. Name another agent in the trigger, or change the rule.", rule.Name, t.Via, spec.Name)
	}
	return asks, rule, nil
}

// rootHanded is the task of a trigger as a hand-over: it starts on the branch, so no files
// travel. at is where the branch is now, nil for one that works on no files.
func rootHanded(t *Task, root *Delegation, at *base) Handed {
	h := Handed{HandoverQuestion: HandoverQuestion{From: t.Via.String(), To: root.To, Text: root.Text, Attachments: t.Attachments}}
	if at != nil {
		h.on(root, at)
	}
	return h
}

// askRoot puts the task of a trigger before people, in the transaction that makes it, or
// that runs it again. at is what it is asked to start from, and nothing else.
func (e *Engine) askRoot(ctx context.Context, tx Tx, asks Handovers, root *Delegation, spec agent.Spec, at *base) error {
	if at != nil {
		if err := tx.PutBlob(ctx, root.Work.BaseBundle, "bundle", at.bundle); err != nil {
			return err
		}
	}
	return asks.Ask(ctx, tx, root, rootHanded(tx.Task(), root, at), spec.AskFirst)
}

// askedAnew says what holds for running a root again. What a trigger started is asked
// about each time: its owner's wish is what the question is about, so that wish, told
// again by Retry, is no answer to it. d is a root, or nothing is asked.
func (e *Engine) askedAnew(ctx context.Context, d *Delegation) (a anew, err error) {
	var ok bool
	if a.spec, ok = e.Config().Agents.Get(d.To); !ok || d.ParentID != "" || !d.State.Ended() {
		return a, nil
	}
	t, err := e.Store.Task(ctx, d.TaskID)
	if err != nil {
		return a, err
	}
	if a.asks, a.rule, err = e.triggered(ctx, &t, d, a.spec); err == nil && a.rule.Asks != "" {
		a.at, err = e.standing(ctx, &t, d, a.spec)
	}
	return a, err
}

// anew is what a root that is run again is asked about, and by whom.
type anew struct {
	spec agent.Spec
	asks Handovers
	rule HandoverRule
	at   *base
}

// What a no does beyond the delegation that it was said to. By itself nothing: the caller is
// told, and goes on. A plan whose step got a no, and an agent that gave its work away, have
// nothing to go on with: they end rejected, which is no failure. Where nobody decided in time
// it is the same, and they end expired. And a rule about hand-overs may say that a no ends the
// whole task (H18: anything but yes ends the workflow).

// undecided is how a delegation ends whose run found nothing to go on with, by the code that
// it ended with.
var undecided = map[string]State{agent.CodeRejected: Rejected, agent.CodeExpired: Expired}

// Decline ends a delegation that has nothing to go on with after a no further down, or where
// nobody decided there in time; f says whose it was, and why.
func Decline(ctx context.Context, tx Tx, d *Delegation, f *agent.Failure) error {
	d.Error = &agent.Failure{Code: f.Code, Message: mask.Text(f.Message)}
	return end(ctx, tx, d, undecided[f.Code], d.To, "")
}

// EndWith ends the whole task of a hand-over that has just ended without a yes, as that
// ended. A task that is past going on, because it lands, is left alone.
func EndWith(ctx context.Context, tx Tx, d *Delegation, actor string) error {
	if d.ParentID == "" {
		return nil
	}
	root, err := tx.Delegation(ctx, tx.Task().RootID)
	if err != nil {
		return err
	}
	if root.State.Ended() || !MayMove(root.State, d.State) {
		return nil
	}
	why := fmt.Sprintf("%s ended without a yes.", d.To)
	if d.Error != nil {
		why = d.Error.Message
	}
	root.Error = &agent.Failure{Code: string(d.State), Message: why + " The rule ends the task with it (on_no: end)."}
	return end(ctx, tx, root, d.State, actor, "")
}
