package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

const (
	// drainTime is how long output is waited for after the last process ended. The
	// pipes are at their end then, unless somebody who is no descendant holds them.
	drainTime = 500 * time.Millisecond
	// drainBytes is what is still read of a pipe after that: what a pipe holds when
	// its program raised it to what Linux allows by default (pipe-max-size).
	drainBytes = 1 << 20
)

// process is a program under its supervisor, as the server sees it.
type process struct {
	stdin          *os.File
	stdout, stderr *output
	control        *os.File // closing it ends everything
	cmd            *exec.Cmd
	mark           string // a variable that only this program's processes have
	stopOnce       sync.Once
	watching       sync.WaitGroup

	ended  chan struct{} // closed when nothing runs any more; then report and err are set
	report report
	err    error
}

// startProcess starts self as a supervisor and gives it the order. The caller
// reads stdout and stderr to their ends and calls close. With merged, what goes to
// standard error comes out of stdout.
func startProcess(self string, o order, mark string, merged bool) (*process, error) {
	var opened []*os.File
	failed := func(err error) (*process, error) {
		for _, f := range opened {
			_ = f.Close()
		}
		return nil, err
	}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil
		}
		opened = append(opened, r, w)
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	ctlR, ctlW := pipe()
	repR, repW := pipe()
	if len(opened) != 10 {
		return failed(errors.New("no pipe for a program: too many files are open. Raise the limit (ulimit -n)"))
	}
	cmd := exec.Command(self, SuperviseCommand)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=2"}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	if merged {
		cmd.Stderr = outW
	}
	cmd.ExtraFiles = []*os.File{ctlR, repW}
	// A session of its own: Ctrl-C on the server's terminal is for the server, which
	// then ends its runs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return failed(fmt.Errorf("start the supervisor %s: %w", self, err))
	}
	for _, f := range []*os.File{inR, outW, errW, ctlR, repW} {
		_ = f.Close()
	}
	p := &process{stdin: inW, stdout: &output{pipe: outR}, stderr: &output{pipe: errR}, control: ctlW, cmd: cmd, mark: mark, ended: make(chan struct{})}
	p.watching.Go(func() { p.watch(repR) })
	// A supervisor that died before it read shows up as a missing report.
	if err := json.NewEncoder(ctlW).Encode(o); err != nil {
		p.stop(0)
	}
	return p, nil
}

// watch waits for the supervisor's report and end.
func (p *process) watch(rep *os.File) {
	defer close(p.ended)
	line, readErr := bufio.NewReader(rep).ReadBytes('\n')
	_ = rep.Close()
	if readErr == nil {
		_ = p.cmd.Process.Kill() // its work is done; how long it takes to leave is not the run's time
	}
	waitErr := p.cmd.Wait()
	if err := json.Unmarshal(line, &p.report); err != nil {
		sweep(p.mark)
		p.err = fmt.Errorf("the supervisor of the program ended without a report: %w", errors.Join(waitErr, readErr))
	}
	limit := time.Now().Add(drainTime)
	_ = p.stdout.pipe.SetReadDeadline(limit)
	_ = p.stderr.pipe.SetReadDeadline(limit)
}

// output is the server's end of one of a program's pipes.
type output struct {
	pipe *os.File
	late int // bytes that were read past the deadline
}

// Read goes on past the deadline while the pipe holds something: a program may have
// ended long before its lines are worked through, and its result is the last of them.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.pipe.Read(b)
	if n > 0 || !isDeadline(err) || o.late >= drainBytes {
		return n, err
	}
	_ = o.pipe.SetReadDeadline(time.Now().Add(drainTime))
	n, err = o.pipe.Read(b)
	o.late += n
	return n, err
}

func (o *output) Close() error { return o.pipe.Close() }

// stop ends the program and all below it. It returns at once; ended tells when it
// is done. A supervisor that takes much longer than the grace is killed itself.
func (p *process) stop(grace time.Duration) {
	p.stopOnce.Do(func() {
		_ = p.control.Close()
		p.watching.Go(func() {
			select {
			case <-p.ended:
			case <-time.After(grace + patience + time.Second):
				_ = p.cmd.Process.Kill() // bwrap or the program goes with it, by its parent-death signal
			}
		})
	})
}

// close ends what still runs and frees the pipes.
func (p *process) close() {
	p.stop(0)
	<-p.ended
	p.watching.Wait()
	for _, f := range []io.Closer{p.stdin, p.stdout, p.stderr} {
		_ = f.Close()
	}
}

// notStarted turns the reason that the kernel gave into a sentence with advice.
func notStarted(program string, u *unstarted) string {
	advice := "Check the agent's `command`."
	switch u.Errno {
	case syscall.ENOENT:
		advice = "Install it, or write its path in the agent's `command`. If it is a script, its first line may name a program that is missing."
	case syscall.EACCES:
		advice = "Make it executable (chmod +x)."
	case syscall.ENOEXEC:
		advice = "It is no program for this machine; a script needs a first line such as #!/bin/sh."
	}
	return fmt.Sprintf("%s could not be started: %s. %s", program, u, advice)
}
