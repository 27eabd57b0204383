package main

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/wire"
)

// TestAnOvertakenChangeIsMadeAgainInPlaceOfAYes: main changed the very file while the
// request waited. The page knows that a yes would land nothing, so it offers none; its
// button has the agent make revision 2 on main as it is today, and that can be approved.
func TestAnOvertakenChangeIsMadeAgainInPlaceOfAYes(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, settled("", ""))
		n := p.Start(p.Config, "")
		bob := n.Browser("bob")
		task := n.Send("coder", "app", "core")
		r := p.Asked(task)
		reads(t, n.Page(bob, "/approvals/"+r.ID), `value="approve"`, `!value="renew"`)

		p.Must(os.MkdirAll(filepath.Join(p.Repo, "core"), 0o750))
		p.Must(os.WriteFile(filepath.Join(p.Repo, "core/note.txt"), []byte("somebody else's\n"), 0o600))
		placetest.Git(t, p.Repo, "add", "-A")
		placetest.Git(t, p.Repo, "commit", "-q", "-m", "the same file")
		head := placetest.Git(t, p.Repo, "rev-parse", "main")
		reads(t, n.Page(bob, "/approvals/"+r.ID), "A yes to this would land nothing: main changed core/note.txt meanwhile.",
			`value="renew"`, "Make revision 2 on today's main", `value="reject"`, `!value="approve"`)

		code, page := n.Say(bob, "/approvals/", r, "renew", "Keep their line.")
		if code != http.StatusOK {
			t.Fatalf("making revision 2: %d", code)
		}
		reads(t, page, "on the branch as it is today. Nothing landed.", "!Your approval was counted.")
		again := p.Revised(task, 2)
		if again.Revision.Base.Commit != head || again.Decisions[0].Comment == "" {
			t.Errorf("revision 2 is on %s, want %s; decided %+v", again.Revision.Base.Commit, head, again.Decisions)
		}
		reads(t, n.Page(bob, "/approvals/"+r.ID), `value="approve"`, `!value="renew"`)
		if code, why := yes(n, n.Approver, again); code != http.StatusOK {
			t.Fatalf("the yes to revision 2: %d %+v", code, why)
		}
		p.Until("the landing", func() bool { return p.Root(task).State == orchestrator.Completed })
		n.Stop()
	})
}

// overtake commits to main the very file that a task's agent adds, and returns the commit
// with the two sentences that people read from then on.
func overtake(p *placetest.Place, task string) (head, would, missed string) {
	p.Helper()
	file := "note-" + task + ".txt"
	p.Must(os.WriteFile(filepath.Join(p.Repo, file), []byte("somebody else's\n"), 0o600))
	placetest.Git(p.T, p.Repo, "add", "-A")
	placetest.Git(p.T, p.Repo, "commit", "-q", "-m", "the same file")
	return placetest.Git(p.T, p.Repo, "rev-parse", "main"), "A yes to this would land nothing: main changed " + file + " meanwhile.",
		"Nothing landed: main changed " + file + " meanwhile. Revision 2 asks again."
}

// unnoticed has somebody say yes to a change that was overtaken a moment ago, and returns its request with what people
// are told. The server looks at branches by itself every 5 s: where it was first, nothing was decided, and the story
// is told again with another task.
func unnoticed(g *placetest.Gate, n *placetest.Node, ready, yes func(approval.Request)) (r approval.Request, missed string) {
	g.Helper()
	for range 5 {
		r = g.Asked(n.Send("coder", "app", "what is overtaken "+rand.Text()))
		if ready != nil {
			ready(r)
		}
		_, _, missed = overtake(g.Place, r.TaskID)
		yes(r)
		if now := g.Requests(r.TaskID, approval.Pending); len(now) == 0 || now[0].Revision.N > 1 {
			return r, missed
		}
	}
	g.Fatal("the server was always first")
	return r, missed
}

// bound is what stands behind a button of a card.
func bound(m bottest.Message, words string) string {
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.Text == words {
				return b.Data
			}
		}
	}
	return ""
}

