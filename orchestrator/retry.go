package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// Retry runs a task again that did not complete, under the same ids and with fresh
// hops and a fresh conversation (Fork goes on from a turn). Of one that has not ended it tries the
// landings again that are held up, its own or those below it, and answers with the first of them;
// with one that is being tried nothing is done. Whoever has a task run again has asked for it.
func (e *Engine) Retry(ctx context.Context, id string, by people.User) (Delegation, error) {
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	ask, err := e.askedAnew(ctx, &d)
	if err != nil {
		return Delegation{}, err
	}
	var after Delegation
	err = e.inRow(ctx, d.TaskID, d.ID, func(tx Tx, row *Delegation) (err error) {
		if !row.State.Ended() {
			after, err = retryLive(ctx, tx, row, by.Name)
			return err
		}
		if !d.State.Ended() { // whether people are asked first was not looked up
			return Errorf(CodeConflict, "This has ended at this moment. Ask again.")
		}
		if err := mayRetry(row); err != nil {
			return err
		}
		if err := stillHere(tx.Task()); err != nil {
			return err
		}
		if err := badRef(tx.Task().Ref); err != nil {
			return err
		}
		row.Error, row.Losses, row.EndedAt, row.ApprovalID, row.OpenChildren, row.OpenSpawned = nil, 0, nil, "", 0, 0
		row.Work.AgentBranch = ""
		tx.Task().EndedAt, tx.Task().PausedAt, tx.Task().Handoffs = nil, nil, 0
		row.Work.Budget = e.budgetAnew(tx.Task())
		row.Work.Asked, row.Work.Pinned = ask.rule.Asks != "", nil
		why := "run again"
		if row.Work.Asked {
			why = "run again, once people say yes"
		}
		row.Work.unpin()
		if err := RunAgain(ctx, tx, row, nil, by.Name, why); err != nil {
			return err
		}
		row.Work.Lineage, row.Work.Rounds = row.Work.Lineage.afresh(), Rounds{}
		row.askedAgain(tx.Task(), by)
		if !row.Work.Asked {
			after = *row
			return save(ctx, tx, row)
		}
		if ask.at != nil {
			ask.at.stand(row)
		}
		if err := askAnew(ctx, tx, row); err != nil {
			return err
		}
		if err := e.askRoot(ctx, tx, ask.asks, row, ask.spec, ask.at); err != nil {
			return err
		}
		after = *row
		return nil
	})
	return after, err
}

// stillHere refuses what needs texts that retention has removed.
func stillHere(t *Task) error {
	if t.DroppedAt != nil {
		return Errorf(CodeConflict, "Retention removed what this task was about on %s. Send a new task.", t.DroppedAt.Format("2006-01-02"))
	}
	return nil
}

// LandAgain tries a landing again that is held up, and runs nothing: who may decide on a
// change may ask for it without the right to start work.
func (e *Engine) LandAgain(ctx context.Context, id, actor string) (Delegation, error) {
	d, err := e.lookUp(ctx, id)
	if err != nil {
		return Delegation{}, err
	}
	err = e.inRow(ctx, d.TaskID, d.ID, func(tx Tx, row *Delegation) error {
		d = *row
		if row.State != Landing {
			return Errorf(CodeConflict, "No landing of this change waits to be tried again: it is %s now.", row.State)
		}
		return landAgain(ctx, tx, &d, actor)
	})
	return d, err
}

// LandsNow is told to whoever wants a landing tried again that is being tried: what they
// asked for is happening, so it is no error and nothing changes.
const LandsNow = "It is being landed now."

// LandsNow reports whether a node is landing d.
func (d *Delegation) LandsNow() bool { return d.State == Landing && d.Holder != "" }

func landAgain(ctx context.Context, tx Tx, d *Delegation, actor string) error {
	if d.LandsNow() {
		return nil
	}
	d.ReadyAt, d.Losses, d.Work.Problem = tx.Now(), 0, ""
	if err := save(ctx, tx, d); err != nil {
		return err
	}
	if err := tx.ShowLanding(ctx, d.ID); err != nil {
		return err
	}
	return tx.Append(ctx, event.Of(d.ID, actor, event.QueuedData{Agent: d.To, Why: event.Given("landing is tried again")}))
}

// retryLive tries the landing of d again, or those below it that are held up: whoever has
// only the id of the task means them. Cancelling instead would throw the yes away.
func retryLive(ctx context.Context, tx Tx, d *Delegation, actor string) (first Delegation, err error) {
	if d.State == Landing {
		err = landAgain(ctx, tx, d, actor)
		return *d, err
	}
	tree, err := tx.Tree(ctx)
	if err != nil {
		return first, err
	}
	under, leaves := map[string]bool{d.ID: true}, map[string]*Delegation{}
	for _, other := range tree { // oldest first, so a caller stands before whom it called
		if !under[other.ParentID] {
			continue
		}
		under[other.ID] = true
		if other.State.Ended() {
			continue
		}
		delete(leaves, other.ParentID)
		leaves[other.ID] = other
		if other.State != Landing || other.Work.Problem == "" {
			continue
		}
		if err := landAgain(ctx, tx, other, actor); err != nil {
			return first, err
		}
		if first.ID == "" {
			first = *other
		}
	}
	if first.ID != "" {
		return first, nil
	}
	var waits []string
	for _, other := range tree {
		if leaves[other.ID] != nil {
			waits = append(waits, other.To+" is "+stateWords(other.State))
		}
	}
	still := stateWords(d.State)
	if len(waits) > 0 {
		still += ": " + strings.Join(waits, ", ")
	}
	return first, Errorf(CodeNotEnded, "This is still %s. No landing is held up, so there is nothing to try again until it has ended.", still)
}

