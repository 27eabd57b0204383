package main

import (
	"context"
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
	p, err := split(all)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.watched) + len(p.plain) + len(p.stories); n != len(all) {
		t.Errorf("%d of %d packages run", n, len(all))
	}
	for _, name := range []string{"gatehouse/orchestrator", "gatehouse/orchestrator/store", "gatehouse/approval", "gatehouse/web", "gatehouse/handlers/stream"} {
		if !slices.Contains(p.watched, name) {
			t.Errorf("%s is not watched", name)
		}
	}
	for _, name := range []string{"gatehouse/orchestrator/record/proof", "gatehouse/views"} {
		if !slices.Contains(p.plain, name) {
			t.Errorf("%s is watched: its tests take several times as long", name)
		}
	}
	if !slices.Equal(p.stories, stories) || !strings.Contains(p.within, "TestHelpExamplesAreUnderstood") || strings.Contains(p.within, "TestMain") ||
		strings.Contains(p.within, "TestAKilledServerGoesOn") || strings.Contains(p.within, "TestTheDemo") {
		t.Errorf("stories: %q; in their own process: %q", p.stories, p.within)
	}
}

func TestEveryPackageIsRunOnce(t *testing.T) {
	p := parts{watched: []string{"gatehouse/orchestrator", pages, "gatehouse/handlers"}, plain: []string{"gatehouse/views"}, stories: stories, within: "^(TestY)$"}
	flags := []string{"-race", "-gcflags=modernc.org/libc=-race=false", "-count=1"}
	lines := func(p parts, flags []string) string {
		var said []string
		for _, args := range runs(p, flags) {
			said = append(said, strings.Join(args[2:], " ")+"\n")
		}
		return strings.Join(said, "")
	}
	race := strings.Join(flags, " ")
	want := "-skip=^(TestY)$ -count=1 gatehouse/cmd/gatehouse\n-count=1 gatehouse/cmd/gatehouse/internal/browser\n" +
		"-p=1 -run=" + alone + " -count=1 gatehouse/web\n" +
		race + " gatehouse/orchestrator\n-skip=" + alone + " " + race + " gatehouse/web\n" +
		"-run=^(TestY)$ " + race + " gatehouse/cmd/gatehouse\n" + race + " gatehouse/handlers\n-p=1 -count=1 gatehouse/views\n"
	if got := lines(p, flags); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = "-run=TestX gatehouse/cmd/gatehouse\n-run=TestX gatehouse/cmd/gatehouse/internal/browser\n" +
		"-race -run=TestX gatehouse/orchestrator\n-race -run=TestX gatehouse/web\n-race -run=TestX gatehouse/handlers\n-p=1 -run=TestX gatehouse/views\n"
	if got := lines(p, []string{"-race", "-run=TestX"}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want = "-count=1 gatehouse/cmd/gatehouse gatehouse/cmd/gatehouse/internal/browser gatehouse/orchestrator gatehouse/web gatehouse/handlers gatehouse/views\n"
	if got := lines(p, flags[2:]); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := lines(parts{plain: p.plain}, flags); got != "-p=1 -count=1 gatehouse/views\n" {
		t.Errorf("got\n%s", got)
	}
}
