package orchestrator

import (
	"context"
	"fmt"
	"path/filepath"

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
		Review: review, Checks: checks, Notes: notes(repo, d.Lineage(), checks), Sandbox: w.Sandbox, Lineage: d.Lineage(),
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
func notes(repo Repository, l Lineage, checks []Check) []patch.Note {
	var notes []patch.Note
	if n := unconfined(l); n != nil {
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
