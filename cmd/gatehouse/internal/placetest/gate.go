package placetest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/handlers/signin"
	"gatehouse/orchestrator/people"
)

// GateTeam is one agent that adds a file in every task, with cards in a group.
const GateTeam = `
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

// Team is the group that gets the cards.
const Team int64 = -100123

// Gate is a place whose requests are shown on the web, in the chat and in Telegram.
type Gate struct {
	*Place
	Bot      *bottest.Server
	Accounts map[string]bottest.Account
}

// NewGate makes the place; bob and cleo may approve, and both are linked.
func NewGate(t *testing.T, database, text string) *Gate {
	t.Helper()
	bot := bottest.New(t)
	g := &Gate{Bot: bot, Accounts: map[string]bottest.Account{}}
	g.Place = New(t, database, strings.NewReplacer("TOKEN", bot.Token, "BOT_API", bot.URL).Replace(text))
	bot.AddChat(Team, "supergroup", "Approvers")
	g.Person("cleo", people.Approver)
	return g
}

// Link links a person's account as people do: a code on the command line, sent to the bot.
func (g *Gate) Link(n *Node, name string, account int64) {
	g.Helper()
	out, code := g.Cli(n, "--config", g.Config, "link", "telegram", name)
	if code != 0 {
		g.Fatalf("link: exit %d: %s", code, out)
	}
	secret := ""
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 1 {
			secret = f[0]
		}
	}
	g.Accounts[name] = bottest.Account{ID: account, Username: name, Name: name}
	g.Bot.AddChat(account, "private", name)
	g.Bot.Say(account, g.Accounts[name], "/start "+secret, 0)
	g.Bot.Until(g, name+" is linked", func() bool {
		return len(g.Bot.FromBot(account)) > 0 && strings.Contains(g.Bot.Last(account).Text, name)
	})
}

// Browser is a signed-in browser of a person without JavaScript.
func (n *Node) Browser(name string) *http.Client {
	n.Helper()
	u, err := n.Store.UserByName(n.Context(), name)
	n.Must(err)
	code, hash := signin.NewLinkCode()
	n.Must(n.Store.CreateSigninLink(n.Context(), "test", people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: time.Now().Add(time.Minute)}))
	jar, err := cookiejar.New(nil)
	n.Must(err)
	c := &http.Client{Jar: jar}
	res, err := c.PostForm(n.URL+"/login/link", url.Values{"code": {code}})
	n.Must(err)
	n.Must(res.Body.Close())
	if res.StatusCode != http.StatusOK {
		n.Fatalf("signing in as %s: %s", name, res.Status)
	}
	return c
}

// Page reads a page.
func (n *Node) Page(c *http.Client, path string) string {
	n.Helper()
	res, err := c.Get(n.URL + path)
	n.Must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	n.Must(err)
	if res.StatusCode >= http.StatusInternalServerError {
		n.Errorf("%s: %s", path, res.Status)
	}
	return string(b)
}

// Say posts a verdict by a plain form, with every tick; at is /approvals/ or /chat/approvals/.
func (n *Node) Say(c *http.Client, at string, r approval.Request, verdict, comment string) (int, string) {
	n.Helper()
	return n.Post(c, at+r.ID+"/decision", url.Values{"verdict": {verdict}, "digest": {r.Revision.Digest}, "revision": {strconv.Itoa(r.Revision.N)},
		"comment": {comment}, "tick": append(approval.Ticks(r), approval.TickUnviewed)})
}

// Post sends a plain form and returns the page that the browser ends on.
func (n *Node) Post(c *http.Client, path string, form url.Values) (int, string) {
	n.Helper()
	res, err := c.PostForm(n.URL+path, form)
	n.Must(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	n.Must(err)
	return res.StatusCode, string(b)
}

// Card is the message of a chat that shows a revision, found by the beginning of its digest.
func (g *Gate) Card(chat int64, r approval.Request) bottest.Message {
	for _, m := range g.Bot.FromBot(chat) {
		for _, text := range append(m.History, m.Text) {
			if m.Document == nil && strings.Contains(text, r.Revision.Digest[:8]) {
				return m
			}
		}
	}
	return bottest.Message{}
}

// Shown waits until the group has the card of r, with something to press.
func (g *Gate) Shown(r approval.Request) bottest.Message {
	g.Helper()
	g.Bot.Until(g, "the card of "+r.ID, func() bool { return len(g.Card(Team, r).Buttons) > 0 })
	return g.Card(Team, r)
}

// Press presses a button as somebody and returns the answer that they get.
func (g *Gate) Press(m bottest.Message, button, name string) string {
	g.Helper()
	var query string
	g.Bot.Until(g, "the button "+button, func() (there bool) { // Approve comes behind the file of a long diff
		q, err := g.Bot.Press(Team, m.ID, button, g.Accounts[name])
		query = q
		return err == nil
	})
	return g.Answer(query)
}

// Answer waits for what the bot answers to a press.
func (g *Gate) Answer(query string) string {
	g.Helper()
	g.Bot.Until(g, "the answer to a press", func() bool { return len(g.Bot.Answers(query)) > 0 })
	return g.Bot.Answers(query)[0].Text
}
