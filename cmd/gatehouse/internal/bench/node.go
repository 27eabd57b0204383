package bench

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/workflow"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/store"
)

// next is whom each agent of the chain hands to.
var next = map[string]string{"a": "b", "b": "c"}

// relay runs agents that hand their task on, or answer at once.
type relay struct{}

// Run hands the task on and waits, as a program does; asker parks, as a plan does.
func (relay) Traits() agent.Traits { return workflow.Traits }

func (relay) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	to := next[job.Agent.Name]
	switch {
	case job.Agent.Name == "asker" && len(job.Children) == 0:
		return agent.Outcome{Park: &agent.Park{Hops: []agent.Hop{{Ref: "ask", To: "asked", Text: job.Text}}}}, nil
	case to != "":
		child, err := host.Delegate(ctx, agent.Hop{To: to, Text: job.Text})
		if err == nil && !child.Ended {
			child, err = host.Await(ctx, child.ID)
		}
		if err == nil && child.Error != nil {
			err = child.Error
		}
		if err != nil {
			return agent.Outcome{}, err
		}
	}
	return agent.Outcome{Result: &agent.Result{Text: "done"}}, nil
}

// counting counts the transactions that an engine commits.
type counting struct {
	orchestrator.Store
	n *atomic.Int64
}

func (c counting) InTask(ctx context.Context, id string, fn func(orchestrator.Tx) error) error {
	// Whoever waits for the events hears of them before InTask returns, so the commit is
	// counted before it is made, once however often fn runs, and taken back where it failed.
	counted := false
	err := c.Store.InTask(ctx, id, func(tx orchestrator.Tx) error {
		err := fn(tx)
		if err == nil && !counted {
			counted = true
			c.n.Add(1)
		}
		return err
	})
	if err != nil && counted {
		c.n.Add(-1)
	}
	return err
}

func (c counting) NewTask(ctx context.Context, t orchestrator.Task, fn func(orchestrator.Tx) error) (orchestrator.Task, bool, error) {
	c.n.Add(1)
	return c.Store.NewTask(ctx, t, fn)
}

// Node is one node on a scratch database. Close stops it.
type Node struct {
	store   *sqlstore.Store
	engine  *orchestrator.Engine
	gateway *approval.Gateway
	bare    *store.Yardstick
	people  struct{ ann, bob people.User }
	commits atomic.Int64
	data    string
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	broken  chan error
}

// Start opens the database at url, which nobody else uses, and starts a node on it.
func Start(ctx context.Context, url string) (*Node, error) {
	log := slog.New(slog.DiscardHandler)
	n := &Node{broken: make(chan error, 3)}
	var err error
	if n.data, err = os.MkdirTemp("", "gatehouse-bench-"); err != nil {
		return nil, err
	}
	if n.store, err = sqlstore.Open(ctx, url, store.Options{Node: "bench", Logger: log}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.data))
	}
	n.store.Measure()
	if n.bare, err = store.NewYardstick(ctx, url); err == nil {
		err = n.assemble(ctx, log)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	for _, part := range []func(context.Context) error{n.store.Run, n.engine.Run, n.gateway.Run} {
		n.wg.Go(func() {
			if err := part(running); err != nil && running.Err() == nil {
				n.broken <- err
			}
		})
	}
	return n, nil
}

func (n *Node) assemble(ctx context.Context, log *slog.Logger) error {
	var specs []agent.Spec
	for _, name := range []string{"a", "b", "c", "asker", "asked"} {
		specs = append(specs, agent.Spec{Name: name, Kind: agent.Workflow, AskFirst: name == "asked"})
	}
	registry, err := agent.NewRegistry(specs)
	if err != nil {
		return err
	}
	for user, role := range map[*people.User]people.Role{&n.people.ann: people.Operator, &n.people.bob: people.Approver} {
		if *user, err = n.store.CreateUser(ctx, "bench", people.User{Name: string(role), Roles: []people.Role{role}}); err != nil {
			return err
		}
	}
	n.gateway = approval.New(approval.Options{Store: n.store, Users: n.store, Logger: log}, approval.Config{FourEyes: true, Expires: 72 * time.Hour})
	n.engine = orchestrator.New(orchestrator.Options{
		Node: "bench", Store: counting{n.store, &n.commits}, Hub: n.store.Hub(), Gate: n.gateway,
		Kinds: map[agent.Kind]agent.Runner{agent.Workflow: relay{}}, Data: filepath.Join(n.data, "data"), URL: func() string { return "" }, Now: time.Now, Log: log,
	}, orchestrator.Config{Agents: registry, Settings: orchestrator.Settings{
		Workers: 32, Lease: 30 * time.Second, MaxAttempts: 3, MaxDepth: 3, MaxHandoffs: 5, Cycle: "strict", Capacity: "queue"}})
	return nil
}

// Close stops the node and closes what it opened.
func (n *Node) Close() error {
	if n.cancel != nil {
		n.cancel()
		n.wg.Wait()
	}
	var err error
	if n.bare != nil {
		err = n.bare.Close()
	}
	return errors.Join(err, n.store.Close(), os.RemoveAll(n.data))
}

// send makes a task and returns its root and what watches it.
func (n *Node) send(ctx context.Context, to string) (orchestrator.Delegation, *event.Subscription, error) {
	_, root, _, err := n.engine.Submit(ctx, orchestrator.Submission{Agent: to, Text: "Carry this down and up again", Via: origin.From(origin.CLI),
		RequesterID: n.people.ann.ID, Requester: n.people.ann.Name})
	if err != nil {
		return root, nil, err
	}
	return root, n.engine.Hub().Watch(root.TaskID, 64), nil
}

// reached waits until a delegation is in one of the states.
func (n *Node) reached(ctx context.Context, sub *event.Subscription, id string, ok func(orchestrator.Delegation) bool) error {
	for {
		d, err := n.store.Delegation(ctx, id)
		if err != nil || ok(d) {
			return err
		}
		select {
		case <-sub.C:
		case <-sub.Lagged():
		case err := <-n.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
