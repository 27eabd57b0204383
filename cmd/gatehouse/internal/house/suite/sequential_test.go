package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsNotSequentialIsWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"computes":                {`import "strings"; func f() string { return strings.ToUpper("a") }`, true},
		"starts a goroutine":      {`func f() { go f() }`, false},
		"has one started":         {`import "context"; func f(g interface{ Go(func()) }, _ context.Context) { g.Go(func() {}) }`, false},
		"starts one later":        {`import "time"; func f() { time.AfterFunc(1, f) }`, false},
		"locks":                   {`import "sync"; var mu sync.Mutex`, false},
		"counts for several":      {`import "sync/atomic"; var n atomic.Int64`, false},
		"serves":                  {`import "net/http/httptest"; var s = httptest.NewServer(nil)`, false},
		"runs tests side by side": {`import "testing"; func TestX(t *testing.T) { t.Parallel() }`, false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a; "+tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, f := range []folder{
			{Dir: dir, GoFiles: []string{"a.go"}}, {Dir: dir, TestGoFiles: []string{"a.go"}}, {Dir: dir, XTestGoFiles: []string{"a.go"}},
		} {
			if got, err := f.sequential(); err != nil || got != tc.want {
				t.Errorf("%s: %t, want %t: %v", name, got, tc.want, err)
			}
		}
	}
}

// The rule is read off the sources, so that a package that begins to start goroutines is watched from then on.
func TestTheHouseIsSplitByItsSources(t *testing.T) {
	all, err := list(context.Background(), []string{"gatehouse/..."})
	if err != nil {
		t.Fatal(err)
	}
	watched, plain, err := split(all)
	if err != nil {
		t.Fatal(err)
	}
	if len(watched)+len(plain) != len(all) {
		t.Errorf("%d watched and %d plain of %d", len(watched), len(plain), len(all))
	}
	for _, name := range []string{"gatehouse/orchestrator", "gatehouse/orchestrator/store", "gatehouse/approval", "gatehouse/web", "gatehouse/handlers/stream", program} {
		if !slices.Contains(watched, name) {
			t.Errorf("%s is not watched", name)
		}
	}
	for _, name := range []string{"gatehouse/orchestrator/record/proof", "gatehouse/views", stories} {
		if !slices.Contains(plain, name) {
			t.Errorf("%s is watched: its tests take several times as long", name)
		}
	}
}

func TestEveryPackageIsRunOnce(t *testing.T) {
	watched, plain := []string{"gatehouse/orchestrator", pages}, []string{"gatehouse/views"}
	flags := []string{"-race", "-gcflags=modernc.org/libc=-race=false", "-count=1"}
	lines := func(watched, plain, flags []string) string {
		var said []string
		for n, lane := range runs(watched, plain, flags) {
			for _, args := range lane {
				args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-p=") })
				said = append(said, fmt.Sprintf("%d: %s\n", n, strings.Join(args, " ")))
			}
		}
		return strings.Join(said, "")
	}
	want := "0: test -json -skip=" + tours + " -race -gcflags=modernc.org/libc=-race=false -count=1 gatehouse/orchestrator gatehouse/web\n" +
		"1: test -json -count=1 gatehouse/views\n" + "1: test -json -run=" + tours + " -count=1 gatehouse/web\n"
	if got := lines(watched, plain, flags); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = "0: test -json -race -run=TestX gatehouse/orchestrator gatehouse/web\n"
	if got := lines(watched, nil, []string{"-race", "-run=TestX"}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = "0: test -json -count=1 gatehouse/orchestrator gatehouse/web gatehouse/views\n"
	if got := lines(watched, plain, flags[2:]); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := lines(nil, plain, flags); got != "0: test -json -count=1 gatehouse/views\n" {
		t.Errorf("got\n%s", got)
	}
}
