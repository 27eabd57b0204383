package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// TestOneRequestInThreePlaces (K44): whoever decides first, and wherever, the other two cards say
// so within two seconds, and a further press anywhere is told who decided what.
func TestOneRequestInThreePlaces(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, placetest.GateTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		g.Link(n, "cleo", 1003)
		bob, cleo := n.Browser("bob"), n.Browser("cleo")
		read := map[string]string{"web": "not read here by bob", "chat": "read in the chat by bob: whole", "telegram": "read in Telegram by bob: whole"}
		for _, where := range []string{"web", "chat", "telegram"} {
			task := n.Send("coder", "app", where)
			r := g.Asked(task)
			m := g.Shown(r)
			var old string
			for _, row := range m.Buttons {
				for _, b := range row {
					if b.Text == "Approve" {
						old = b.Data
					}
				}
			}
			switch where {
			case "web":
				if code, _ := n.Say(bob, "/approvals/", r, "approve", ""); code != http.StatusOK {
					t.Fatalf("approving on the web: %d", code)
				}
			case "chat":
				if code, body := n.Say(bob, "/chat/approvals/", r, "approve", ""); code != http.StatusOK {
					t.Fatalf("approving in the chat: %d\n%s", code, body)
				}
			case "telegram":
				if said := g.Press(m, "Approve", "bob"); !strings.Contains(said, "Approved") {
					t.Fatalf("the press is answered %q", said)
				}
			}
			decided := time.Now()
			g.Bot.Until(t, "the card in the group", func() bool { return strings.Contains(g.Card(placetest.Team, r).Text, "bob "+placeWord(where)) })
			t.Logf("decided on %s, the card in the group took %s; the aim is 2 s", where, time.Since(decided))
			if m := g.Card(placetest.Team, r); strings.Contains(fmt.Sprint(m.Buttons), "Approve") {
				t.Errorf("%s: the card still has its buttons: %v", where, m.Buttons)
			}
			if page := n.Page(cleo, "/approvals/"+r.ID); !strings.Contains(page, "bob") || strings.Contains(page, `name="verdict" value="approve"`) {
				t.Errorf("%s: the page does not say that bob decided", where)
			}
			if page := n.Page(cleo, "/chat"); strings.Contains(page, `/chat/approvals/`+r.ID+`/decision`) {
				t.Errorf("%s: the chat still offers a verdict", where)
			}
			// Everybody who comes later is told who decided what.
			if said := g.Answer(g.Bot.PressData(placetest.Team, m.ID, old, g.Accounts["cleo"])); !strings.Contains(said, "Too late: bob approved") {
				t.Errorf("%s: a late press is answered %q", where, said)
			}
			if code, body := n.Say(cleo, "/approvals/", r, "reject", "no"); code != http.StatusConflict || !strings.Contains(body, "bob approved this") {
				t.Errorf("%s: a late verdict on the web: %d", where, code)
			}
			if code, body := n.Say(cleo, "/chat/approvals/", r, "reject", "no"); code != http.StatusConflict || !strings.Contains(body, "bob approved this") {
				t.Errorf("%s: a late verdict in the chat: %d", where, code)
			}
			g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
			g.LandedOnce(task)
			g.Bot.Until(t, "the commit on the card", func() bool { return strings.Contains(g.Card(placetest.Team, r).Text, "landed on main") })
			rowSays(g, n, r.ID, read[where], where == "web")
			after := g.Requests(task, approval.Landed)
			if len(after) != 1 || len(after[0].Decisions) != 1 || after[0].Decisions[0].Channel != origin.Channel(where) || after[0].Decisions[0].User != "bob" {
				t.Errorf("%s: decisions %+v", where, after)
			}
		}
		n.Stop()
	})
}

// rowSays looks at a request's row in every list: how it was read, and whether viewed:no finds it.
func rowSays(g *placetest.Gate, n *placetest.Node, id, read string, unread bool) {
	g.Helper()
	ann := n.Browser("ann")
	var list client.List[wire.Request]
	code, err := n.Call(http.MethodGet, "/api/v1/approvals?state=landed", g.Approver, nil, &list)
	if g.Must(err); code != http.StatusOK || !slices.ContainsFunc(list.Items, func(r wire.Request) bool { return r.ID == id && r.Read.Text == read }) {
		g.Errorf("the API: %d, none of %d says %q", code, len(list.Items), read)
	}
	if out, _ := g.Cli(n, "approvals", "--state", "landed"); !strings.Contains(out, read) {
		g.Errorf("the command line lacks %q:\n%s", read, out)
	}
	reads(g.T, n.Page(n.Browser("bob"), "/approvals?state=landed"), read)
	reads(g.T, n.Page(ann, "/audit?filter="+url.QueryEscape("time:1d")), id, read)
	if found := strings.Contains(n.Page(ann, "/audit?filter="+url.QueryEscape("viewed:no")), id); found != unread {
		g.Errorf("viewed:no finds it: %v, want %v", found, unread)
	}
}

func placeWord(channel string) string {
	return map[string]string{"web": "on the web", "chat": "in the chat", "telegram": "on Telegram"}[channel]
}

