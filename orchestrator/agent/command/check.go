package command

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"time"

	"gatehouse/orchestrator/agent"
)

// checkBytes is how much of a check's output is kept, in bytes: the end, where
// tools say what went wrong.
const checkBytes = 64 << 10

// CheckResult is how one of a repository's checks ended.
type CheckResult struct {
	OK     bool
	Output string // standard output and error as they came, the last 64 kB
	Took   time.Duration
}

// Check runs one shell line in the folder dir, as an agent's program runs:
// supervised, sandboxed unless Options.Sandbox is off, and without secrets. It has
// no task, no token and no input, and the caches of what authors wrote; without authors it
// has new ones. A check that fails or takes longer than timeout
// (0: no limit) is a result; an error means that it could not be run.
func (r *Runner) Check(ctx context.Context, dir, line string, authors []string, timeout time.Duration) (CheckResult, error) {
	scratch, err := os.MkdirTemp("", "gatehouse-check-")
	if err != nil {
		return CheckResult{}, fmt.Errorf("make a folder for a check: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	ws, err := newWorkspace(dir, scratch, r.self)
	if err != nil {
		return CheckResult{}, err
	}
	defer r.using(checkCaches(authors))()
	mark := rand.Text()
	env := r.environment(ws, nil)
	env.set("GATEHOUSE_RUN", mark)
	c, err := r.confinement(ctx, ws, env, agent.Spec{}, checkCaches(authors))
	if err != nil {
		return CheckResult{}, err
	}
	o := order{
		Program: "/bin/sh", Args: []string{"sh", "-c", line}, Dir: ws.dir, Env: env.list(), Grace: grace, Limits: r.limits(), Written: ws.written(),
	}
	if _, err := r.confine(ctx, &o, c, agent.SandboxAuto); err != nil {
		return CheckResult{}, err
	}
	return r.check(ctx, o, "GATEHOUSE_RUN="+mark, timeout)
}

func (r *Runner) check(ctx context.Context, o order, mark string, timeout time.Duration) (CheckResult, error) {
	started := r.now()
	p, err := startProcess(r.self, o, mark, true)
	if err != nil {
		return CheckResult{}, err
	}
	defer p.close()
	_ = p.stdin.Close()
	late := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		late, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	halt := context.AfterFunc(late, func() { p.stop(grace) })
	defer halt()
	out := tail{limit: checkBytes}
	_, _ = io.Copy(&out, p.stdout) // ends with the last process
	<-p.ended
	if ctx.Err() != nil {
		return CheckResult{}, context.Cause(ctx)
	}
	if p.err != nil {
		return CheckResult{}, p.err
	}
	rep := p.report
	if rep.NotStarted != nil {
		return CheckResult{}, fmt.Errorf("run a check: %w", rep.NotStarted)
	}
	res := CheckResult{Output: out.text(0), Took: r.now().Sub(started)}
	res.OK = rep.Code == 0 && rep.Signal == 0 && !rep.Stopped && rep.Left == 0
	switch {
	case rep.Over != nil:
		res.OK = false
		res.Output += "\nIt used " + rep.Over.Text + ", and was ended."
	case rep.Stopped:
		res.Output += fmt.Sprintf("\nIt ran for %s, which is its limit, and was ended.", timeout)
	}
	return res, nil
}
