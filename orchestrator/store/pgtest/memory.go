package pgtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A test's database is a copy of some 500 small files, whose making takes ten times as long on a disk as in memory.
// Where there is no such folder, or not enough room in it, as in most containers, the disk does.
const (
	memory = "/dev/shm"
	room   = 2 << 30 // bytes: the log, and the databases of all tests that run at once, at 10 MB each

	prefix = "gh-" // begins the names of folders in memory; short, as names of sockets have at most 108 bytes
)

// roomy reports whether a folder has room for a server.
func roomy(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && uint64(s.Bavail)*uint64(s.Bsize) >= room
}

// Tests are those of a package with their temporary folders in memory.
type Tests struct{ *testing.M }

// InMemory lets a package's tests make their databases and repositories in memory: nothing of them has to outlive the
// tests, and on a disk a third of the time goes into making, syncing and removing them. It is nothing for tests of
// sandboxes, which leave [memory] open to programs. The disk does where there is no room, where no program can be run, and
// where figures are taken.
func InMemory(m *testing.M) Tests { return Tests{m} }

// Run is that of [testing.M].
func (t Tests) Run() int {
	dir, err := folder()
	if err != nil {
		return t.M.Run()
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the next one removes what is left
	if err := os.Setenv("TMPDIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, "tests use the disk:", err)
	}
	return t.M.Run()
}

// Folder is a test's folder in memory, for a database alone: programs in a sandbox see it. The disk does where memory does
// not; see [InMemory].
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := folder()
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the next process removes what is left
	return dir
}

// measured reports whether these tests take figures, for which a commit has to wait for the disk.
func measured() bool {
	if !flag.Parsed() { // before the tests run: afterwards several of them ask at once
		flag.Parse()
	}
	bench := flag.Lookup("test.bench")
	return bench != nil && bench.Value.String() != "" || slices.ContainsFunc([]string{"EVENTS", "MANY", "ROUNDS", "STREAMS"}, func(name string) bool {
		return os.Getenv("GATEHOUSE_TEST_"+name) != ""
	})
}

// folder makes a folder in memory in which programs can be run, and removes those whose processes were killed.
func folder() (string, error) {
	if measured() || !roomy(memory) {
		return "", errors.New("not for memory")
	}
	old, _ := filepath.Glob(filepath.Join(memory, prefix+"*")) // the pattern is a good one
	for _, dir := range old {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && syscall.Kill(n, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir) // somebody else's may stay
		}
	}
	dir, err := os.MkdirTemp(memory, prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", err
	}
	try := filepath.Join(dir, "try")
	if err = os.WriteFile(try, []byte("#!/bin/sh\n"), 0o755); err == nil {
		err = exec.Command(try).Run()
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, os.Remove(try)
}
