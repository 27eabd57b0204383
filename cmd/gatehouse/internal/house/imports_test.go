package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is what `go list -json` tells about one package, as far as the rules ask.
type pkg struct {
	ImportPath, Dir, Name, Doc string
	GoFiles                    []string
	Imports                    []string
	TestImports, XTestImports  []string
	TestGoFiles, XTestGoFiles  []string
	Error                      *struct{ Err string }
}

// edges returns every import of the package, those of its tests marked.
func (p pkg) edges() []edge {
	var all []edge
	for _, to := range p.Imports {
		all = append(all, edge{from: p.path(), to: to})
	}
	for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
		if to != p.ImportPath {
			all = append(all, edge{from: p.path(), to: to, test: true})
		}
	}
	return all
}

func (p pkg) path() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func modulePackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Name,Doc,GoFiles,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles,Error", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatal("go list found no package")
	}
	return all
}

// P9, among much else: a kind of agent knows only the contract of agents, never the engine
// that runs it, so neither needs the other to be built.
func TestEveryRoomImportsOnlyWhatItMay(t *testing.T) {
	for _, p := range modulePackages(t) {
		if p.Error != nil {
			t.Errorf("%s: %s", p.path(), p.Error.Err)
		}
		for _, e := range p.edges() {
			if why := forbidden(e); why != "" {
				t.Error(why)
			}
		}
	}
}

// An arrow of the table that runs up would make a circle of rooms.
func TestNoRoomStandsAboveItself(t *testing.T) {
	up := map[string][]string{}
	for _, r := range rooms() {
		if up[r.path] != nil {
			t.Errorf("%s stands in the table twice", r.path)
		}
		up[r.path] = append([]string{}, r.may...)
	}
	var walk func(path []string)
	walk = func(path []string) {
		for _, next := range up[path[len(path)-1]] {
			if _, known := up[next]; !known {
				t.Errorf("%s may import %s, which is no room", path[len(path)-1], next)
			}
			if next == path[0] {
				t.Errorf("a circle: %s", strings.Join(append(path, next), " → "))
			} else if len(path) < len(up) && !slices.Contains(path, next) {
				walk(append(path, next))
			}
		}
	}
	for path := range up {
		walk([]string{path})
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range modulePackages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment: say in its doc.go what it is for and what it may import", p.path())
		}
	}
}

// mostFiles is how many files a room has at most that somebody wrote and that are no tests.
const mostFiles = 35

// TestNoRoomIsTooLarge: whoever opens a folder has to see what is in it.
func TestNoRoomIsTooLarge(t *testing.T) {
	for _, p := range modulePackages(t) {
		written := slices.DeleteFunc(slices.Clone(p.GoFiles), func(name string) bool { return strings.HasSuffix(name, "_templ.go") })
		if len(written) > mostFiles {
			t.Errorf("%s has %d files, and %d are enough: put what belongs together into one file, or a part into a room of its own", p.path(), len(written), mostFiles)
		}
	}
}

// A section that no file can have is a channel that nobody can set up.
func TestEveryChannelWithSettingsCanBeSetUp(t *testing.T) {
	const sections = module + "/approval/bot"
	var offered, taken []string
	for _, p := range modulePackages(t) {
		switch {
		case p.path() == "cmd/gatehouse/internal/config":
			taken = p.Imports
		case within(p.path(), "approval") && slices.Contains(p.Imports, sections):
			offered = append(offered, p.ImportPath)
		}
	}
	if len(offered) == 0 {
		t.Error("no channel has a section")
	}
	for _, name := range offered {
		if !slices.Contains(taken, name) {
			t.Errorf("%s has settings that no field of Channels in cmd/gatehouse/internal/config/channels.go takes", name)
		}
	}
}

// TestEveryFolderOfPagesIsARoom: a new folder has to say what it may import.
func TestEveryFolderOfPagesIsARoom(t *testing.T) {
	for _, p := range modulePackages(t) {
		if r, _ := roomOf(p.path()); withinAny(p.path(), []string{"views", "handlers"}) && r.path != p.path() && !within(p.path(), "views/internal") {
			t.Errorf("%s is no room of its own in rules_test.go", p.path())
		}
	}
}