// TestCardsAgreeAfterAKill: killed between the decision and the edits, and started again,
// every card says what was decided.
func TestCardsAgreeAfterAKill(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, placetest.GateTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		task := n.Send("coder", "app", "kill")
		r := g.Asked(task)
		g.Shown(r)
		g.Bot.Misbehave("editMessageText", bottest.Hang().Always())
		if code, err := n.Decide(r); err != nil || code != http.StatusOK {
			t.Fatalf("the yes: %d, %v", code, err)
		}
		g.Until("the edit that hangs", func() bool { return len(g.Bot.Calls("editMessageText")) > 0 })
		n.Kill()
		g.Bot.Behave("editMessageText")
		if text := g.Card(placetest.Team, r).Text; !strings.Contains(text, "Approval needed") {
			t.Fatalf("the card was edited before the kill: %s", text)
		}
		n = g.Start(g.Config, "")
		g.Until("the landing", func() bool { return g.Root(task).State == orchestrator.Completed })
		g.LandedOnce(task)
		g.Bot.Until(t, "the card", func() bool { return strings.Contains(g.Card(placetest.Team, r).Text, "landed on main") })
		g.Until("every card", func() bool {
			after := g.Requests(task, approval.Landed)[0]
			for _, c := range after.Cards {
				if c.Shown != after.Version {
					return false
				}
			}
			return true
		})
		n.Stop()
	})
}

// TestManyRequestsInThreePlaces: mixed verdicts on many requests from three places at
// once; each request has one decision and each yes one landing, and no answer is a 500.
func TestManyRequestsInThreePlaces(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		g := placetest.NewGate(t, database, placetest.GateTeam)
		n := g.Start(g.Config, "")
		g.Link(n, "bob", 1002)
		g.Link(n, "cleo", 1003)
		many := manyRequests(t)
		bob, cleo := n.Browser("bob"), n.Browser("cleo")
		var asked []approval.Request
		for i := range many {
			n.Send("coder", "app", fmt.Sprint("many ", i))
		}
		reach(g.Place, "requests", many, func() int {
			asked = all(g.Place, approval.Pending)
			return len(asked)
		})
		// Most of them came as a digest; whoever wants a card of one asks for it.
		for _, r := range asked {
			g.Bot.Say(1002, g.Accounts["bob"], "/status "+r.ID, 0)
		}
		for _, r := range asked {
			g.Bot.Until(t, "the card of "+r.ID, func() bool { return len(g.Card(1002, r).Buttons) > 0 })
		}
		verdicts := []string{"approve", "reject"}
		var wg sync.WaitGroup
		wg.Go(func() {
			for i, r := range asked {
				if code, _ := n.Say(cleo, "/approvals/", r, verdicts[i%2], "why"); code >= 500 {
					t.Errorf("the web answers %d", code)
				}
			}
		})
		wg.Go(func() {
			for i := range asked {
				r := asked[len(asked)-1-i]
				if code, _ := n.Say(bob, "/chat/approvals/", r, verdicts[(i/2)%2], "why"); code >= 500 {
					t.Errorf("the chat answers %d", code)
				}
			}
		})
		wg.Go(func() {
			for i := range asked {
				r := asked[(i+many/2)%many]
				// The button may be gone already: somebody was faster.
				if query, err := g.Bot.Press(1002, g.Card(1002, r).ID, "Approve", g.Accounts["bob"]); err == nil {
					g.Bot.Until(t, "the answer to a press", func() bool { return len(g.Bot.Answers(query)) > 0 })
				}
			}
		})
		wg.Wait()
		reach(g.Place, "ended requests", many, func() int { return len(all(g.Place, approval.Landed)) + len(all(g.Place, approval.Rejected)) })
		by := map[string]int{}
		for _, r := range append(all(g.Place, approval.Landed), all(g.Place, approval.Rejected)...) {
			if len(r.Decisions) != 1 {
				t.Errorf("%s has %d decisions: %+v", r.ID, len(r.Decisions), r.Decisions)
				continue
			}
			by[string(r.Decisions[0].Channel)]++
			if r.State == approval.Landed {
				g.LandedBy(r.TaskID, r.Decisions[0].User)
			}
		}
		t.Logf("%d requests were decided by channel: %v", many, by)
		reach(g.Place, "requests whose cards agree", many, func() int {
			agree := 0
			for _, r := range append(all(g.Place, approval.Landed), all(g.Place, approval.Rejected)...) {
				if !slices.ContainsFunc(r.Cards, func(c approval.Card) bool { return c.Shown != r.Version }) {
					agree++
				}
			}
			return agree
		})
		n.Stop()
	})
}

// reach waits until there are so many of something, for as long as there are ever more.
func reach(p *placetest.Place, what string, want int, have func() int) {
	p.Helper()
	for most := -1; most < want; {
		p.Until(fmt.Sprintf("more than %d of %d %s", most, want, what), func() bool {
			n := have()
			more := n > most
			most = max(most, n)
			return more
		})
	}
}

// all reads every request in a state.
func all(p *placetest.Place, state approval.State) []approval.Request {
	p.Helper()
	var all []approval.Request
	f := approval.Filter{States: []approval.State{state}, Limit: 200}
	for {
		page, err := p.Store.Requests(p.Context(), f)
		p.Must(err)
		all = append(all, page.Items...)
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}

// manyRequests is how many requests the test of many asks: as many as the environment
// says, so that a thousand can be tried without every run paying for it.
func manyRequests(t *testing.T) int {
	t.Helper()
	text := os.Getenv("GATEHOUSE_TEST_MANY")
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
