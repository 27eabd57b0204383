//go:build kills

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram/bottest"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store/storetest"
	"gatehouse/web/wire"
)

// killsTeam is a mixed load on one repository: work without a change, changes that never
// meet, changes of one line that always meet, work that is handed on, and a model. The
// checks take a while, so that kills meet them.
const killsTeam = `
engine: {workers: 4, lease: 2s, max_attempts: 100}
repositories:
  app: {path: "REPO", branch: main, checks: ["sleep 0.2"]}
providers:
  local: {base_url: "BASE"}
approval:
  rules:
    - {name: pair, when: "agent == 'pairer'", need: 2}
    - {name: rest, when: "true", need: 1}
agents:
  clerk: {kind: command, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'sleep 0.2; echo done']}
  writer: {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'sleep 0.2; echo hello > "$GATEHOUSE_TASK_ID"']}
  pairer: {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'sleep 0.2; echo hello > "$GATEHOUSE_TASK_ID"']}
  clasher: {kind: command, repository: app, sandbox: off, env: {PLACE: MARK}, command: [sh, -c, 'sleep 0.2; echo "$GATEHOUSE_TASK_ID" > shared.txt']}
  boss:
    kind: workflow
    steps: [{id: change, agent: writer, task: "{{.Task}}"}, {id: look, agent: clerk, task: "Look at it"}]
  thinker: {kind: llm, model: local/one, delegates_to: [clerk]}
channels:
  telegram: {token: "TOKEN", api_url: "BOT_API", chats: [-100123]}
`

// killsLoad is which agents are sent to, each as often as it stands here.
var killsLoad = []string{"writer", "writer", "writer", "pairer", "clasher", "boss", "boss", "clerk", "thinker"}

// campaign kills the processes of two nodes on one database while people send and decide.
type campaign struct {
	*placetest.Gate
	dice  *rand.Rand // of the killer's goroutine alone
	seed  uint64
	fake  *modeltest.Server
	votes map[string]string // tokens of those who decide

	mu    sync.Mutex
	nodes [2]*placetest.Node // nil while it is down
	sent  []string           // ids of tasks
	told  map[string]string  // by task: what a person said to its agent while it worked
	yeses map[string]int
}

// number reads a whole number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestACampaignOfKills: two nodes, kill -9 of either at random moments under a mixed
// load. When it is over every task has ended, git and the requests name the same merges,
// nobody decided twice, models were told once what people said, and no card still asks. GATEHOUSE_KILLS is how many,
// GATEHOUSE_KILL_SEED which ones.
func TestACampaignOfKills(t *testing.T) {
	kills := int(number(t, "GATEHOUSE_KILLS", 50))
	c := newCampaign(t, number(t, "GATEHOUSE_KILL_SEED", rand.Uint64()>>32))
	t.Logf("seed %d, %d kills", c.seed, kills)
	for i := range c.nodes {
		c.up(i)
	}
	load, over := context.WithCancel(t.Context())
	deciding, decided := context.WithCancel(t.Context())
	var sending, voting sync.WaitGroup
	defer func() { over(); decided(); sending.Wait(); voting.Wait() }()
	sending.Go(func() { c.send(load, rand.New(rand.NewPCG(c.seed, 1))) })
	turn := uint64(2)
	for name, token := range c.votes {
		turn++
		dice := rand.New(rand.NewPCG(c.seed, turn))
		voting.Go(func() { c.decide(deciding, name, token, dice) })
	}
	for k := range kills {
		time.Sleep(time.Duration(100+c.dice.IntN(2500)) * time.Millisecond)
		i := c.dice.IntN(2)
		c.strike(i)
		t.Logf("kill %d of %d: node %d", k+1, kills, i+1)
		time.Sleep(time.Duration(c.dice.IntN(1500)) * time.Millisecond)
		c.up(i)
	}
	over()
	sending.Wait()
	c.heals()
	decided()
	voting.Wait()
	c.check()
}

