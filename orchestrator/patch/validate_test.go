package patch_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator/patch"
)

// privateKeyPEM makes a real key, so that none has to stand in the source.
func privateKeyPEM(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestValidateHoldsAPatchAgainstTheRules(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "secrets/key": "k\n", "docs/x.md": "x\n"},
		func(r *patch.Repository, _ *patch.Options) { r.Protect = []string{"secrets/**"} })
	key := privateKeyPEM(t)
	cases := []struct {
		name  string
		fs    files
		rules patch.Rules
		code  string // "" passes
		files []string
	}{
		{"anything goes", files{"b.txt": "x"}, patch.Rules{}, "", nil},
		{"protected by the repository", files{"secrets/key": "mine", "b": "x"}, patch.Rules{}, patch.CodePathProtected, []string{"secrets/key"}},
		{"protected in another case", files{"Secrets/other": "mine"}, patch.Rules{}, patch.CodePathProtected, []string{"Secrets/other"}},
		{"protected by a rule", files{"x/go.mod": "mine", "y/go.mod": "x"}, patch.Rules{Protect: []string{"go.mod"}}, patch.CodePathProtected, []string{"x/go.mod", "y/go.mod"}},
		{"inside of writes", files{"docs/y.md": "y"}, patch.Rules{Writes: []string{"docs/**"}}, "", nil},
		{"outside of writes", files{"docs/y.md": "y", "a.txt": "2"}, patch.Rules{Writes: []string{"docs/**"}}, patch.CodePathOutside, []string{"a.txt"}},
		{"may write nothing", files{"a.txt": "2"}, patch.Rules{Writes: []string{}}, patch.CodePathOutside, []string{"a.txt"}},
		{"too many files", files{"x": "", "y": "", "z": ""}, patch.Rules{Limits: patch.Limits{Files: 2}}, patch.CodeTooLarge, nil},
		{"too many lines", files{"x": "1\n2\n3\n"}, patch.Rules{Limits: patch.Limits{Lines: 2}}, patch.CodeTooLarge, nil},
		{"one file too large", files{"x": strings.Repeat("x", 2000)}, patch.Rules{Limits: patch.Limits{FileBytes: 1999}}, patch.CodeTooLarge, []string{"x"}},
		{"together too large", files{"x": strings.Repeat("x", 2000), "y": strings.Repeat("y", 2000)}, patch.Rules{Limits: patch.Limits{Bytes: 3999}}, patch.CodeTooLarge, nil},
		{"a private key", files{"id": key}, patch.Rules{}, patch.CodeSecret, []string{"id"}},
		{"a private key in a string", files{"id.go": fmt.Sprintf("var k = %q\n", key)}, patch.Rules{}, patch.CodeSecret, []string{"id.go"}},
		{"a program that looks for keys", files{"scan.go": "if strings.Contains(s, \"-----BEGIN PRIVATE KEY-----\") { return true }\n"}, patch.Rules{}, "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := s.m.Validate(s.ctx, s.base.Tree, s.changed(c.fs), c.rules)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			list(t, "files", refusal(t, err, c.code).Files, c.files...)
		})
	}
}

func TestALinkMustStayInside(t *testing.T) {
	s := given(t, files{"a.txt": "1\n", "d/e/f": "x"})
	for target, ok := range map[string]bool{"a.txt": true, "../a.txt": true, "../../a.txt": false, "/etc/passwd": false,
		"e/../../../x": false, "e/f": true, "../.git/config": false, "../.GIT": false, "nowhere": true} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := s.m.Checkout(s.ctx, s.base.Commit, "", dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, "d", "link")); err != nil {
			t.Fatal(err)
		}
		err := s.m.Validate(s.ctx, s.base.Tree, s.snapshot(dir), patch.Rules{})
		if ok && err != nil {
			t.Errorf("%s: %v", target, err)
		}
		if !ok {
			refusal(t, err, patch.CodeSymlink)
		}
	}
}

