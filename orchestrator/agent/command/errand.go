package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
)

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
		dir, job.Agent = "", agent.Spec{Sandbox: agent.SandboxAuto, Limits: r.limits(), Writable: e.Writable}
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
