package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// enterCommand follows SuperviseCommand in the process that becomes the program. It
// confines itself and not its supervisor, so that the supervisor stays out of the
// program's reach: what is confined may signal only what is confined with it.
const enterCommand = "enter"

// likelyVictim is what a run's processes say when the machine has no memory left: end me
// before the server.
const likelyVictim = "500"

// unstarted is why a program did not start, in words and as the kernel says it.
type unstarted struct {
	Why   string        `json:"why"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

func (u *unstarted) Error() string { return u.Why }

// asUnstarted is err so that it can go through a pipe.
func asUnstarted(err error) *unstarted {
	if u, ok := errors.AsType[*unstarted](err); ok {
		return u
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	return &unstarted{Why: err.Error(), Errno: errno}
}

// start runs the program of the order below this process and returns once the program
// itself runs, or could not be run.
func start(o order) (pid int, err error) {
	orders, refusals := [2]int{}, [2]int{}
	for _, pair := range []*[2]int{&orders, &refusals} {
		if err := unix.Pipe2(pair[:], unix.O_CLOEXEC); err != nil {
			return 0, fmt.Errorf("no pipe: %w", err)
		}
	}
	in, out := os.NewFile(uintptr(orders[1]), "order"), os.NewFile(uintptr(refusals[0]), "refusal")
	defer func() { _ = out.Close() }()
	pid, err = syscall.ForkExec("/proc/self/exe", []string{os.Args[0], SuperviseCommand, enterCommand}, &syscall.ProcAttr{
		Dir: o.Dir, Env: os.Environ(), Files: []uintptr{0, 1, 2, uintptr(orders[0]), uintptr(refusals[1])},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	_, _ = unix.Close(orders[0]), unix.Close(refusals[1])
	if err != nil {
		_ = in.Close()
		return 0, err
	}
	writeErr := errors.Join(json.NewEncoder(in).Encode(o), in.Close())
	why := new(unstarted)
	switch err = json.NewDecoder(out).Decode(why); err { // ends when the program runs: the pipe closes then
	case nil:
		err = why
	case io.EOF:
		err = writeErr
	}
	if err == nil {
		return pid, nil
	}
	_ = unix.Kill(pid, unix.SIGKILL)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return 0, err
}

// enter confines this process as its order says and becomes the program.
func enter() int {
	orders, refusal := os.NewFile(controlFD, "order"), os.NewFile(reportFD, "refusal")
	var o order
	err := json.NewDecoder(orders).Decode(&o)
	if err != nil {
		return 1 // the supervisor went away
	}
	if err = confineSelf(o); err == nil {
		err = syscall.Exec(o.Program, o.Args, o.Env)
	}
	_ = json.NewEncoder(refusal).Encode(asUnstarted(err))
	return 1
}

// confineSelf puts on this process, and so on the program that it becomes, what holds it.
func confineSelf(o order) error {
	// It may not be said in every container. Without it the kernel chooses by size alone.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(likelyVictim), 0)
	if n := uint64(o.Limits.Files); n > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("limit files: %w", err)
		}
	}
	if err := keepTo(o.Limits.CPU); err != nil {
		return fmt.Errorf("limit processors: %w", err)
	}
	if o.NoNetwork {
		if err := forbidSockets(); err != nil {
			return fmt.Errorf("forbid the network: %w", err)
		}
	}
	if o.Fence == nil {
		return nil
	}
	if err := o.Fence.close(); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if !o.Fence.Files {
		return nil // bubblewrap sheds capabilities itself, and needs some before
	}
	return dropCapabilities()
}

// keepTo leaves this process n of the processors that it may use, chosen by chance, so that
// runs do not all meet on the first.
func keepTo(n int) error {
	if n <= 0 {
		return nil
	}
	var may, kept unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return err
	}
	var all []int
	for i := range 8 * len(may) * 8 {
		if may.IsSet(i) {
			all = append(all, i)
		}
	}
	if n >= len(all) {
		return nil
	}
	for _, i := range rand.Perm(len(all))[:n] {
		kept.Set(all[i])
	}
	return unix.SchedSetaffinity(0, &kept)
}

// dropCapabilities keeps root from reading the server's memory and environment past
// Landlock. Without the right to shed capabilities there are none to shed: EPERM is fine.
func dropCapabilities() error {
	for capability := uintptr(0); ; capability++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err == unix.EINVAL || err == unix.EPERM {
			return nil
		}
		if err != nil {
			return fmt.Errorf("drop capabilities: %w", err)
		}
	}
}
