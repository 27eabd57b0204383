package patch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// ApplyText computes the tree of a patch that came as text. Every hunk must
// stand exactly where it says, on exactly the lines it names: no fuzz, no
// offset, no three-way. What does not fit is a *Refusal. A blank diff is no
// patch: the answer is baseTree.
//
// The result is computed twice, here and by `git apply --cached` on a temporary
// index, and both must agree in every path, mode and byte.
func (r *Mirror) ApplyText(ctx context.Context, baseTree string, diff []byte) (string, error) {
	files, err := parsePatch(diff, r.home.opts.Limits)
	if err != nil || len(files) == 0 {
		return baseTree, err
	}
	if err := r.ensure(ctx); err != nil {
		return "", err
	}
	ix, err := r.newIndex(ctx, baseTree)
	if err != nil {
		return "", err
	}
	defer ix.done()
	want, err := r.expect(ctx, ix, files)
	if err != nil {
		return "", err
	}
	_, err = ix.git(ctx, command{stdin: bytes.NewReader(render(files)),
		args: []string{"apply", "--cached", "--unidiff-zero", "--whitespace=nowarn", "-p1", "-"}})
	if exitCode(err) > 0 {
		return "", refuse(CodeContextMismatch, files[0].path(), "The patch does not fit the repository: %s.", Shown(textcut.Brief(lastLine(stderrOf(err)), 200)))
	}
	if err != nil {
		return "", err
	}
	tree, err := ix.write(ctx)
	if err != nil {
		return "", err
	}
	got, err := r.Changes(ctx, baseTree, tree)
	if err != nil {
		return "", err
	}
	return tree, agree(want, got)
}

// entry is a file in a tree; the zero value is an absent one.
type entry struct{ mode, id string }

// expect applies the parsed patch by our own hand: the new entry of every path.
func (r *Mirror) expect(ctx context.Context, ix *index, files []filePatch) (map[string][2]entry, error) {
	base, err := ix.entries(ctx, files)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range files {
		if f.old == "" {
			continue
		}
		e, ok := base[f.old]
		if !ok {
			return nil, refuse(CodeContextMismatch, f.old, "%s is not in the repository, so it cannot be changed (line %d).", Shown(f.old), f.line)
		}
		if e.mode == modeGit {
			return nil, refuse(CodeGitlink, f.old, "%s is a submodule, which agents may not change.", Shown(f.old))
		}
		if len(f.hunks) > 0 || f.status == Deleted { // else its content stays as it is
			ids = append(ids, e.id)
		}
	}
	if err := r.checkSwell(ctx, base, files); err != nil {
		return nil, err
	}
	contents := map[string][]byte{}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	err = r.blobs(ctx, ids, func(i int, _ int64, in io.Reader) error {
		var err error
		contents[ids[i]], err = io.ReadAll(in)
		return err
	})
	if err != nil {
		return nil, err
	}
	want := map[string][2]entry{}
	for i := range files {
		if err := r.expectFile(&files[i], base, contents, want); err != nil {
			return nil, err
		}
	}
	return want, nil
}

func (r *Mirror) expectFile(f *filePatch, base map[string]entry, contents map[string][]byte, want map[string][2]entry) error {
	old := base[f.old]
	if f.new != "" && f.new != f.old {
		if _, exists := base[f.new]; exists {
			return refuse(CodeContextMismatch, f.new, "%s is there already, so it cannot be added (line %d).", Shown(f.new), f.line)
		}
	}
	if f.oldMode != "" && f.old != "" && f.oldMode != old.mode {
		return refuse(CodeContextMismatch, f.old, "%s has mode %s, not %s (line %d).", Shown(f.old), old.mode, f.oldMode, f.line)
	}
	if f.newMode == "" && f.new != "" {
		f.newMode = old.mode
	}
	f.oldMode = cmp.Or(f.oldMode, old.mode)
	now, err := f.result(r.format(), old, contents)
	if err != nil {
		return err
	}
	if f.status == Deleted {
		if now.id != blobID(r.format(), nil) {
			return refuse(CodeContextMismatch, f.old, "%s is deleted, but lines of it would remain (line %d).", Shown(f.old), f.line)
		}
		want[f.old] = [2]entry{old, {}}
		return nil
	}
	if f.old == f.new {
		if now != old {
			want[f.new] = [2]entry{old, now}
		}
		return nil
	}
	want[f.new] = [2]entry{{}, now}
	if f.status == Renamed {
		want[f.old] = [2]entry{old, {}}
	}
	return nil
}

func (f *filePatch) result(format string, old entry, contents map[string][]byte) (entry, error) {
	if len(f.hunks) == 0 && f.old != "" && f.status != Deleted {
		return entry{f.newMode, old.id}, nil
	}
	content, err := applyHunks(f, contents[old.id])
	return entry{f.newMode, blobID(format, content)}, err
}