// TestEveryPlaceSaysThatAChangeIsOvertaken: main changed the very file while a request waited.
// Every place says so in the same words and offers the next revision in place of a yes; who
// said yes while it happened is told, wherever they are, that nothing landed.
func TestEveryPlaceSaysThatAChangeIsOvertaken(t *testing.T) {
	t.Parallel()
	g := placetest.NewGate(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), strings.Replace(placetest.GateTeam, ", chats: [-100123]", "", 1))
	n := g.Start(g.Config, "")
	g.Link(n, "bob", private)
	bob := n.Browser("bob")
	t.Run("it is known before anybody decides", func(t *testing.T) { overtakenAndKnown(g, t, n, bob, n.Send("coder", "app", "known")) })
	t.Run("a tap of the old Approve", func(t *testing.T) {
		var m bottest.Message
		var approve, said string
		r, missed := unnoticed(g, n, func(r approval.Request) {
			g.Bot.Until(t, "the Approve", func() bool { m = g.Card(private, r); approve = bound(m, "Approve"); return approve != "" })
		}, func(approval.Request) { said = g.Answer(g.Bot.PressData(private, m.ID, approve, g.Accounts["bob"])) })
		if said != missed {
			t.Errorf("the tap is answered %q, want %q", said, missed)
		}
		g.Bot.Until(t, "the next question", func() bool { return bound(g.Card(private, g.Revised(r.TaskID, 2)), "Approve") != "" })
	})
	for where, at := range map[string]string{"page": "/approvals/", "chat": "/chat/approvals/"} {
		t.Run("a yes on the "+where, func(t *testing.T) {
			var code int
			var said string
			r, missed := unnoticed(g, n, nil, func(r approval.Request) { code, said = n.Say(bob, at, r, "approve", "") })
			if code != http.StatusOK {
				t.Fatalf("the yes: %d", code)
			}
			reads(t, said, missed, `role="status"`, "!Your approval was counted.", `!role="alert"`)
			g.Revised(r.TaskID, 2)
			reads(t, n.Page(bob, "/approvals/"+r.ID), `callout is-wait missed" role="status"`, missed, "What changed 1→2", `value="approve"`)
			if where == "chat" {
				reads(t, n.Page(bob, "/chat?request="+r.ID), missed, `value="approve"`)
			}
		})
	}
	t.Run("a yes by a program", func(t *testing.T) {
		var after wire.Request
		var code int
		var err error
		r, missed := unnoticed(g, n, nil, func(r approval.Request) {
			code, err = n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", g.Approver, wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest, Revision: 1}, &after)
		})
		if err != nil || code != http.StatusOK || after.Missed != missed {
			t.Errorf("the yes: %d %v, missed %q", code, err, after.Missed)
		}
		again := g.Revised(r.TaskID, 2)
		if out, _ := g.Cli(n, "review", r.ID); !strings.Contains(out, "⚠ "+missed) || !strings.Contains(out, "gatehouse approve") {
			t.Errorf("review of revision %d says\n%s", again.Revision.N, out)
		}
	})
	n.Stop()
}

// overtakenAndKnown looks at every place once the server has found out by itself.
func overtakenAndKnown(g *placetest.Gate, t *testing.T, n *placetest.Node, bob *http.Client, task string) {
	r := g.Asked(task)
	g.Bot.Until(t, "its card", func() bool { return bound(g.Card(private, r), "Approve") != "" })
	head, would, _ := overtake(g.Place, task)
	var seen wire.Request
	if code, err := n.Call(http.MethodGet, "/api/v1/approvals/"+r.ID, g.Approver, nil, &seen); err != nil || code != http.StatusOK || seen.Overtaken.Message != would || seen.Refused != would ||
		!slices.Equal(seen.May, []string{"reject", "request_changes", "renew"}) {
		t.Errorf("the API: %d %v, overtaken %+v, may %q, refused %q", code, err, seen.Overtaken, seen.May, seen.Refused)
	}
	var card bottest.Message
	g.Bot.Until(t, "the card without Approve", func() bool {
		card = g.Card(private, r)
		return bound(card, "Make revision 2 on today's main") != "" && bound(card, "Approve") == ""
	})
	if !strings.Contains(card.Text, would) {
		t.Errorf("the card says\n%s", card.Text)
	}
	brief := "main changed note-" + task + ".txt: a yes lands nothing; ask for revision 2"
	for _, at := range []string{"/", "/approvals", "/delegations/" + r.DelegationID} {
		t.Run(at, func(t *testing.T) { reads(t, n.Page(bob, at), brief) })
	}
	reads(t, n.Page(bob, "/approvals/"+r.ID), would, "!as one merge commit")
	for _, args := range [][]string{{"approvals"}, {"status", task}} {
		if out, code := g.Cli(n, args...); code != 0 || !strings.Contains(out, "⚠ "+brief) {
			t.Errorf("%s: exit %d\n%s", args, code, out)
		}
	}
	reads(t, n.Page(bob, "/chat?request="+r.ID), would, `value="renew"`, "Make revision 2 on today's main", `!value="approve"`, `value="reject"`)
	if out, code := g.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "⚠ "+would) || !strings.Contains(out, "--renew") || strings.Contains(out, "gatehouse approve") {
		t.Errorf("review: exit %d\n%s", code, out)
	}
	if out, code := g.Cli(n, "approve", r.ID, "--digest", r.Revision.Digest); code != 1 || !strings.Contains(out, would) || !strings.Contains(out, "--renew") {
		t.Errorf("approve: exit %d\n%s", code, out)
	}
	if said := g.Answer(g.Bot.PressData(private, card.ID, bound(card, "Make revision 2 on today's main"), g.Accounts["bob"])); said != "Nothing landed. coder makes revision 2 on today's main." {
		t.Errorf("the press is answered %q", said)
	}
	again := g.Revised(task, 2)
	if last := again.Decisions[0]; again.Revision.Base.Commit != head || last.Verdict != approval.RequestChanges || last.Channel != "telegram" || again.Revision.Overtaken != nil {
		t.Errorf("revision 2 on %s (want %s), decided %+v", again.Revision.Base.Commit, head, last)
	}
	if !slices.ContainsFunc(g.Events(task), func(e event.Event) bool { return e.Type == event.Overtaken && strings.Contains(string(e.Data), would) }) {
		t.Error("the history does not say when that was found")
	}
	g.Bot.Until(t, "the card of revision 2", func() bool { return bound(g.Card(private, again), "Approve") != "" })
}
