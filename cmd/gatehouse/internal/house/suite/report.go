package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// slow is a test with the seconds that it took, the subtests' included.
type slow struct {
	test    string
	seconds float64
}

// slowest is how many slow tests are named at the end: where the time goes.
const slowest = 12

// report condenses the events of a run. It writes a package's own line as soon as the package is done, and keeps the
// output of tests until they are known to have passed.
type report struct {
	out      io.Writer
	output   map[string]*strings.Builder // by package and test; builds by import path
	order    []string                    // failed tests and builds, in the order they failed
	skips    []string
	packages []string // the lines of failed packages
	slow     []slow
	began    map[string]time.Time // tests that have not ended; zero while one waits for its turn
	spoke    time.Time            // when it last wrote a line
	now      func() time.Time
	start    time.Time

	passed, failed, skipped int
}

// silence is how long a run may say nothing before it says what it waits for.
const silence = 20 * time.Second

func newReport(out io.Writer) *report {
	r := &report{output: map[string]*strings.Builder{}, began: map[string]time.Time{}, now: time.Now, start: time.Now()}
	r.out, r.spoke = spoken{r, out}, r.start
	return r
}

// spoken notes when something was written.
type spoken struct {
	*report
	to io.Writer
}

func (s spoken) Write(b []byte) (int, error) {
	s.spoke = s.now()
	return s.to.Write(b)
}

// waits says what the run waits for, once it has said nothing for a while.
func (r *report) waits() {
	if r.now().Sub(r.spoke) < silence {
		return
	}
	var running []slow
	for key, at := range r.began {
		if !at.IsZero() && !r.parent(key) {
			running = append(running, slow{key, r.now().Sub(at).Seconds()})
		}
	}
	slices.SortFunc(running, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
	var words []string
	for _, s := range running[:min(3, len(running))] {
		words = append(words, fmt.Sprintf("%s (%.0f s)", strings.TrimPrefix(s.test, "gatehouse/"), s.seconds))
	}
	what := "waiting for " + strings.Join(words, ", ")
	switch {
	case len(words) == 0:
		what = "compiling"
	case len(running) > len(words):
		what += fmt.Sprintf(" and %d more", len(running)-len(words))
	}
	fmt.Fprintf(r.out, "%8s  %d tests passed; %s\n", r.now().Sub(r.start).Round(time.Second), r.passed, what)
}

// runs keeps track of the tests that run.
func (r *report) runs(e event, key string) {
	switch e.Action {
	case "run", "cont":
		r.began[key] = r.now()
	case "pause":
		r.began[key] = time.Time{}
	case "pass", "fail", "skip":
		delete(r.began, key)
	}
}

// parent tells whether a test waits for others, which it began.
func (r *report) parent(key string) bool {
	for other := range r.began {
		if strings.HasPrefix(other, key+"/") {
			return true
		}
	}
	return false
}

// follow reads the lines of a run to their end.
func (r *report) follow(events ...io.Reader) {
	lines := make(chan []byte)
	var readers sync.WaitGroup
	for _, one := range events {
		readers.Go(func() {
			for from := bufio.NewReader(one); ; {
				line, err := from.ReadBytes('\n')
				if len(line) > 0 {
					lines <- line
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() {
		readers.Wait()
		close(lines)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return
			}
			r.read(line)
		case <-tick.C:
			r.waits()
		}
	}
}

// read takes one line. What is not an event, such as a message of the go command itself, is passed on as it is.
func (r *report) read(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		_, _ = r.out.Write(line)
		return
	}
	key := e.Package + " " + e.Test
	r.runs(e, key)
	switch e.Action {
	case "build-output":
		r.keep(e.ImportPath, e.Output)
	case "build-fail":
		r.order = append(r.order, e.ImportPath)
	case "output":
		r.keep(key, e.Output)
		if e.Test == "" {
			r.packageLine(e.Output)
		}
	case "pass":
		delete(r.output, key)
		if e.Test != "" {
			r.passed++
			if !strings.Contains(e.Test, "/") {
				r.slow = append(r.slow, slow{key, e.Elapsed})
			}
		}
	case "skip":
		if e.Test != "" { // a package without tests is skipped too
			r.skipped++
			r.skips = append(r.skips, key)
		}
	case "fail":
		if e.Test != "" {
			r.failed++
			fmt.Fprintf(r.out, "failed: %s; what it said comes last\n", key)
		}
		r.order = append(r.order, key)
	}
}

func (r *report) keep(key, text string) {
	if r.output[key] == nil {
		r.output[key] = &strings.Builder{}
	}
	r.output[key].WriteString(text)
}

// packageLine prints what go test says of a whole package; failed ones wait for the end, where they are seen.
func (r *report) packageLine(text string) {
	switch {
	case strings.HasPrefix(text, "ok  \t"):
		_, _ = io.WriteString(r.out, text)
	case strings.HasPrefix(text, "FAIL\t"):
		_, _ = io.WriteString(r.out, text)
		r.packages = append(r.packages, text)
	}
}

func (r *report) ok() bool {
	return r.failed == 0 && r.skipped == 0 && len(r.order) == 0 && r.passed > 0
}

// close writes what went wrong, then the totals.
func (r *report) close(took time.Duration) {
	for _, key := range r.order {
		if r.output[key] == nil {
			continue
		}
		fmt.Fprintf(r.out, "\n--- failed: %s\n%s", strings.TrimSpace(key), r.output[key])
	}
	for _, key := range r.skips {
		fmt.Fprintf(r.out, "\n--- skipped, which fails the run: %s\n", key)
		if r.output[key] != nil {
			fmt.Fprint(r.out, r.output[key])
		}
	}
	if len(r.packages) > 0 {
		fmt.Fprintf(r.out, "\n%s", strings.Join(r.packages, ""))
	}
	slices.SortFunc(r.slow, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, s := range r.slow[:min(slowest, len(r.slow))] {
		if s.seconds >= 1 {
			fmt.Fprintf(r.out, "%5.0f s  %s\n", s.seconds, s.test)
		}
	}
	fmt.Fprintf(r.out, "\nTests took %s.\n%d passed, %d failed, %d skipped\n",
		took.Round(time.Second), r.passed, r.failed, r.skipped)
}
