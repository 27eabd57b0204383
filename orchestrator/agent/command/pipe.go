package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"sync"

	"gatehouse/orchestrator/agent"
)

// Pipe is a program that serves a run by its standard input and output, such as a tool
// server. It is supervised and confined as an agent's program is. Close ends it and all
// below it, and so does the end of the context that it was started with.
type Pipe struct {
	proc    *process
	scratch string
	halt    func() bool
	unused  func() // its caches
	reading sync.WaitGroup
	once    sync.Once
}

// Pipe starts a program for a run, in its checkout, with the allow-listed environment and
// env. It gets no token and no task.
func (r *Runner) Pipe(ctx context.Context, job agent.Job, host agent.Host, argv []string, env map[string]string) (_ *Pipe, err error) {
	scratch, err := os.MkdirTemp(job.ScratchDir, "pipe-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for %s: %w", argv[0], err)
	}
	unused := r.using(agentCaches(job.Agent.Name))
	defer func() {
		if err != nil {
			unused()
			_ = os.RemoveAll(scratch)
		}
	}()
	ws, err := newWorkspace(job.Dir, scratch, r.self)
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
	c, err := r.confinement(ctx, ws, vars, agent.Spec{Name: job.Agent.Name, Command: argv, Env: env, Writable: job.Agent.Writable}, agentCaches(job.Agent.Name))
	if err != nil {
		return nil, err
	}
	c.seen = append(c.seen, program)
	o := order{Program: program, Args: argv, Dir: ws.dir, Env: vars.list(), Grace: grace, Limits: job.Agent.Limits, Written: ws.written()}
	if err := r.confineFor(ctx, job.Agent, host, &o, c); err != nil {
		return nil, err
	}
	p := &Pipe{scratch: scratch, unused: unused}
	if p.proc, err = startProcess(r.self, o, "GATEHOUSE_RUN="+mark, false); err != nil {
		return nil, err
	}
	p.halt = context.AfterFunc(ctx, func() { p.proc.stop(grace) })
	p.reading.Go(func() { _, _ = io.Copy(io.Discard, p.proc.stderr) })
	return p, nil
}

// Read reads what the program prints.
func (p *Pipe) Read(b []byte) (int, error) { return p.proc.stdout.Read(b) }

// Write writes to the program's standard input.
func (p *Pipe) Write(b []byte) (int, error) { return p.proc.stdin.Write(b) }

// Close ends the program. It returns when nothing of it is left.
func (p *Pipe) Close() error {
	p.once.Do(func() {
		p.halt()
		_ = p.proc.stdin.Close()
		p.proc.stop(grace)
		<-p.proc.ended
		p.proc.close()
		p.reading.Wait()
		p.unused()
		_ = os.RemoveAll(p.scratch)
	})
	return nil
}