// stateWords is a state as people read it: awaiting approval.
func stateWords(s State) string { return strings.ReplaceAll(string(s), "_", " ") }

func mayRetry(d *Delegation) error {
	switch {
	case d.State == Completed:
		return Errorf(CodeEnded, "This has completed. Send a new task to do more.")
	case d.ParentID != "":
		return Errorf(CodeConflict, "Its caller %s has been told already. Retry the whole task %s.", d.From, d.TaskID)
	case d.Work.Reverts != "":
		return Errorf(CodeConflict, "A revert is not run again. Ask for it anew on the page of the request that landed.")
	}
	return nil
}

// Revert makes a task whose only work is the tree that undoes a landed merge. It
// goes through the checks and the gate like any other patch.
func (e *Engine) Revert(ctx context.Context, requestID, delegationID, requesterID, requester string, via origin.Origin) (Task, error) {
	d, err := e.Store.Delegation(ctx, delegationID)
	if err != nil {
		return Task{}, err
	}
	if d.State != Completed || d.Result == nil || d.Result.Commit == "" || d.Work.Land == nil {
		return Task{}, Errorf(CodeConflict, "Nothing of this has landed, so there is nothing to undo.")
	}
	key, first, err := e.revertKey(ctx, requesterID, requestID)
	if err != nil {
		return Task{}, err
	}
	if first != nil {
		return *first, nil
	}
	m, repo, err := e.mirror(d.Repository)
	if err != nil {
		return Task{}, err
	}
	if err := m.Fetch(ctx); err != nil {
		return Task{}, err
	}
	head, err := m.Branch(ctx, d.Work.Land.Base.Target())
	if err != nil {
		return Task{}, err
	}
	tree, err := m.RevertTree(ctx, d.Result.Commit, head)
	if err != nil {
		return Task{}, Errorf(CodeConflict, "This can no longer be undone by itself: %w", err)
	}
	if tree == head.Tree {
		return Task{}, Errorf(CodeConflict, "%s no longer has this change, so there is nothing to undo.", head.Branch)
	}
	return e.createRevert(ctx, m, repo, d, head, tree, requestID, Submission{Key: key, RequesterID: requesterID, Requester: requester, Via: via})
}

// createRevert stores the task of a revert, born with its tree.
func (e *Engine) createRevert(ctx context.Context, m *patch.Mirror, repo Repository, d Delegation, head patch.Base, tree, requestID string, s Submission) (Task, error) {
	undone, err := e.Store.Task(ctx, d.TaskID)
	if err != nil {
		return Task{}, err
	}
	now := e.Now().UTC()
	title := "Revert: " + Title(d.Text)
	t := Task{ID: NewID(TaskPrefix, now), RootID: NewID(DelegationPrefix, now), Agent: d.To, Text: title, Repository: d.Repository, Ref: head.Branch,
		Key: s.Key, RequesterID: s.RequesterID, Requester: s.Requester, Via: s.Via, RevertOf: requestID, CreatedAt: now}
	digest := patch.Digest(repo.Name, head.Branch, head.Commit, tree, deliver(repo))
	rev, err := m.Record(ctx, patch.RecordSpec{Key: t.RootID + "-" + digest[:12], Base: head.Commit, Tree: tree, Title: title,
		Task: t.ID, Delegation: t.RootID, Agent: d.To, Digest: digest, At: now})
	if err != nil {
		return Task{}, err
	}
	root := Delegation{ID: t.RootID, TaskID: t.ID, To: d.To, Text: title, HopKey: "root", Repository: d.Repository, Requester: s.Requester,
		Result: &agent.Result{Text: "Undoes " + d.Result.Commit + "."},
		Work: Work{
			Terms: Terms{Reverts: requestID}, Base: Base{Stand: standOn(patch.Start{Base: head})},
			Product:    Product{Tree: tree, TreeCommit: rev.Commit, TreeBundle: bundleID("rev", t.RootID, rev.Commit)},
			Provenance: Provenance{AgentBranch: rev.Branch, Sandbox: notRun, Lineage: d.goesOn(&undone, ForRevert).undone()}}}
	bornChecking(&root, now)
	task, _, _, err := e.create(ctx, t, root, func(tx Tx) error {
		return tx.PutBlob(ctx, root.Work.TreeBundle, "bundle", rev.Bundle)
	})
	return task, err
}

// revertKey finds the idempotency key of a person's next revert of a request: the
// same one while the revert before is live or has landed, else a new one.
func (e *Engine) revertKey(ctx context.Context, requesterID, requestID string) (string, *Task, error) {
	for n := 1; ; n++ {
		key := fmt.Sprintf("revert:%s:%d", requestID, n)
		t, err := e.Store.TaskByKey(ctx, requesterID, key)
		if errors.Is(err, ErrNotFound) {
			return key, nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		root, err := e.Store.Delegation(ctx, t.RootID)
		if err != nil {
			return "", nil, err
		}
		if !root.State.Ended() || root.State == Completed {
			return key, &t, nil
		}
	}
}
