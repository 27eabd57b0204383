package main

import (
	"os"
	"path/filepath"
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
