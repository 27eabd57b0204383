package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/command/acp"
	"gatehouse/orchestrator/textcut"
)

// defaultOutput is how much a program may answer, in bytes, when its agent does
// not say. More ends the run: a cut answer would look like a whole one.
const defaultOutput = 8 << 20

// conversation is one program that runs, and what is said between it and the host.
type conversation struct {
	job      agent.Job
	host     agent.Host
	run      *prepared
	proc     *process
	cancel   context.CancelCauseFunc
	watch    *stopwatch
	progress *progress
	redact   *strings.Replacer

	errTail tail
	outTail tail
	silent  bool        // protocol jsonl: there was no result
	said    string      // protocol jsonl: the result, which does not count where the program fails after it
	linger  *time.Timer // ends a program that does not end after its result

	acp      *acp.Dialogue // protocol acp
	told     chan struct{} // protocol acp: closed when the program need not be told any more that it is to end
	answered bool          // protocol acp: the turn has its answer, and the end of the program says nothing
}

// converse starts the program, talks to it until it has ended, and judges the end.
func (r *Runner) converse(ctx context.Context, job agent.Job, host agent.Host, run *prepared) (agent.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	proc, err := startProcess(r.self, run.order, run.mark, false)
	if err != nil {
		return agent.Result{}, err
	}
	c := &conversation{
		job: job, host: host, run: run, proc: proc, cancel: cancel,
		told: make(chan struct{}), watch: newStopwatch(host, r.now), progress: newProgress(host), redact: redactor(run.secrets),
		errTail: tail{limit: tailBytes}, outTail: tail{limit: tailBytes},
	}
	var work, hear, talk sync.WaitGroup
	said := make(chan struct{})
	work.Go(func() { c.limit(ctx) })
	work.Go(func() {
		if err := c.progress.run(ctx, said); err != nil {
			cancel(err)
		}
	})
	hear.Go(c.readErrors)

	result, err := c.speak(ctx, &talk)
	if err != nil {
		cancel(err)
	}
	if c.acp == nil { // which reads to the end by itself
		_, _ = io.Copy(io.Discard, proc.stdout) // so that a stopped program does not hang in a write
	}
	<-proc.ended
	if c.linger != nil {
		c.linger.Stop()
	}
	hear.Wait() // its last words are often why it ended
	proc.close()
	talk.Wait()
	if c.acp != nil {
		c.acp.Wait()
	}
	close(said)
	work.Wait()
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	if err := c.record(ctx); err != nil {
		return agent.Result{}, err
	}
	if err := c.judge(); err != nil {
		return agent.Result{}, err
	}
	return c.finish(result)
}

// speak holds the conversation in the program's protocol; what is told beside it is talk's.
func (c *conversation) speak(ctx context.Context, talk *sync.WaitGroup) (agent.Result, error) {
	switch c.job.Agent.Protocol {
	case "jsonl":
		result, err := c.lines(ctx)
		c.said = strings.TrimSpace(result.Text)
		return result, err
	case agent.ACP:
		return c.turn(ctx)
	}
	talk.Go(c.tellTask)
	return c.answer()
}

// limit ends the program when the run is over or takes too long.
func (c *conversation) limit(ctx context.Context) {
	limit := c.job.Agent.Timeout
	for {
		var timer <-chan time.Time
		if limit > 0 {
			left := limit - c.watch.running()
			if left <= 0 {
				c.cancel(agent.Fail(agent.CodeTimeout,
					"%s ran for %s, which is its limit, and was ended. Raise its `timeout`, or send a smaller task.", c.job.Agent.Name, limit))
			}
			timer = time.After(min(max(left, 0), time.Second))
		}
		select {
		case <-ctx.Done():
			c.farewell()
			c.proc.stop(grace)
			return
		case <-c.proc.ended:
			return
		case <-timer:
		}
	}
}

// tellTask writes the task and closes standard input. A program that does not read
// it is none of our business.
func (c *conversation) tellTask() {
	_, _ = io.WriteString(c.proc.stdin, taskText(c.job))
	_ = c.proc.stdin.Close()
}

// answer reads the answer of protocol plain.
func (c *conversation) answer() (agent.Result, error) {
	limit := c.outputLimit()
	out, err := io.ReadAll(io.LimitReader(c.proc.stdout, limit+1))
	if err != nil && !isEnd(err) {
		return agent.Result{}, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(out)) > limit {
		return agent.Result{}, agent.Fail(agent.CodeOutput,
			"%s printed more than %d bytes, which is its limit, and was ended. Let it print less, or raise its output limit.", c.job.Agent.Name, limit)
	}
	_, _ = c.outTail.Write(out)
	return agent.Result{Text: c.safe(strings.TrimRight(plain(string(out)), " \t\r\n"))}, nil
}

func (c *conversation) outputLimit() int64 {
	if c.job.Agent.OutputLimit > 0 {
		return c.job.Agent.OutputLimit
	}
	return defaultOutput
}

