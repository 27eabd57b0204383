package command

import (
	"context"
	"errors"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command/acp"
)

// leaveTime is how long a program of protocol acp may take to end once its input is closed:
// it may still write down its session. Some never end by themselves.
const leaveTime = 2 * time.Second

// turn holds the conversation of protocol acp until the program has answered.
func (c *conversation) turn(ctx context.Context) (agent.Result, error) {
	defer close(c.told)
	longest := 0
	if len(c.run.secrets) > 0 {
		longest = len(c.run.secrets[0])
	}
	c.acp = acp.New(acp.Work{
		Job: c.job, Host: c.host, Dir: c.run.order.Dir, Task: taskText(c.job), Program: c.run.program, Limit: c.outputLimit(),
		Safe: c.safe, Secret: longest, Say: func(line string) { c.progress.add(plain(line)) }, Pause: c.watch.pause, Resume: c.watch.resume,
	})
	result, err := c.acp.Talk(ctx, c.proc.stdin, c.proc.stdout)
	_ = c.proc.stdin.Close()
	switch {
	case errors.Is(err, acp.ErrHungUp):
		c.silent = true // its end says why
		return agent.Result{}, nil
	case err != nil:
		return agent.Result{}, err
	}
	c.answered = true
	c.linger = time.AfterFunc(leaveTime, func() { c.proc.stop(grace) })
	return result, nil
}

// farewell waits, once the run is over, until a program of protocol acp was told to end its turn.
func (c *conversation) farewell() {
	if c.job.Agent.Protocol != agent.ACP {
		return
	}
	select {
	case <-c.told:
	case <-c.proc.ended:
	case <-time.After(acp.CancelGrace + 100*time.Millisecond):
	}
}
