package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// The versions of Landlock that make a difference here.
const (
	// landlockFiles can also forbid truncation (Linux 6.2). An older one would let a
	// program empty files that it may not write.
	landlockFiles = 3
	// landlockScopes keeps signals and abstract sockets to the run itself (Linux 6.12).
	landlockScopes = 6
	// landlockSockets also guards sockets that have a path.
	landlockSockets = 9
)

const (
	landlockRead = llsys.AccessFSExecute | llsys.AccessFSReadFile
	landlockFile = landlockRead | llsys.AccessFSWriteFile | llsys.AccessFSTruncate | llsys.AccessFSResolveUnix
	landlockLook = landlockRead | llsys.AccessFSReadDir | llsys.AccessFSResolveUnix
)

// fence says what Landlock lets a program do. Names can be listed everywhere. Without
// Files only the scopes hold: bubblewrap sees to the files then.
type fence struct {
	Files bool     `json:"files"`
	Read  []string `json:"read,omitempty"`
	Write []string `json:"write,omitempty"`
}

// landlockVersion returns the version that the kernel has, 0 for none.
func landlockVersion() int {
	v, err := llsys.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
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
	return &fence{Files: true, Read: open("/"), Write: write}
}

// close confines this process and all that it starts from now on. What the kernel is too
// old for is left out, and Machine says so; what the run cannot do without is an error.
func (f *fence) close() error {
	scopes := landlock.Config{Scoped: landlock.V6.Scoped}
	if !f.Files {
		return scopes.BestEffort().RestrictScoped()
	}
	if v := landlockVersion(); v < landlockFiles {
		return fmt.Errorf("the kernel has version %d, %d is needed", v, landlockFiles)
	}
	// Ioctls on devices stay allowed: a terminal needs them, and only /dev is writable.
	files := landlock.V9.HandledAccessFS &^ llsys.AccessFSIoctlDev
	rules := []landlock.Rule{landlock.PathAccess(llsys.AccessFSReadDir, "/")}
	for _, path := range f.Read {
		rules = append(rules, ruleFor(path, landlockLook)...)
	}
	for _, path := range append([]string{"/dev"}, f.Write...) {
		rules = append(rules, ruleFor(path, files)...)
	}
	return landlock.Config{HandledAccessFS: files, Scoped: scopes.Scoped}.BestEffort().Restrict(rules...)
}

// ruleFor allows access below a path. What cannot be looked at now cannot be used later
// either; what is no folder takes fewer rights.
func ruleFor(path string, access landlock.AccessFSSet) []landlock.Rule {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if !st.IsDir() {
		access &= landlockFile
	}
	return []landlock.Rule{landlock.PathAccess(access, path).IgnoreIfMissing()}
}

// within reports whether path lies below dir. Both are clean and absolute.
func within(path, dir string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+"/")
}
