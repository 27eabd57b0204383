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
var longest = []string{program, program + "/internal/browser", program + "/cli", "gatehouse/orchestrator", "gatehouse/web", "gatehouse/orchestrator/store", "gatehouse/approval/sqlstore"}

// packages lists what the arguments of go test name, the longest first, and its flags.
func packages(ctx context.Context, args []string) (names, flags []string, err error) {
	var patterns []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			patterns = append(patterns, arg)
		}
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list the packages %v: %w", patterns, err)
	}
	return ordered(strings.Fields(string(out))), flags, nil
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
// tests of the program, which are the program under its name, without the race detector, and with it for servers. There
// are none where no story runs, or the tests run without it themselves.
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
	race := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return flag != "-race" && !strings.HasPrefix(flag, "-gcflags=") })
	for variable, with := range map[string][]string{"GATEHOUSE_TEST_PROGRAM": nil, "GATEHOUSE_TEST_WATCHED": race} {
		path := filepath.Join(dir, variable, "gatehouse")
		args := slices.Concat([]string{"test", "-c", "-vet=off", "-o", path}, with, []string{program})
		build := exec.CommandContext(ctx, "go", args...)
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		if err := build.Run(); err != nil {
			remove()
			return nil, none, fmt.Errorf("build %s: %w", program, err)
		}
		variables = append(variables, variable+"="+path)
	}
	return variables, remove, nil
}

// tours of the pages ask one server one thing after another, so the race detector sees nothing there that the other tests
// do not show it, and takes four fifths of their time.
const (
	pages = "gatehouse/web"
	tours = "^(TestEveryPageInTheBrowser|TestThePagesReadAloud|TestHostileTextsStayText|TestEveryLinkLeadsSomewhere|" +
		"TestForgedAddressesAreAnsweredPlainly|TestATaskOfTenThousandDelegationsOpens|TestAnExportOfManyTasksHasItsCheckpoints|TestHistoryFigures)$"
)

// runs are the arguments of each go test: the tours run beside all others, without the detector. No test is in none of
// them, also where one has another name by now.
func runs(names, flags []string) [][]string {
	// One package more than there are processors: tests wait a lot. A -p among the arguments wins.
	all := slices.Concat([]string{"test", "-json", fmt.Sprintf("-p=%d", runtime.NumCPU()+1)}, flags, names)
	chosen := func(flag string) bool { return strings.HasPrefix(flag, "-run") || strings.HasPrefix(flag, "-skip") }
	if !slices.Contains(flags, "-race") || !slices.Contains(names, pages) || slices.ContainsFunc(flags, chosen) {
		return [][]string{all}
	}
	plain := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return flag == "-race" || strings.HasPrefix(flag, "-gcflags=") })
	return [][]string{
		slices.Insert(all, 2, "-skip="+tours),
		slices.Concat([]string{"test", "-json", "-run=" + tours}, plain, []string{pages}),
	}
}

// run returns whether every test passed; an error says that they could not be run to their end.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	began := time.Now()
	server, err := pgtest.Launch()
	if err != nil {
		return false, err
	}
	defer server.Close()

	names, flags, err := packages(ctx, args)
	if err != nil {
		return false, err
	}
	built, remove, err := programs(ctx, names, flags)
	if err != nil {
		return false, err
	}
	defer remove()

	// A process with the race detector sleeps for a second before it exits: each of these packages would.
	env := slices.Concat(os.Environ(), built,
		[]string{"GORACE=atexit_sleep_ms=0", "GATEHOUSE_TEST_ALL=1", "GATEHOUSE_TEST_POSTGRES=" + server.URL("postgres")})
	var started []*exec.Cmd
	var events []io.Reader
	for _, args := range runs(names, flags) {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env, cmd.Stderr, cmd.WaitDelay = env, os.Stderr, stopLimit
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		said, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return false, fmt.Errorf("start go test: %w", err)
		}
		started, events = append(started, cmd), append(events, said)
	}
	report := newReport(out)
	report.follow(events...) // to their end: go test has ended then, which Wait explains
	var waitErr error
	for _, cmd := range started {
		waitErr = cmp.Or(waitErr, cmd.Wait())
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
