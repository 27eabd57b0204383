package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"
	"unsafe"

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

// machines are the kinds of processor that forbidSockets knows, as the kernel names them.
var machines = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in the kernel's struct seccomp_data, and the bit that marks amd64's second set
// of system calls (x32).
const (
	seccompNumber  = 0
	seccompMachine = 4
	secondSet      = 0x40000000
)

// CanCloseNetwork says whether network: off can be had on this machine.
func CanCloseNetwork() bool { _, ok := machines[runtime.GOARCH]; return ok }

// forbidSockets takes from this thread, and from what it starts, the right to make a
// socket of any kind, or a ring that could make one. Pairs of connected sockets stay: many
// programs talk to their own children so. Programs for another machine, such as 32-bit
// ones, have other numbers for the same calls, so they may make none at all.
func forbidSockets() error {
	machine, ok := machines[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("it is not known how on %s", runtime.GOARCH)
	}
	const load, equal, atLeast, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: seccompMachine},
		{Code: equal, K: machine, Jf: 5},
		{Code: load, K: seccompNumber},
		{Code: atLeast, K: secondSet, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 2},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 1},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
