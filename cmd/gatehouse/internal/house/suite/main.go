// Suite runs the module's tests for `make test`: all of them, on SQLite, on one throw-away PostgreSQL that it starts
// for all packages, and in a real browser. Its arguments are those of `go test`.
//
// It prints a line per package as go test does, every failure in full, and last how many tests passed, failed and were
// skipped, and the time. A skipped test fails the run: a skip that nobody sees is a hole.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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

// stories is the package whose tests start the program hundreds of times.
const stories = "gatehouse/cmd/gatehouse"

// light builds the test binary of the stories without the race detector and returns its path, "" where they are not run
// or run without it themselves.
func light(ctx context.Context, args []string) (program string, remove func(), err error) {
	none := func() {}
	if !slices.Contains(args, "-race") {
		return "", none, nil
	}
	patterns := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	list, err := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		return "", none, fmt.Errorf("list the packages %v: %w", patterns, err)
	}
	if !slices.Contains(strings.Fields(string(list)), stories) {
		return "", none, nil
	}
	dir, err := os.MkdirTemp("", "gatehouse-suite")
	if err != nil {
		return "", none, err
	}
	remove = func() { os.RemoveAll(dir) } //nolint:errcheck // the system's folder for what is temporary
	program = filepath.Join(dir, "gatehouse")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", program, stories)
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		remove()
		return "", none, fmt.Errorf("build %s without the race detector: %w", stories, err)
	}
	return program, remove, nil
}

// run returns whether every test passed; an error says that they could not be run to their end.
func run(ctx context.Context, args []string, out io.Writer) (bool, error) {
	began := time.Now()
	server, err := pgtest.Launch()
	if err != nil {
		return false, err
	}
	defer server.Close()

	program, remove, err := light(ctx, args)
	if err != nil {
		return false, err
	}
	defer remove()

	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), "GATEHOUSE_TEST_ALL=1", "GATEHOUSE_TEST_POSTGRES="+server.URL("postgres"), "GATEHOUSE_TEST_PROGRAM="+program)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopLimit
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, fmt.Errorf("start go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("start go test: %w", err)
	}
	report := newReport(out)
	lines := bufio.NewReader(events)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(line) > 0 {
			report.read(line)
		}
		if readErr != nil {
			break // go test has ended, which Wait explains
		}
	}
	waitErr := cmd.Wait()
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
