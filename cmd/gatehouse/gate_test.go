package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
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
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// gateTeam is one agent that adds a file in every task, with cards in a group.
const gateTeam = `
engine: {workers: 2, lease: 2s}
repositories:
  app: {path: "REPO", branch: main}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -c, 'cat > "note-$GATEHOUSE_TASK_ID.txt"']
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// team is the group that gets the cards.
const team int64 = -100123

// gate is a place whose requests are shown on the web, in the chat and in Telegram.
type gate struct {
	*place
	bot      *bottest.Server
	accounts map[string]bottest.Account
}

// newGate makes the place; bob and cleo may approve, and both are linked.
func newGate(t *testing.T, database, text string) *gate {
	t.Helper()
	bot := bottest.New(t)
	g := &gate{bot: bot, accounts: map[string]bottest.Account{}}
	g.place = newPlace(t, database, strings.NewReplacer("TOKEN", bot.Token, "BOT_API", bot.URL).Replace(text))
	bot.AddChat(team, "supergroup", "Approvers")
	g.person("cleo", people.Approver)
	return g
}

// link links a person's account as people do: a code on the command line, sent to the bot.
func (g *gate) link(n *node, name string, account int64) {
	g.Helper()
	out, code := g.cli(n, "--config", g.config, "link", "telegram", name)
	if code != 0 {
		g.Fatalf("link: exit %d: %s", code, out)
	}
	secret := ""
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 1 {
			secret = f[0]
		}
	}
	g.accounts[name] = bottest.Account{ID: account, Username: name, Name: name}
	g.bot.AddChat(account, "private", name)
	g.bot.Say(account, g.accounts[name], "/start "+secret, 0)
	g.bot.Until(g, name+" is linked", func() bool {
		return len(g.bot.FromBot(account)) > 0 && strings.Contains(g.bot.Last(account).Text, name)
	})
}

// browser is a signed-in browser of a person without JavaScript.
func (n *node) browser(name string) *http.Client {
	n.Helper()
	u, err := n.store.UserByName(n.Context(), name)
	n.must(err)
	code, hash := signin.NewLinkCode()
	n.must(n.store.CreateSigninLink(n.Context(), "test", people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	jar, err := cookiejar.New(nil)
	n.must(err)
	c := &http.Client{Jar: jar}
	res, err := c.PostForm(n.url+"/login/link", url.Values{"code": {code}})
	n.must(err)
	n.must(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		n.Fatalf("signing in as %s: %s", name, res.Status)
	}
	return c
}

// page reads a page.
func (n *node) page(c *http.Client, path string) string {
	n.Helper()
	res, err := c.Get(n.url + path)
	n.must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	n.must(err)
	if res.StatusCode >= http.StatusInternalServerError {
		n.Errorf("%s: %s", path, res.Status)
	}
	return string(b)
}

// say posts a verdict by a plain form, with every tick; at is /approvals/ or /chat/approvals/.
func (n *node) say(c *http.Client, at string, r approval.Request, verdict, comment string) (int, string) {
	n.Helper()
	res, err := c.PostForm(n.url+at+r.ID+"/decision", url.Values{"verdict": {verdict}, "digest": {r.Revision.Digest}, "revision": {strconv.Itoa(r.Revision.N)},
		"comment": {comment}, "tick": append(approval.Ticks(r), approval.TickUnviewed)})
	n.must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	n.must(err)
	return res.StatusCode, string(b)
}

// card is the message of a chat that shows a revision, found by the beginning of its digest.
func (g *gate) card(chat int64, r approval.Request) bottest.Message {
	for _, m := range g.bot.FromBot(chat) {
		for _, text := range append(m.History, m.Text) {
			if m.Document == nil && strings.Contains(text, r.Revision.Digest[:8]) {
				return m
			}
		}
	}
	return bottest.Message{}
}

// shown waits until the group has the card of r, with something to press.
func (g *gate) shown(r approval.Request) bottest.Message {
	g.Helper()
	g.bot.Until(g, "the card of "+r.ID, func() bool { return len(g.card(team, r).Buttons) > 0 })
	return g.card(team, r)
}

// press presses a button as somebody and returns the answer that they get.
func (g *gate) press(m bottest.Message, button, name string) string {
	g.Helper()
	var query string
	g.bot.Until(g, "the button "+button, func() (there bool) { // Approve comes behind the file of a long diff
		q, err := g.bot.Press(team, m.ID, button, g.accounts[name])
		query = q
		return err == nil
	})
	return g.answer(query)
}

// answer waits for what the bot answers to a press.
func (g *gate) answer(query string) string {
	g.Helper()
	g.bot.Until(g, "the answer to a press", func() bool { return len(g.bot.Answers(query)) > 0 })
	return g.bot.Answers(query)[0].Text
}

// TestOneRequestInThreePlaces (K44): whoever decides first, and wherever, the other two cards say
// so within two seconds, and a further press anywhere is told who decided what.
func TestOneRequestInThreePlaces(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, database string) {
		g := newGate(t, database, gateTeam)
		n := g.start(g.config, "")
		g.link(n, "bob", 1002)
		g.link(n, "cleo", 1003)
		bob, cleo := n.browser("bob"), n.browser("cleo")
		read := map[string]string{"web": "not read here by bob", "chat": "read in the chat by bob: whole", "telegram": "read in Telegram by bob: whole"}
		for _, where := range []string{"web", "chat", "telegram"} {
			task := n.send("coder", "app", where)
			r := g.asked(task)
			m := g.shown(r)
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
				if code, _ := n.say(bob, "/approvals/", r, "approve", ""); code != http.StatusOK {
					t.Fatalf("approving on the web: %d", code)
				}
			case "chat":
				if code, body := n.say(bob, "/chat/approvals/", r, "approve", ""); code != http.StatusOK {
					t.Fatalf("approving in the chat: %d\n%s", code, body)
				}
			case "telegram":
				if said := g.press(m, "Approve", "bob"); !strings.Contains(said, "Approved") {
					t.Fatalf("the press is answered %q", said)
				}
			}
			decided := time.Now()
			g.bot.Until(t, "the card in the group", func() bool { return strings.Contains(g.card(team, r).Text, "bob "+placeWord(where)) })
			t.Logf("decided on %s, the card in the group took %s; the aim is 2 s", where, time.Since(decided))
			if m := g.card(team, r); strings.Contains(fmt.Sprint(m.Buttons), "Approve") {
				t.Errorf("%s: the card still has its buttons: %v", where, m.Buttons)
			}
			if page := n.page(cleo, "/approvals/"+r.ID); !strings.Contains(page, "bob") || strings.Contains(page, `name="verdict" value="approve"`) {
				t.Errorf("%s: the page does not say that bob decided", where)
			}
			if page := n.page(cleo, "/chat"); strings.Contains(page, `/chat/approvals/`+r.ID+`/decision`) {
				t.Errorf("%s: the chat still offers a verdict", where)
			}
			// Everybody who comes later is told who decided what.
			if said := g.answer(g.bot.PressData(team, m.ID, old, g.accounts["cleo"])); !strings.Contains(said, "Too late: bob approved") {
				t.Errorf("%s: a late press is answered %q", where, said)
			}
			if code, body := n.say(cleo, "/approvals/", r, "reject", "no"); code != http.StatusConflict || !strings.Contains(body, "bob approved this") {
				t.Errorf("%s: a late verdict on the web: %d", where, code)
			}
			if code, body := n.say(cleo, "/chat/approvals/", r, "reject", "no"); code != http.StatusConflict || !strings.Contains(body, "bob approved this") {
				t.Errorf("%s: a late verdict in the chat: %d", where, code)
			}
			g.until("the landing", func() bool { return g.root(task).State == orchestrator.Completed })
			g.landedOnce(task)
			g.bot.Until(t, "the commit on the card", func() bool { return strings.Contains(g.card(team, r).Text, "landed on main") })
			g.rowSays(n, r.ID, read[where], where == "web")
			after := g.requests(task, approval.Landed)
			if len(after) != 1 || len(after[0].Decisions) != 1 || after[0].Decisions[0].Channel != origin.Channel(where) || after[0].Decisions[0].User != "bob" {
				t.Errorf("%s: decisions %+v", where, after)
			}
		}
		n.stop()
	})
}

// rowSays looks at a request's row in every list: how it was read, and whether viewed:no finds it.
func (g *gate) rowSays(n *node, id, read string, unread bool) {
	g.Helper()
	ann := n.browser("ann")
	var list client.List[wire.Request]
	code, err := n.call(http.MethodGet, "/api/v1/approvals?state=landed", g.approver, nil, &list)
	if g.must(err); code != http.StatusOK || !slices.ContainsFunc(list.Items, func(r wire.Request) bool { return r.ID == id && r.Read.Text == read }) {
		g.Errorf("the API: %d, none of %d says %q", code, len(list.Items), read)
	}
	if out, _ := g.cli(n, "approvals", "--state", "landed"); !strings.Contains(out, read) {
		g.Errorf("the command line lacks %q:\n%s", read, out)
	}
	reads(g.T, n.page(n.browser("bob"), "/approvals?state=landed"), read)
	reads(g.T, n.page(ann, "/audit?filter="+url.QueryEscape("time:1d")), id, read)
	if found := strings.Contains(n.page(ann, "/audit?filter="+url.QueryEscape("viewed:no")), id); found != unread {
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
	places(t, func(t *testing.T, database string) {
		g := newGate(t, database, gateTeam)
		n := g.start(g.config, "")
		g.link(n, "bob", 1002)
		task := n.send("coder", "app", "kill")
		r := g.asked(task)
		g.shown(r)
		g.bot.Misbehave("editMessageText", bottest.Hang().Always())
		if code, err := n.decide(r); err != nil || code != http.StatusOK {
			t.Fatalf("the yes: %d, %v", code, err)
		}
		g.until("the edit that hangs", func() bool { return len(g.bot.Calls("editMessageText")) > 0 })
		n.kill()
		g.bot.Behave("editMessageText")
		if text := g.card(team, r).Text; !strings.Contains(text, "Approval needed") {
			t.Fatalf("the card was edited before the kill: %s", text)
		}
		n = g.start(g.config, "")
		g.until("the landing", func() bool { return g.root(task).State == orchestrator.Completed })
		g.landedOnce(task)
		g.bot.Until(t, "the card", func() bool { return strings.Contains(g.card(team, r).Text, "landed on main") })
		g.until("every card", func() bool {
			after := g.requests(task, approval.Landed)[0]
			for _, c := range after.Cards {
				if c.Shown != after.Version {
					return false
				}
			}
			return true
		})
		n.stop()
	})
}

// TestManyRequestsInThreePlaces: mixed verdicts on many requests from three places at
// once; each request has one decision and each yes one landing, and no answer is a 500.
func TestManyRequestsInThreePlaces(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, database string) {
		g := newGate(t, database, gateTeam)
		n := g.start(g.config, "")
		g.link(n, "bob", 1002)
		g.link(n, "cleo", 1003)
		many := manyRequests(t)
		bob, cleo := n.browser("bob"), n.browser("cleo")
		var asked []approval.Request
		for i := range many {
			n.send("coder", "app", fmt.Sprint("many ", i))
		}
		g.reach("requests", many, func() int {
			asked = g.all(approval.Pending)
			return len(asked)
		})
		// Most of them came as a digest; whoever wants a card of one asks for it.
		for _, r := range asked {
			g.bot.Say(1002, g.accounts["bob"], "/status "+r.ID, 0)
		}
		for _, r := range asked {
			g.bot.Until(t, "the card of "+r.ID, func() bool { return len(g.card(1002, r).Buttons) > 0 })
		}
		verdicts := []string{"approve", "reject"}
		var wg sync.WaitGroup
		wg.Go(func() {
			for i, r := range asked {
				if code, _ := n.say(cleo, "/approvals/", r, verdicts[i%2], "why"); code >= 500 {
					t.Errorf("the web answers %d", code)
				}
			}
		})
		wg.Go(func() {
			for i := range asked {
				r := asked[len(asked)-1-i]
				if code, _ := n.say(bob, "/chat/approvals/", r, verdicts[(i/2)%2], "why"); code >= 500 {
					t.Errorf("the chat answers %d", code)
				}
			}
		})
		wg.Go(func() {
			for i := range asked {
				r := asked[(i+many/2)%many]
				// The button may be gone already: somebody was faster.
				if query, err := g.bot.Press(1002, g.card(1002, r).ID, "Approve", g.accounts["bob"]); err == nil {
					g.bot.Until(t, "the answer to a press", func() bool { return len(g.bot.Answers(query)) > 0 })
				}
			}
		})
		wg.Wait()
		g.reach("ended requests", many, func() int { return len(g.all(approval.Landed)) + len(g.all(approval.Rejected)) })
		by := map[string]int{}
		for _, r := range append(g.all(approval.Landed), g.all(approval.Rejected)...) {
			if len(r.Decisions) != 1 {
				t.Errorf("%s has %d decisions: %+v", r.ID, len(r.Decisions), r.Decisions)
				continue
			}
			by[string(r.Decisions[0].Channel)]++
			if r.State == approval.Landed {
				g.landedBy(r.TaskID, r.Decisions[0].User)
			}
		}
		t.Logf("%d requests were decided by channel: %v", many, by)
		g.reach("requests whose cards agree", many, func() int {
			agree := 0
			for _, r := range append(g.all(approval.Landed), g.all(approval.Rejected)...) {
				if !slices.ContainsFunc(r.Cards, func(c approval.Card) bool { return c.Shown != r.Version }) {
					agree++
				}
			}
			return agree
		})
		n.stop()
	})
}

// reach waits until there are so many of something, for as long as there are ever more.
func (p *place) reach(what string, want int, have func() int) {
	p.Helper()
	for most := -1; most < want; {
		p.until(fmt.Sprintf("more than %d of %d %s", most, want, what), func() bool {
			n := have()
			more := n > most
			most = max(most, n)
			return more
		})
	}
}

// all reads every request in a state.
func (p *place) all(state approval.State) []approval.Request {
	p.Helper()
	var all []approval.Request
	f := approval.Filter{States: []approval.State{state}, Limit: 200}
	for {
		page, err := p.store.Gateway().Requests(p.Context(), f)
		p.must(err)
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
