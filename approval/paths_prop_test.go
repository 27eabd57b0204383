package approval_test

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"

	"pgregory.net/rapid"
)

// blob is what stands at a path of a tree that a test made up.
type blob struct{ mode, text string }

// folder is a tree that a test made up: files by path.
type folder map[string]blob

// put places a file; what stands in its way, below or above it, gives way.
func (f folder) put(path string, b blob) {
	maps.DeleteFunc(f, func(p string, _ blob) bool {
		return strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/")
	})
	f[path] = b
}

// differ are the paths at which two trees differ, found without git.
func differ(base, result folder) []string {
	var all []string
	for p, b := range base {
		if result[p] != b {
			all = append(all, p)
		}
	}
	for p := range result {
		if _, had := base[p]; !had {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

var (
	somePaths = []string{"README.md", "a", "a/b", "a/b/c.md", "core", "core/auth.go", "core/auth.md", "core/b/c.go", "core/x.md", "core2/auth.go",
		"docs", "docs/a.md", "docs/b.md", "docs/deep/c.md", "other/auth.go", "odd \"name\".md", "ünï/c.md"}
	someHeads = []string{"core/", "core", "docs/", "a", "a/b", "other", "READ", "", "core/b", "odd \"", "ü"}
	someGlobs = []string{"core/*", "core/**", "**.md", "*.md", "docs/*.md", "**/auth.go", "*", "a/*", "**/c.*"}
)

// someText is a file's text: long enough for git to find it again after an edit, short,
// or empty.
func someText(t *rapid.T) string {
	switch n := rapid.IntRange(0, 6).Draw(t, "text"); n {
	case 5:
		return ""
	case 6:
		return "short\n"
	default:
		var b strings.Builder
		for i := range 14 {
			fmt.Fprintf(&b, "line %d of the text %d\n", i*i, n)
		}
		return b.String()
	}
}

func someBlob(t *rapid.T) blob {
	mode := rapid.SampledFrom([]string{"100644", "100644", "100644", "100755", "120000"}).Draw(t, "mode")
	if mode == "120000" {
		return blob{mode, "README.md"}
	}
	return blob{mode, someText(t)}
}

// edited is b, perhaps with another line.
func edited(t *rapid.T, b blob) blob {
	if b.mode != "120000" && rapid.Bool().Draw(t, "edited") {
		b.text += fmt.Sprintf("and %d more\n", rapid.IntRange(1, 3).Draw(t, "line"))
	}
	return b
}

// someTrees makes a tree, and what an agent made of it.
func someTrees(t *rapid.T) (base, result folder) {
	base = folder{}
	for range rapid.IntRange(1, 9).Draw(t, "files") {
		base.put(rapid.SampledFrom(somePaths).Draw(t, "path"), someBlob(t))
	}
	result = maps.Clone(base)
	for range rapid.IntRange(1, 6).Draw(t, "acts") {
		from := rapid.SampledFrom(slices.Sorted(maps.Keys(base))).Draw(t, "from")
		to := rapid.SampledFrom(somePaths).Draw(t, "to")
		b, stands := result[from]
		act := rapid.SampledFrom([]string{"rename", "rename", "copy", "edit", "mode", "delete", "add"}).Draw(t, "act")
		switch {
		case act == "add" || !stands:
			result.put(to, someBlob(t))
		case act == "rename":
			delete(result, from)
			result.put(to, edited(t, b))
		case act == "copy":
			result.put(to, edited(t, b))
		case act == "edit":
			result[from] = edited(t, b)
		case act == "delete":
			delete(result, from)
		case b.mode == "100644":
			result[from] = blob{"100755", b.text}
		default:
			result[from] = blob{"100644", b.text}
		}
	}
	return base, result
}

// grafted writes trees into a repository of git, in one process, and returns their ids.
func grafted(t *rapid.T, dir string, trees ...folder) []string {
	var in strings.Builder
	for i, f := range trees {
		fmt.Fprintf(&in, "commit refs/heads/made-%d\nmark :%d\ncommitter T <t@example.com> 0 +0000\ndata 0\ndeleteall\n", i, i+1)
		for p, b := range f {
			fmt.Fprintf(&in, "M %s inline \"%s\"\ndata %d\n%s\n", b.mode, strings.ReplaceAll(p, `"`, `\"`), len(b.text), b.text)
		}
		fmt.Fprintf(&in, "\nls :%d \"\"\n", i+1)
	}
	cmd := exec.Command("git", "--git-dir="+dir, "fast-import", "--force", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	ids := regexp.MustCompile(`[0-9a-f]{40}`).FindAllString(string(out), -1)
	if err != nil || len(ids) != len(trees) {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	return ids
}

// probe is a condition and whether it has to match.
type probe struct {
	when string
	want bool
}

// someProbes are conditions about paths, with what they are of these trees by the trees alone.
func someProbes(t *rapid.T, base, result folder) []probe {
	paths := differ(base, result)
	some := func(is func(string) bool) bool { return slices.ContainsFunc(paths, is) }
	head := rapid.SampledFrom(someHeads).Draw(t, "head")
	one := rapid.SampledFrom(somePaths).Draw(t, "one")
	glob := rapid.SampledFrom(someGlobs).Draw(t, "glob")
	shape := "^" + strings.NewReplacer(`\*\*`, ".*", `\*`, "[^/]*").Replace(regexp.QuoteMeta(glob)) + "$"
	_, was := base[one]
	is, stands := result[one]
	differs := slices.Contains(paths, one)
	begins := func(p string) bool { return strings.HasPrefix(p, head) }
	all := []probe{
		{fmt.Sprintf(`any(patch.files, .path startsWith %q)`, head), some(begins)},
		{fmt.Sprintf(`any(patch.paths, # startsWith %q)`, head), some(begins)},
		{fmt.Sprintf(`all(patch.files, .path startsWith %q)`, head), !some(func(p string) bool { return !begins(p) })},
		{fmt.Sprintf(`any(patch.paths, # matches %q)`, shape), some(regexp.MustCompile(shape).MatchString)},
		{fmt.Sprintf(`any(patch.files, .path matches %q)`, shape), some(regexp.MustCompile(shape).MatchString)},
		{fmt.Sprintf(`%q in patch.paths`, one), differs},
		{fmt.Sprintf(`any(patch.files, .path == %q && .status == "removed")`, one), was && !stands},
		{fmt.Sprintf(`any(patch.files, .path == %q && .status == "modified")`, one), was && differs && stands},
		{fmt.Sprintf(`any(patch.files, .path == %q && .status in ["added", "renamed", "copied"])`, one), !was && stands},
		{fmt.Sprintf(`any(patch.files, .path == %q && .mode == "100755")`, one), differs && is.mode == "100755"},
		{fmt.Sprintf(`len(patch.paths) == %d && len(patch.files) == %d`, len(paths), len(paths)), true},
	}
	if !was && stands && is.mode != "120000" { // all of it is new there, wherever it came from
		all = append(all, probe{fmt.Sprintf(`any(patch.files, .path == %q && .added == %d && .removed == 0)`, one, strings.Count(is.text, "\n")), true})
	}
	if was && !stands && base[one].mode != "120000" {
		all = append(all, probe{fmt.Sprintf(`any(patch.files, .path == %q && .removed == %d && .added == 0)`, one, strings.Count(base[one].text, "\n")), true})
	}
	return all
}

// passable says why no rule with need 0 may pass these trees, "" where one may.
func passable(base, result folder) string {
	for _, p := range differ(base, result) {
		now, stands := result[p]
		_, was := base[p]
		if !stands {
			return p + " is removed"
		}
		for q, b := range base {
			if !was && q != p && b.text == now.text && now.text != "" && now.mode != "120000" && b.mode != "120000" {
				return p + " is a copy of " + q
			}
		}
	}
	return ""
}

// TestARuleSeesExactlyThePathsThatDiffer (issue 6, 1): of random trees, and of what random
// moves, copies, edits, modes, deletions and folders in place of files make of them, a rule
// about a path matches if and only if the trees differ there. What is stored says the same
// when the rule is tried later. Nothing that was moved, copied or removed passes by a rule.
func TestARuleSeesExactlyThePathsThatDiffer(t *testing.T) {
	t.Parallel() // it waits for git
	w := newWorld(t, approval.Config{Policy: compiled(t, policy.RuleConfig{Name: "docs", When: `all(patch.files, .path endsWith ".md")`, Need: need(0)})})
	source, mirrors := filepath.Join(t.TempDir(), "app"), filepath.Join(t.TempDir(), "mirrors")
	for _, args := range [][]string{{"init", "-q", "-b", "main", source}, {"-C", source, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "x"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	m := patch.NewMirrors(mirrors, patch.Options{}).Open(patch.Repository{Name: "app", Source: source, Branch: "main"})
	w.must(m.Fetch(w.ctx))
	found, err := filepath.Glob(filepath.Join(mirrors, "*.git"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	cases, probes, passes := 0, 0, 0
	began := time.Now()
	rapid.Check(t, func(t *rapid.T) {
		base, result := someTrees(t)
		ids := grafted(t, found[0], base, result)
		review, err := m.Review(w.ctx, ids[0], ids[1])
		if err != nil {
			t.Fatal(err)
		}
		p := proposal("1")
		p.Base.Tree, p.Tree, p.Review = ids[0], ids[1], review
		d := w.checked()
		if err := w.g.Ask(w.ctx, d, p); err != nil {
			t.Fatal(err)
		}
		r := w.request(w.delegation(d.ID).ApprovalID)
		if why := passable(base, result); why != "" && r.Rule.Need == 0 {
			t.Fatalf("%s, and the rule %s passed it: %+v", why, r.Rule.Name, r.Revision.Files)
		}
		if r.Rule.Need == 0 {
			passes++
		}
		all := someProbes(t, base, result)
		probes += len(all)
		if !matches(t, w, together(all), r) {
			for _, try := range all {
				if matches(t, w, try.when, r) != try.want {
					t.Fatalf("%s has to be %v\nbase   %+v\nresult %+v\ndiffer %q\nfiles  %+v", try.when, try.want, base, result, differ(base, result), r.Revision.Files)
				}
			}
			t.Fatal("each condition is right alone, and not together")
		}
		cases++
	})
	t.Logf("%d pairs of trees, %d rules, %d passed by a rule, in %s", cases, probes, passes, time.Since(began).Round(time.Millisecond))
}

// together is one condition that holds if all of them are what they have to be.
func together(all []probe) string {
	var each []string
	for _, p := range all {
		each = append(each, fmt.Sprintf("(%s) == %t", p.when, p.want))
	}
	return strings.Join(each, " && ")
}

// matches tries a rule on the newest request, which is r, as it is stored.
func matches(t *rapid.T, w *world, when string, r approval.Request) bool {
	p, problems := policy.CompileRules([]policy.RuleConfig{{Name: "probe", When: when}}, nil)
	if len(problems) > 0 {
		t.Fatal(when, problems)
	}
	b, err := w.g.Backtest(w.ctx, p, r.CreatedAt)
	if err != nil || b.Requests != 1 {
		t.Fatalf("%d requests, %v", b.Requests, err)
	}
	return b.Rules["probe"] == 1
}
