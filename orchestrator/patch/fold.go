package patch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// fold says which files people mostly skip, and why. It only closes them on the page;
// their warnings stay. What decides is what people have approved already: the
// .gitattributes of the base, and the names of files that stand there. Nothing that the
// change itself brings decides: no comment in a file, no attribute, no new name.
func (r *Mirror) fold(ctx context.Context, baseTree string, files []File) error {
	marks, err := r.baseMarks(ctx, baseTree, files)
	if err != nil {
		return err
	}
	for i := range files {
		files[i].Generated, files[i].Reason = folded(files[i], marks[files[i].Path])
	}
	return nil
}

// marks are what .gitattributes says of one path, by attribute: set, unset, a value, or
// unspecified.
type marks map[string]string

// Attributes that close a file, as GitHub has them.
const (
	attrGenerated = "linguist-generated"
	attrVendored  = "linguist-vendored"
	attrDiff      = "diff"
)

func (m marks) says(attribute string) bool { return m[attribute] == "set" || m[attribute] == "true" }
func (m marks) denies(attribute string) bool {
	return m[attribute] == "unset" || m[attribute] == "false"
}

func folded(f File, m marks) (bool, string) {
	switch {
	case m.says(attrGenerated):
		return true, "marked as generated in .gitattributes"
	case m.says(attrVendored):
		return true, "marked as vendored in .gitattributes"
	case m.denies(attrDiff):
		return true, "marked as not for diffs in .gitattributes"
	case f.OldBlob == "" || f.Moved(): // a name that the change itself chose
		return false, ""
	}
	base := path.Base(f.Path)
	switch {
	case lockFiles[base] && !m.denies(attrGenerated):
		return true, "lock file"
	case inFolder(f.Path, "vendor", "node_modules", "third_party") && !m.denies(attrVendored):
		return true, "vendored"
	case m.denies(attrGenerated):
		return false, ""
	case strings.HasSuffix(base, ".min.js"), strings.HasSuffix(base, ".min.css"), strings.HasSuffix(base, ".map"):
		return true, "minified"
	case strings.HasSuffix(base, ".pb.go"), strings.HasSuffix(base, "_templ.go"), strings.HasSuffix(base, "_pb2.py"),
		strings.HasSuffix(base, ".g.dart"), strings.HasSuffix(base, ".snap"):
		return true, "generated"
	}
	return false, ""
}

func inFolder(name string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		return strings.HasPrefix(name, f+"/") || strings.Contains(name, "/"+f+"/")
	})
}

// baseMarks asks git what the base's .gitattributes say of the changed paths; nil where it
// has none for them.
func (r *Mirror) baseMarks(ctx context.Context, baseTree string, files []File) (map[string]marks, error) {
	found, err := r.attributeFiles(ctx, baseTree, files)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	// The mirror's own info/attributes win over all others and switch "diff" off, so git
	// is asked in a bare repository of a moment that has nothing but these files.
	dir, done, err := r.scratch()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := r.bare(dir); err != nil {
		return nil, fmt.Errorf("make a place to read attributes in: %w", err)
	}
	env := []string{"GIT_OBJECT_DIRECTORY=" + filepath.Join(r.dir, "objects")}
	if _, err := r.git(ctx, command{gitDir: dir, env: env, args: []string{"update-index", "-z", "--index-info"}, stdin: strings.NewReader(found)}); err != nil {
		return nil, err
	}
	var paths bytes.Buffer
	for _, f := range files {
		paths.WriteString(f.Path + "\x00")
	}
	out, err := r.git(ctx, command{gitDir: dir, env: env, stdin: &paths, args: []string{"check-attr", "--cached", "-z", "--stdin", attrGenerated, attrVendored, attrDiff}})
	if err != nil {
		return nil, err
	}
	all := map[string]marks{}
	fields := strings.Split(string(out), "\x00")
	for ; len(fields) >= 3; fields = fields[3:] {
		if all[fields[0]] == nil {
			all[fields[0]] = marks{}
		}
		all[fields[0]][fields[1]] = fields[2]
	}
	return all, nil
}

// bare makes dir the smallest thing that git takes for a repository.
func (r *Mirror) bare(dir string) error {
	config := "[core]\n\tbare = true\n\trepositoryformatversion = 0\n"
	if r.format() == "sha256" {
		config = "[core]\n\tbare = true\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
	}
	if err := os.Mkdir(filepath.Join(dir, "refs"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
}

// fewFolders is up to how many folders are asked for by name; of more, the whole tree is
// listed.
const fewFolders = 500

// attributeFiles lists the .gitattributes of the base in the folders above the files, as
// lines for update-index. Links are none, as for git.
func (r *Mirror) attributeFiles(ctx context.Context, baseTree string, files []File) (string, error) {
	const name = ".gitattributes"
	seen := map[string]bool{}
	places := []string{}
	for _, f := range files {
		for p := parent(f.Path); !seen[p]; p = parent(p) {
			seen[p] = true
			places = append(places, path.Join(p, name))
		}
	}
	if len(seen) > fewFolders {
		places = nil
	}
	all, err := r.list(ctx, baseTree, places)
	var b strings.Builder
	for _, l := range all {
		if path.Base(l.path) == name && plainMode(l.mode) {
			fmt.Fprintf(&b, "%s %s\t%s\x00", l.mode, l.id, l.path)
		}
	}
	return b.String(), err
}
