package patch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gatehouse/orchestrator/patch"

	"golang.org/x/sys/unix"
)

// At a hop the agent runs on. It swaps a folder for a link out of the checkout and back,
// as fast as it can, to make the server read what the sandbox hides from the agent.
func TestAFolderSwappedForALinkLeadsNoSnapshotOutside(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	outside := t.TempDir()
	write(t, outside, files{"seal.pem": "the server's own secret\n"})
	dir := s.checkout()
	write(t, dir, files{"d/seal.pem": "x\n"})
	link := filepath.Join(dir, "e")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	defer swapping.Wait()
	defer close(stop)
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "d"), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	taken := 0
	for range 40 {
		snap, err := s.m.Snapshot(s.ctx, dir, s.base.Tree)
		var refusal *patch.Refusal
		switch {
		case errors.As(err, &refusal):
			continue
		case err != nil:
			t.Fatal(err)
		}
		taken++
		for _, change := range s.paths(s.base.Tree, snap.Tree) {
			_, name, _ := strings.Cut(change, " ")
			if strings.HasSuffix(name, "seal.pem") && strings.TrimSpace(s.content(snap.Tree, name)) != "x" {
				t.Fatalf("%s holds what lies outside of the checkout", name)
			}
		}
	}
	if taken == 0 {
		t.Error("no snapshot was taken, so nothing was tried")
	}
}
