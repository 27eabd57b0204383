package sqlstore_test

import (
	"errors"
	"fmt"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// approvedContents: what landed with a person's yes is known by path and content, in its
// repository alone. What a rule passed, what was never landed, and what no database gives
// back byte for byte is not known.
func approvedContents(s *Suite) {
	id := strings.Repeat("a", 40)
	n := 0
	land := func(end, user string, change func(r *approval.Request)) {
		n++
		d := s.delegation(s.task(fmt.Sprint("task ", n)))
		r := s.request(d, func(r *approval.Request) {
			r.State, r.Revision.State = approval.Approved, approval.Approved
			change(r)
		})
		userID := ""
		if !strings.HasPrefix(user, approval.RuleActor) {
			userID = "usr_" + user
		}
		s.gate(d.TaskID, func(tx approval.Tx) error {
			return tx.InsertDecision(s.ctx, r.ID, approval.Decision{ID: orchestrator.NewID(orchestrator.DecisionPrefix, s.Clock.Now()), Revision: r.Revision.N,
				UserID: userID, User: user, Channel: "web", Verdict: approval.Approve, Digest: r.Revision.Digest, At: s.Clock.Now()})
		})
		s.in(d.TaskID, func(tx orchestrator.Tx) error {
			return tx.CloseRequest(s.ctx, d.ID, orchestrator.RequestEnd(end), "c0ffee")
		})
	}
	files := func(all ...patch.File) func(*approval.Request) {
		return func(r *approval.Request) { r.Revision.Files = all }
	}
	long := strings.Repeat("d/", 2000) + "f"
	many := make([]patch.File, 250)
	for i := range many {
		many[i] = patch.File{Path: fmt.Sprintf("many/%d", i), NewBlob: id}
	}
	land("landed", "bob", files(patch.File{Path: "docs/x.md", NewBlob: id}, patch.File{Path: "gone.md", OldBlob: id},
		patch.File{Path: long, NewBlob: id}, patch.File{Path: "odd\xff", NewBlob: id}))
	land("landed", "bob", files(many...))
	land("landed", "bob", files(many...)) // once more is no error
	land("landed", approval.RuleActor+"docs", files(patch.File{Path: "by-rule.md", NewBlob: id}))
	land("failed", "bob", files(patch.File{Path: "failed.md", NewBlob: id}))
	land("landed", "bob", func(r *approval.Request) {
		r.Repository, r.Revision.Files = "other", []patch.File{{Path: "other.md", NewBlob: id}}
	})
	ask := []approval.Content{{Path: "docs/x.md", Blob: id}, {Path: "docs/x.md", Blob: strings.Repeat("b", 40)}, {Path: "docs/y.md", Blob: id}, {Path: "gone.md", Blob: id},
		{Path: "by-rule.md", Blob: id}, {Path: "failed.md", Blob: id}, {Path: "other.md", Blob: id}, {Path: "odd\uFFFD", Blob: id}, {Path: long, Blob: id}}
	for i := range many {
		ask = append(ask, approval.Content{Path: many[i].Path, Blob: id})
	}
	s.gate(s.task("ask").ID, func(tx approval.Tx) error {
		got, err := tx.Approved(s.ctx, "app", ask)
		if len(got) != 251 || !got[ask[0]] || !got[approval.Content{Path: "many/249", Blob: id}] {
			s.Errorf("%d are known: %v", len(got), got)
		}
		none, err2 := tx.Approved(s.ctx, "app", nil)
		if len(none) > 0 {
			s.Errorf("nothing was asked about, and %v is known", none)
		}
		return errors.Join(err, err2)
	})
}
