package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

const module = "gatehouse"

// A room is a folder with all below it, as far as no deeper folder is a room of its own.
type room struct {
	path string   // from the module's root; the longest that fits a package is its room
	may  []string // rooms whose packages it may import, beside its own
}

// leaves are the packages below orchestrator that know nothing of the engine, and what each of them may use.
var leaves = []room{
	{"orchestrator/agent", below("budget", "each", "mask", "outward", "spelling", "strictjson", "textcut")},
	{"orchestrator/badge", nil},
	{"orchestrator/budget", nil},
	{"orchestrator/chain", below("agent")},
	{"orchestrator/each", nil},
	{"orchestrator/flow", nil},
	{"orchestrator/guard", below("agent", "budget", "chain", "each", "nearest", "textcut")},
	{"orchestrator/mask", nil},
	{"orchestrator/nearest", nil},
	{"orchestrator/origin", nil},
	{"orchestrator/outward", nil},
	{"orchestrator/patch", below("mask", "nearest", "spelling", "textcut")},
	{"orchestrator/people", below("origin")},
	{"orchestrator/record/event", below("origin")},
	{"orchestrator/record/history", below("chain", "nearest", "origin")},
	{"orchestrator/record/housekeeping", below("record/proof")},
	{"orchestrator/record/insight", below("guard", "record/event")},
	{"orchestrator/record/proof", below("record/event")},
	{"orchestrator/record/retention", nil},
	{"orchestrator/record/telemetry", below("record/event")},
	{"orchestrator/sharedctx", below("textcut")},
	{"orchestrator/spelling", nil},
	{"orchestrator/strictjson", nil},
	{"orchestrator/textcut", nil},
	{"orchestrator/trigger", below("budget", "patch", "strictjson", "textcut")},
}

// below names rooms below orchestrator.
func below(names ...string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, "orchestrator/"+name)
	}
	return paths
}

// values are the leaves whose types are published as they are: the API writes them and the client reads them.
var values = []string{
	"orchestrator/agent", "orchestrator/chain", "orchestrator/guard", "orchestrator/budget", "orchestrator/origin", "orchestrator/sharedctx",
	"orchestrator/record/event", "orchestrator/record/retention",
}

// subjects are the rooms of pages, below views and below handlers: none of them knows another.
var subjects = []string{"audit", "chat", "evidence", "overview", "review", "settings", "task", "team"}

// parts are the rooms below views that draw what pages of several subjects show.
var parts = []string{"views/diff", "views/figures"}

// viewRooms are the rooms that draw: never a handler, and no page another subject's.
func viewRooms(domain []string) []room {
	const lexers = "views/internal/lexers"
	may := slices.Concat([]string{"approval", "approval/policy", "static"}, domain)
	all := []room{{"views", may}, {lexers, nil}}
	for _, part := range parts {
		all = append(all, room{part, slices.Concat([]string{"views", lexers}, may)})
	}
	for _, subject := range subjects {
		all = append(all, room{"views/" + subject, slices.Concat([]string{"views"}, parts, may)})
	}
	return all
}

// handlerRooms are the rooms that answer: what they share stands in handlers, the pages
// have their own views, and what answers programs has none.
func handlerRooms(domain []string) []room {
	own := slices.Concat([]string{"approval", "approval/policy", "web/wire"}, domain)
	may := slices.Concat([]string{"handlers"}, own)
	drawn := slices.Concat([]string{"handlers/change", "views"}, parts, may)
	all := []room{
		{"handlers", slices.Concat([]string{"views"}, own)},
		{"handlers/change", slices.Concat([]string{"views", "views/diff"}, may)},
		{"handlers/signin", slices.Concat([]string{"views"}, may)},
		{"handlers/api", slices.Concat([]string{"handlers/evidence"}, may)},
		{"handlers/hook", slices.Concat([]string{"orchestrator/trigger/intake"}, may)},
		{"handlers/metrics", may},
		{"handlers/stream", may},
	}
	for _, subject := range subjects {
		all = append(all, room{"handlers/" + subject, slices.Concat([]string{"views/" + subject}, drawn)})
	}
	return all
}

