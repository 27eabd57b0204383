package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// Submit makes a task with its root delegation, or returns the first task that
// this requester made with the same key (created false). With DryRun nothing is
// stored and the answer is what would be.
func (e *Engine) Submit(ctx context.Context, s Submission) (Task, Delegation, bool, error) {
	past, err := e.past(ctx, &s)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	c := e.Config()
	spec, err := c.find(s.Agent, s.Capability)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	attached, err := s.attach()
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	repo, err := e.takes(ctx, c, spec, s)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	limits, class := c.limits(s, spec)
	now := e.Now().UTC()
	t := Task{
		ID: NewID(TaskPrefix, now), RootID: NewID(DelegationPrefix, now), Agent: spec.Name, Text: s.Text,
		Repository: repo, Ref: s.Ref, Key: s.Key, Complexity: class.Tier, Budget: s.Budget, RemoteHops: s.RemoteHops, Source: s.Source, Why: class.Why,
		RequesterID: s.RequesterID, Requester: s.Requester, Via: s.Via, Chat: s.Chat, Attachments: attached, CreatedAt: now,
	}
	root := Delegation{
		ID: t.RootID, TaskID: t.ID, To: spec.Name, Text: s.Text, Chain: newChain(c),
		HopKey: "root", Repository: repo, Requester: s.Requester,
		Work: Work{Account: Account{Budget: opened(limits, spec)}, Terms: Terms{Independent: c.Settings.OptIn && !s.Handoffs}},
	}
	bornQueued(&root, now)
	if err := e.joinThread(ctx, past, &t, &root); err != nil {
		return Task{}, Delegation{}, false, err
	}
	asks, rule, err := e.triggered(ctx, &t, &root, spec)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	if rule.Asks != "" {
		askFirst(&root, now)
	}
	if s.DryRun {
		return t, root, false, nil
	}
	if rule.Asks == "" {
		return e.create(ctx, t, root, s.keep(ctx, &t, func(tx Tx) error {
			if past == nil {
				return nil
			}
			return past.copy(ctx, tx, &root, past.files == nil)
		}))
	}
	at, err := e.standing(ctx, &t, &root, spec)
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	return e.create(ctx, t, root, s.keep(ctx, &t, func(tx Tx) error { return e.askRoot(ctx, tx, asks, &root, spec, at) }))
}

// create stores a task with its root, and with what also does in the same
// transaction.
func (e *Engine) create(ctx context.Context, t Task, root Delegation, also func(Tx) error) (Task, Delegation, bool, error) {
	said := event.TaskCreatedData{Agent: t.Agent, Title: Title(t.Text), Repository: t.Repository, Via: t.Via.String(),
		Complexity: t.Complexity, Independent: root.Work.Independent, Why: t.Why, Thread: t.Thread}
	if t.Source != nil {
		said.Source = t.Source
	}
	if len(t.Attachments) > 0 {
		said.Attachments = t.Attachments
	}
	stored, created, err := e.Store.NewTask(ctx, t, func(tx Tx) error {
		b := e.continuation(tx, nil)
		root.CreatedAt, root.ReadyAt, root.Since = tx.Now(), tx.Now(), tx.Now()
		row := root // what is answered is what was accepted, also where a worker has it already
		begun := b.claim(tx, &row, false)
		if err := tx.Insert(ctx, &row); err != nil {
			return err
		}
		err := tx.Append(ctx, event.Of(root.ID, t.Requester, said))
		if err == nil && !root.Work.Asked { // else it is queued by the yes
			err = tx.Append(ctx, event.Of(root.ID, t.Requester, event.QueuedData{Agent: root.To}))
		}
		if err == nil && begun {
			err = b.acknowledge(ctx, tx, &row)
		}
		if err != nil || also == nil {
			return err
		}
		return also(tx)
	})
	if err != nil {
		return Task{}, Delegation{}, false, err
	}
	if created {
		e.Trace("task committed")
		return stored, root, true, nil
	}
	if stored.Text != t.Text || stored.Agent != t.Agent || !slices.Equal(stored.Attachments, t.Attachments) {
		return Task{}, Delegation{}, false, Errorf(CodeKeyReused, "The key %q was used for another task, %s. Use a new key for a new task.", t.Key, stored.ID)
	}
	first, err := e.Store.Delegation(ctx, stored.RootID)
	return stored, first, false, err
}

