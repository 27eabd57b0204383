package patch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// script is a file that may be executed, in a checkout.
func script(dir, name, text string) {
	_ = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
	_ = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755)
	_ = os.Chmod(filepath.Join(dir, name), 0o755)
}

// link puts a link in place of whatever is there.
func link(dir, target, name string) {
	_ = os.RemoveAll(filepath.Join(dir, name))
	_ = os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
	_ = os.Symlink(target, filepath.Join(dir, name))
}

// What steers programs is the branch's, whatever the caller did to it; the rest is the
// caller's.
func TestWhatSteersProgramsIsTakenFromTheBranch(t *testing.T) {
	s := given(t, files{".claude/settings.json": "ours", ".husky/pre-commit": "ours", "config/agents.txt": "ours", "main.go": "old"}, func(r *patch.Repository, _ *patch.Options) {
		script(r.Source, "tools/deploy.sh", "ours")
		script(r.Source, "bin/real.sh", "ours")
		link(r.Source, "bin/real.sh", "run")
		link(r.Source, "config/agents.txt", "AGENTS.md")
		commit(t, r.Source, files{"more.txt": "more"})
	})
	always := []patch.Program{{Path: "./tools/deploy.sh", Need: patch.Always}}
	callers := map[string]struct {
		caller   func(dir string)
		programs []patch.Program
		changed  []string
		missing  []string
		reads    map[string]string // what a path leads to in the tree that travels
	}{
		"configuration that is changed, added and removed": {func(dir string) {
			write(t, dir, files{".claude/settings.json": "evil", ".mcp.json": "evil", "sub/.ENVRC": "evil", "main.go": "new"})
			_ = os.Remove(filepath.Join(dir, ".husky/pre-commit"))
		}, nil, []string{".claude/settings.json", ".husky/pre-commit", ".mcp.json", "sub/.ENVRC"}, nil,
			map[string]string{".claude/settings.json": "ours", ".husky/pre-commit": "ours", ".mcp.json": "", "main.go": "new"}},
		"git's hooks, and what only shares their folder's name": {func(dir string) {
			write(t, dir, files{"hooks/pre-push": "evil", "src/hooks/useUser.ts": "mine"})
		}, nil, []string{"hooks/pre-push"}, nil, map[string]string{"hooks/pre-push": "", "src/hooks/useUser.ts": "mine"}},
		"a file in place of a folder, a link above one": {func(dir string) {
			_ = os.RemoveAll(filepath.Join(dir, ".claude"))
			link(dir, "evil", ".claude")
			write(t, dir, files{"evil/settings.json": "evil", "deep/instructions/a": "evil"})
			link(dir, "deep", ".github")
		}, nil, []string{".claude", ".claude/settings.json", ".github"}, nil, map[string]string{".claude/settings.json": "ours", ".github/instructions/a": ""}},
		"what the branch's own link leads to": {func(dir string) { write(t, dir, files{"config/agents.txt": "evil"}) },
			nil, []string{"config/agents.txt"}, nil, map[string]string{"AGENTS.md": "ours"}},
		"the program": {func(dir string) { script(dir, "tools/deploy.sh", "evil") }, always, []string{"tools/deploy.sh"}, nil, map[string]string{"tools/deploy.sh": "ours"}},
		"the program, for an agent that is started otherwise": {func(dir string) { script(dir, "tools/deploy.sh", "new") }, nil, nil, nil, map[string]string{"tools/deploy.sh": "new"}},
		"a link in place of its folder": {func(dir string) {
			script(dir, "evil/deploy.sh", "evil")
			link(dir, "evil", "tools")
		}, always, []string{"tools", "tools/deploy.sh"}, nil, map[string]string{"tools/deploy.sh": "ours", "evil/deploy.sh": "evil"}},
		"the program as a link": {func(dir string) {
			script(dir, "evil.sh", "evil")
			link(dir, "../evil.sh", "tools/deploy.sh")
		}, always, []string{"tools/deploy.sh"}, nil, map[string]string{"tools/deploy.sh": "ours"}},
		"a folder in place of the program": {func(dir string) {
			_ = os.Remove(filepath.Join(dir, "tools/deploy.sh"))
			write(t, dir, files{"tools/deploy.sh/x": "evil"})
		}, always, []string{"tools/deploy.sh", "tools/deploy.sh/x"}, nil, map[string]string{"tools/deploy.sh": "ours"}},
		"another spelling beside it": {func(dir string) { script(dir, "Tools/Deploy.sh", "evil") }, always, []string{"Tools/Deploy.sh"}, nil, map[string]string{"Tools/Deploy.sh": ""}},
		"the end of a link of the branch": {func(dir string) { script(dir, "bin/real.sh", "evil") },
			[]patch.Program{{Path: "run", Need: patch.Always}}, []string{"bin/real.sh"}, nil, map[string]string{"run": "ours"}},
		"the link of the branch": {func(dir string) {
			script(dir, "evil.sh", "evil")
			link(dir, "evil.sh", "run")
		}, []patch.Program{{Path: "run", Need: patch.Always}}, []string{"run"}, nil, map[string]string{"run": "ours"}},
		"what an interpreter is given": {func(dir string) { write(t, dir, files{"tools/deploy.sh": "evil", "main.go": "new"}) },
			[]patch.Program{{Path: "tools/deploy.sh", Need: patch.WhereFile}, {Path: "main", Need: patch.WhereFile}}, []string{"tools/deploy.sh"}, nil, map[string]string{"tools/deploy.sh": "ours", "main.go": "new"}},
		"a program that only the caller has": {func(dir string) { script(dir, "new.sh", "evil") },
			[]patch.Program{{Path: "./new.sh", Need: patch.Always}, {Path: "new.sh", Need: patch.WhereFile}, {Path: "./new.sh", Need: patch.WhereStarted}, {Path: "no.sh", Need: patch.WhereFile}},
			nil, []string{"./new.sh", "new.sh", "./new.sh"}, nil},
		"an argument that was made a program": {func(dir string) { script(dir, "main.go", "evil") },
			[]patch.Program{{Path: "./main.go", Need: patch.WhereStarted}}, []string{"main.go"}, nil, map[string]string{"main.go": "old"}},
		"an argument that is none": {func(dir string) { write(t, dir, files{"main.go": "new"}) },
			[]patch.Program{{Path: "./main.go", Need: patch.WhereStarted}}, nil, nil, map[string]string{"main.go": "new"}},
	}
	root, from := t.TempDir(), s.checkout()
	must(t, os.RemoveAll(filepath.Join(from, ".git")))
	for name, c := range callers {
		dir := filepath.Join(root, name)
		must(t, os.CopyFS(dir, os.DirFS(from)))
		c.caller(dir)
	}
	trees, steered, travels := s.snapshots(root), map[string]patch.Steered{}, map[string]string{}
	for name, c := range callers {
		got, err := s.m.Steer(s.ctx, s.base.Tree, trees[name], c.programs)
		must(t, err)
		steered[name], travels[name] = got, got.Tree
	}
	out := s.checkouts(travels)
	for name, c := range callers {
		t.Run(name, func(t *testing.T) {
			got := steered[name]
			list(t, "changed", got.Changed, c.changed...)
			list(t, "missing", got.Missing, c.missing...)
			if (got.Tree == trees[name]) != (len(c.changed) == 0) {
				t.Error("the tree is another, and nothing in it is")
			}
			for file, want := range c.reads {
				b, _ := os.ReadFile(filepath.Join(out, name, file))
				equal(t, file, strings.TrimSpace(string(b)), want)
			}
		})
	}
}

