package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
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
func ran(p *placetest.Place) int {
	b, err := os.ReadFile(p.Dir + "/ran")
	if err != nil && !os.IsNotExist(err) {
		p.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// H18, K44: kik's hand-over waits for a person; a yes on Telegram lets coder work, a no on
// the web is read by kik, which goes on, and a rule refuses without asking.
func TestAHandoverIsAskedAboutInThreePlaces(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, handoverTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		cleo := n.Browser("cleo")

		task := n.Send("kik", "app", "deploy")
		r := g.Asked(task)
		m := g.Shown(r)
		if !strings.Contains(m.Text, "Approve handoff to coder? Context: Do deploy") || ran(g.Place) != 0 {
			t.Fatalf("%d runs; the card says\n%s", ran(g.Place), m.Text)
		}
		page := n.Page(cleo, "/approvals/"+r.ID)
		for _, part := range []string{"Approve handoff to coder? Context: Do deploy", "What coder would be given", `name="verdict" value="approve"`, `name="verdict" value="reject"`} {
			if !strings.Contains(page, part) {
				t.Errorf("the page lacks %q", part)
			}
		}
		if strings.Contains(page, "request_changes") || strings.Contains(page, "Files") {
			t.Error("the page offers what only a patch has")
		}
		for _, at := range []string{"/", "/approvals", "/chat"} {
			if !strings.Contains(n.Page(cleo, at), "kik asks before coder works") {
				t.Errorf("%s does not show the question", at)
			}
		}
		if out, code := g.Cli(n, "review", r.ID); code != 0 || !strings.Contains(out, "kik asks coder:\n  │ Do deploy") || !strings.Contains(out, "handoff to coder?") || !strings.Contains(out, "  hand-over to coder  ") {
			t.Errorf("review: exit %d\n%s", code, out)
		}
		if said := g.Press(m, "Approve", "bob"); said != "Approved. The work is handed to coder." {
			t.Fatalf("the press is answered %q", said)
		}
		g.Until("the end", func() bool { return g.Root(task).State == orchestrator.Completed })
		if d := g.Root(task); d.Result == nil || strings.TrimSpace(d.Result.Text) != "done as asked" || ran(g.Place) != 1 {
			t.Errorf("kik answered %+v after %d runs of coder", d.Result, ran(g.Place))
		}
		g.Bot.Until(t, "the card's end", func() bool { return strings.Contains(g.Card(placetest.Team, r).Text, "Approved · handed to coder") })

		task = n.Send("kik", "app", "drop")
		r = g.Asked(task)
		g.Shown(r)
		if code, _ := n.Say(cleo, "/approvals/", r, "request_changes", "other words"); code != http.StatusBadRequest {
			t.Errorf("asking for changes of a question: %d", code)
		}
		if code, body := n.Say(cleo, "/approvals/", r, "reject", "Not today."); code != http.StatusOK || !strings.Contains(body, "coder was not asked to work") {
			t.Errorf("the no: %d\n%s", code, body)
		}
		g.Until("the end", func() bool { return g.Root(task).State == orchestrator.Completed })
		if d := g.Root(task); !strings.Contains(d.Result.Text, "human_refused: ") || !strings.Contains(d.Result.Text, "Not today.") || !strings.Contains(d.Result.Text, "went on after 1") {
			t.Errorf("kik answered %q", d.Result.Text)
		}
		if out, _ := g.Cli(n, "reject", r.ID, "--reason", "again"); !strings.Contains(out, "cleo rejected this") {
			t.Errorf("a late no is told %q", out)
		}
		g.Bot.Until(t, "the card's end", func() bool {
			return strings.Contains(g.Card(placetest.Team, r).Text, "Rejected · not handed to coder")
		})

		task = n.Send("kik", "app", "forbidden things")
		g.Until("the end", func() bool { return g.Root(task).State == orchestrator.Completed })
		if d := g.Root(task); !strings.Contains(d.Result.Text, `human_refused: The rule "never"`) || len(g.Requests(task)) != 0 || ran(g.Place) != 1 {
			t.Errorf("kik answered %q after %d runs of coder", d.Result.Text, ran(g.Place))
		}
		n.Stop()
	})
}

// A node that is killed right after the yes was stored leaves nothing to mend: the next
// one runs coder, and kik, which starts again, is given the same child.
func TestAYesToAHandoverSurvivesAKill(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, handoverTeam)
		n := g.Start(g.Config, "handed on#1")
		task := n.Send("kik", "app", "kill")
		r := g.Asked(task)
		n.Decide(r) //nolint:errcheck // the process dies before it answers
		n.Died()
		if after := g.Requests(task, approval.Approved); len(after) != 1 {
			t.Fatalf("%d requests are approved", len(after))
		}
		n = g.Start(g.Config, "")
		g.Until("the end", func() bool { return g.Root(task).State == orchestrator.Completed })
		tree, err := g.Store.Tree(t.Context(), task)
		g.Must(err)
		if all := g.Requests(task); len(all) != 1 || len(tree) != 2 || ran(g.Place) < 1 || placetest.Count(g.Events(task), event.Requested, "") != 1 {
			t.Errorf("%d requests, %d delegations, %d runs of coder", len(all), len(tree), ran(g.Place))
		}
		n.Stop()
	})
}