// applyHunks puts the hunks into content, each exactly where it says.
func applyHunks(f *filePatch, content []byte) ([]byte, error) {
	lines := bytes.SplitAfter(content, []byte("\n"))
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	var out bytes.Buffer
	at := 0
	for _, h := range f.hunks {
		start := h.oldStart
		if h.oldLines > 0 {
			start--
		}
		if h.oldStart == 0 && len(lines) > 0 {
			return nil, refuse(CodeContextMismatch, f.path(), "A hunk of %s begins at line 0, which says that the file is empty; it has %d lines. Make the patch again from the current file.", Shown(f.path()), len(lines))
		}
		if start > len(lines) || start < at {
			return nil, refuse(CodeContextMismatch, f.path(), "A hunk of %s begins at line %d, but the file has %d lines.", Shown(f.path()), h.oldStart, len(lines))
		}
		for ; at < start; at++ {
			out.Write(lines[at])
		}
		for _, l := range h.lines {
			if l.op == '+' {
				out.WriteString(l.text)
				continue
			}
			if at >= len(lines) || string(lines[at]) != l.text {
				return nil, refuse(CodeContextMismatch, f.path(), "Line %d of %s is not what the patch expects. Make the patch again from the current file.", at+1, Shown(f.path()))
			}
			if l.op == ' ' {
				out.Write(lines[at])
			}
			at++
		}
		// A line without its line feed can only be the last one.
		if b := out.Bytes(); at < len(lines) && len(b) > 0 && b[len(b)-1] != '\n' {
			return nil, refuse(CodeContextMismatch, f.path(), "%s would lose a line feed in its middle.", Shown(f.path()))
		}
	}
	for ; at < len(lines); at++ {
		if b := out.Bytes(); len(b) > 0 && b[len(b)-1] != '\n' {
			return nil, refuse(CodeContextMismatch, f.path(), "%s would lose a line feed in its middle.", Shown(f.path()))
		}
		out.Write(lines[at])
	}
	return out.Bytes(), nil
}

// agree holds git's result against ours.
func agree(want map[string][2]entry, got []Change) error {
	differs := func(path string) error {
		return refuse(CodeMalformed, path, "The patch can be read in two ways at %s, so it is not taken.", Shown(path))
	}
	for _, c := range got {
		if w, ok := want[c.Path]; !ok || !same(w[0], c.OldMode, c.OldID) || !same(w[1], c.NewMode, c.NewID) {
			return differs(c.Path)
		}
		delete(want, c.Path)
	}
	for path := range want {
		return differs(path)
	}
	return nil
}

func same(e entry, mode, id string) bool {
	if e.mode == "" {
		return mode == modeAbsent
	}
	return e.mode == mode && e.id == id
}

// entries looks the paths of a patch up in the index.
func (ix *index) entries(ctx context.Context, files []filePatch) (map[string]entry, error) {
	args := []string{"ls-files", "-z", "--stage", "--"}
	size := 0
	for _, f := range files {
		for _, name := range []string{f.old, f.new} {
			if name != "" {
				args = append(args, name)
				size += len(name) + 1
			}
		}
	}
	if size > 100<<10 { // more than fits an argument list: take the whole index
		args = args[:4]
	}
	// A bare repository has no work tree to stand in; an empty folder does.
	out, err := ix.git(ctx, command{args: args, max: 512 << 20})
	if err != nil {
		return nil, err
	}
	base := map[string]entry{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		meta, path, ok := strings.Cut(line, "\t")
		if f := strings.Fields(meta); ok && len(f) == 3 {
			base[path] = entry{f[0], f[1]}
		}
	}
	return base, nil
}

// blobID is the id that git gives to content.
func blobID(format string, content []byte) string {
	h := newHash(format)
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

func newHash(format string) hash.Hash {
	if format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}

// render writes a parsed patch in the one form that git gets to see: names
// quoted, both modes spelled out, counts recomputed from the lines.
func render(files []filePatch) []byte {
	var b bytes.Buffer
	for i := range files {
		renderFile(&b, &files[i])
	}
	return b.Bytes()
}

func renderFile(b *bytes.Buffer, f *filePatch) {
	old, new := f.old, f.new
	old = cmp.Or(old, new)
	new = cmp.Or(new, old)
	fmt.Fprintf(b, "diff --git %s %s\n", quoteName("a/"+old), quoteName("b/"+new))
	switch f.status {
	case Added:
		fmt.Fprintf(b, "new file mode %s\n", f.newMode)
	case Deleted:
		fmt.Fprintf(b, "deleted file mode %s\n", f.oldMode)
	default:
		if f.oldMode != f.newMode {
			fmt.Fprintf(b, "old mode %s\nnew mode %s\n", f.oldMode, f.newMode)
		}
	}
	switch f.status {
	case Renamed:
		fmt.Fprintf(b, "rename from %s\nrename to %s\n", quoteName(old), quoteName(new))
	case Copied:
		fmt.Fprintf(b, "copy from %s\ncopy to %s\n", quoteName(old), quoteName(new))
	}
	if len(f.hunks) == 0 {
		return
	}
	from, to := quoteName("a/"+old), quoteName("b/"+new)
	if f.status == Added {
		from = "/dev/null"
	}
	if f.status == Deleted {
		to = "/dev/null"
	}
	fmt.Fprintf(b, "--- %s\n+++ %s\n", from, to)
	for _, h := range f.hunks {
		fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", h.oldStart, h.oldLines, h.newStart, h.newLines)
		for _, l := range h.lines {
			b.WriteByte(l.op)
			b.WriteString(l.text)
			if !strings.HasSuffix(l.text, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
}