// Fork asks for a new task that goes on from a turn of a conversation.
type Fork struct {
	DelegationID string // or the task's id: its root
	Turn         int    // the last turn that is kept; 0 is the newest
	RequesterID  string
	Requester    string
	Via          origin.Origin
}

type forkPoint struct {
	task  Task
	d     Delegation
	turns []agent.Turn // kept ones
	files *Checkpoint  // nil: the checkout was as its base
	data  []byte       // bundle of files
}

// Fork makes a task of the same agent and text whose conversation, files and remaining
// budget are those of a turn. The first task goes on, or stays ended, as it is. A cut
// between a model's calls and their results is moved to before the calls. Turns that are
// taken over cost the new task nothing.
func (e *Engine) Fork(ctx context.Context, f Fork) (Task, Delegation, error) {
	o, err := e.origin(ctx, f)
	if err != nil {
		return Task{}, Delegation{}, err
	}
	now := e.Now().UTC()
	t := Task{ID: NewID(TaskPrefix, now), RootID: NewID(DelegationPrefix, now), Agent: o.d.To, Text: o.d.Text, Repository: o.d.Repository,
		Ref: o.task.Ref, Complexity: o.task.Complexity, RequesterID: f.RequesterID, Requester: f.Requester, Via: f.Via, Chat: o.task.Chat, Source: o.task.Source, ForkOf: o.d.ID, CreatedAt: now}
	if t.Budget, err = e.leftAt(ctx, o); err != nil {
		return Task{}, Delegation{}, err
	}
	root := Delegation{ID: t.RootID, TaskID: t.ID, To: o.d.To, Text: o.d.Text, Chain: chain.New(e.Config().Settings.MaxDepth),
		HopKey: "root", Repository: o.d.Repository, Requester: f.Requester, Work: Work{
			Terms: Terms{Handover: o.d.Work.Handover, Independent: o.d.Work.Independent}, Session: Session{Feedback: o.d.Work.Feedback}}}
	bornQueued(&root, now)
	root.Work.Budget, root.Work.Lineage = e.budgetAnew(&t), o.d.goesOn(&o.task, ForFork)
	if err := e.forkFiles(ctx, &o, &root); err != nil {
		return Task{}, Delegation{}, err
	}
	files, err := e.handOnAttachments(ctx, &o.task, &t)
	if err != nil {
		return Task{}, Delegation{}, err
	}
	upTo := len(o.turns)
	t, root, _, err = e.create(ctx, t, root, files.keep(ctx, &t, func(tx Tx) error {
		if err := o.copy(ctx, tx, &root, false); err != nil {
			return err
		}
		return tx.Append(ctx, event.Of(root.ID, f.Requester, event.ForkedData{Agent: root.To, FromTask: o.task.ID, From: o.d.ID, Turn: upTo}))
	}))
	if err != nil {
		return Task{}, Delegation{}, err
	}
	err = e.Store.InTask(ctx, o.task.ID, func(tx Tx) error {
		return tx.Append(ctx, event.Of(o.d.ID, f.Requester, event.ForkedData{Agent: o.d.To, Task: t.ID, Delegation: root.ID, Turn: upTo}))
	})
	return t, root, err
}

