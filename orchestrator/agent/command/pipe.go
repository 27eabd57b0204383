package command

import (
	"context"
	"io"
	"sync"

	"gatehouse/orchestrator/agent"
)

// Pipe is a program that serves a run by its standard input and output, such as a tool
// server. It is supervised and confined as an agent's program is. Close ends it and all
// below it, and so does the end of the context that it was started with.
type Pipe struct {
	proc    *process
	halt    func() bool
	done    func() // with its folder and caches
	reading sync.WaitGroup
	once    sync.Once
}

// Pipe starts a program for a run, in its checkout, with the allow-listed environment and
// env. It gets no token and no task.
func (r *Runner) Pipe(ctx context.Context, job agent.Job, host agent.Host, argv []string, env map[string]string) (_ *Pipe, err error) {
	b, err := r.beside(ctx, job, job.Dir, argv, env)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.done()
		}
	}()
	if err := r.confineFor(ctx, job.Agent, host, &b.order, b.confinement); err != nil {
		return nil, err
	}
	p := &Pipe{done: b.done}
	if p.proc, err = startProcess(r.self, b.order, b.mark, false); err != nil {
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
		p.done()
	})
	return nil
}
