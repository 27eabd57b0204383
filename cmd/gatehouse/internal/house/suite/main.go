// Suite runs the module's tests for `make test`: all of them, on SQLite, on one throw-away PostgreSQL that it starts
// for all packages, and in a real browser. Its arguments are those of `go test`.
//
// It prints a line per package as go test does, what it waits for where that takes long, every failure in full, and last how many tests passed, failed and were
// skipped, and the time. A skipped test fails the run: a skip that nobody sees is a hole.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"gatehouse/orchestrator/store/pgtest"
)

// stopLimit is how long go test may take to end its tests after a Ctrl-C before it is killed.
const stopLimit = 10 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// program is the package of the program. Its tests, and those of packages below, start it hundreds of times.
const program = "gatehouse/cmd/gatehouse"

// longest are the packages whose tests take longest. They begin first, so that none of them is alone at the end.
var longest = []string{program, program + "/internal/browser", "gatehouse/orchestrator", "gatehouse/web", "gatehouse/approval/telegram",
	"gatehouse/orchestrator/store", "gatehouse/approval", "gatehouse/approval/sqlstore", "gatehouse/orchestrator/patch",
	"gatehouse/orchestrator/agent/command", program + "/cli", program + "/internal/house"}

// arguments divides those of go test into patterns of packages and flags.
func arguments(args []string) (patterns, flags []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			patterns = append(patterns, arg)
		}
	}
	return patterns, flags
}

// ordered puts the longest in front of the others.
func ordered(names []string) []string {
	place := func(name string) int {
		if at := slices.Index(longest, name); at >= 0 {
			return at
		}
		return len(longest)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return names
}

// programs builds what stories start as processes of their own, and returns it as variables of their environment: the
// program as people have it, and with the race detector for servers, the tests of the program. There are none where no
// story runs, or the tests run without the detector themselves.
func programs(ctx context.Context, names, flags []string) (variables []string, remove func(), err error) {
	none := func() {}
	of := func(name string) bool { return strings.HasPrefix(name, program) }
	if !slices.Contains(flags, "-race") || !slices.ContainsFunc(names, of) {
		return nil, none, nil
	}
	dir, err := os.MkdirTemp("", "gatehouse-suite")
	if err != nil {
		return nil, none, err
	}
	remove = func() { os.RemoveAll(dir) } //nolint:errcheck // the system's folder for what is temporary
	fmt.Println("Compiling the program that stories start; with an empty cache this takes some minutes.")
	race := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return slices.Contains(unwatched(flags), flag) })
	for variable, how := range map[string][]string{
		"GATEHOUSE_TEST_PROGRAM": {"build"},
		"GATEHOUSE_TEST_WATCHED": slices.Concat([]string{"test", "-c", "-vet=off"}, race),
	} {
		path := filepath.Join(dir, variable, "gatehouse")
		build := exec.CommandContext(ctx, "go", slices.Concat(how, []string{"-o", path, program})...)
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		if err := build.Run(); err != nil {
			remove()
			return nil, none, fmt.Errorf("build %s: %w", program, err)
		}
		variables = append(variables, variable+"="+path)
	}
	return variables, remove, nil
}

// pages is the package whose tests go through all pages.
const pages = "gatehouse/web"

// alone are tests of watched packages in which one thing happens after another, and much of it: tours of the pages, and
// cards by the hundred. The race detector sees nothing there that the other tests do not show it, and takes four fifths
// of their time.
const alone = "^(TestEveryPageInTheBrowser|TestThePagesReadAloud|TestHostileTextsStayText|TestEveryLinkLeadsSomewhere|" +
	"TestForgedAddressesAreAnsweredPlainly|TestATaskOfTenThousandDelegationsOpens|TestAnExportOfManyTasksHasItsCheckpoints|TestHistoryFigures|" +
	"TestEveryCardKeepsItsLimits)$"

// withAlone are the packages that have some of them.
var withAlone = []string{pages, "gatehouse/approval/telegram"}