// mirror is the folder of the story's mirror.
func (s *story) mirror() string {
	s.Helper()
	found, err := filepath.Glob(filepath.Join(s.mirrors, "*.git"))
	if err != nil || len(found) != 1 {
		s.Fatalf("mirrors: %v, %v", found, err)
	}
	return found[0]
}

// snapshots are the trees of the folders in root, by name: one snapshot holds them all.
func (s *story) snapshots(root string) map[string]string {
	s.Helper()
	trees := map[string]string{}
	whole := git(s.T, s.mirror(), "ls-tree", "-z", s.snapshot(root))
	for entry := range strings.SplitSeq(strings.TrimSuffix(whole, "\x00"), "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		trees[name] = strings.Fields(meta)[2]
	}
	return trees
}

// checkouts writes each tree to a folder of its name, by one checkout of them all.
func (s *story) checkouts(trees map[string]string) string {
	s.Helper()
	var in strings.Builder
	for name, tree := range trees {
		fmt.Fprintf(&in, "040000 tree %s\t%s\x00", tree, name)
	}
	cmd := exec.CommandContext(s.ctx, "git", "mktree", "-z")
	cmd.Dir, cmd.Stdin = s.mirror(), strings.NewReader(in.String())
	whole, err := cmd.Output()
	must(s.T, err)
	dir := filepath.Join(s.TempDir(), "run")
	must(s.T, s.m.Checkout(s.ctx, s.base.Commit, strings.TrimSpace(string(whole)), dir))
	return dir
}

