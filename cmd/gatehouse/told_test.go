package main

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
)

// toldTeam has an agent that changes a file and answers, and one that fails.
const toldTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -c, 'cat > note.txt; echo "I wrote it down."']
  clumsy: {kind: command, env: {PLACE: MARK}, command: [sh, -c, 'echo "The disk is full." >&2; exit 3']}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// doraAccount is that of who sends in these tests.
const doraAccount int64 = 1003

// toldPlace is a server whose operator dora is linked, and how her newest message reads.
func toldPlace(t *testing.T, database string) (*placetest.Gate, *placetest.Node, func() string) {
	t.Helper()
	g := placetest.NewGate(t, database, toldTeam)
	g.Person("dora", people.Operator)
	n := g.Start(g.Config, "")
	g.Link(n, "dora", doraAccount)
	return g, n, func() string { return g.Bot.Last(doraAccount).Text }
}

// taskIn is the id of the task that a message is about.
func taskIn(text string) string {
	_, rest, _ := strings.Cut(text, "tsk_")
	id, _, _ := strings.Cut(rest, " ")
	return "tsk_" + id
}

// TestWhoSentInTelegramHearsTheEndThere: one message goes from queued over the wait for
// people to the answer, with kill -9 of the server in between and while it is edited.
func TestWhoSentInTelegramHearsTheEndThere(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g, n, message := toldPlace(t, database)
		before := len(g.Bot.FromBot(doraAccount))
		g.Bot.Say(doraAccount, g.Accounts["dora"], "/send coder Write it down", 0)
		g.Bot.Until(g, "the task's message", func() bool { return strings.Contains(message(), " sent to coder · /status_") })
		task := taskIn(message())
		r := g.Asked(task)
		g.Bot.Until(g, "the wait", func() bool { return strings.Contains(message(), "◆ Awaiting approval · coder") })
		if text := message(); !strings.Contains(text, "waiting for approval · /status_"+r.ID[len(r.ID)-6:]) {
			t.Errorf("the wait says no more than\n%s", text)
		}
		n.Kill()
		g.Bot.Misbehave("editMessageText", bottest.Hang().Always())
		n = g.Start(g.Config, "")
		if code, err := n.Decide(r); err != nil || code != http.StatusOK {
			t.Fatalf("the yes: %d, %v", code, err)
		}
		g.Until("the landing", func() bool { return g.Root(task).State.Ended() })
		n.Kill() // while the edit is on its way, or waits for its turn
		g.Bot.Behave("editMessageText")
		n = g.Start(g.Config, "")
		g.Bot.Until(g, "the end", func() bool { return strings.Contains(message(), "✓ Completed · coder") })
		for _, part := range []string{"Write it down\n", "Approved · landed on main · bob", "landed as " + g.Root(task).Result.Commit[:7], "I wrote it down."} {
			if !strings.Contains(message(), part) {
				t.Errorf("the end has no %q:\n%s", part, message())
			}
		}
		if all := g.Bot.FromBot(doraAccount); len(all) != before+1 {
			t.Errorf("%d messages about one task: %+v", len(all)-before, all[before:])
		}
		n.Stop()
	})
}

// TestAFailureIsToldWithTheWayOn: the sentence, and a command that runs it again into the
// same message. On the settings page it can be muted.
func TestAFailureIsToldWithTheWayOn(t *testing.T) {
	t.Parallel()
	g, n, message := toldPlace(t, "sqlite:"+t.TempDir()+"/told.db")
	g.Bot.Say(doraAccount, g.Accounts["dora"], "/send clumsy Fall", 0)
	g.Bot.Until(g, "the failure", func() bool { return strings.Contains(message(), "✕ Failed · clumsy") })
	text := message()
	if !strings.Contains(text, "The disk is full.") || !strings.Contains(text, "To run it again: /retry_") {
		t.Fatalf("the failure reads\n%s", text)
	}
	retry := text[strings.Index(text, "/retry_"):][:len("/retry_7f3k9q")]
	first := g.Bot.Last(doraAccount)
	g.Bot.Say(doraAccount, g.Accounts["dora"], retry, 0)
	g.Bot.Until(g, "the second run", func() bool { return strings.Contains(message(), "It runs again: Fall · clumsy") })
	g.Bot.Until(g, "the second failure in the first message", func() bool {
		m, _ := g.Bot.Message(doraAccount, first.ID)
		return strings.Contains(m.Text, "✕ Failed · clumsy") && m.Text != text
	})

	dora := n.Browser("dora")
	if page := n.Page(dora, "/settings/you"); !strings.Contains(page, "go on until their ends") {
		t.Errorf("the settings do not say what dora is told")
	}
	res, err := dora.PostForm(n.URL+"/settings/you/muted", map[string][]string{"muted": {"1"}})
	g.Must(err)
	g.Must(res.Body.Close())
	if page := n.Page(dora, "/settings/you"); !strings.Contains(page, "stay as they are") {
		t.Errorf("the settings do not say that dora has muted her tasks")
	}
	g.Bot.Say(doraAccount, g.Accounts["dora"], "/send coder Note it", 0)
	g.Bot.Until(g, "the task's message", func() bool { return strings.Contains(message(), "Note it\ntsk_") })
	task := taskIn(message())
	if code, err := n.Decide(g.Asked(task)); err != nil || code != http.StatusOK {
		t.Fatalf("the yes: %d, %v", code, err)
	}
	g.Until("its end", func() bool { return g.Root(task).State.Ended() })
	g.Bot.Say(doraAccount, g.Accounts["dora"], "/unmute", 0)
	g.Bot.Until(g, "the answer", func() bool { return strings.Contains(message(), "go on until their ends") })
	for _, m := range g.Bot.FromBot(doraAccount) {
		if strings.Contains(m.Text, "Note it") && strings.Contains(m.Text, "Completed") {
			t.Errorf("a muted message went on:\n%s", m.Text)
		}
	}
	n.Stop()
}