// readErrors shows standard error as progress and keeps its tail. It has the limit that
// the answer has: a program that floods it is as broken. A carriage
// return ends a line too: progress bars use it.
func (c *conversation) readErrors() {
	chunk := make([]byte, 64<<10)
	left := c.outputLimit()
	var line []byte
	flush := func() {
		if c.job.Agent.Protocol != agent.ACP { // its standard error is a log, and of interest where it fails
			c.progress.add(c.safe(plain(string(line))))
		}
		line = line[:0]
	}
	for {
		n, err := c.proc.stderr.Read(chunk)
		_, _ = c.errTail.Write(chunk[:n])
		if left -= int64(n); left < 0 { // read on all the same, so that the program can end
			c.cancel(agent.Fail(agent.CodeOutput, "%s printed more than %d bytes on standard error, which is its limit, and was ended. Let it print less, or raise its `output_limit`.",
				c.job.Agent.Name, c.outputLimit()))
			n = 0
		}
		for _, b := range chunk[:n] {
			switch {
			case b == '\n' || b == '\r':
				flush()
			case len(line) <= lineBytes:
				line = append(line, b)
			}
		}
		if err != nil {
			flush()
			return
		}
	}
}

// judge says whether the end of the program is a failure.
func (c *conversation) judge() error {
	rep, name := c.proc.report, c.run.program
	switch {
	case c.proc.err != nil:
		return c.proc.err
	case rep.NotStarted != nil:
		return &agent.Failure{Code: agent.CodeStart, Message: notStarted(name, rep.NotStarted)}
	case rep.Left > 0:
		return fmt.Errorf("%d processes of %s could not be killed", rep.Left, name)
	case c.tooLong():
		return agent.Fail(agent.CodeDisk, "%s wanted to write a file of more than %s, which is its limit, and was ended. Raise the agent's `limits`, or send a smaller task.",
			name, agent.Size(c.job.Agent.Limits.Files))
	case rep.Over != nil:
		return agent.Fail(rep.Over.Code, "%s used %s, and was ended. Raise the agent's `limits`, or send a smaller task.", name, rep.Over.Text)
	case rep.Code != 0 || rep.Signal != 0:
		if f := c.full(); f != nil {
			return f
		}
	}
	switch {
	case rep.Stopped, c.answered:
		return nil // it had said its result and did not end by itself
	case rep.Signal != 0:
		return c.ended(fmt.Sprintf("was ended by signal %d (%s)", rep.Signal, syscall.Signal(rep.Signal)))
	case rep.Code > 128 && c.run.order.Wrapped:
		return c.ended(fmt.Sprintf("ended with code %d (signal %d, %s)", rep.Code, rep.Code-128, syscall.Signal(rep.Code-128)))
	case rep.Code != 0:
		return c.ended(fmt.Sprintf("ended with code %d", rep.Code))
	}
	return nil
}

// ended is the failure of a program that ran, with the last that it said. Some say
// why on standard output, such as go test, and warn of something else on standard error.
func (c *conversation) ended(how string) *agent.Failure {
	words, answer := c.errTail.text(tailLines), c.outTail.text(tailLines)
	if c.said != "" {
		answer = "Its result, which does not count since it failed after it: " + textcut.Brief(c.said, tailBytes)
	}
	switch {
	case words == "" && answer == "":
		return agent.Fail(agent.CodeExit, "%s %s and said nothing about why.", c.run.program, how)
	case words == "":
		words = answer
	case answer != "" && answer != words:
		words += "\nAnd on standard output:\n" + answer
	}
	return &agent.Failure{Code: agent.CodeExit, Message: fmt.Sprintf("%s %s. The last it said:\n%s", c.run.program, how, c.redact.Replace(words))}
}

// finish completes the result of a program that ended well.
func (c *conversation) finish(result agent.Result) (agent.Result, error) {
	if c.silent && c.acp != nil {
		return agent.Result{}, agent.Fail(agent.CodeProtocol,
			"%s ended before its turn was over, so there is no answer. Look whether its `command` starts an agent of the Agent Client Protocol, which may need a flag such as --acp.", c.run.program)
	}
	if c.silent {
		return agent.Result{}, agent.Fail(agent.CodeProtocol,
			"%s ended without a line of type result, so there is no answer. Let its last line be {\"type\":\"result\",\"text\":…}.", c.run.program)
	}
	if strings.TrimSpace(result.Patch) == "" {
		result.Patch = ""
	}
	if c.job.Agent.Protocol == "jsonl" {
		return result, nil
	}
	return c.readResult(result)
}

// safe makes a program's words fit to store and to show.
func (c *conversation) safe(s string) string { return c.redact.Replace(clean(s)) }

func redactor(secrets []string) *strings.Replacer {
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s, "[secret]")
	}
	return strings.NewReplacer(pairs...)
}

// isEnd reports whether a read ended because the program did.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || isDeadline(err) }

func isDeadline(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
