package main

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// manyAgents ask at the same time; manyGroups of two people each decide on what they ask, so
// that each has a chat of its own with the bot.
const manyAgents, manyGroups = 50, 8

// manyScript is an agent that makes one call after the other and notes each that it was allowed.
const manyScript = `
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
number() { rest=${line#*'"id":'}; id=${rest%%,*}; }
next() {
	if [ $call -eq EACH ]; then reply "$prompt" '{"stopReason":"end_turn"}'; return; fi
	call=$((call+1))
	printf '{"jsonrpc":"2.0","id":9%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"t","kind":"execute","rawInput":{"command":"make %s-%d"}},"options":[{"optionId":"ever","kind":"allow_always","name":"a"},{"optionId":"once","kind":"allow_once","name":"o"},{"optionId":"no","kind":"reject_once","name":"n"}]}}\n' $call "$NUMBER" $call
}
call=0
while read -r line; do
	case "$line" in
	*'"method":"initialize"'*) number; reply "$id" '{"protocolVersion":1,"agentCapabilities":{}}' ;;
	*'"method":"session/new"'*) number; reply "$id" '{"sessionId":"s"}' ;;
	*'"method":"session/prompt"'*) number
		if [ $call -gt 0 ]; then reply "$id" '{"stopReason":"end_turn"}'; continue; fi
		prompt=$id; next ;;
	*'"optionId":"once"'*) echo "make $NUMBER-$call" >> DIR/ran; next ;;
	*'"id":9'*) next ;;
	esac
done
`

// manyTeam is the configuration of fifty agents.
func manyTeam() string {
	var b strings.Builder
	b.WriteString("engine: {workers: 8, lease: 1m}\nchannels:\n  telegram: {token: \"TOKEN\", api_url: \"BOT_API\"}\ngroups:\n")
	for i := range manyGroups {
		fmt.Fprintf(&b, "  g%d: [p%d, q%d]\n", i, i, i)
	}
	b.WriteString("approval:\n  actions:\n")
	for i := range manyGroups {
		fmt.Fprintf(&b, "    - {name: r%d, when: \"agent matches '^a[0-9]*x%d$'\", need: 1, from: [g%d]}\n", i, i, i)
	}
	b.WriteString("agents:\n")
	for i := range manyAgents {
		fmt.Fprintf(&b, "  a%dx%d: {kind: command, protocol: acp, sandbox: off, env: {NUMBER: \"%d\"}, command: [sh, DIR/agent.sh]}\n", i, i%manyGroups, i)
	}
	return b.String()
}

// crowd is many people who decide at once, on all channels.
type crowd struct {
	*placetest.Gate
	nodes    []*placetest.Node
	tokens   map[string]string
	browsers map[string]*http.Client
	tapped   map[string]*atomic.Int64 // by group
}

// decide lets two people decide on a request at the same time, in two places, one of them twice.
func (c *crowd) decide(r approval.Request, i int) {
	g := strings.TrimPrefix(r.Rule.From[0], "g")
	p, q, n, m := "p"+g, "q"+g, c.nodes[i%len(c.nodes)], c.nodes[(i+1)%len(c.nodes)]
	api := func(n *placetest.Node, who, verdict string) func() {
		return func() {
			code, err := n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", c.tokens[who], map[string]any{"verdict": verdict, "digest": r.Revision.Digest}, nil)
			if err != nil || code != http.StatusOK && code != http.StatusConflict {
				c.Errorf("%s of %s: %d, %v", verdict, who, code, err)
			}
		}
	}
	var all []func()
	patience := 500 * time.Millisecond
	if first := c.tapped[g].Add(1) == 1; first { // before the bot makes a list of them
		i, patience = 2, 20*time.Second
	}
	switch i % 3 {
	case 0:
		all = []func(){api(n, p, "approve"), api(m, q, "reject"), api(m, p, "approve")}
	case 1:
		form := func() { n.Say(c.browsers[n.URL+p], "/chat/approvals/", r, "approve", "") }
		all = []func(){form, api(m, q, "reject"), form}
	case 2:
		all = []func(){c.tap(r, p, patience), c.tap(r, q, patience)}
	}
	var wg sync.WaitGroup
	for _, f := range all {
		wg.Go(f)
	}
	wg.Wait()
	if i%3 == 2 {
		c.settle(r, api(n, q, "reject"))
	}
}

// tap presses Approve twice on the card that somebody has in their chat, where it comes soon:
// who has many gets a list of the others.
func (c *crowd) tap(r approval.Request, who string, patience time.Duration) func() {
	return func() {
		for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
			if card := c.Card(c.Accounts[who].ID, r); len(card.Buttons) > 0 {
				for range 2 {
					_, _ = c.Bot.Press(c.Accounts[who].ID, card.ID, "Approve", c.Accounts[who]) // it may be gone
				}
				return
			}
		}
	}
}