func TestOnlyThePatchRoomRunsGit(t *testing.T) {
	for _, p := range modulePackages(t) {
		if within(p.path(), gitRoom) || withinAny(p.path(), testRooms) {
			continue
		}
		for _, name := range p.GoFiles {
			fset, file, err := parse(filepath.Join(p.Dir, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range runsGit(fset, file) {
				t.Errorf("%s/%s:%d names git beside os/exec: only %s runs git", p.path(), name, at.Line, gitRoom)
			}
		}
	}
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func TestTheRootHoldsOnlyWhatWasPlanned(t *testing.T) {
	// What git ignores, such as a built binary or a demo's data, is nobody's business.
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	list.Dir = moduleRoot(t)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var names []string
	for path := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(path), "/")
		names = append(names, name)
	}
	if len(names) == 0 {
		t.Fatal("git lists no file")
	}
	slices.Sort(names)
	for _, name := range strangers(slices.Compact(names)) {
		t.Errorf("%s has no place at the root", name)
	}
}

// The rules above pass on a tidy house, so the tests below show that each of them can still fail.

func TestForbiddenImportsAreCaught(t *testing.T) {
	for _, e := range []edge{
		{from: "web", to: "gatehouse/orchestrator/store"},
		{from: "web", to: "gatehouse/orchestrator"},
		{from: "handlers", to: "gatehouse/web"},
		{from: "handlers/api", to: "gatehouse/orchestrator/store"},
		{from: "views", to: "gatehouse/handlers"},
		{from: "views/task", to: "gatehouse/handlers"},
		{from: "handlers", to: "gatehouse/handlers/task"},
		{from: "handlers", to: "gatehouse/handlers/stream"},
		{from: "handlers/task", to: "gatehouse/handlers/review"},
		{from: "handlers/task", to: "gatehouse/views/review"},
		{from: "handlers/chat", to: "gatehouse/handlers/review"},
		{from: "handlers/api", to: "gatehouse/handlers/audit"},
		{from: "handlers/stream", to: "gatehouse/views"},
		{from: "views", to: "gatehouse/views/diff"},
		{from: "views/diff", to: "gatehouse/views/review"},
		{from: "views/task", to: "gatehouse/views/review"},
		{from: "views/review", to: "gatehouse/views/evidence"},
		{from: "views/settings", to: "gatehouse/views/internal/lexers"},
		{from: "approval", to: "gatehouse/views"},
		{from: "approval/passive", to: "gatehouse/orchestrator/store"},
		{from: "approval", to: "gatehouse/approval/sqlstore"},
		{from: "approval/policy", to: "gatehouse/approval"},
		{from: "approval/policy", to: "gatehouse/approval/telegram"},
		{from: "approval/policy", to: "gatehouse/orchestrator"},
		{from: "approval/sqlstore", to: "github.com/jmoiron/sqlx"},
		{from: "orchestrator/store", to: "gatehouse/approval"},
		{from: "orchestrator/store", to: "gatehouse/approval/telegram"},
		{from: "handlers", to: "gatehouse/approval/sqlstore"},
		{from: "orchestrator", to: "gatehouse/approval"},
		{from: "orchestrator", to: "gatehouse/orchestrator/store"},
		{from: "orchestrator/guard", to: "gatehouse/orchestrator"},
		{from: "orchestrator/agent/command", to: "gatehouse/orchestrator"}, // P9
		{from: "orchestrator/agent/llm", to: "gatehouse/orchestrator"},
		{from: "orchestrator/store", to: "gatehouse/web"},
		{from: "web/client", to: "gatehouse/orchestrator"},
		{from: "migrations", to: "gatehouse/orchestrator"},
		{from: "orchestrator", to: "gatehouse/orchestrator/agent/agenttest"},
		{from: "cmd/gatehouse", to: "gatehouse/orchestrator/store/pgtest"},
		{from: "cmd/gatehouse", to: "gatehouse/web/browsertest"},
		{from: "cmd/gatehouse", to: "gatehouse/cmd/gatehouse/internal/placetest"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/orchestrator"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/orchestrator/store"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/approval"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/handlers"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/cmd/gatehouse/internal/config"},
		{from: "cmd/gatehouse/internal/console", to: "gatehouse/cmd/gatehouse/cli"},
		{from: "orchestrator", to: "gatehouse/web", test: true},
		{from: "orchestrator/store", to: "gatehouse/handlers", test: true},
		{from: "orchestrator/store/storetest", to: "gatehouse/approval"},
		{from: "orchestrator/store/storetest", to: "gatehouse/approval/sqlstore"},
		{from: "attic", to: "fmt"},
		{from: "cmd/gatehouse", to: "gatehouse/attic"},
		{from: "handlers", to: "github.com/jmoiron/sqlx"},
		{from: "cmd/gatehouse", to: "github.com/lib/pq"},
		{from: "orchestrator", to: "modernc.org/sqlite/lib"},
		{from: "web", to: "github.com/pressly/goose/v3"},
		{from: "handlers", to: "github.com/jmoiron/sqlx", test: true},
		{from: "orchestrator/patch", to: "testing"},
		{from: "cmd/gatehouse", to: "github.com/chromedp/chromedp"},
	} {
		if forbidden(e) == "" {
			t.Errorf("%s may import %s (test: %t)", e.from, e.to, e.test)
		}
	}
}

func TestAllowedImportsPass(t *testing.T) {
	for _, e := range []edge{
		{from: "cmd/gatehouse", to: "gatehouse/orchestrator/store"},
		{from: "cmd/gatehouse", to: "gatehouse/cmd/gatehouse/internal/config"},
		{from: "cmd/gatehouse", to: "gatehouse/web/client"},
		{from: "cmd/gatehouse", to: "gatehouse/cmd/gatehouse/cli"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/web/wire"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/orchestrator/record/event"},
		{from: "cmd/gatehouse/cli", to: "gatehouse/cmd/gatehouse/internal/placetest", test: true},
		{from: "cmd/gatehouse/internal/house/suite", to: "gatehouse/orchestrator/store/pgtest"},
		{from: "web", to: "gatehouse/handlers/stream"},
		{from: "handlers/chat", to: "gatehouse/handlers/change"},
		{from: "handlers/api", to: "gatehouse/handlers/evidence"},
		{from: "handlers/task", to: "gatehouse/views/figures"},
		{from: "handlers/api", to: "gatehouse/orchestrator/guard"},
		{from: "views", to: "gatehouse/approval"},
		{from: "views/review", to: "gatehouse/views/diff"},
		{from: "views/task", to: "gatehouse/views"},
		{from: "views", to: "gatehouse/views/task", test: true},
		{from: "approval/passive", to: "gatehouse/approval"},
		{from: "orchestrator", to: "gatehouse/orchestrator/agent/command"},
		{from: "orchestrator/agent/workflow", to: "gatehouse/orchestrator/budget"},
		{from: "orchestrator/store", to: "gatehouse/migrations"},
		{from: "approval/sqlstore", to: "gatehouse/orchestrator/store"},
		{from: "orchestrator/store", to: "github.com/pressly/goose/v3"},
		{from: "orchestrator/store/pgtest", to: "github.com/lib/pq"},
		{from: "orchestrator/store/pgtest", to: "testing"},
		{from: "orchestrator/store", to: "gatehouse/orchestrator/store/storetest", test: true},
		{from: "orchestrator", to: "gatehouse/orchestrator/store", test: true},
		{from: "handlers", to: "gatehouse/web/browsertest", test: true},
		{from: "web", to: "gatehouse/orchestrator/store", test: true},
		{from: "handlers", to: "github.com/labstack/echo/v4"},
	} {
		if why := forbidden(e); why != "" {
			t.Error(why)
		}
	}
}

func TestGitIsCaughtWhereItIsRun(t *testing.T) {
	for source, want := range map[string]int{
		`package a; import "os/exec"; var _ = exec.Command("git", "log")`:                             1,
		`package a; import "os/exec"; const g = "git"; var _ = exec.Command(g)`:                       1,
		`package a; import x "os/exec"; func f(p string) { x.Command(p) }; func g() { f(` + "`git`)}": 1,
		`package a; import "os/exec"; var _, _ = exec.LookPath("git")`:                                0,
		`package a; import "os/exec"; var _ = exec.Command("go", "vet")`:                              0,
		`package a; var _ = "git"`: 0,
	} {
		fset, file, err := parse("a.go", source)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(runsGit(fset, file)); got != want {
			t.Errorf("%s: %d places, want %d", source, got, want)
		}
	}
}

func TestStrangersAtTheRootAreSeen(t *testing.T) {
	got := strangers([]string{"cmd", ".ci", "go.mod", "scripts", "NOTES.md", ".golangci.yml"})
	if want := []string{"scripts", "NOTES.md", ".golangci.yml"}; !slices.Equal(got, want) {
		t.Errorf("strangers = %v, want %v", got, want)
	}
}