// origin reads and checks what is to be forked.
func (e *Engine) origin(ctx context.Context, f Fork) (forkPoint, error) {
	d, err := e.lookUp(ctx, f.DelegationID)
	if err != nil {
		return forkPoint{}, err
	}
	o := forkPoint{d: d}
	if spec, ok := e.Config().Agents.Get(d.To); !ok || !e.traits(spec).Conversation {
		return o, Errorf(CodeConflict, "%s is no model agent, so there is no conversation to go on from. Send a new task.", d.To)
	}
	if o.task, err = e.Store.Task(ctx, d.TaskID); err != nil {
		return o, err
	}
	if err := stillHere(&o.task); err != nil {
		return o, err
	}
	if err := badRef(o.task.Ref); err != nil {
		return o, err
	}
	all, err := e.Store.Turns(ctx, d.ID, d.Work.Runs)
	if err != nil {
		return o, err
	}
	last := f.Turn
	if last == 0 {
		last = len(all)
	}
	if last < 1 || last > len(all) {
		return o, Errorf(CodeBadRequest, "There is no turn %d: this conversation has %d. Name one of them.", f.Turn, len(all))
	}
	o.turns = whole(all[:last])
	if len(o.turns) == 0 {
		return o, nil
	}
	commit, tree, err := e.Store.KeptAt(ctx, d.ID, d.Work.Runs, len(o.turns))
	if err == nil && commit != "" {
		o.files = &Checkpoint{Commit: commit, Tree: tree}
	}
	return o, err
}

// whole cuts turns so that every call among them has its result (O18).
func whole(turns []agent.Turn) []agent.Turn {
	if n := len(turns); n > 0 && len(turns[n-1].Message.Calls()) > 0 {
		return turns[:n-1]
	}
	return turns
}

// copy gives root the kept turns, and the files that it starts with. A bare copy has no
// earlier files: its turns are those of a conversation that goes on in a fresh checkout.
func (o *forkPoint) copy(ctx context.Context, tx Tx, root *Delegation, bare bool) error {
	c := TurnCopy{From: o.d.ID, Generation: o.d.Work.Runs, UpTo: len(o.turns), Bare: bare}
	if k := root.Work.Checkpoint; k != nil {
		c.Kept = k.Commit + " " + k.Tree
		if err := tx.PutBlob(ctx, k.Bundle, "bundle", o.data); err != nil {
			return err
		}
	}
	_, err := tx.CopyTurns(ctx, root, c)
	return err
}

// Followed is set on the root of a follow-up while it goes on with the thread.
type Followed struct {
	Files string `json:"files,omitempty"` // what has become of the files, as a sentence
}

