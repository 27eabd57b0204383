package command

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"gatehouse/orchestrator/agent"
)

// noRoom is where a disk counts as full, in bytes: what a tool writes at once does not fit.
const noRoom = 1 << 20

// record tells the host what the run used at most.
func (c *conversation) record(ctx context.Context) error {
	spec := c.job.Agent
	if c.proc.report.Most == (agent.Limits{}) {
		return nil
	}
	err := c.host.Confined(ctx, agent.Confinement{Limits: spec.Limits, Network: spec.Network, Most: c.proc.report.Most})
	if err != nil && !errors.Is(err, agent.ErrStopped) {
		return fmt.Errorf("record what the run used: %w", err)
	}
	return err
}

// tooLong reports whether the program was ended over the length of one file. A shell gives a
// signal on as its code plus 128.
func (c *conversation) tooLong() bool {
	rep := c.proc.report
	return c.job.Agent.Limits.Files > 0 && (rep.Signal == int(unix.SIGXFSZ) || rep.Code == 128+int(unix.SIGXFSZ))
}

// full is the failure of a program that failed where the disk has no room, nil where it has.
func (c *conversation) full() *agent.Failure {
	for _, dir := range c.run.order.Written {
		var st syscall.Statfs_t
		if syscall.Statfs(dir, &st) == nil && int64(st.Bavail)*st.Bsize < noRoom {
			return agent.Fail(agent.CodeDisk, "%s failed, and the disk that holds %s is full. Make room there, and send the task again. The last it said:\n%s",
				c.run.program, dir, c.redact.Replace(c.errTail.text(tailLines)))
		}
	}
	return nil
}
