package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/orchestrator/agent"
)

// SuperviseCommand is the hidden subcommand under which a program of the name
// Options.Self must call Supervise, before it does anything else.
const SuperviseCommand = "supervise"

const (
	controlFD = 3 // from the server: the order, then nothing until it closes
	reportFD  = 4 // to the server: the report

	// patience is how long the supervisor tries to kill what does not die, such as
	// a process that waits for a dead disk.
	patience = 5 * time.Second
)

// order is what the server tells the supervisor, as one line of JSON.
type order struct {
	Program   string        `json:"program"`
	Args      []string      `json:"args"` // with the program's name first
	Dir       string        `json:"dir"`
	Env       []string      `json:"env"`
	Grace     time.Duration `json:"grace"`   // between SIGTERM and SIGKILL
	Wrapped   bool          `json:"wrapped"` // Program is bwrap: the SIGTERM is for those inside
	Fence     *fence        `json:"fence,omitempty"`
	Limits    agent.Limits  `json:"limits,omitzero"`
	Written   []string      `json:"written,omitempty"` // the folders that Limits.Files is about
	NoNetwork bool          `json:"no_network,omitempty"`
}

// report is how the program ended. It is written when nothing is left of it.
type report struct {
	NotStarted *unstarted   `json:"not_started,omitempty"`
	Code       int          `json:"code"`
	Signal     int          `json:"signal"`
	Stopped    bool         `json:"stopped"` // on request, before the program ended by itself
	Over       *overrun     `json:"over,omitempty"`
	Most       agent.Limits `json:"most,omitzero"`
	Left       int          `json:"left,omitempty"` // processes that could not be killed
}

// Supervise is the supervisor's process: it runs one program and leaves nothing of
// it behind. It returns the exit code of the supervisor, not of the program.
func Supervise() int {
	// no_new_privs, the parent-death signal and what enter sets belong to a thread; all of
	// them are set on the one that starts the program and stays until the end.
	runtime.LockOSThread()
	var st unix.Stat_t
	if unix.Fstat(controlFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		fmt.Fprintf(os.Stderr, "gatehouse %s runs an agent's program for the server. It does nothing by hand.\n", SuperviseCommand)
		return 2
	}
	// Not only our own two: what the server itself inherited is not the program's.
	if err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(controlFD)
		unix.CloseOnExec(reportFD)
	}
	if len(os.Args) > 2 && os.Args[2] == enterCommand {
		return enter()
	}
	control := bufio.NewReader(os.NewFile(controlFD, "control"))
	out := os.NewFile(reportFD, "report")

	var o order
	line, err := control.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &o)
	}
	if err != nil {
		return 1 // the server went away before it said what to do
	}
	rep := supervise(o, control)
	if err := json.NewEncoder(out).Encode(rep); err != nil {
		return 1
	}
	return 0
}

// supervise starts the program and returns once it and all below it are gone.
func supervise(o order, control io.Reader) report {
	parent := os.Getppid()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGUSR1)
	if err := harden(); err != nil {
		return report{NotStarted: asUnstarted(err)}
	}
	w := newWatch(o)
	pid, err := start(o)
	if err != nil {
		return report{NotStarted: asUnstarted(err)}
	}
	letGoOfStdio()

	s := &supervision{order: o, pid: pid, ended: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	go s.reap()
	over, watched, stopWatch := make(chan *overrun, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		w.run(stopWatch, over)
	}()
	rep := s.until(over, control, signals, parent)
	close(stopWatch)
	<-watched
	if rep.Over == nil && !rep.Stopped {
		rep.Over = w.files() // what was written in the last moment counts, too
	}
	rep.Most = w.most
	return rep
}

// until returns when the program has ended, was told to, or went over a limit.
func (s *supervision) until(over <-chan *overrun, control io.Reader, signals <-chan os.Signal, parent int) report {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, control) // ends when the server closes the pipe or dies
	}()
	for {
		select {
		case status := <-s.ended:
			return s.finish(status)
		case <-closed:
			return s.stop()
		case sig := <-signals:
			// SIGUSR1 says that the thread that started us has ended, which need not be
			// the end of the server.
			if sig != unix.SIGUSR1 || os.Getppid() != parent {
				return s.stop()
			}
		case o := <-over:
			rep := s.stop()
			rep.Over = o
			return rep
		}
	}
}

// harden makes this process the one that its descendants fall back to, and takes from all
// of them the ways to more rights.
func harden() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGUSR1), 0, 0, 0); err != nil {
		return fmt.Errorf("follow the server: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}

// letGoOfStdio leaves the pipes to the program alone, so that the server sees when
// the program closes them.
func letGoOfStdio() {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	for fd := range 3 {
		_ = unix.Dup3(null, fd, 0)
	}
	_ = unix.Close(null)
}

// supervision is one program and all below it.
type supervision struct {
	order order
	pid   int
	ended chan syscall.WaitStatus // the program itself, once
	gone  chan struct{}           // closed when no descendant is left
}

// reap collects every process that ended below. A subreaper without children has
// no descendants: whoever loses its parent becomes a child.
func (s *supervision) reap() {
	defer close(s.gone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		case pid == s.pid:
			s.ended <- status
		}
	}
}

// finish kills what the program left behind: it must neither go on writing into
// the checkout nor hold the pipes open.
func (s *supervision) finish(status syscall.WaitStatus) report {
	left := s.killAll()
	return report{Code: status.ExitStatus(), Signal: signalOf(status), Left: left}
}

// stop asks everybody to end, waits for the grace, and kills the rest.
func (s *supervision) stop() report {
	for _, p := range descendants(os.Getpid()) {
		// bwrap takes all inside with it when it ends, and there would be no grace.
		if !s.order.Wrapped || p.pid != s.pid {
			_ = unix.Kill(p.pid, unix.SIGTERM)
		}
	}
	select {
	case <-s.gone:
	case <-time.After(s.order.Grace):
	}
	left := s.killAll()
	rep := report{Stopped: true, Left: left}
	select {
	case status := <-s.ended:
		rep.Code, rep.Signal = status.ExitStatus(), signalOf(status)
	default:
	}
	return rep
}

// killAll kills until nothing is left, and returns how many would not die.
func (s *supervision) killAll() int {
	deadline := time.Now().Add(patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		procs := descendants(os.Getpid())
		kill(procs)
		select {
		case <-s.gone:
			return 0
		case <-time.After(pause):
		}
		if time.Now().After(deadline) {
			return len(procs)
		}
	}
}

func signalOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return int(status.Signal())
	}
	return 0
}
