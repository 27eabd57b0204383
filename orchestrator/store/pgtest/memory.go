package pgtest

import "syscall"

// A test's database is a copy of some 500 small files, whose making takes ten times as long on a disk as in memory.
// Where there is no such folder, or not enough room in it, as in most containers, the disk does.
const (
	memory = "/dev/shm"
	room   = 2 << 30 // bytes: the log, and the databases of all tests that run at once, at 10 MB each
)

// roomy reports whether a folder has room for a server.
func roomy(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && uint64(s.Bavail)*uint64(s.Bsize) >= room
}