// paths names rooms.
func paths(rooms []room) []string {
	var all []string
	for _, r := range rooms {
		all = append(all, r.path)
	}
	return all
}

// channels are the packages in which requests are shown.
var channels = []room{
	{"approval/passive", append([]string{"approval"}, below("origin")...)},
	{"approval/telegram", append([]string{"approval", "approval/bot", "orchestrator"}, below("badge", "each", "mask", "origin", "patch", "people", "strictjson")...)},
	{"approval/webhook", append([]string{"approval", "orchestrator"}, below("badge", "each", "mask", "origin", "outward", "patch", "people")...)},
}

// testRooms hold what only tests use: no program may contain it, so only tests and one another import them.
var testRooms = []string{
	"orchestrator/agent/agenttest", "orchestrator/store/storetest", "orchestrator/store/pgtest",
	"approval/approvaltest", "approval/telegram/bottest", "web/browsertest",
	"cmd/gatehouse/internal/placetest",
}

// testPrograms are run by `make`, never by users, and may use what is there for tests.
var testPrograms = []string{"cmd/gatehouse/internal/house/suite"}

// rooms is the table of who may import whom. A test may also import what its own room may not: see [mayInTests].
func rooms() []room {
	var domain []string
	for _, leaf := range leaves {
		domain = append(domain, leaf.path)
	}
	engine := slices.Clone(domain)
	domain = append(domain, "orchestrator")
	return slices.Concat([]room{
		{"cmd", append([]string{
			"cmd/gatehouse/cli", "cmd/gatehouse/internal/console",
			"web", "web/client", "web/wire", "views", "views/settings", "approval", "approval/policy", "approval/bot", "approval/sqlstore",
			"orchestrator/store", "orchestrator/trigger/intake", "migrations", "static"}, slices.Concat(paths(channels), paths(handlerRooms(nil)), domain)...)},
		{"cmd/gatehouse/cli", slices.Concat([]string{"cmd/gatehouse/internal/console", "web/client", "web/wire"}, values,
			below("badge", "each", "record/history"))},
		{"cmd/gatehouse/internal/console", append([]string{"web/client"}, below("agent", "badge", "each", "nearest", "spelling", "textcut")...)},
		{"web", slices.Concat(paths(handlerRooms(nil)), []string{"views", "static"})},
		{"web/client", append([]string{"web/wire"}, values...)},
		{"web/wire", values},
		{"approval", append([]string{"approval/policy"}, domain...)},
		{"approval/policy", below("each", "guard", "patch")},
		{"approval/bot", append([]string{"approval", "orchestrator"}, below("origin", "people")...)},
		{"approval/sqlstore", append([]string{"approval", "approval/policy", "approval/telegram", "orchestrator/store"}, domain...)},
		{"orchestrator", engine},
		{"orchestrator/trigger/intake", domain},
		{"orchestrator/store", append([]string{"migrations"}, domain...)},
		{"migrations", nil},
		{"static", nil},
		{"orchestrator/agent/agenttest", domain},
		{"orchestrator/store/storetest", append([]string{"migrations", "orchestrator/store", "orchestrator/store/pgtest"}, domain...)},
		{"orchestrator/store/pgtest", nil},
		{"approval/telegram/bottest", nil},
		{"approval/approvaltest", append([]string{"approval", "approval/policy"}, domain...)},
		{"web/browsertest", nil},
		{"cmd/gatehouse/internal/placetest", append([]string{"approval", "approval/sqlstore", "handlers/signin", "orchestrator/store", "web/wire"}, domain...)},
		{"cmd/gatehouse/internal/browser", nil},
	}, channels, leaves, viewRooms(domain), handlerRooms(domain))
}

// databases are the libraries that speak SQL; queries live in one place because nobody else can reach them.
var databases = []string{
	"github.com/jmoiron/sqlx", "github.com/lib/pq", "modernc.org/sqlite", "github.com/pressly/goose",
}

// testLibraries may be linked into tests only.
var testLibraries = []string{
	"testing", "go.uber.org/goleak", "pgregory.net/rapid", "github.com/rogpeppe/go-internal", "github.com/chromedp",
}