func newCampaign(t *testing.T, seed uint64) *campaign {
	t.Helper()
	c := &campaign{seed: seed, dice: rand.New(rand.NewPCG(seed, 0)), yeses: map[string]int{}, told: map[string]string{}}
	c.fake = modeltest.Start(func(a modeltest.Ask) modeltest.Answer {
		if a.Turn == 1 {
			return modeltest.Use("delegate_to_agent", map[string]any{"agent": "clerk", "task": "Look"})
		}
		return modeltest.Say("all answered")
	})
	t.Cleanup(c.fake.Close)
	bot := bottest.New(t)
	c.Gate = &placetest.Gate{Bot: bot, Accounts: map[string]bottest.Account{}}
	text := strings.NewReplacer("TOKEN", bot.Token, "BOT_API", bot.URL, "BASE", c.fake.OpenAI()).Replace(killsTeam)
	c.Place = placetest.New(t, storetest.Postgres(t), text)
	c.Configure("two", text)
	bot.AddChat(placetest.Team, "supergroup", "Approvers")
	c.votes = map[string]string{"bob": c.Approver, "cleo": c.Person("cleo", people.Approver)}
	return c
}

// up starts a node.
func (c *campaign) up(i int) {
	c.Helper()
	n := c.Start(filepath.Join(c.Dir, []string{"one", "two"}[i]+".yaml"), "")
	n.HTTP = &http.Client{Timeout: 10 * time.Second}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = n
}

// strike kills a node.
func (c *campaign) strike(i int) {
	c.Helper()
	c.mu.Lock()
	n := c.nodes[i]
	c.nodes[i] = nil
	c.mu.Unlock()
	if err := n.Cmd.Process.Kill(); err != nil {
		<-n.Ended
		c.Errorf("a node ended by itself, %v: %v", n.Cmd.ProcessState, err)
		return
	}
	<-n.Ended
}

// any is a node that should be up.
func (c *campaign) any(dice *rand.Rand) *placetest.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := dice.IntN(2)
	if c.nodes[i] == nil {
		i = 1 - i
	}
	return c.nodes[i]
}

// send sends tasks until ctx ends, each until a node has taken it.
func (c *campaign) send(ctx context.Context, dice *rand.Rand) {
	for k := 0; ctx.Err() == nil; k++ {
		name := killsLoad[dice.IntN(len(killsLoad))]
		repository := "app"
		if name == "clerk" || name == "thinker" {
			repository = ""
		}
		for ctx.Err() == nil {
			n := c.any(dice)
			if n == nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			s, err := n.Submit(name, repository, fmt.Sprintf("%d", k))
			if err == nil {
				c.mu.Lock()
				c.sent = append(c.sent, s.ID)
				c.mu.Unlock()
				if name == "thinker" {
					c.tell(ctx, dice, s, fmt.Sprintf("mind step %d.", k))
				}
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Duration(200+dice.IntN(900)) * time.Millisecond)
	}
}

// tell says something to the agent of a task, until a node has taken it or it is too late.
func (c *campaign) tell(ctx context.Context, dice *rand.Rand, s wire.Submitted, text string) {
	for ctx.Err() == nil {
		if n := c.any(dice); n != nil {
			status, err := n.Call(http.MethodPost, "/api/v1/delegations/"+s.DelegationID+"/messages", c.Asker, wire.Words{Text: text, Key: text}, nil)
			if err == nil && status < http.StatusInternalServerError {
				if status == http.StatusAccepted {
					c.mu.Lock()
					c.told[s.ID] = text
					c.mu.Unlock()
				}
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// decide gives somebody's verdicts to what is asked, as fast as they can and on either
// node, until ctx ends. What got no answer is said again, as people do.
func (c *campaign) decide(ctx context.Context, who, token string, dice *rand.Rand) {
	for ctx.Err() == nil {
		page, err := c.Store.Requests(ctx, approval.Filter{States: []approval.State{approval.Pending}, Oldest: true})
		if err != nil || len(page.Items) == 0 {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		r := page.Items[dice.IntN(len(page.Items))]
		body := map[string]any{"verdict": "approve", "digest": r.Revision.Digest, "revision": r.Revision.N, "ticked": approval.Ticks(r)}
		switch dice.IntN(12) {
		case 0:
			body["verdict"], body["comment"] = "request_changes", "Again, please."
		case 1:
			body["verdict"], body["comment"] = "reject", "No."
		}
		for range 3 {
			n := c.any(dice)
			if n == nil {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			status, err := n.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", token, body, nil)
			if err == nil && status < http.StatusInternalServerError {
				if status == http.StatusOK {
					c.mu.Lock()
					c.yeses[who]++
					c.mu.Unlock()
				}
				break
			}
		}
		time.Sleep(time.Duration(dice.IntN(150)) * time.Millisecond)
	}
}

// TestAThousandCalls is the story of 50 agents that make 20 calls each, on both databases.
func TestAThousandCalls(t *testing.T) {
	placetest.Places(t, func(t *testing.T, database string) { manyActions(t, database, 20) })
}