// Whatever two trees look like: a path that steers programs is as on the branch, what the
// program's name leads to is what it leads to there, and nothing else of the caller's is
// lost but what stands in the way.
func TestNoTreeOfACallerSteersAProgram(t *testing.T) {
	s := given(t, files{"keep": "k"})
	names := []string{"a", "a/b", "a/b/run.sh", "a/run.sh", "c", "c/run.sh", ".claude", ".claude/s.json", "a/.claude/x", "CLAUDE.md", "c/CLAUDE.md", ".github", ".github/agents/x", "plain.txt"}
	targets := []string{"a", "c", "c/run.sh", "../c", "b", "plain.txt", "a/b", ".", "/etc/hostname", "../../x", "run.sh"}
	root := t.TempDir()
	programs, steered, travels := [cases]string{}, [cases]patch.Steered{}, map[string]string{}
	for seed := range programs {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		grow := func(who string) {
			dir := filepath.Join(root, fmt.Sprint(seed, who))
			_ = os.MkdirAll(dir, 0o755)
			for _, name := range names {
				at, kind := filepath.Join(dir, name), r.IntN(6)
				if leaves(dir, name) || kind > 2 {
					continue
				}
				_ = os.MkdirAll(filepath.Dir(at), 0o755)
				if kind == 0 {
					_ = os.Symlink(targets[r.IntN(len(targets))], at)
				} else {
					_ = os.WriteFile(at, []byte(who+name), 0o755)
				}
			}
		}
		grow("branch")
		grow("caller")
		programs[seed] = []string{"a/b/run.sh", "a/run.sh", "c/run.sh", "a", "c"}[r.IntN(5)]
	}
	trees := s.snapshots(root)
	for seed, program := range programs {
		got, err := s.m.Steer(s.ctx, trees[fmt.Sprint(seed, "branch")], trees[fmt.Sprint(seed, "caller")], []patch.Program{{Path: program, Need: patch.Always}})
		must(t, err)
		steered[seed], travels[fmt.Sprint(seed, "child")] = got, got.Tree
	}
	children := s.checkouts(travels)
	for seed, program := range programs {
		ours, theirs, out := filepath.Join(root, fmt.Sprint(seed, "branch")), filepath.Join(root, fmt.Sprint(seed, "caller")), filepath.Join(children, fmt.Sprint(seed, "child"))
		branch, caller, got := trees[filepath.Base(ours)], trees[filepath.Base(theirs)], steered[seed]
		for _, path := range s.paths(branch, got.Tree) {
			if patch.Steers(path[2:]) {
				t.Errorf("seed %d: %s steers programs and is not the branch's", seed, path)
			}
		}
		if len(got.Missing) == 0 && leadsTo(ours, program) != leadsTo(out, program) {
			t.Errorf("seed %d: %s is %q on the branch and %q in the child", seed, program, leadsTo(ours, program), leadsTo(out, program))
		}
		var differs []string
		for _, path := range s.paths(got.Tree, caller) {
			differs = append(differs, path[2:])
		}
		list(t, "what differs from the caller's is named", got.Changed, differs...)
		if !slices.Contains(got.Changed, "plain.txt") && stands(out, "plain.txt") != stands(theirs, "plain.txt") {
			t.Errorf("seed %d: plain.txt was lost", seed)
		}
	}
}

// cases is how many pairs of trees are tried; each takes a dozen calls of git.
const cases = 12

// stands is what is at a name: a link's target or a file's content.
func stands(dir, name string) string {
	if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
		return "→ " + target
	}
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

// leaves reports whether a folder above name is a link.
func leaves(dir, name string) bool {
	for at := filepath.Dir(name); at != "."; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(dir, at)); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// leadsTo is what a kernel runs under that name: a file's content, or where it leads outside.
func leadsTo(dir, name string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return "nothing"
	}
	if in, err := filepath.Rel(dir, real); err != nil || strings.HasPrefix(in, "..") {
		return "outside"
	}
	b, err := os.ReadFile(real)
	if err != nil {
		return "a folder"
	}
	return string(b)
}
