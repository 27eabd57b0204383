package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/budget"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// SendCmd makes a task.
type SendCmd struct {
	Agent      string   `arg:"" help:"The agent that gets the task."`
	Text       []string `arg:"" optional:"" help:"What is to be done; - reads it from standard input."`
	Repo       string   `help:"The repository to work on." placeholder:"NAME"`
	Ref        string   `help:"The branch to start from and land on, or a tag to read, by name." placeholder:"REF"`
	Key        string   `help:"A key of your own: the same key again gives the first task." placeholder:"KEY"`
	Capability string   `help:"The agent must have this capability." placeholder:"CAP"`
	Complexity string   `help:"simple, medium, complex, or auto, which guesses." placeholder:"TIER"`
	Budget     string   `help:"What it may use at most: tokens=20000,usd=0.5,handoffs=2,agents=3,time=10m." placeholder:"LIMITS"`
	Follow     string   `help:"Go on with the thread of this task of yours: its agent remembers what was said." placeholder:"ID"`
	Attach     []string `help:"A file that the agents are given; several times for several files." placeholder:"FILE" sep:"none"`
	Handoffs   bool     `name:"enable-handoffs" help:"Let agents hand on, where engine.handoffs is opt_in."`
	Wait       bool     `help:"Wait for the end."`

	Timeout time.Duration `help:"With --wait: how long at most; 10m without it." placeholder:"10m"`
}

// Run sends the task and says how to follow it.
func (c *SendCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	switch {
	case c.Timeout < 0:
		return badTimeout(c.Timeout)
	case c.Timeout > 0 && !c.Wait:
		return console.Usage("--timeout says how long to wait. Add --wait.")
	case c.Timeout == 0:
		c.Timeout = defaultWait
	}
	var limits json.RawMessage
	if c.Budget != "" {
		l, err := budget.Parse(c.Budget)
		if err != nil {
			return console.Usage("--budget: %v.", err)
		}
		if limits, err = json.Marshal(l.Published()); err != nil {
			return fmt.Errorf("encode the budget: %w", err)
		}
	}
	agent, words := c.Agent, c.Text
	if (c.Capability != "" || c.Follow != "") && len(words) == 0 {
		agent, words = "", []string{c.Agent} // send --capability CAP TEXT: anyone who can; --follow ID TEXT: the same agent
	}
	text, err := sh.Words(words)
	if err != nil {
		return err
	}
	files, err := attached(c.Attach)
	if err != nil {
		return err
	}
	answer, err := api.Submit(ctx, wire.Submission{
		Agent: agent, Capability: c.Capability, Text: text, Repository: c.Repo, Ref: c.Ref, Key: c.Key,
		Complexity: c.Complexity, Budget: limits, Handoffs: c.Handoffs, Follows: c.Follow, Attachments: files,
	})
	if err != nil {
		return err
	}
	sent := answer.Value
	word := "sent to " + console.Line(cmp.Or(sent.Agent, agent))
	if sent.MessageID != "" {
		word = "said to " + console.Line(sent.Agent) + ", which is at work"
	}
	switch {
	case !c.Wait:
		return act(sh, answer, nil, func(wire.Submitted) error { return started(sh, api, sent.ID, word) })
	case !sh.JSON:
		if err := sh.Say("%s %s", console.Line(sent.ID), word); err != nil {
			return err
		}
	}
	return wait(ctx, sh, api, sent.ID, c.Timeout)
}

// attached reads the files that go with a task. One that is too large is not read.
func attached(names []string) ([]wire.Upload, error) {
	var all []wire.Upload
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, console.Usage("--attach: %v.", err)
		}
		data, err := io.ReadAll(io.LimitReader(f, maxAttached+1))
		_ = f.Close() // it was only read
		switch {
		case err != nil:
			return nil, console.Usage("--attach: %v.", err)
		case len(data) > maxAttached:
			return nil, console.Usage("--attach: %s has more than %d MB, which is more than a task takes. Make it smaller.", console.Line(name), maxAttached>>20)
		}
		all = append(all, wire.Upload{Name: filepath.Base(name), Data: data})
	}
	return all, nil
}

// maxAttached is more than the server takes of one file, in bytes: what its limit is, it says.
const maxAttached = 10 << 20

// started names a new task with what it is for, and says where it is seen.
func started(sh *console.Shell, api *client.Client, id, word string) error {
	written, page := sh.Say("%s %s", console.Line(id), word), api.Page("delegations", id)
	return sh.Then(written, "  follow: gatehouse wait %s        open: %s", console.Short(id), page)
}
