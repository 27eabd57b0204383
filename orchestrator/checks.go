package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
)

// check goes on with a tree that was stored by an attempt that is gone.
func (e *Engine) check(r *run) error {
	var repo Repository
	base, err := r.d.Work.target()
	if err != nil {
		return err
	}
	if r.mirror, repo, err = e.mirror(r.d.Repository); err != nil {
		return err
	}
	if err := r.bring(r.ctx, r.d.Work.TreeBundle, r.d.Work.TreeCommit); err != nil {
		return err
	}
	w := r.d.Work
	return e.checkRevision(r, patch.Digest(repo.Name, base.Branch, base.Commit, w.Tree, deliver(repo)))
}

// checkRevision runs the checks on the stored tree and puts it before people. The
// checks' results are shown; by themselves they block nothing.
func (e *Engine) checkRevision(r *run, digest string) error {
	d, err := e.Store.Delegation(r.ctx, r.id)
	if err != nil {
		return err
	}
	_, repo, err := e.mirror(d.Repository)
	if err != nil {
		return err
	}
	w := d.Work
	base, err := w.target()
	if err != nil {
		return err
	}
	if base.At, err = r.mirror.MadeAt(r.ctx, base.Commit); err != nil {
		return err
	}
	checks, err := e.runChecks(r, w.TreeCommit, w.Tree, repo)
	if err != nil {
		return err
	}
	review, err := r.mirror.Review(r.ctx, w.BaseTree, w.Tree)
	if err != nil {
		return err
	}
	review.Warnings = append(programWarnings(e.Config().Agents.All(), repo.Name, review.Files), review.Warnings...)
	p := Proposal{
		Repository: repo.Name, Deliver: deliver(repo), Base: base,
		Tree: w.Tree, Branch: w.AgentBranch, Commit: w.TreeCommit, Bundle: w.TreeBundle, Digest: digest, Agent: d.To,
		Review: review, Checks: checks, Notes: notes(repo, d, checks), Sandbox: w.Sandbox, Lineage: d.Lineage(),
	}
	if d.Result != nil {
		p.Text = d.Result.Text
	}
	for _, c := range checks {
		if !c.OK {
			review.Warnings = append(review.Warnings, patch.Warning{Code: "checks_failed", Text: "The check failed: " + c.Command})
		}
	}
	if err := e.Gate.Ask(r.ctx, d, p); err != nil {
		return err
	}
	e.Trace("request committed")
	return nil
}

// notes are remarks that do not make a request careful.
func notes(repo Repository, d Delegation, checks []Check) []patch.Note {
	var notes []patch.Note
	if n := unconfined(d.Lineage()); n != nil {
		notes = append(notes, *n)
	}
	if n := d.tooLate(); n != nil {
		notes = append(notes, *n)
	}
	if len(checks) == 0 {
		notes = append(notes, patch.Note{Code: "no_checks", Text: "No checks are configured for " + repo.Name + "."})
	}
	return notes
}

// runChecks runs the repository's checks one by one on a fresh checkout of tree.
func (e *Engine) runChecks(r *run, commit, tree string, repo Repository) ([]Check, error) {
	if len(repo.Checks) == 0 {
		return nil, nil
	}
	if r.folder == "" {
		if err := e.makeFolder(r); err != nil {
			return nil, err
		}
	}
	dir := filepath.Join(r.folder, "checks-"+tree[:12])
	if err := r.mirror.Checkout(r.ctx, commit, tree, dir); err != nil {
		return nil, err
	}
	authors := r.lineage().Agents()
	var done []Check
	for _, command := range repo.Checks {
		ctx, cancel := context.WithTimeout(r.ctx, e.Config().Settings.CheckTime)
		c, err := e.Checker.Check(ctx, dir, command, authors)
		cancel()
		if r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		if err != nil {
			c = Check{Command: command, Output: fmt.Sprintf("The check could not run: %v", err)}
		}
		c.Command = command
		done = append(done, c)
		word := "failed"
		if c.OK {
			word = "passed"
		}
		err = e.own(r, func(ctx context.Context, tx Tx, d *Delegation) error {
			return tx.Append(ctx, event.Of(d.ID, "gatehouse", event.ProgressData{
				Text: fmt.Sprintf("check %s: %s (%.1f s)", word, command, c.Took.Seconds()), Check: command, OK: event.Given(c.OK)}))
		})
		if err != nil {
			return nil, err
		}
	}
	return done, nil
}