// runs are the arguments of each go test, in the order in which they begin. What takes longest has one of its own, and
// no test is in none of them, also where one has another name by now.
func runs(p parts, flags []string) [][]string {
	test := func(flags []string, names ...string) []string {
		return slices.Concat([]string{"test", "-json"}, flags, names)
	}
	with := func(flags []string, first string) []string { return slices.Insert(slices.Clone(flags), 0, first) }
	if !slices.Contains(flags, "-race") {
		return [][]string{test(flags, slices.Concat(p.stories, p.watched, p.plain)...)}
	}
	one, chosen := unwatched(flags), func(flag string) bool { return strings.HasPrefix(flag, "-run") || strings.HasPrefix(flag, "-skip") }
	all := !slices.ContainsFunc(flags, chosen)
	var units [][]string
	var within, others, calm []string
	for _, name := range p.stories {
		if name == program && all && p.within != "" {
			units, within = append(units, test(with(one, "-skip="+p.within), name)), test(with(flags, "-run="+p.within), name)
		} else {
			units = append(units, test(one, name))
		}
	}
	for _, name := range p.watched {
		how := flags
		if all && slices.Contains(withAlone, name) {
			how, calm = with(flags, "-skip="+alone), append(calm, name)
		}
		if slices.Contains(longest, name) {
			units = append(units, test(how, name))
		} else {
			others = append(others, name)
		}
	}
	if within != nil {
		units = append(units, within)
	}
	if len(others) > 0 {
		units = append(units, test(flags, others...))
	}
	if len(calm) > 0 {
		units = slices.Insert(units, min(2, len(units)), test(with(with(one, "-run="+alone), "-p=1"), calm...))
	}
	if len(p.plain) > 0 {
		units = append(units, test(with(one, "-p=1"), p.plain...))
	}
	return units
}

// run returns whether every test passed; an error says that they could not be run to their end.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	began := time.Now()
	server, err := pgtest.Launch()
	if err != nil {
		return false, err
	}
	defer server.Close()

	patterns, flags := arguments(args)
	all, err := list(ctx, patterns)
	if err != nil {
		return false, err
	}
	divided, err := split(all)
	if err != nil {
		return false, err
	}
	built, remove, err := programs(ctx, slices.Concat(divided.watched, divided.plain, divided.stories), flags)
	if err != nil {
		return false, err
	}
	defer remove()

	// A process with the race detector sleeps for a second before it exits: each of these packages would.
	env := slices.Concat(os.Environ(), built,
		[]string{"GORACE=atexit_sleep_ms=0", "GATEHOUSE_TEST_ALL=1", "GATEHOUSE_TEST_POSTGRES=" + server.URL("postgres")})
	events, ended := start(ctx, runs(divided, flags), env)
	report := newReport(out)
	report.follow(events...) // to their end: go test has ended then, which their errors explain
	var waitErr error
	for _, end := range ended {
		waitErr = cmp.Or(waitErr, <-end)
	}
	report.close(time.Since(began))
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, fmt.Errorf("stopped: %w", ctx.Err())
	case errors.As(waitErr, &exit):
		return false, nil // the report has said why
	case waitErr != nil:
		return false, fmt.Errorf("run go test: %w", waitErr)
	}
	return report.ok(), nil
}

// start runs each go test, as many at once as there are processors: more of them make each other wait, and what waits for
// something looks for it. It returns what they say and how each row of them ended.
func start(ctx context.Context, units [][]string, env []string) (events []io.Reader, ended []chan error) {
	next := make(chan []string, len(units))
	for _, unit := range units {
		next <- unit
	}
	close(next)
	for range max(2, runtime.NumCPU()) {
		said, says := io.Pipe()
		end := make(chan error, 1)
		events, ended = append(events, said), append(ended, end)
		go func() {
			end <- follow(ctx, next, env, says)
			_ = says.Close() // it has no error
		}()
	}
	return events, ended
}

// follow runs one go test after another, also after one that failed, and returns the first error.
func follow(ctx context.Context, next <-chan []string, env []string, says io.Writer) error {
	var first error
	for args := range next {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = env, says, os.Stderr, stopLimit
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Run(); err != nil {
			first = cmp.Or(first, err)
		}
	}
	return first
}
