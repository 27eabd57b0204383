package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/bot"
	"gatehouse/approval/passive"
	"gatehouse/approval/sqlstore"
	"gatehouse/cmd/gatehouse/internal/config"
	trees "gatehouse/handlers/change"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/remote"
	"gatehouse/orchestrator/agent/workflow"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/store"
	"gatehouse/orchestrator/trigger/intake"

	"golang.org/x/sync/errgroup"
)

// house is a whole node: what serve and demo start.
type house struct {
	cfg     *config.Config // as at the start
	loaded  atomic.Pointer[loaded]
	node    string // its name, made once for the data folder
	log     *slog.Logger
	store   *sqlstore.Store
	mirrors *patch.Mirrors
	engine  *orchestrator.Engine
	gateway *approval.Gateway
	bots    []bot.Running
	models  *models
	runner  *command.Runner
	taken   chan struct{} // holds one when the configuration was loaded again, see sweepCaches
	intake  *intake.Intake
	older   atomic.Bool // it started with rules of before, which do not count; see take
	trees   trees.Trees
	trace   func(string) // see orchestrator.Options.Trace; nil but in tests
	address atomic.Value // string: this node's address for agents, once it listens
	unlock  []func()
}

// executable is the program that supervises agents and that they call: this one, or in tests the same built otherwise.
var executable = os.Executable

// openHouse opens everything that does not listen. Nothing runs yet.
func openHouse(ctx context.Context, cfg *config.Config, log *slog.Logger, trace func(string)) (*house, error) {
	h := &house{cfg: cfg, log: log, trace: trace, taken: make(chan struct{}, 1)}
	h.loaded.Store(&loaded{cfg, time.Now()})
	h.address.Store("http://" + cfg.Listen)
	if err := h.open(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *house) open(ctx context.Context) error {
	if err := os.MkdirAll(h.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("the data folder cannot be made: %w. Choose another with data: in the configuration", err)
	}
	if err := h.lock(filepath.Join(h.cfg.Data, "lock"), "The data folder "+h.cfg.Data+" is used by another gatehouse. Stop it, or give this one a data folder of its own"); err != nil {
		return err
	}
	if file, ok := strings.CutPrefix(h.cfg.Database, "sqlite:"); ok {
		if err := h.lock(file+".lock", "The database "+file+" is served by another gatehouse. Stop it, or use PostgreSQL for several nodes"); err != nil {
			return err
		}
	}
	var err error
	if h.node, err = nodeName(h.cfg.Data); err != nil {
		return err
	}
	hub := &event.Hub{}
	if h.store, err = sqlstore.Open(ctx, h.cfg.Database, store.Options{Node: h.node, Hub: hub, Logger: h.log, Trace: h.trace}); err != nil {
		return err
	}
	self, err := executable()
	if err != nil {
		return err
	}
	h.runner = command.New(command.Options{Self: self, Logger: h.log, Hide: hiddenBy(h.cfg), Caches: filepath.Join(h.cfg.Data, "caches"), Limits: func() agent.Limits { return h.loaded.Load().cfg.CheckLimits },
		Secrets: func() []string { return h.loaded.Load().cfg.SecretFiles }})
	h.models = &models{log: h.log}
	if err := h.models.load(h.cfg); err != nil {
		return err
	}
	h.mirrors = patch.NewMirrors(filepath.Join(h.cfg.Data, "mirrors"), patch.Options{Logger: h.log})
	h.trees = trees.Trees{Mirrors: h.mirrors, Config: func() *orchestrator.Config { return h.engine.Config() }, Blob: h.store.Blob}
	h.gateway = approval.New(approval.Options{Store: h.store, Users: h.store, Logger: h.log, Diff: h.diff, Trace: h.trace}, gatewayConfig(h.cfg))
	h.engine = orchestrator.New(orchestrator.Options{
		Node: h.node, Store: h.store, Hub: hub, Gate: h.gateway, Context: func(actor string) sharedctx.Store { return h.store.Context(actor) }, Mirrors: h.mirrors, Data: h.cfg.Data, Now: time.Now, Log: h.log,
		Kinds:   h.kinds(),
		Checker: checker{h.runner, func() time.Duration { return h.engine.Config().Settings.CheckTime }}, URL: func() string { return h.address.Load().(string) }, Trace: h.trace,
	}, h.cfg.Engine)
	h.intake = intake.New(intake.Options{Store: h.store, Engine: h.engine, Tasks: h.store, People: h.store, PublicURL: func() string { return h.cfg.PublicURL }, Now: time.Now, Log: h.log, Trace: h.trace, KeepFor: func() time.Duration { return h.engine.Config().Retention.Deliveries }}, h.cfg.Triggers)
	h.gateway.SetReverter(h.engine)
	h.gateway.SetReviser(h.engine)
	h.gateway.SetBranches(h.trees)
	return nil
}

// kinds are what runs each kind of agent.
func (h *house) kinds() map[agent.Kind]agent.Runner {
	return map[agent.Kind]agent.Runner{
		agent.Command:  h.runner,
		agent.Workflow: workflow.New(workflow.Options{}),
		agent.LLM:      h.models.runner(h.runner),
		agent.Remote:   remote.New(remote.Options{Ack: func() time.Duration { return h.engine.Config().Settings.AckTimeout }}),
	}
}

// hiddenBy is what no agent may see: the data folder, the database, the configuration.
func hiddenBy(cfg *config.Config) []string {
	hide := []string{cfg.Data}
	if file, ok := strings.CutPrefix(cfg.Database, "sqlite:"); ok {
		hide = append(hide, file, file+"-wal", file+"-shm")
	}
	if cfg.Path != "" {
		if abs, err := filepath.Abs(cfg.Path); err == nil {
			hide = append(hide, abs)
		}
	}
	return hide
}

// gatewayConfig is the part of the configuration that the gateway needs.
func gatewayConfig(c *config.Config) approval.Config {
	return approval.Config{FourEyes: c.FourEyes, Expires: c.Expires, Location: c.Location, Policy: c.Policy, Handovers: c.Handovers, Actions: c.Actions, OnNo: c.File.Approval.OnNo, Groups: c.Groups,
		Channels: []approval.Channel{passive.Inbox}, Agents: agentRules(c), Approvers: c.Approvers, Careful: c.File.Approval.Careful, Remind: c.Remind, Escalate: c.Escalate, Triggers: triggerOwners(c), OtherRules: c.OtherRules(), SameHandovers: c.SameHandovers(), SameActions: c.SameActions()}
}

// triggerOwners is who owns each trigger.
func triggerOwners(c *config.Config) map[string]string {
	owners := map[string]string{}
	for _, t := range c.Triggers {
		owners[t.Name] = t.Owner
	}
	return owners
}

// agentRules is what the gateway knows of each agent.
func agentRules(c *config.Config) map[string]approval.AgentRule {
	rules := map[string]approval.AgentRule{}
	for _, s := range c.Engine.Agents.All() {
		rules[s.Name] = approval.AgentRule{Mode: s.Approval, Owner: s.Owner, AnalysisOnly: s.AnalysisOnly}
	}
	return rules
}

// diff renders a request's current revision for a person's feedback.
func (h *house) diff(ctx context.Context, r approval.Request) (string, error) {
	b, err := h.trees.Diff(ctx, r.Revision, r.Repository)
	return string(b), err
}

// checker runs a repository's checks as confined commands.
type checker struct {
	runner *command.Runner
	limit  func() time.Duration
}

// Check runs one of them in dir.
func (c checker) Check(ctx context.Context, dir, line string, authors []string) (orchestrator.Check, error) {
	res, err := c.runner.Check(ctx, dir, line, authors, c.limit())
	return orchestrator.Check{Command: line, OK: res.OK, Output: res.Output, Took: res.Took}, err
}

// run works until ctx ends or a part fails, and returns when all parts have ended.
func (h *house) run(ctx context.Context, serve func(context.Context) error) error {
	told := ctx
	g, ctx := errgroup.WithContext(told)
	g.Go(func() error { return h.store.Run(ctx) })
	g.Go(func() error { return h.engine.Run(ctx) })
	g.Go(func() error { return h.gateway.Run(ctx) })
	g.Go(func() error { return h.runBots(ctx) })
	g.Go(func() error { return h.intake.Run(ctx) })
	g.Go(func() error { return h.keep(ctx) })
	g.Go(func() error { return h.sweepCaches(ctx) })
	g.Go(func() error { return h.counter().Run(ctx) })
	g.Go(func() error { return h.sendTraces(ctx) })
	g.Go(func() error { return serve(ctx) })
	err := g.Wait()
	if told.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // some part was still starting when it was told to stop
	}
	return err
}

