package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// What a process before this one had started may still write for a moment after it was
// killed: git into a checkout, for one. So its folder is removed in several tries.
const (
	clearTries = 6
	clearPause = 50 * time.Millisecond // doubling
)

// clearRuns removes what attempts left on disk before this process started. What does not
// go is in nobody's way, because each attempt has a folder of its own; the next start
// tries again.
func (e *Engine) clearRuns(ctx context.Context) error {
	dir := filepath.Join(e.Data, "runs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of runs: %w", err)
	}
	pause := clearPause
	for try := 1; ; try++ {
		err := emptyFolder(dir)
		if err == nil {
			return nil
		}
		if try == clearTries {
			e.Log.Warn("what earlier runs left could not all be removed; the next start tries again", "folder", dir, "err", err)
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// emptyFolder removes what is in a folder and leaves the folder, which may be a mount.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if gone := os.RemoveAll(filepath.Join(dir, entry.Name())); entry.Name() != "lost+found" { // that of a file system of its own is root's
			err = errors.Join(err, gone)
		}
	}
	return err
}
