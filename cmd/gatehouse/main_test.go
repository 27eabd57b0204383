package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent/command"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// A server in this binary starts it again as the supervisor of its agents. Without
	// this it would run all tests there, which start servers, and so on.
	if len(os.Args) > 1 && os.Args[1] == command.SuperviseCommand {
		os.Exit(command.Supervise())
	}
	testscript.Main(light{m}, map[string]func(){"gatehouse": gatehouse})
}

// light lets stories start the program from the file that placetest.LightEnv names: with the race detector each of
// their hundreds of processes takes five times as long to start. Servers on SQLite are watched; see placetest.Watched.
type light struct{ *testing.M }

func (l light) Run() int {
	if program := os.Getenv(placetest.LightEnv); program != "" {
		if err := swap(program); err != nil {
			fmt.Fprintf(os.Stderr, "start the program from $%s: %v\n", placetest.LightEnv, err)
			return 1
		}
	}
	if err := placetest.Beside(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return l.M.Run()
}

// swap puts the program in the place of the gatehouse on PATH. Where placetest.Watched finds it goes the one that
// placetest.WatchedEnv names: these tests themselves run without the race detector.
func swap(program string) error {
	path, err := exec.LookPath("gatehouse")
	if err != nil {
		return err
	}
	aside := placetest.Watched(path)
	if err := os.Mkdir(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	if watched := os.Getenv(placetest.WatchedEnv); watched != "" {
		if err := errors.Join(os.Remove(aside), os.Symlink(watched, aside)); err != nil {
			return err
		}
	}
	return os.Symlink(program, path)
}
