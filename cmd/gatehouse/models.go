package main

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/agent/llm/mcptools"
	"gatehouse/orchestrator/agent/llm/model"
	"gatehouse/orchestrator/agent/llm/model/providers"
)

// models is what agents of kind llm need of the configuration, which may be read again
// while they run.
type models struct {
	log *slog.Logger

	mu       sync.RWMutex
	declared []providers.Provider
	set      *providers.Set
	settings llm.Settings
}

// load takes over a configuration. Keys that rest go on resting unless the providers
// changed.
func (m *models) load(c *config.Config) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set == nil || !reflect.DeepEqual(m.declared, c.Providers) {
		set, err := providers.New(c.Providers, providers.Options{Log: m.log})
		if err != nil {
			return err
		}
		m.set, m.declared = set, c.Providers
	}
	m.settings = c.LLM
	return nil
}

// client is the client of an agent's models.
func (m *models) client(s agent.Spec) (model.Client, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.set.Client(s.Model, s.Fallbacks...)
}

// current are the settings of the runs that begin now.
func (m *models) current() llm.Settings {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.settings
}

// runner makes the kind llm. Tool servers that are programs run as commands do.
func (m *models) runner(programs *command.Runner) *llm.Runner {
	servers := mcptools.Options{Log: m.log, Version: thisBuild().Version,
		Start: func(ctx context.Context, job agent.Job, host agent.Host, argv []string, env map[string]string) (io.ReadWriteCloser, error) {
			return programs.Pipe(ctx, job, host, argv, env)
		}}
	open := func(ctx context.Context, job agent.Job, host agent.Host) (llm.Toolbox, error) {
		box, err := mcptools.Open(ctx, job, host, servers)
		if box == nil || err != nil {
			return nil, err
		}
		return box, nil
	}
	return llm.New(llm.Options{Models: m.client, Settings: m.current, Toolboxes: []llm.Opener{open}, Commands: commands{programs}, Log: m.log})
}

// commands run what models may run, as agents' programs are run.
type commands struct{ programs *command.Runner }

// commandKept is how much of a command's output is kept, in bytes: twice what a model is
// shown of it, so that what is masked is whole.
const commandKept = 48 << 10

// Command runs one line of a shell in the job's checkout.
func (c commands) Command(ctx context.Context, job agent.Job, host agent.Host, line string, limit time.Duration) (llm.Ran, error) {
	ran, err := c.programs.Once(ctx, job, host, command.Errand{Argv: []string{"/bin/sh", "-c", line}, Env: job.Agent.Env, Timeout: limit, Merged: true, Keep: commandKept})
	return llm.Ran{Code: ran.Code, Output: ran.Output, Cut: ran.Cut, Ended: ran.Ended}, err
}

// hookKept is more than a hook may print, so that the llm room sees that it is too much.
const hookKept = 32 << 10

// Hook runs a hook's program.
func (c commands) Hook(ctx context.Context, job agent.Job, host agent.Host, hook llm.HookProgram, input string) (llm.Ran, error) {
	ran, err := c.programs.Once(ctx, job, host, command.Errand{Argv: hook.Command, Env: hook.Env, Input: input, Timeout: hook.Timeout, Keep: hookKept, Apart: true, Writable: hook.Writable})
	return llm.Ran{Code: ran.Code, Output: ran.Output, Cut: ran.Cut, Errors: ran.Errors, Ended: ran.Ended}, err
}

// Confines is what confines them.
func (c commands) Confines(ctx context.Context, spec agent.Spec) (string, error) {
	return c.programs.Confines(ctx, spec)
}
