package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
)

// A program's call is asked on Telegram over kill -9 of the server, approved by a tap, and made
// once; its question is answered by a reply of who asked for the task.
func TestACallIsApprovedFromTelegram(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, callingTeam+`
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`)
		olga := g.Person("olga", people.Operator)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1001)
		g.Link(n, "olga", 1002)
		g.Asker = olga
		root := n.Send("coder", "", "one")
		r := g.Asked(root)
		card := g.Shown(r)
		if r.Kind != approval.Action || !strings.Contains(card.Text, "command: npm publish") || !strings.Contains(card.Text, "For this task: Bash with commands that begin: npm publish") {
			t.Fatalf("asked\n%s", card.Text)
		}
		n.Kill()
		g.Start(g.Config, "")
		if said := g.Press(card, "Approve", "olga"); !strings.Contains(said, "role approver") {
			t.Errorf("olga is told %q", said)
		}
		if said := g.Press(card, "Approve", "bob"); said != "Approved. coder may make this call, once." {
			t.Fatalf("bob is told %q", said)
		}
		q := g.Asked(root)
		if ran, err := os.ReadFile(filepath.Join(g.Dir, "ran")); err != nil || string(ran) != "published\n" {
			t.Errorf("it ran %q, %v", ran, err)
		}
		if q.Kind != approval.Question {
			t.Fatalf("asked %s %q", q.Kind, q.Title)
		}
		g.Shown(q)
		var asked bottest.Message
		g.Bot.Until(g, "olga's card", func() bool { asked = g.Card(1002, q); return len(asked.Buttons) > 0 })
		g.Bot.Say(1002, g.Accounts["olga"], "green, as ever", asked.ID)
		g.Bot.Until(g, "that the answer counts", func() bool { return g.Bot.Last(1002).Text == "Answered. coder goes on with it." })
		g.Until("the end", func() bool { return g.Root(root).State == orchestrator.Completed })
		if text := g.Root(root).Result.Text; !strings.HasSuffix(strings.TrimSpace(text), "green, as ever") {
			t.Errorf("it answered %q", text)
		}
		g.Bot.Until(g, "the card in the group", func() bool {
			return strings.Contains(g.Card(placetest.Team, q).Text, "✓ Answered · coder goes on with it")
		})
		if ran, err := os.ReadFile(filepath.Join(g.Dir, "ran")); err != nil || string(ran) != "published\n" {
			t.Errorf("in the end it ran %q, %v", ran, err)
		}
	})
}

// What was allowed for the rest of a task is told as over wherever it stood: on the card, the
// page, in the chat, and to webhooks.
func TestARevokedGrantIsToldWhereItWasGiven(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		h := newHears(t)
		g := placetest.NewGate(t, database, callingTeam+strings.NewReplacer("HEARS", h.URL).Replace(`
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
  webhooks: [{name: cards, url: "HEARS/cards", secret: whsec_`+endsSecret+`, allow_private: true}]
`))
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1001)
		root := n.Send("coder", "", "one")
		r := g.Asked(root)
		if said := g.Press(g.Shown(r), "For this task", "bob"); said != "Approved for this task. coder may make such calls." {
			t.Fatalf("bob is told %q", said)
		}
		g.Asked(root) // the question that comes after
		grants, err := g.Store.Grants(t.Context(), root)
		if err != nil || len(grants) != 1 {
			t.Fatalf("%d grants, %v", len(grants), err)
		}
		g.Bot.Until(g, "the card as approved", func() bool {
			return strings.Contains(g.Card(placetest.Team, r).Text, "Approved for this task · coder may make such calls")
		})
		if out, code := g.Cli(n, "grants", "--revoke", grants[0].ID); code != 0 {
			t.Fatalf("revoke: exit %d\n%s", code, out)
		}
		g.Bot.Until(g, "the card as revoked", func() bool {
			text := g.Card(placetest.Team, r).Text
			return strings.Contains(text, "Approved for this task · revoked by bob") && strings.Contains(text, "such calls are asked again") && !strings.Contains(text, "may make such calls")
		})
		ann := n.Browser("ann")
		if page := n.Page(ann, "/approvals/"+r.ID); !strings.Contains(page, "<b>bob</b> revoked it: such calls are asked again") {
			t.Error("the page does not say that it was revoked")
		}
		if page := n.Page(n.Browser("bob"), "/chat?request="+r.ID); !strings.Contains(page, "bob has revoked the rest, so those like it are asked again") {
			t.Error("the chat does not say that it was revoked")
		}
		g.Until("the webhook", func() bool { return slices.Contains(h.kinds("/cards"), "approval.grant_revoked") })
	})
}