// past is what a submission goes on with: the newest task of its thread, with the turns that
// the agent remembers. It completes s from that; nil where s begins a thread, and where the
// same message was taken before.
func (e *Engine) past(ctx context.Context, s *Submission) (*forkPoint, error) {
	if s.Follows == "" {
		return nil, nil
	}
	t, err := e.Store.Task(ctx, s.Follows)
	if errors.Is(err, ErrNotFound) || err == nil && t.RequesterID != s.RequesterID {
		return nil, Errorf(CodeNotFound, "There is no task %.80q of yours to go on with.", s.Follows)
	}
	if err == nil && s.Key != "" {
		var first Task
		if first, err = e.Store.TaskByKey(ctx, s.RequesterID, s.Key); err == nil {
			s.Agent, s.Repository, s.Ref = cmp.Or(s.Agent, first.Agent), first.Repository, first.Ref
			return nil, e.earlierFiles(ctx, &first, s) // which has those of the thread
		}
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	o := &forkPoint{}
	if o.d, err = e.newestOf(ctx, t); err != nil {
		return nil, err
	}
	if o.task, err = e.Store.Task(ctx, o.d.TaskID); err != nil {
		return nil, err
	}
	if err := o.idle(); err != nil {
		return nil, err
	}
	if err := stillHere(&o.task); err != nil {
		return nil, err
	}
	return o, e.remember(ctx, o, s)
}

// idle refuses to go on with what has not ended.
func (o *forkPoint) idle() error {
	switch o.d.State {
	case AwaitingApproval:
		return Errorf(CodeNotEnded, "What the message before led to waits for a decision. Approve it, reject it, or request changes there and say what should be different. Then go on, or begin another thread.")
	case Checking, Landing:
		return Errorf(CodeNotEnded, "What the message before led to is just being %s. Go on when that is done, or begin another thread.", map[State]string{Checking: "checked", Landing: "landed"}[o.d.State])
	}
	if !o.d.State.Ended() {
		return Errorf(CodeNotEnded, "%s still works on the message before. Go on when it has answered, or begin another thread.", o.d.To)
	}
	return nil
}

// remember completes s from the thread, and reads what the agent remembers of it: another
// agent, and the same one on other files, is told what was said instead (see said). Work that
// nobody refused and that did not end is gone on with; the files are else those of today.
func (e *Engine) remember(ctx context.Context, o *forkPoint, s *Submission) error {
	if s.Agent == "" && s.Capability == "" {
		s.Agent = o.task.Agent
	}
	c := e.Config()
	spec, ok := c.Agents.Get(s.Agent)
	if spec.Repository == "" {
		s.Repository = cmp.Or(s.Repository, o.task.Repository)
	}
	repository := cmp.Or(s.Repository, spec.Repository)
	if repository == o.task.Repository {
		s.Ref = cmp.Or(s.Ref, o.task.Ref)
	}
	if s.Complexity == "" && c.Settings.Classify && budget.Classify(s.Text).Tier == budget.Simple {
		s.Complexity = o.task.Complexity // "yes, do it" says nothing of the work
	}
	if err := e.earlierFiles(ctx, &o.task, s); err != nil {
		return err
	}
	if !ok || !e.traits(spec).Conversation || spec.Name != o.d.To || repository != o.task.Repository || s.Ref != o.task.Ref {
		return nil
	}
	all, err := e.Store.Turns(ctx, o.d.ID, o.d.Work.Runs)
	if o.turns = whole(all); err != nil || len(o.turns) == 0 || !slices.Contains([]State{Failed, Cancelled, Expired}, o.d.State) {
		return err
	}
	commit, tree, err := e.Store.KeptAt(ctx, o.d.ID, o.d.Work.Runs, len(o.turns))
	if err == nil && commit != "" {
		o.files = &Checkpoint{Commit: commit, Tree: tree}
	}
	return err
}

// joinThread makes a new task one that goes on with a thread. What its agent remembers, or is told,
// may become files, so whoever had a part in that has one in these.
func (e *Engine) joinThread(ctx context.Context, o *forkPoint, t *Task, root *Delegation) error {
	if o == nil {
		return nil
	}
	t.Thread = o.task.ThreadID()
	if o.files != nil {
		err := e.forkFiles(ctx, o, root)
		if CodeOf(err) == CodeConflict { // they are no longer kept
			o.files, err = nil, nil
		}
		if err != nil {
			return err
		}
	}
	root.Work.Lineage = o.d.goesOn(&o.task, ForFork).steered(t, o.d.Work.Unread)
	if o.files == nil {
		root.Work.Lineage = root.Work.Lineage.remembered()
	}
	root.Work.Carried, root.Work.Follows = len(o.turns), &Followed{}
	if root.Repository != "" {
		root.Work.Follows.Files = o.filesNow(root.Repository)
	}
	return nil
}

// filesNow tells what the agent finds in its checkout.
func (o *forkPoint) filesNow(repository string) string {
	became := ""
	switch {
	case o.files != nil:
		return "Your files are as you left them. Nothing of them has landed."
	case o.task.Repository != repository:
	case o.d.State == Completed && o.d.Result != nil && o.d.Result.Commit != "":
		became = fmt.Sprintf(" The change before was approved, as %.12s.", o.d.Result.Commit)
	case o.d.State != Completed && o.d.Error != nil:
		became = " What came of the message before: " + o.d.Error.Message
	}
	return "Your files are a fresh checkout, as they are in the repository now." + became
}
