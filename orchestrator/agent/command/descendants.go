package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// proc is one line of the process table.
type proc struct {
	pid, parent, group int
	zombie             bool
	memory             int64 // resident, bytes
}

// processTable reads /proc. Processes that end meanwhile are left out.
func processTable() []proc {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var table []proc
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		if p, ok := parseStat(pid, stat); ok {
			table = append(table, p)
		}
	}
	return table
}

// parseStat reads one /proc/PID/stat. The program's name stands in parentheses and
// may hold anything, further parentheses too, so the fields count from the last.
func parseStat(pid int, stat []byte) (proc, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return proc{}, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 22 {
		return proc{}, false
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(fields[i]), 10, 64) // the kernel writes numbers
		return n
	}
	return proc{
		pid: pid, parent: int(number(1)), group: int(number(2)),
		zombie: fields[0][0] == 'Z', memory: number(21) * int64(os.Getpagesize()),
	}, true
}

// descendants returns every process below root. Below a subreaper that is all that
// was ever started there, whatever sessions and double forks it hides behind.
func descendants(root int) []proc {
	below := map[int][]proc{}
	for _, p := range processTable() {
		below[p.parent] = append(below[p.parent], p)
	}
	var found []proc
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, p := range below[next[0]] {
			found = append(found, p)
			next = append(next, p.pid)
		}
	}
	return found
}

// kill ends the processes, and their groups at one blow: a program that forks
// faster than a list of it is read cannot outrun that. No group reaches beyond
// the descendants, because the program was started in a session of its own.
func kill(procs []proc) {
	own := unix.Getpgrp()
	for _, p := range procs {
		if p.group > 1 && p.group != own {
			_ = unix.Kill(-p.group, unix.SIGKILL) // ESRCH: gone already
		}
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

// sweep kills every process whose environment holds the pair. It is for the case
// that the supervisor itself was killed, and finds what did not hide.
func sweep(pair string) {
	needle := []byte("\x00" + pair + "\x00")
	for _, p := range processTable() {
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
		if err == nil && bytes.Contains(append([]byte{0}, env...), needle) {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
	}
}