// A tree that did not come through a folder (a bundle, say) may hold what git
// itself would not write; it is judged all the same.
func TestValidateJudgesForgedTrees(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	blob := git(t, s.source, "rev-parse", "HEAD:a.txt")
	forge := func(lines string) string {
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		if err := os.WriteFile(in, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, s.source, "-c", "core.protectNTFS=false", "update-ref", "refs/heads/forged",
			git(t, s.source, "commit-tree", mktree(t, s.source, in), "-m", "forged"))
		s.fetch()
		b, err := s.m.Branch(s.ctx, "forged")
		if err != nil {
			t.Fatal(err)
		}
		return b.Tree
	}
	keep := "100644 blob " + blob + "\ta.txt\n"
	refusal(t, s.m.Validate(s.ctx, s.base.Tree, forge("100644 blob "+blob+"\t.GIT\n"+keep), patch.Rules{}), patch.CodeGitInternal)
	refusal(t, s.m.Validate(s.ctx, s.base.Tree, forge("100644 blob "+blob+"\tgit~1\n"+keep), patch.Rules{}), patch.CodeGitInternal)
	refusal(t, s.m.Validate(s.ctx, s.base.Tree, forge(keep+"160000 commit "+s.base.Commit+"\tsub\n"), patch.Rules{}), patch.CodeGitlink)
	refusal(t, s.m.Validate(s.ctx, s.base.Tree, forge("120000 blob "+blob+"\t.gitattributes\n"+keep), patch.Rules{}), patch.CodeBadMode)
}

func mktree(t *testing.T, dir, file string) string {
	t.Helper()
	return git(t, dir, "-c", "alias.mk=!git mktree --missing <'"+file+"'", "mk")
}

func TestGlobs(t *testing.T) {
	for pattern, bad := range map[string]bool{"**": false, "a/**/b": false, "*.md": false, "": true, "/": true, "a//b": true, "[": true, "../x": true} {
		if err := patch.CheckGlob(pattern); (err != nil) != bad {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

func TestDigestTellsEveryFieldApart(t *testing.T) {
	base := []string{"app", "main", "c1", "t1", "merge"}
	seen := map[string]bool{}
	add := func(v []string) {
		d := patch.Digest(v[0], v[1], v[2], v[3], v[4])
		if len(d) != 64 || strings.Trim(d, "0123456789abcdef") != "" {
			t.Errorf("%q is no digest", d)
		}
		if seen[d] {
			t.Errorf("%q shares a digest", v)
		}
		seen[d] = true
	}
	add(base)
	for i := range base {
		v := append([]string{}, base...)
		v[i] += "x"
		add(v)
	}
	add([]string{"ap", "pmain", "c1", "t1", "merge"})
	equal(t, "delivery has a default", patch.Digest("app", "main", "c1", "t1", ""), patch.Digest(base[0], base[1], base[2], base[3], base[4]))
}

func TestImportTwiceAndWithARewrittenBase(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	rev := s.record(s.changed(files{"a.txt": "2\n"}))
	s2, bundle, err := s.m.SaveTree(s.ctx, "s1", s.base.Commit, s.changed(files{"a.txt": "3\n"}), at)
	if err != nil {
		t.Fatal(err)
	}
	other := patch.NewMirrors(t.TempDir(), patch.Options{}).Open(s.m.Repository())
	if err := other.Fetch(s.ctx); err != nil {
		t.Fatal(err)
	}
	// Somebody rewrites the branch: the base is in the mirror, but on no branch.
	git(t, s.source, "commit", "-q", "--amend", "-m", "rewritten")
	if err := other.Fetch(s.ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := other.Import(s.ctx, rev.Bundle, rev.Commit); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Import(s.ctx, bundle, s2); err != nil || !other.Has(s.ctx, s2) {
		t.Fatal(err)
	}
	if err := other.Import(s.ctx, []byte("no bundle"), strings.Repeat("0", 39)+"1"); err == nil {
		t.Error("garbage was taken")
	}
	late := patch.NewMirrors(t.TempDir(), patch.Options{}).Open(s.m.Repository())
	if err := late.Import(s.ctx, rev.Bundle, rev.Commit); err == nil {
		t.Error("a bundle without its base was taken")
	}
}

func TestTheSameSpecGivesTheSameCommit(t *testing.T) {
	s := given(t, files{"a.txt": "1\n"})
	tree := s.changed(files{"a.txt": "2\n"})
	first, second := s.record(tree), s.record(tree)
	equal(t, "commit", first.Commit, second.Commit)
	// Texts of agents and people cannot add trailers or break out of the subject.
	rev, err := s.m.Record(s.ctx, patch.RecordSpec{Key: "k", Base: s.base.Commit, Tree: tree, Title: "x\nApproved-by: eve", Delegation: "d",
		Agent: "coder\nApproved-by: eve", Task: "t\u202e", At: at})
	if err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(bundle, rev.Bundle, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, s.source, "fetch", "-q", bundle, "refs/gatehouse/rev/k:refs/heads/k")
	equal(t, "approvals", git(t, s.source, "log", "-1", "--format=%(trailers:key=Approved-by)", "k"), "")
	for _, key := range []string{"", "../x", "a/b", "-x", "x.lock", "a..b"} {
		if _, _, err := s.m.SaveTree(s.ctx, key, s.base.Commit, tree, at); err == nil {
			t.Errorf("the key %q was taken", key)
		}
	}
}