// counter keeps the sums behind /insights and /metrics.
func (h *house) counter() insight.Counter {
	return insight.Counter{Store: h.store, Node: h.node, Log: h.log, Grown: func() <-chan struct{} { return h.store.Grown().Changed() }}
}

// reload reads the configuration again; a bad file changes nothing.
func (h *house) reload(ctx context.Context, by event.Taken) error {
	next, err := config.Load(h.cfg.Path, os.LookupEnv)
	if err != nil {
		return err
	}
	if next.Listen != h.cfg.Listen || next.Database != h.cfg.Database || next.Data != h.cfg.Data {
		h.log.Warn("listen, database and data are read only at the start; restart to change them")
	}
	if next.File.Server.PublicURL != h.cfg.File.Server.PublicURL {
		h.log.Warn("server.public_url is read only at the start; restart to change it")
	}
	next.PublicURL = h.cfg.PublicURL // links begin alike everywhere
	h.sayUntaken(next)
	err = errors.Join(h.rewire(next), h.models.load(next))
	if err == nil { // until then this node has other rules than those on record, and decides nothing
		_, err = h.record(ctx, next, by)
	}
	if err != nil {
		old := h.loaded.Load().cfg
		return errors.Join(err, h.rewire(old), h.models.load(old))
	}
	h.engine.SetConfig(next.Engine)
	h.intake.SetTriggers(next.Triggers)
	h.loaded.Store(&loaded{next, time.Now()})
	select {
	case h.taken <- struct{}{}:
	default: // a sweep is due already
	}
	h.log.Info("the configuration was loaded again", "agents", len(next.Engine.Agents.All()))
	return nil
}

// close gives back what open took.
func (h *house) close() error {
	var err error
	if h.store != nil {
		err = h.store.Close()
	}
	for _, unlock := range h.unlock {
		unlock()
	}
	return err
}

// lock takes the lock file at path for as long as this process lives.
func (h *house) lock(path, taken string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the lock cannot be made: %w. Make its folder, and let this user write there", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return errors.New(taken)
	}
	h.unlock = append(h.unlock, func() { f.Close() }) //nolint:errcheck // nothing was written
	return nil
}

// nodeName is this node's name: made once for each data folder, which only one
// process uses at a time.
func nodeName(data string) (string, error) {
	path := filepath.Join(data, "node")
	b, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(b))) > 0 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var random [4]byte
	rand.Read(random[:]) //nolint:errcheck // crypto/rand.Read never fails
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	name := host + "-" + hex.EncodeToString(random[:])
	return name, os.WriteFile(path, []byte(name+"\n"), 0o600)
}
