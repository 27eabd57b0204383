package house

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mechanism is one line of testdata/requirements.txt.
type mechanism struct {
	id, what, reason string // reason: why it does not apply, "" when it does
}

func mechanisms(t *testing.T) []mechanism {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var all []mechanism
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, rest, _ := strings.Cut(line, " ")
		what, reason, _ := strings.Cut(rest, " -- ")
		all = append(all, mechanism{id, what, reason})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// citation finds the ids in a test; a range such as "K4–K6" cites all between.
var citation = regexp.MustCompile(`\b([KAPHOX])(\d{1,2})([ab]?)(?:[–-]([KAPHOX])?(\d{1,2}))?\b`)

// cited lists for each id the test files that cite it.
func cited(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	note := func(id, file string) {
		if !slices.Contains(found[id], file) {
			found[id] = append(found[id], file)
		}
	}
	root := moduleRoot(t)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !shows(path) || strings.HasSuffix(path, "internal/house/coverage_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		for _, m := range citation.FindAllStringSubmatch(string(text), -1) {
			note(m[1]+m[2]+m[3], file)
			if m[5] != "" && (m[4] == "" || m[4] == m[1]) {
				for _, between := range numbers(m[2], m[5]) {
					note(m[1]+between, file)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// numbers lists what is after first up to last, as ids write it.
func numbers(first, last string) []string {
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	var between []string
	for n := from + 1; err1 == nil && err2 == nil && n <= to && to-from < 50; n++ {
		between = append(between, strconv.Itoa(n))
	}
	return between
}

// shows reports whether a file is part of the tests: Go tests, the suites that both
// databases and all kinds run, and the scripts of the real program.
func shows(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".txtar") ||
		strings.HasSuffix(path, ".go") && (strings.Contains(path, "/storetest/") || strings.Contains(path, "/agenttest/") || strings.Contains(path, "/approvaltest/"))
}

// TestEveryMechanismIsShown holds the list of mechanisms and the tests together: what
// applies is cited by a test, and what does not says why. `make coverage` prints it.
func TestEveryMechanismIsShown(t *testing.T) {
	tests := cited(t)
	known := map[string]bool{}
	shown, without := 0, 0
	for _, m := range mechanisms(t) {
		if known[m.id] {
			t.Errorf("%s is listed twice", m.id)
		}
		known[m.id] = true
		files := tests[m.id]
		switch {
		case m.reason != "":
			without++
			t.Logf("%-5s %-55s does not apply: %s", m.id, m.what, m.reason)
		case len(files) == 0:
			t.Errorf("%-5s %s: no test cites it", m.id, m.what)
		default:
			shown++
			t.Logf("%-5s %-55s %s", m.id, m.what, strings.Join(files, " "))
		}
	}
	if shown < 150 {
		t.Errorf("only %d mechanisms are shown: is the list still whole?", shown)
	}
	t.Logf("%d mechanisms are shown by tests, %d do not apply", shown, without)
}
