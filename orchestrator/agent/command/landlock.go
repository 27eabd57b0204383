package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// minLandlock is the version that can also forbid truncation (Linux 6.2). An older
// one would let a program empty files that it may not write.
const minLandlock = 3

const (
	landlockRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	landlockFile = landlockRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	landlockAll  = landlockFile | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// fence says what Landlock lets a program do. Names can be listed everywhere.
type fence struct {
	Read  []string `json:"read"`
	Write []string `json:"write"`
}

// landlockVersion returns the version that the kernel has, 0 for none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// newFence lets a program read all but the hidden paths. Landlock has no "except",
// so beside each folder on the way to a hidden path its siblings are allowed.
func newFence(hide, write []string) *fence {
	var open func(dir string) []string
	open = func(dir string) []string {
		leads := slices.ContainsFunc(hide, func(h string) bool { return h == dir || within(h, dir) })
		switch {
		case slices.Contains(hide, dir):
			return nil
		case !leads:
			return []string{dir}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil
		}
		var paths []string
		for _, e := range entries {
			// A rule follows links, and a link's target has a place of its own.
			if e.Type()&os.ModeSymlink == 0 {
				paths = append(paths, open(filepath.Join(dir, e.Name()))...)
			}
		}
		return paths
	}
	return &fence{Read: open("/"), Write: write}
}

// close confines the calling thread and all that it starts from now on.
func (f *fence) close() error {
	if v := landlockVersion(); v < minLandlock {
		return fmt.Errorf("the kernel has version %d, %d is needed", v, minLandlock)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockAll}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return fmt.Errorf("create a rule set: %w", errno)
	}
	defer func() { _ = unix.Close(int(set)) }()
	if err := allow(int(set), "/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	for _, path := range f.Read {
		if err := allow(int(set), path, landlockRead|unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
	}
	for _, path := range append([]string{"/dev"}, f.Write...) {
		if err := allow(int(set), path, landlockAll); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return fmt.Errorf("apply: %w", errno)
	}
	return nil
}

// allow adds one rule. What cannot be opened now cannot be used later either.
func allow(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= landlockFile // other rights are refused on what is no folder
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", path, errno)
	}
	return nil
}

// within reports whether path lies below dir. Both are clean and absolute.
func within(path, dir string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+"/")
}
