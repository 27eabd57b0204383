package placetest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
)

// LightEnv names the program as people have it. WatchedEnv names its tests, which are the program where they are started
// under its name: with the race detector, and able to die where a story wants it.
const (
	LightEnv   = "GATEHOUSE_TEST_PROGRAM"
	WatchedEnv = "GATEHOUSE_TEST_WATCHED"
)

// NoSleep spares every process of a race build its second of sleep before it exits.
const NoSleep = "atexit_sleep_ms=0"

// atOnce is how many stories run beside one another for each processor: most of the time they wait, for a lease, a
// poll or a person.
const atOnce = 2

// Main runs the tests of a package with the program on PATH, as gatehouse. Its result is an exit code.
func Main(m *testing.M) int {
	folder, err := os.MkdirTemp("", "gatehouse-program")
	if err == nil {
		defer os.RemoveAll(folder) //nolint:errcheck // the system's folder for what is temporary
		err = install(folder)
	}
	if err == nil {
		err = Beside()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Beside lets stories run beside one another, more than there are processors.
func Beside() error {
	return flag.Set("test.parallel", strconv.Itoa(atOnce*runtime.GOMAXPROCS(0))) // what go test is told comes later
}

// install puts the program into a folder and the folder first on PATH.
func install(folder string) error {
	light, watched := os.Getenv(LightEnv), os.Getenv(WatchedEnv)
	var err error
	if light == "" {
		if light, err = build(folder, LightEnv, nil); err != nil {
			return err
		}
	}
	if watched == "" {
		if watched, err = build(folder, WatchedEnv, raced()); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, "gatehouse")
	if err := os.Symlink(light, path); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(Watched(path)), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(watched, Watched(path)); err != nil {
		return err
	}
	if err := os.Setenv(LightEnv, light); err != nil { // for what servers start of themselves
		return err
	}
	return os.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// Watched is where the program with the race detector is, beside the one on PATH.
func Watched(path string) string {
	return filepath.Join(filepath.Dir(path), "watched", filepath.Base(path))
}

// build compiles what one of the two variables names into a folder, and returns its path. The flags are those of the
// race detector, for what is watched.
func build(folder, variable string, flags []string) (string, error) {
	path := filepath.Join(folder, variable, "gatehouse")
	args := []string{"build", "-o", path, "gatehouse/cmd/gatehouse"}
	if variable == WatchedEnv {
		args = slices.Concat([]string{"test", "-c", "-vet=off", "-o", path}, flags, []string{"gatehouse/cmd/gatehouse"})
	}
	if said, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, said)
	}
	return path, nil
}

// raced are the flags that this test was built with, where it looks for races: SQLite itself is not watched.
func raced() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return nil
	}
	flags := []string{"-race"}
	for _, library := range []string{"sqlite/lib", "libc", "memory"} {
		flags = append(flags, "-gcflags=modernc.org/"+library+"=-race=false")
	}
	return flags
}
