package command

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
