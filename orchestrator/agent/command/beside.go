package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"gatehouse/orchestrator/agent"
)

// beside is a program that serves a run and is not its agent: it gets no token and no task,
// and a scratch folder of its own. Whoever made it calls done when it has ended.
type beside struct {
	order       order
	confinement confinement
	mark        string
	scratch     string
	unused      func() // its caches
}

// done removes what b had and lets its caches go.
func (b *beside) done() {
	b.unused()
	_ = os.RemoveAll(b.scratch)
}

// beside prepares such a program in dir, "" for an empty folder, with the allow-listed
// environment and env.
func (r *Runner) beside(ctx context.Context, job agent.Job, dir string, argv []string, env map[string]string) (_ *beside, err error) {
	scratch, err := os.MkdirTemp(job.ScratchDir, "beside-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for %s: %w", argv[0], err)
	}
	b := &beside{scratch: scratch, unused: r.using(agentCaches(job.Agent.Name))}
	defer func() {
		if err != nil {
			b.done()
		}
	}()
	ws, err := newWorkspace(dir, scratch, r.self)
	if err != nil {
		return nil, err
	}
	mark := rand.Text()
	vars := r.environment(ws, env)
	vars.set("GATEHOUSE_RUN", mark)
	program, err := resolve(argv[0], ws.dir, vars.get("PATH"))
	if err != nil {
		return nil, err
	}
	c, err := r.confinement(ctx, ws, vars, agent.Spec{Name: cmp.Or(job.Agent.Name, argv[0]), Command: argv, Env: env, Writable: job.Agent.Writable}, agentCaches(job.Agent.Name))
	if err != nil {
		return nil, err
	}
	c.seen = append(c.seen, program)
	b.order = order{Program: program, Args: argv, Dir: ws.dir, Env: vars.list(), Grace: grace, Limits: job.Agent.Limits, Written: ws.written()}
	b.confinement, b.mark = c, "GATEHOUSE_RUN="+mark
	return b, nil
}
