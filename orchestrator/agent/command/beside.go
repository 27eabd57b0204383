package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

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
	if err := ws.giveAttachments(vars, job); err != nil {
		return nil, err
	}
	program, err := resolve(argv[0], ws.dir, vars.get("PATH"))
	if err != nil {
		return nil, err
	}
	c, err := r.confinement(ctx, ws, vars, agent.Spec{Name: cmp.Or(job.Agent.Name, argv[0]), Command: argv, Env: env, Writable: job.Agent.Writable}, agentCaches(job.Agent.Name))
	if err != nil {
		return nil, err
	}
	c.seen, c.readable = append(c.seen, program), attachmentsOf(job)
	b.order = order{Program: program, Args: argv, Dir: ws.dir, Env: vars.list(), Grace: grace, Limits: job.Agent.Limits, Written: ws.written()}
	b.confinement, b.mark = c, "GATEHOUSE_RUN="+mark
	return b, nil
}

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

// Errand is a program that is run once beside an agent and ends by itself: a command that a
// model asks for, or a hook. It is supervised and confined as an agent's program is, gets no
// token, and nothing of it is left when it has ended.
type Errand struct {
	Argv    []string
	Env     map[string]string
	Input   string        // its standard input
	Timeout time.Duration // 0: no limit but the run's
	Merged  bool          // standard error goes where standard output goes
	Keep    int           // how much of its output is kept, in bytes: the end
	// Apart runs it in an empty folder: it neither sees nor changes the agent's files, and
	// writes nowhere else but in Writable. The agent's own limits and caches are not its.
	Apart    bool
	Writable []string // of one apart: folders that it may write
}

// Ran is how an errand ended.
type Ran struct {
	Code   int    // its exit code; 128 plus the signal where one ended it
	Output string // what it printed, at most about Errand.Keep
	Cut    bool   // more was printed before that
	Errors string // the end of its standard error, unless that is in Output
	Ended  string // why it was ended before it ended by itself, as a sentence
	Took   time.Duration
}

// Once runs an errand for a run. A program that fails is a Ran; one that could not be started
// is a *agent.Failure; the end of ctx is its cause.
func (r *Runner) Once(ctx context.Context, job agent.Job, host agent.Host, e Errand) (Ran, error) {
	dir := job.Dir
	if e.Apart {
		dir, job.AttachmentsDir, job.Agent = "", "", agent.Spec{Sandbox: agent.SandboxAuto, Limits: r.limits(), Writable: e.Writable}
	}
	b, err := r.beside(ctx, job, dir, e.Argv, e.Env)
	if err != nil {
		return Ran{}, err
	}
	defer b.done()
	if e.Apart {
		_, err = r.confine(ctx, &b.order, b.confinement, agent.SandboxAuto)
	} else {
		err = r.confineFor(ctx, job.Agent, host, &b.order, b.confinement)
	}
	if err != nil {
		return Ran{}, err
	}
	started := r.now()
	p, err := startProcess(r.self, b.order, b.mark, e.Merged)
	if err != nil {
		return Ran{}, err
	}
	ran, err := p.once(ctx, e)
	if err != nil {
		return Ran{}, err
	}
	if most := p.report.Most; !e.Apart && most != (agent.Limits{}) {
		if err := host.Confined(ctx, agent.Confinement{Limits: job.Agent.Limits, Network: job.Agent.Network, Most: most}); err != nil {
			return Ran{}, fmt.Errorf("record what a command used: %w", err)
		}
	}
	ran.Took = r.now().Sub(started)
	job.Agent.Env = e.Env
	safe := redactor(secretsOf(job))
	ran.Output, ran.Errors = safe.Replace(ran.Output), safe.Replace(ran.Errors)
	return ran, nil
}

// once gives the program its input and reads what it prints until nothing of it is left.
func (p *process) once(ctx context.Context, e Errand) (Ran, error) {
	defer p.close()
	late, cancel := ctx, context.CancelFunc(func() {})
	if e.Timeout > 0 {
		late, cancel = context.WithTimeout(ctx, e.Timeout)
	}
	defer cancel()
	halt := context.AfterFunc(late, func() { p.stop(grace) })
	defer halt()
	out, said := tail{limit: e.Keep}, tail{limit: tailBytes}
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(p.stdin, strings.NewReader(e.Input)) // it need not read it
		_ = p.stdin.Close()
	})
	reading.Go(func() { _, _ = io.Copy(&said, p.stderr) })
	_, _ = io.Copy(&out, p.stdout)
	<-p.ended
	_ = p.stdin.Close() // nobody reads it any more
	reading.Wait()
	rep := p.report
	switch {
	case ctx.Err() != nil:
		return Ran{}, context.Cause(ctx)
	case p.err != nil:
		return Ran{}, p.err
	case rep.NotStarted != nil:
		return Ran{}, agent.Fail(agent.CodeStart, "%s", notStarted(e.Argv[0], rep.NotStarted))
	}
	ran := Ran{Code: rep.Code, Output: out.text(0), Cut: out.cut || len(out.kept) > out.limit, Errors: said.text(tailLines)}
	if rep.Signal > 0 {
		ran.Code = 128 + rep.Signal
	}
	switch {
	case rep.Over != nil:
		ran.Ended = "It used " + rep.Over.Text + ", and was ended."
	case rep.Stopped:
		ran.Ended = fmt.Sprintf("It ran for %s, which is its limit, and was ended.", e.Timeout)
	case rep.Left > 0:
		ran.Ended = fmt.Sprintf("%d of its processes could not be ended.", rep.Left)
	}
	return ran, nil
}

// Confines is what an agent's programs would be confined by, as Host.Sandbox is told.
func (r *Runner) Confines(ctx context.Context, spec agent.Spec) (string, error) {
	if spec.Sandbox == agent.SandboxOff || r.off && spec.Sandbox != agent.SandboxRequired {
		return SandboxNone, nil
	}
	return r.bestSandbox(ctx)
}
