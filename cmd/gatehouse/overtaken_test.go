package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/orchestrator"
)

// TestAnOvertakenChangeIsMadeAgainInPlaceOfAYes: main changed the very file while the
// request waited. The page knows that a yes would land nothing, so it offers none; its
// button has the agent make revision 2 on main as it is today, and that can be approved.
func TestAnOvertakenChangeIsMadeAgainInPlaceOfAYes(t *testing.T) {
	places(t, func(t *testing.T, database string) {
		p := newPlace(t, database, settled("", ""))
		n := p.start(p.config, "")
		bob := n.browser("bob")
		task := n.send("coder", "app", "core")
		r := p.asked(task)
		reads(t, n.page(bob, "/approvals/"+r.ID), `value="approve"`, `!value="renew"`)

		p.must(os.MkdirAll(filepath.Join(p.repo, "core"), 0o750))
		p.must(os.WriteFile(filepath.Join(p.repo, "core/note.txt"), []byte("somebody else's\n"), 0o600))
		git(t, p.repo, "add", "-A")
		git(t, p.repo, "commit", "-q", "-m", "the same file")
		head := git(t, p.repo, "rev-parse", "main")
		reads(t, n.page(bob, "/approvals/"+r.ID), "A yes to this would land nothing: main changed meanwhile.",
			`value="renew"`, "Make revision 2 on today's main", `value="reject"`, `!value="approve"`)

		code, page := n.say(bob, "/approvals/", r, "renew", "Keep their line.")
		if code != http.StatusOK {
			t.Fatalf("making revision 2: %d", code)
		}
		reads(t, page, "on the branch as it is today. Nothing landed.", "!Your approval was counted.")
		again := p.revised(task, 2)
		if again.Revision.Base.Commit != head || again.Decisions[0].Comment == "" {
			t.Errorf("revision 2 is on %s, want %s; decided %+v", again.Revision.Base.Commit, head, again.Decisions)
		}
		reads(t, n.page(bob, "/approvals/"+r.ID), `value="approve"`, `!value="renew"`)
		if code, why := n.yes(n.approver, again); code != http.StatusOK {
			t.Fatalf("the yes to revision 2: %d %+v", code, why)
		}
		p.until("the landing", func() bool { return p.root(task).State == orchestrator.Completed })
		n.stop()
	})
}
