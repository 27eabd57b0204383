package command

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"gatehouse/orchestrator/agent"
)

const (
	// lookTime is how often a run's processes are looked at, and restFactor how much longer
	// than a look the rest after it is at least: watching takes no more than a twentieth of
	// a processor.
	lookTime   = 100 * time.Millisecond
	restFactor = 20
)

// overrun is a limit that a run went over.
type overrun struct {
	Code string `json:"code"`
	Text string `json:"text"` // what it used and what it may
}

// watch compares what a run uses with its limits.
type watch struct {
	limits agent.Limits
	dirs   []string
	before int64 // bytes in dirs before the program started
	most   agent.Limits
}

func newWatch(o order) *watch {
	w := &watch{limits: o.Limits, dirs: o.Written}
	if w.limits.Files > 0 {
		w.before = size(w.dirs)
	}
	return w
}

// run sends the first limit that was passed. It ends with done.
func (w *watch) run(done <-chan struct{}, over chan<- *overrun) {
	l := w.limits
	if l.Memory <= 0 && l.Processes <= 0 && l.Files <= 0 {
		return
	}
	var rest, filesRest time.Duration
	for filesAt := time.Now(); ; {
		select {
		case <-done:
			return
		case <-time.After(max(lookTime, rest)):
		}
		began := time.Now()
		o := w.processes()
		rest = restFactor * time.Since(began)
		if o == nil && l.Files > 0 && time.Since(filesAt) > max(10*lookTime, filesRest) {
			began = time.Now()
			o = w.files()
			filesAt, filesRest = time.Now(), restFactor*time.Since(began)
		}
		if o != nil {
			over <- o // there is room for one
			return
		}
	}
}

// processes looks at the whole tree of processes.
func (w *watch) processes() *overrun {
	if w.limits.Processes <= 0 && w.limits.Memory <= 0 {
		return nil
	}
	var held int64
	count := 0
	for _, p := range descendants(os.Getpid()) {
		if p.zombie {
			continue
		}
		count++
		if w.limits.Memory > 0 {
			held += memoryOf(p)
		}
	}
	w.most.Processes, w.most.Memory = max(w.most.Processes, count), max(w.most.Memory, held)
	switch l := w.limits; {
	case l.Processes > 0 && count > l.Processes:
		return &overrun{agent.CodeProcesses, fmt.Sprintf("%d processes at once; %d are allowed", count, l.Processes)}
	case l.Memory > 0 && held > l.Memory:
		return &overrun{agent.CodeMemory, fmt.Sprintf("%s of memory; %s are allowed", agent.Size(held), agent.Size(l.Memory))}
	}
	return nil
}

// files looks at what was written.
func (w *watch) files() *overrun {
	if w.limits.Files <= 0 {
		return nil
	}
	written := max(0, size(w.dirs)-w.before)
	w.most.Files = max(w.most.Files, written)
	if written > w.limits.Files {
		return &overrun{agent.CodeDisk, fmt.Sprintf("%s of files; %s are allowed", agent.Size(written), agent.Size(w.limits.Files))}
	}
	return nil
}

// memoryOf is what a process holds that is not a file's: the code of a program that many
// share would count for each of them. Where the kernel does not tell, it is all that is
// resident.
func memoryOf(p proc) int64 {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "status"))
	if err != nil {
		return 0 // it has ended
	}
	var sum int64
	known := false
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "RssAnon" && string(name) != "RssShmem" {
			continue
		}
		n, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		known = known || err == nil
		sum += n << 10
	}
	if !known {
		return p.memory
	}
	return sum
}

// size is how much room the folders take, each file once. What vanishes meanwhile, or may
// not be looked at, is left out.
func size(dirs []string) int64 {
	var sum int64
	seen := map[[2]uint64]bool{}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			info, err := e.Info()
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok || st.Nlink > 1 && !e.IsDir() && seen[[2]uint64{st.Dev, st.Ino}] {
				return nil
			}
			if st.Nlink > 1 && !e.IsDir() {
				seen[[2]uint64{st.Dev, st.Ino}] = true
			}
			sum += st.Blocks * 512
			return nil
		})
	}
	return sum
}
