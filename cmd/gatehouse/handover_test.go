package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/record/event"
)

// handoverTeam is kik, who hands everything to coder and answers with what came of it,
// and coder, before whom a person is asked. coder leaves a line outside for each run.
const handoverTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  kik:
    kind: command
    sandbox: off
    command: [sh, -c, 'gatehouse delegate coder "$(cat)" 2>&1 || echo "went on after $?"']
  coder:
    kind: command
    ask_first: true
    sandbox: off
    command: [sh, -c, 'echo "$GATEHOUSE_DELEGATION_ID" >> "DIR/ran"; echo "done as asked"']
approval:
  handovers:
    - {name: never, when: 'text contains "forbidden"', deny: true}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// ran counts coder's runs.
func (p *place) ran() int {
	b, err := os.ReadFile(p.dir + "/ran")
	if err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// H18, K44: kik's hand-over waits for a person; a yes on Telegram lets coder work, a no on
// the web is read by kik, which goes on, and a rule refuses without asking.
func TestAHandoverIsAskedAboutInThreePlaces(t *testing.T) {
	t.Parallel()
	anyPlace(t, func(t *testing.T, database string) {
		g := newGate(t, database, handoverTeam)
		n := g.start(g.config, "")
		g.link(n, "bob", 1002)
		cleo := n.browser("cleo")

		task := n.send("kik", "app", "deploy")
		r := g.asked(task)
		m := g.shown(r)
		if !strings.Contains(m.Text, "Approve handoff to coder? Context: Do deploy") || g.ran() != 0 {
			t.Fatalf("%d runs; the card says\n%s", g.ran(), m.Text)
		}
		page := n.page(cleo, "/approvals/"+r.ID)
		for _, part := range []string{"Approve handoff to coder? Context: Do deploy", "What coder would be given", `name="verdict" value="approve"`, `name="verdict" value="reject"`} {
			if !strings.Contains(page, part) {
				t.Errorf("the page lacks %q", part)
			}
		}
		if strings.Contains(page, "request_changes") || strings.Contains(page, "Files") {
			t.Error("the page offers what only a patch has")
		}
		for _, at := range []string{"/", "/approvals", "/chat"} {
			if !strings.Contains(n.page(cleo, at), "kik asks before coder works") {
				t.Errorf("%s does not show the question", at)
			}
		}
		if out, code := g.cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "kik asks coder:\n  │ Do deploy") || !strings.Contains(out, "handoff to coder?") || !strings.Contains(out, "  hand-over to coder  ") {
			t.Errorf("review: exit %d\n%s", code, out)
		}
		if said := g.press(m, "Approve", "bob"); said != "Approved. The work is handed to coder." {
			t.Fatalf("the press is answered %q", said)
		}
		g.until("the end", func() bool { return g.root(task).State == orchestrator.Completed })
		if d := g.root(task); d.Result == nil || strings.TrimSpace(d.Result.Text) != "done as asked" || g.ran() != 1 {
			t.Errorf("kik answered %+v after %d runs of coder", d.Result, g.ran())
		}
		g.bot.Until(t, "the card's end", func() bool { return strings.Contains(g.card(team, r).Text, "Approved · handed to coder") })

		task = n.send("kik", "app", "drop")
		r = g.asked(task)
		g.shown(r)
		if code, _ := n.say(cleo, "/approvals/", r, "request_changes", "other words"); code != http.StatusBadRequest {
			t.Errorf("asking for changes of a question: %d", code)
		}
		if code, body := n.say(cleo, "/approvals/", r, "reject", "Not today."); code != http.StatusOK || !strings.Contains(body, "coder was not asked to work") {
			t.Errorf("the no: %d\n%s", code, body)
		}
		g.until("the end", func() bool { return g.root(task).State == orchestrator.Completed })
		if d := g.root(task); !strings.Contains(d.Result.Text, "human_refused: ") || !strings.Contains(d.Result.Text, "Not today.") || !strings.Contains(d.Result.Text, "went on after 1") {
			t.Errorf("kik answered %q", d.Result.Text)
		}
		if out, _ := g.cli(n, "reject", r.ID, "--reason", "again"); !strings.Contains(out, "cleo rejected this") {
			t.Errorf("a late no is told %q", out)
		}
		g.bot.Until(t, "the card's end", func() bool { return strings.Contains(g.card(team, r).Text, "Rejected · not handed to coder") })

		task = n.send("kik", "app", "forbidden things")
		g.until("the end", func() bool { return g.root(task).State == orchestrator.Completed })
		if d := g.root(task); !strings.Contains(d.Result.Text, `human_refused: The rule "never"`) || len(g.requests(task)) != 0 || g.ran() != 1 {
			t.Errorf("kik answered %q after %d runs of coder", d.Result.Text, g.ran())
		}
		n.stop()
	})
}

// A node that is killed right after the yes was stored leaves nothing to mend: the next
// one runs coder, and kik, which starts again, is given the same child.
func TestAYesToAHandoverSurvivesAKill(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, database string) {
		g := newGate(t, database, handoverTeam)
		n := g.start(g.config, "handed on#1")
		task := n.send("kik", "app", "kill")
		r := g.asked(task)
		n.decide(r) //nolint:errcheck // the process dies before it answers
		n.died()
		if after := g.requests(task, approval.Approved); len(after) != 1 {
			t.Fatalf("%d requests are approved", len(after))
		}
		n = g.start(g.config, "")
		g.until("the end", func() bool { return g.root(task).State == orchestrator.Completed })
		tree, err := g.store.Tree(t.Context(), task)
		g.must(err)
		if all := g.requests(task); len(all) != 1 || len(tree) != 2 || g.ran() < 1 || count(g.events(task), event.Requested, "") != 1 {
			t.Errorf("%d requests, %d delegations, %d runs of coder", len(all), len(tree), g.ran())
		}
		n.stop()
	})
}
