package pgtest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// oldest is the first major version that Gatehouse supports.
const oldest = 14

// ErrNotInstalled says that this machine has no PostgreSQL server that is new enough.
var ErrNotInstalled = errors.New("no PostgreSQL server, version 14 or newer, is installed here; " +
	"install Debian's package postgresql, or set GATEHOUSE_TEST_POSTGRES to the URL of a server that may create databases")

// Distributions keep initdb and postgres out of PATH, in a folder per version.
var folders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
}

// Installed returns the folder with initdb and postgres of the newest installed version, or [ErrNotInstalled].
func Installed() (string, error) {
	var candidates []string
	for _, pattern := range folders {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("look for PostgreSQL in %s: %w", pattern, err)
		}
		candidates = append(candidates, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	best, dir := 0, ""
	for _, candidate := range candidates {
		if v := version(candidate); v >= oldest && v > best {
			best, dir = v, candidate
		}
	}
	if dir == "" {
		return "", ErrNotInstalled
	}
	return dir, nil
}

var majorVersion = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// version asks the server program itself, and returns its major version; 0 when the folder has no complete server.
func version(dir string) int {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return 0
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0
	}
	return parseVersion(string(out))
}

func parseVersion(line string) int {
	m := majorVersion.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	major, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return major
}
