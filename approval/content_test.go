package approval_test

import (
	"errors"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// movedTo is a proposal in which a file came to path from docs/x.md, with that content.
func movedTo(digit, path, blob string) orchestrator.Proposal {
	p := proposal(digit)
	p.Review.Files = []patch.File{{Path: path, OldPath: "docs/x.md", Status: patch.Renamed, Similarity: 100, OldMode: "100644", NewMode: "100644", OldBlob: id40(blob), NewBlob: id40(blob)}}
	p.Review.Added, p.Review.Removed = 0, 0
	p.Review.Warnings = []patch.Warning{{Code: "ci_file", Path: path}, {Code: "copy", Path: path}}
	return p
}

// proposes asks about a change of a new task of ann's.
func (w *world) proposes(p orchestrator.Proposal) approval.Request {
	w.Helper()
	d := w.checked()
	w.must(w.g.Ask(w.ctx, d, p))
	return w.request(w.delegation(d.ID).ApprovalID)
}

// lands lets bob approve a request, and carries it out.
func (w *world) lands(r approval.Request) {
	w.Helper()
	if r.State == approval.Pending {
		_, err := w.g.Decide(w.ctx, ballot(r, "bob", approval.Approve))
		w.must(err)
	}
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, r.DelegationID)
		return errors.Join(err, tx.CloseRequest(w.ctx, r.DelegationID, orchestrator.RequestLanded, id40("d")), orchestrator.Succeed(w.ctx, tx, d))
	}))
}

// What a person approved at a path, and what landed of it, is no surprise when it comes
// back there. What a rule passed, what was rejected, what is at another path, or is another
// content, is.
func TestContentIsUnseenUntilAPersonApprovesItAtItsPlace(t *testing.T) {
	w := newWorld(t, approval.Config{Policy: compiled(t,
		policy.RuleConfig{Name: "unseen", When: `"src/init.go" in unseen`, Need: need(2)},
		policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith ".md")`, Need: need(0)},
		policy.RuleConfig{Name: "rest", When: `true`, Need: need(1)})})
	plain := proposal("1")
	plain.Review.Files = []patch.File{{Path: "docs/x.md", Status: patch.Added, NewMode: "100644", NewBlob: id40("e")}}
	byRule := w.proposes(plain)
	if byRule.Rule.Name != "docs" || byRule.State != approval.Approved {
		t.Fatalf("the document: %+v", byRule.Rule)
	}
	w.lands(byRule)

	unseen := func(when string, r approval.Request, want bool) {
		t.Helper()
		f, warned := r.Revision.Files[0], []string{}
		for _, x := range r.Revision.Warnings {
			warned = append(warned, x.Code)
		}
		codes := "ci_file copy"
		if want {
			codes = "ci_file renamed_unseen copy" // by importance
		}
		if f.Unseen != want || f.SeenHere == want || strings.Join(warned, " ") != codes {
			t.Errorf("%s: unseen %v, seen here %v, warnings %v", when, f.Unseen, f.SeenHere, warned)
		}
		if f.Path == "src/init.go" && (r.Rule.Name == "unseen") != want {
			t.Errorf("%s: the rule %s", when, r.Rule.Name)
		}
	}
	first := w.proposes(movedTo("2", "src/init.go", "e"))
	unseen("passed by a rule elsewhere", first, true)
	_, err := w.g.Decide(w.ctx, ballot(first, "bob", approval.Reject))
	w.must(err)
	unseen("rejected", w.proposes(movedTo("3", "src/init.go", "e")), true)
	unseen("at the path where a rule passed it", w.proposes(movedTo("4", "docs/x.md", "e")), true)

	people := proposal("5")
	people.Review.Files = []patch.File{{Path: "src/init.go", Status: patch.Added, NewMode: "100644", NewBlob: id40("e")}, {Path: "src/gone.go", Status: patch.Deleted, OldBlob: id40("e")}}
	asked := w.proposes(people)
	unseen("approved, and not landed", w.proposes(movedTo("6", "src/init.go", "e")), true)
	w.lands(asked)
	unseen("approved by bob", w.proposes(movedTo("7", "src/init.go", "e")), false)
	unseen("another content", w.proposes(movedTo("8", "src/init.go", "f")), true)
	unseen("another path", w.proposes(movedTo("9", "src/gone.go", "e")), true)
	other := movedTo("a", "src/init.go", "e")
	other.Repository = "other"
	unseen("another repository", w.proposes(other), true)
}

// Of a revision with some of the files only those that landed were approved.
func TestOnlyWhatLandedWasApproved(t *testing.T) {
	w := newWorld(t, approval.Config{})
	p := proposal("1")
	kept, left := patch.File{Path: "a.go", Status: patch.Added, NewBlob: id40("e")}, patch.File{Path: "b.go", Status: patch.Added, NewBlob: id40("e")}
	p.Review.Files = []patch.File{kept, left}
	r := w.proposes(p)
	_, err := w.g.Decide(w.ctx, ballot(r, "bob", approval.RequestChanges))
	w.must(err)
	w.must(w.db.InTask(w.ctx, r.TaskID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(w.ctx, r.DelegationID)
		w.must(err)
		d.State = orchestrator.Checking
		return tx.Move(w.ctx, d, orchestrator.Queued, d.Attempt)
	}))
	next := proposal("2")
	next.Review.Files = []patch.File{kept}
	w.must(w.g.Ask(w.ctx, w.delegation(r.DelegationID), next))
	w.lands(w.request(r.ID))
	for path, seen := range map[string]bool{"a.go": true, "b.go": false} {
		if f := w.proposes(movedTo("3", path, "e")).Revision.Files[0]; f.SeenHere != seen {
			t.Errorf("%s: seen here %v", path, f.SeenHere)
		}
	}
}
