package patch_test

import (
	"os"
	"path/filepath"
	"testing"

	"gatehouse/orchestrator/patch"
)

// TestWhatStandsAtAPath: a path is taken as it is written, whatever git would make of it.
func TestWhatStandsAtAPath(t *testing.T) {
	s := given(t, files{"run.sh": "x", "bin/größe *.sh": "x", "bin/other.sh": "x"})
	if err := os.Symlink("run.sh", filepath.Join(s.source, "link")); err != nil {
		t.Fatal(err)
	}
	git(t, s.source, "add", "-A")
	git(t, s.source, "update-index", "--chmod=+x", "run.sh")
	git(t, s.source, "commit", "-q", "-m", "more")
	s.fetch()
	for path, want := range map[string]patch.Entry{
		"run.sh": patch.Executable, "bin/größe *.sh": patch.Plain, "link": patch.Link, "bin": patch.Folder,
		"bin/*.sh": patch.NoEntry, "gone": patch.NoEntry, ":(top)run.sh": patch.NoEntry, "-r": patch.NoEntry,
	} {
		got, err := s.m.EntryAt(s.ctx, s.base.Tree, path)
		if err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := s.m.EntryAt(s.ctx, "HEAD", "run.sh"); err == nil {
		t.Error("a name was taken for a tree")
	}
}
