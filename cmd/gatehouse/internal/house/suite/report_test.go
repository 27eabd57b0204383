package main

import (
	"strings"
	"testing"
	"time"
)

func told(lines ...string) (string, bool) {
	var out strings.Builder
	r := newReport(&out)
	for _, line := range lines {
		r.read([]byte(line + "\n"))
	}
	r.close(61 * time.Second)
	return out.String(), r.ok()
}

func TestAGreenRunIsShort(t *testing.T) {
	got, ok := told(
		`{"Action":"run","Package":"gatehouse/a","Test":"TestX"}`,
		`{"Action":"output","Package":"gatehouse/a","Test":"TestX","Output":"chatter\n"}`,
		`{"Action":"pass","Package":"gatehouse/a","Test":"TestX"}`,
		`{"Action":"output","Package":"gatehouse/a","Output":"ok  \tgatehouse/a\t1.2s\n"}`,
		`{"Action":"pass","Package":"gatehouse/a"}`,
		`{"Action":"skip","Package":"gatehouse/without-tests"}`,
	)
	want := "ok  \tgatehouse/a\t1.2s\n\nTests took 1m1s.\n1 passed, 0 failed, 0 skipped\n"
	if got != want || !ok {
		t.Errorf("ok %t, got:\n%s\nwant:\n%s", ok, got, want)
	}
}

func TestWhatFailsARun(t *testing.T) {
	passed := `{"Action":"pass","Package":"gatehouse/a","Test":"TestX"}`
	for name, tc := range map[string]struct {
		lines []string
		want  []string
	}{
		"a failed test, with all it said": {
			[]string{
				passed,
				`{"Action":"output","Package":"gatehouse/a","Test":"TestY","Output":"got 1, want 2\n"}`,
				`{"Action":"fail","Package":"gatehouse/a","Test":"TestY"}`,
				`{"Action":"output","Package":"gatehouse/a","Output":"FAIL\tgatehouse/a\t0.1s\n"}`,
				`{"Action":"fail","Package":"gatehouse/a"}`,
			},
			[]string{"failed: gatehouse/a TestY; what it said comes last\n", "--- failed: gatehouse/a TestY\ngot 1, want 2", "\nFAIL\tgatehouse/a\t0.1s\n", "1 passed, 1 failed"},
		},
		"a skipped test, with its reason": {
			[]string{
				passed,
				`{"Action":"output","Package":"gatehouse/a","Test":"TestZ","Output":"needs a browser\n"}`,
				`{"Action":"skip","Package":"gatehouse/a","Test":"TestZ"}`,
			},
			[]string{"gatehouse/a TestZ\nneeds a browser", "1 passed, 0 failed, 1 skipped"},
		},
		"a package that does not build": {
			[]string{
				passed,
				`{"ImportPath":"gatehouse/b [gatehouse/b.test]","Action":"build-output","Output":"b.go:1: undefined: x\n"}`,
				`{"ImportPath":"gatehouse/b [gatehouse/b.test]","Action":"build-fail"}`,
				`{"Action":"fail","Package":"gatehouse/b"}`,
			},
			[]string{"b.go:1: undefined: x"},
		},
		"a binary that dies outside any test": {
			[]string{
				passed,
				`{"Action":"output","Package":"gatehouse/b","Output":"found unexpected goroutines\n"}`,
				`{"Action":"fail","Package":"gatehouse/b"}`,
			},
			[]string{"found unexpected goroutines"},
		},
		"no test at all": {nil, []string{"0 passed"}},
	} {
		got, ok := told(tc.lines...)
		if ok {
			t.Errorf("%s: the run is green", name)
		}
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: nothing says %q in:\n%s", name, want, got)
			}
		}
	}
}

func TestWordsOfTheGoCommandArePassedOn(t *testing.T) {
	if got, _ := told("go: cannot find main module"); !strings.HasPrefix(got, "go: cannot find main module\n") {
		t.Errorf("got %q", got)
	}
}

func TestALongSilenceSaysWhatIsWaitedFor(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	at := r.start
	r.now = func() time.Time { return at }
	after := func(d time.Duration, lines ...string) {
		for _, line := range lines {
			r.read([]byte(line + "\n"))
		}
		at = at.Add(d)
		r.waits()
	}
	after(silence - time.Second)
	after(time.Second)
	after(silence-time.Second,
		`{"Action":"run","Package":"gatehouse/a","Test":"TestX"}`,
		`{"Action":"run","Package":"gatehouse/a","Test":"TestX/deep"}`,
		`{"Action":"run","Package":"gatehouse/a","Test":"TestLater"}`,
		`{"Action":"pause","Package":"gatehouse/a","Test":"TestLater"}`,
		`{"Action":"run","Package":"gatehouse/b","Test":"TestY"}`,
		`{"Action":"pass","Package":"gatehouse/b","Test":"TestY"}`)
	after(time.Second)
	after(silence, `{"Action":"cont","Package":"gatehouse/a","Test":"TestLater"}`, `{"Action":"pass","Package":"gatehouse/a","Test":"TestX/deep"}`, `{"Action":"pass","Package":"gatehouse/a","Test":"TestX"}`)
	want := "     20s  0 tests passed; compiling\n" +
		"     40s  1 tests passed; waiting for a TestX/deep (20 s)\n" +
		"    1m0s  3 tests passed; waiting for a TestLater (20 s)\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}

func TestTheLongestPackagesBeginFirst(t *testing.T) {
	got := strings.Join(ordered([]string{"gatehouse/approval", "gatehouse/cmd/gatehouse", "gatehouse/orchestrator", "gatehouse/views", "gatehouse/web"}), " ")
	if want := "gatehouse/cmd/gatehouse gatehouse/orchestrator gatehouse/web gatehouse/approval gatehouse/views"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Two runs are read at once, to the end of both.
func TestRunsAreFollowedTogether(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	r.follow(strings.NewReader(`{"Action":"pass","Package":"a","Test":"TestX"}`+"\n"), strings.NewReader(`{"Action":"pass","Package":"a","Test":"TestY"}`))
	if r.passed != 2 || !r.ok() {
		t.Errorf("%d passed", r.passed)
	}
}