// offer records a tree that is to be put before people and goes on to its checks.
func (e *Engine) offer(r *run, res *agent.Result, tree string) error {
	rev, digest, err := e.record(r, tree)
	if err != nil {
		return err
	}
	declined, err := r.stillDeclined(r.ctx, tree)
	if err != nil {
		return err
	}
	err = e.settled(r, func(ctx context.Context, tx Tx, d *Delegation) error {
		if err := r.carry(ctx, tx, d, res); err != nil {
			return err
		}
		d.Work.Declined = declined
		return beginChecking(ctx, tx, d, tree, rev, d.To)
	})
	if err != nil {
		return err
	}
	e.Trace("tree stored")
	return e.checkRevision(r, digest)
}

// keep stores a recorded revision in the row.
func keep(ctx context.Context, tx Tx, d *Delegation, tree string, rev patch.Revision, actor string) error {
	d.Work.Tree, d.Work.TreeCommit, d.Work.AgentBranch = tree, rev.Commit, rev.Branch
	d.Work.TreeBundle, d.Losses = bundleID("rev", d.ID, rev.Commit), 0
	if err := tx.PutBlob(ctx, d.Work.TreeBundle, "bundle", rev.Bundle); err != nil {
		return err
	}
	e := validatedEvent(d, d.Work.BaseTree, tree)
	e.Actor = actor
	return tx.Append(ctx, e)
}

// record commits a tree on the agent's branch.
func (e *Engine) record(r *run, tree string) (patch.Revision, string, error) {
	_, repo, err := e.mirror(r.d.Repository)
	if err != nil {
		return patch.Revision{}, "", err
	}
	w := r.d.Work
	base, err := w.target()
	if err != nil {
		return patch.Revision{}, "", err
	}
	digest := patch.Digest(repo.Name, base.Branch, base.Commit, tree, deliver(repo))
	rev, err := r.mirror.Record(r.ctx, recordSpec(r.task, r.d, base.Commit, tree, digest, w.editorNames()))
	return rev, digest, err
}

func deliver(repo Repository) string {
	return cmp.Or(repo.Deliver, patch.DeliverMerge)
}

// AgentProgram is the warning that a change is to a program with which an agent that asks
// first is started. The yes to such an agent's work is to what the branch has there: this
// change decides what later yeses run.
const AgentProgram = "agent_program"

// programWarnings finds those changes, for every agent that may work on the repository.
func programWarnings(agents []agent.Spec, repository string, files []patch.File) []patch.Warning {
	var all []patch.Warning
	warned := map[string]bool{}
	for _, spec := range agents {
		if !spec.AskFirst || spec.Repository != "" && spec.Repository != repository {
			continue
		}
		for _, p := range spec.Programs() {
			for _, f := range files {
				if program := path.Clean(p.Path); !warned[f.Path] && (strings.EqualFold(f.Path, program) || strings.EqualFold(f.OldPath, program)) {
					warned[f.Path] = true
					all = append(all, patch.Warning{Code: AgentProgram, Path: f.Path,
						Text: fmt.Sprintf("Program of an agent that asks first: %s is started with it, so later yeses to its work run what is written here.", spec.Name)})
				}
			}
		}
	}
	return all
}

// outdated says why an order is not carried out under the settings of its repository as
// they are now, "" where it is. People said yes to one way of delivery, which their digest
// names: by another one the change would go where nobody was asked. What is protected since
// then is an error, so that the landing waits with the approval standing until the settings
// or a person decide.
func (e *Engine) outdated(r *run, o *Order) (why string, err error) {
	m, repo, err := e.mirror(r.d.Repository)
	if err != nil {
		return "", err
	}
	r.mirror = m // the plan is made with the settings that are looked at here
	if now := deliver(repo); o.Deliver != "" && o.Deliver != now {
		return fmt.Sprintf("%s was delivered with `deliver: %s` when people said yes, and is with `deliver: %s` now.", repo.Name, o.Deliver, now), nil
	}
	if r.d.Work.Reverts != "" { // it puts back what was there
		return "", nil
	}
	err = m.Protected(r.ctx, o.Base.Tree, o.Tree)
	if refused := new(patch.Refusal); errors.As(err, &refused) {
		return "", fmt.Errorf("%s protects %s since people said yes. Nothing landed. Cancel the task, or change `protect`", repo.Name, patch.Shown(refused.Path))
	}
	return "", err
}
