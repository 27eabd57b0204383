package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
)

// timeTeam has short times: others may decide after 1 s, a reminder comes 3 s before the
// end, and the end after 7 s.
const timeTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder: {kind: command, repository: app, env: {PLACE: MARK}, command: [sh, -c, 'cat > "note-$GATEHOUSE_TASK_ID.txt"']}
  caller: {kind: command, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'gatehouse permit --tool Bash --input "{\"command\":\"npm publish\"}"; true']}
  asker: {kind: command, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'gatehouse ask "Which colour?" --to core 2>&1; true']}
approval:
  expires: 7s
  remind: [3s]
  escalate: [{after: 1s, to: [leads]}]
  rules: [{name: core, when: "true", need: 1, from: [core]}]
  actions: [{name: all, when: "true", need: 1, from: [core]}]
groups: {core: [bob], leads: [cleo]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API"}
`

// TestWhatTimeDoesIsSeenInTelegram: bob gets the card and cleo does not; when nobody
// decides cleo may, too, and gets one; both are reminded; at the end nothing landed.
func TestWhatTimeDoesIsSeenInTelegram(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, timeTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		g.Link(n, "cleo", 1003)
		task := n.Send("coder", "app", "time")
		r := g.Asked(task)
		says := func(chat int64, text string) func() bool { return func() bool { return said(g, chat, text) } }
		g.Bot.Until(t, "bob's card", func() bool { return g.Card(1002, r).ID != 0 })
		g.Bot.Until(t, "cleo's card after the escalation", func() bool { return g.Card(1003, r).ID != 0 })
		g.Bot.Until(t, "the notice of the escalation", says(1002, "Now also: leads"))
		g.Bot.Until(t, "bob's reminder", says(1002, "Still waiting"))
		g.Bot.Until(t, "cleo's reminder", says(1003, "Still waiting"))
		g.Bot.Until(t, "the end on bob's card", says(1002, "Expired, not approved"))
		g.Bot.Until(t, "the end on cleo's card", says(1003, "Expired, not approved"))
		if root := g.Root(task); root.State != orchestrator.Expired {
			t.Errorf("the task is %s", root.State)
		}
		if placetest.Git(t, g.Repo, "log", "--merges", "--oneline", "main") != "" {
			t.Error("something landed")
		}
		n.Stop()
	})
}

// said reports whether the bot has a message in a chat that says all of this.
func said(g *placetest.Gate, chat int64, all ...string) bool {
	return slices.ContainsFunc(g.Bot.FromBot(chat), func(m bottest.Message) bool {
		return !slices.ContainsFunc(all, func(text string) bool { return !strings.Contains(m.Text, text) })
	})
}

// TestWhatTimeDoesToCallsIsSeenInTelegram: calls and questions are escalated, reminded of and
// expire as changes do, and the agents read that nobody decided.
func TestWhatTimeDoesToCallsIsSeenInTelegram(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, timeTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		g.Link(n, "cleo", 1003)
		call, question := n.Send("caller", "", "call"), n.Send("asker", "", "ask")
		for end, r := range map[string]approval.Request{"Expired, not approved · not called\nCall Bash: npm publish": g.Asked(call), "Nobody answered · asker was told so\nWhich colour?": g.Asked(question)} {
			_, short, _ := strings.Cut(end, "\n")
			g.Bot.Until(t, "bob's card", func() bool { return g.Card(1002, r).ID != 0 })
			g.Bot.Until(t, "cleo's card after the escalation", func() bool { return g.Card(1003, r).ID != 0 })
			for _, chat := range []int64{1002, 1003} {
				g.Bot.Until(t, "the reminder", func() bool { return said(g, chat, "Still waiting", short) })
			}
			for _, chat := range []int64{1002, 1003} {
				g.Bot.Until(t, "the end on the card", func() bool { return said(g, chat, end) })
			}
		}
		for task, read := range map[string]string{call: "Nobody decided on this call of Bash", question: "Nobody answered"} {
			g.Until("the end", func() bool { return g.Root(task).State.Ended() })
			if root := g.Root(task); root.State != orchestrator.Completed || !strings.Contains(root.Result.Text, read) {
				t.Errorf("it ended %s: %+v", root.State, root.Result)
			}
		}
		n.Stop()
	})
}

// TestAFloodIsADigest: of many requests in a minute a few come as cards and the rest as one
// message that lists them; it changes in place as they are decided.
func TestAFloodIsADigest(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, strings.Replace(placetest.GateTeam, ", chats: [-100123]", "", 1))
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		many := manyRequests(t)
		for i := range many {
			n.Send("coder", "app", fmt.Sprint("flood ", i))
		}
		var asked []approval.Request
		reach(g.Place, "requests", many, func() int {
			asked = all(g.Place, approval.Pending)
			return len(asked)
		})
		cards, lines := 0, 0
		g.Bot.Until(t, "every request somewhere", func() bool {
			cards, lines = 0, 0
			for _, m := range g.Bot.FromBot(1002) {
				if strings.Contains(m.Text, "Approval needed") {
					cards++
				}
				if strings.Contains(m.Text, "requests need you") {
					lines += strings.Count(m.Text, "◆") - 1
				}
			}
			return cards+lines >= many
		})
		t.Logf("%d requests: %d cards, %d lines of digests, %d messages", many, cards, lines, len(g.Bot.FromBot(1002)))
		if cards > 10 {
			t.Errorf("%d of %d requests came as cards of their own", cards, many)
		}
		for _, r := range asked {
			if code, err := n.Decide(r); err != nil || code != 200 {
				t.Fatalf("the yes: %d %v", code, err)
			}
		}
		g.Bot.Until(t, "the digest says that all are decided", func() bool {
			for _, m := range g.Bot.FromBot(1002) {
				if strings.Contains(m.Text, "◆") {
					return false
				}
			}
			return true
		})
		n.Stop()
	})
}
