package house

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mechanism is one requirement of testdata/requirements.txt.
type mechanism struct {
	id, what string
	tests    []string // a folder and a function in it, or a script: they show what
	missing  string   // what of it is not built
	reason   string   // why it does not apply, "" when it does
}

func mechanisms(t *testing.T) []mechanism {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	var all []mechanism
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		said, indented := strings.CutPrefix(line, "  ")
		if !indented {
			id, what, _ := strings.Cut(line, " ")
			all = append(all, mechanism{id: id, what: what})
			continue
		}
		if len(all) == 0 {
			t.Fatalf("%q stands below no requirement", line)
		}
		m := &all[len(all)-1]
		if missing, ok := strings.CutPrefix(said, "not built: "); ok {
			m.missing = missing
		} else if reason, ok := strings.CutPrefix(said, "does not apply: "); ok {
			m.reason = reason
		} else {
			m.tests = append(m.tests, said)
		}
	}
	return all
}

// named finds the functions of a file, and methods of suites.
var named = regexp.MustCompile(`(?m)^func (?:\(\w+ \*?\w+\) )?(\w+)\(`)

// suiteRoom has the suite that both databases pass: functions that two tests of it call.
const suiteRoom = "approval/sqlstore"

// shows reports whether what a requirement names is there: a test in a folder, a function
// of one of the suites, or a script of the real program. What it finds it keeps in known.
func shows(root, said string, known map[string]bool) error {
	folder, name, isTest := strings.Cut(said, " ")
	if !isTest {
		if !strings.HasSuffix(said, ".txtar") {
			return fmt.Errorf("%q is neither a folder and a test nor a script", said)
		}
		_, err := os.Stat(filepath.Join(root, said))
		return err
	}
	pattern := "*_test.go"
	if withinAny(folder, testRooms) {
		pattern = "*.go"
	} else if !strings.HasPrefix(name, "Test") && folder != suiteRoom {
		return fmt.Errorf("%s is no test", name)
	}
	if known[said] {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(root, folder, pattern))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range named.FindAllSubmatch(text, -1) {
			known[folder+" "+string(m[1])] = true
		}
	}
	if known[said] {
		return nil
	}
	return fmt.Errorf("%s has no %s", folder, name)
}

// TestEveryMechanismIsShown holds the requirements and the tests together: each is shown by
// tests that the list names, or the list says what is not built, or why it does not apply.
// An id in some text shows nothing. `make coverage` prints the list.
func TestEveryMechanismIsShown(t *testing.T) {
	root := moduleRoot(t)
	known, found := map[string]bool{}, map[string]bool{}
	shown, partly, missing, without := 0, 0, 0, 0
	for _, m := range mechanisms(t) {
		if known[m.id] {
			t.Errorf("%s is listed twice", m.id)
		}
		known[m.id] = true
		for _, said := range m.tests {
			if err := shows(root, said, found); err != nil {
				t.Errorf("%s: %v", m.id, err)
			}
		}
		tests := strings.Join(m.tests, ", ")
		switch {
		case m.reason != "" && len(m.tests)+len(m.missing) > 0:
			t.Errorf("%s does not apply, and yet names tests or what is missing", m.id)
		case m.reason != "":
			without++
			t.Logf("%-5s does not apply: %s (%s)", m.id, m.reason, m.what)
		case len(m.tests) == 0 && m.missing == "":
			t.Errorf("%-5s %s: no test shows it, and nothing says that it is not built", m.id, m.what)
		case len(m.tests) == 0:
			missing++
			t.Logf("%-5s NOT BUILT: %s (%s)", m.id, m.missing, m.what)
		case m.missing != "":
			partly++
			t.Logf("%-5s PARTLY: %s; not built: %s; the rest by %s", m.id, m.what, m.missing, tests)
		default:
			shown++
			t.Logf("%-5s %s: %s", m.id, m.what, tests)
		}
	}
	if len(known) < 190 {
		t.Errorf("only %d requirements are listed: is the list still whole?", len(known))
	}
	t.Logf("%d are shown by tests, %d in part, %d are not built, %d do not apply", shown, partly, missing, without)
}

func TestWhatShowsNothingIsSeen(t *testing.T) {
	root := moduleRoot(t)
	found := map[string]bool{}
	for said, want := range map[string]bool{
		"cmd/gatehouse/internal/house TestWhatShowsNothingIsSeen": true,
		"cmd/gatehouse/internal/house TestThatWasDeleted":         false,
		"cmd/gatehouse/internal/house moduleRoot":                 false, // no test
		"cmd/gatehouse/cli/testdata/script/wait.txtar":            true,
		"cmd/gatehouse/cli/testdata/script/gone.txtar":            false,
		"K1": false, // an id is no citation
	} {
		if err := shows(root, said, found); (err == nil) != want {
			t.Errorf("%s: %v", said, err)
		}
	}
}