// roomOf returns the room of a package, given from the module's root.
func roomOf(pkg string) (room, bool) {
	var best room
	for _, r := range rooms() {
		if within(pkg, r.path) && len(r.path) > len(best.path) {
			best = r
		}
	}
	return best, best.path != ""
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func withinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return within(path, folder) })
}

// An edge is one import: a package, from the module's root, imports a path as Go writes it.
type edge struct {
	from, to string
	test     bool // from a _test.go file
}

// forbidden says which rule an import breaks, or nothing.
func forbidden(e edge) string {
	from, known := roomOf(e.from)
	if !known {
		return fmt.Sprintf("%s is in no room: add it to the table in rules_test.go", e.from)
	}
	mayTest := e.test || withinAny(e.from, testRooms) || withinAny(e.from, testPrograms)
	target, ours := strings.CutPrefix(e.to, module+"/")
	if !ours {
		return forbiddenLibrary(e, mayTest)
	}
	to, known := roomOf(target)
	switch {
	case !known:
		return fmt.Sprintf("%s imports %s, which is in no room", e.from, target)
	case to.path == from.path || slices.Contains(from.may, to.path):
		return ""
	case withinAny(target, testRooms) && mayTest:
		return ""
	case e.test && mayInTests(from, to):
		return ""
	case withinAny(target, testRooms):
		return fmt.Sprintf("%s imports %s, which is for tests only", e.from, target)
	}
	return fmt.Sprintf("%s imports %s: %s may import %s", e.from, target, from.path, listed(from.may))
}

// mayInTests widens a room's rule for its tests: a story may be told with the real store, the engine and everything
// that a room is used with, but the domain's tests need no pages.
func mayInTests(from, to room) bool {
	if within(from.path, "orchestrator") || within(from.path, "approval") {
		return within(to.path, "orchestrator") || within(to.path, "approval") || to.path == "migrations"
	}
	return to.path != "cmd"
}

func forbiddenLibrary(e edge, mayTest bool) string {
	if withinAny(e.to, databases) || isVersionOf(e.to, databases) {
		switch {
		case within(e.from, "orchestrator/store"):
			return ""
		case e.test && within(e.from, "cmd"): // tests of the program may look at, and spoil, its database
			return ""
		}
		return fmt.Sprintf("%s imports %s: only orchestrator/store speaks SQL", e.from, e.to)
	}
	if withinAny(e.to, testLibraries) && !mayTest {
		return fmt.Sprintf("%s imports %s, which is for tests only", e.from, e.to)
	}
	return ""
}

// isVersionOf knows that example.org/lib/v3 is example.org/lib.
func isVersionOf(path string, libraries []string) bool {
	return slices.ContainsFunc(libraries, func(lib string) bool { return strings.HasPrefix(path, lib+"/v") })
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no other room"
	}
	return strings.Join(names, ", ")
}

// gitRoom is the only room that runs git: it fixes git's environment, so that no hook, filter or configuration of a
// repository that agents can write to ever runs in the server.
const gitRoom = "orchestrator/patch"

// runsGit returns the positions in a file where it names the program git to run it. Looking for git in PATH is fine.
func runsGit(fset *token.FileSet, file *ast.File) []token.Position {
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"os/exec"` }) {
		return nil
	}
	looked := map[ast.Node]bool{}
	var found []token.Position
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "LookPath" && len(n.Args) == 1 {
				looked[n.Args[0]] = true
			}
		case *ast.BasicLit:
			if (n.Value == `"git"` || n.Value == "`git`") && !looked[n] {
				found = append(found, fset.Position(n.Pos()))
			}
		}
		return true
	})
	return found
}

func parse(name string, source any) (*token.FileSet, *ast.File, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
	return fset, file, err
}

// atRoot are the names that the root holds beside dotfiles.
var atRoot = []string{
	"cmd", "web", "views", "handlers", "approval", "orchestrator", "migrations", "static",
	"go.mod", "go.sum", "README.md", "Makefile", "LICENSE",
}

var dotfiles = []string{".ci", ".gitignore", ".gitattributes", ".editorconfig", ".github"}

// strangers returns the names at the root that nobody planned.
func strangers(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(atRoot, name) || slices.Contains(dotfiles, name)
	})
}