// settle waits until a tap has counted, or decides otherwise.
func (c *crowd) settle(r approval.Request, otherwise func()) {
	for range 20 {
		now, err := c.Store.Request(c.Context(), r.ID)
		if err != nil || now.State != approval.Pending {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	otherwise()
}

// decideAll decides on whatever the tasks ask until they have ended.
func (c *crowd) decideAll(tasks []string, most int) {
	seen, work := map[string]bool{}, make(chan approval.Request, most)
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			for r := range work {
				c.decide(r, int(r.ID[len(r.ID)-1])) // any letter will do to choose by
			}
		})
	}
	live := tasks
	for deadline := time.Now().Add(10 * time.Minute); len(live) > 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		page, err := c.Store.Requests(c.Context(), approval.Filter{States: []approval.State{approval.Pending}, Limit: 100})
		c.Must(err)
		for _, r := range page.Items {
			if !seen[r.ID] {
				seen[r.ID] = true
				work <- r
			}
		}
		if len(page.Items) == 0 {
			live = slices.DeleteFunc(slices.Clone(live), func(id string) bool { return c.Root(id).State.Ended() })
		}
	}
	close(work)
	wg.Wait()
	for _, id := range live {
		c.Errorf("the task %s has not ended: it is %s", id, c.Root(id).State)
	}
}

// manyActions is a story of 50 agents that make so many calls each, on which people decide at
// once on three channels, of which one misbehaves: each call has one decision, and runs once
// where that was a yes.
func manyActions(t *testing.T, database string, each int) {
	g := placetest.NewGate(t, database, manyTeam())
	script := strings.NewReplacer("DIR", g.Dir, "EACH", fmt.Sprint(each)).Replace(manyScript)
	g.Must(os.WriteFile(filepath.Join(g.Dir, "agent.sh"), []byte(script), 0o600))
	c := &crowd{Gate: g, tokens: map[string]string{}, browsers: map[string]*http.Client{}, tapped: map[string]*atomic.Int64{}}
	for i := range manyGroups {
		c.tapped[fmt.Sprint(i)] = new(atomic.Int64)
		for _, name := range []string{fmt.Sprint("p", i), fmt.Sprint("q", i)} {
			c.tokens[name] = g.Person(name, people.Approver)
		}
	}
	c.nodes = []*placetest.Node{g.Start(g.Config, "")}
	if strings.HasPrefix(database, "postgres") {
		text, _ := g.Configure("two", strings.NewReplacer("TOKEN", g.Bot.Token, "BOT_API", g.Bot.URL).Replace(manyTeam()))
		c.nodes = append(c.nodes, g.Start(text, ""))
	}
	account := int64(5000)
	for name := range c.tokens {
		account++
		g.Link(c.nodes[0], name, account)
		for _, n := range c.nodes {
			c.browsers[n.URL+name] = n.Browser(name)
		}
	}
	g.Bot.DuplicateUpdates(true)
	g.Bot.ReorderUpdates(true)
	g.Bot.Misbehave("sendMessage", bottest.TooMany(1), bottest.CutConnection().After(), bottest.ServerError())
	g.Bot.Misbehave("editMessageText", bottest.CutConnection().After(), bottest.TooMany(1), bottest.BrokenJSON())
	g.Bot.Misbehave("answerCallbackQuery", bottest.CutConnection().After(), bottest.ServerError())
	began := time.Now()
	var tasks []string
	for i := range manyAgents {
		tasks = append(tasks, c.nodes[i%len(c.nodes)].Send(fmt.Sprintf("a%dx%d", i, i%manyGroups), "", fmt.Sprint("work ", i)))
	}
	c.decideAll(tasks, 10*manyAgents*each)
	t.Logf("%d calls in %s", manyAgents*each, time.Since(began))
	c.once(tasks, each)
}

// once checks that each request was decided once, and each call made once for its yes. Where an
// attempt was lost, what it may have made is asked again.
func (c *crowd) once(tasks []string, each int) {
	c.Helper()
	ran, allowed, by := map[string]int{}, map[string]int{}, map[origin.Channel]int{}
	text, err := os.ReadFile(filepath.Join(c.Dir, "ran"))
	c.Must(err)
	for line := range strings.Lines(string(text)) {
		ran[strings.TrimSpace(line)]++
	}
	lost := 0
	for _, id := range tasks {
		root, all := c.Root(id), c.Requests(id)
		if root.State != orchestrator.Completed {
			c.Errorf("a task is %s: %v", root.State, root.Error)
		}
		if n := placetest.Count(c.Events(id), event.Decided, ""); n != len(all) || n < each || root.Attempt == 1 && n != each {
			c.Errorf("%d requests and %d decisions in the history, want %d", len(all), n, each)
		}
		for _, r := range all {
			if len(r.Decisions) != 1 {
				c.Errorf("%s has %d decisions", r.Title, len(r.Decisions))
				continue
			}
			by[r.Decisions[0].Channel]++
			if r.State == approval.Approved {
				allowed[r.Call().Command()]++
			}
		}
		if root.Attempt > 1 {
			lost++
			for _, r := range all {
				command := r.Call().Command()
				if ran[command] > allowed[command] {
					c.Errorf("%s was allowed %d times and made %d times", command, allowed[command], ran[command])
				}
				delete(ran, command)
				delete(allowed, command)
			}
		}
	}
	if !maps.Equal(ran, allowed) {
		c.Errorf("allowed were %v, and made were %v", allowed, ran)
	}
	c.Logf("%d were approved; decided by channel: %v; %d attempts were lost", len(allowed), by, lost)
	if by["api"] == 0 || by["chat"] == 0 || by["telegram"] == 0 || len(allowed) == 0 {
		c.Errorf("a channel decided nothing, or nothing was approved: %v, %d approved", by, len(allowed))
	}
}

// Of 200 calls of 50 agents each has one decision, whoever decides where at the same time, and
// each that was approved is made once. make kill has 1,000.
func TestManyCallsAreDecidedOnce(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) { manyActions(t, database, 4) })
}
