package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gatehouse/orchestrator/textcut"
)

// maxShown is the largest file whose lines are shown, in bytes.
const maxShown = 64 << 20

// maxAround is the most lines of context; it gives any file whole.
const maxAround = 10_000_000

// Hunks returns a file's changed lines with so many lines around them; a large
// number gives the whole file. A binary file has none. Changed words are marked
// in Spans.
func (r *Mirror) Hunks(ctx context.Context, baseTree, tree string, f File, around int) ([]Hunk, error) {
	hunks, err := r.hunks(ctx, f, around)
	for i := range hunks {
		MarkWords(hunks[i].Lines)
	}
	return hunks, err
}

// fewFiles is up to how many files are compared one by one; a process for each of many
// takes longer than comparing all of both trees once.
const fewFiles = 4

// EachHunks yields the hunks of the wanted files of a review, in its order, without
// marks: MarkWords makes them where they are shown. files are those of Review for the
// same two trees, all of them.
func (r *Mirror) EachHunks(ctx context.Context, baseTree, tree string, files []File, want func(i int) bool, around int, yield func(i int, hunks []Hunk) error) error {
	var wanted []int
	for i, f := range files {
		if want(i) && !f.lineless() {
			wanted = append(wanted, i)
		}
	}
	var all [][]byte
	if len(wanted) > fewFiles {
		var err error
		if all, err = r.sections(ctx, baseTree, tree, files, around); err != nil {
			return err
		}
	}
	for _, i := range wanted {
		var hunks []Hunk
		var err error
		if all != nil && files[i].Status != TypeChanged {
			hunks, err = readHunks(all[i])
		} else {
			hunks, err = r.hunks(ctx, files[i], around)
		}
		if err == nil {
			err = yield(i, hunks)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sections compares both trees at once and returns what git printed about each file. It
// is nil where that is more than can be held, or is not about these files.
func (r *Mirror) sections(ctx context.Context, baseTree, tree string, files []File, around int) ([][]byte, error) {
	if err := checkIDs(baseTree, tree); err != nil {
		return nil, err
	}
	out, err := r.git(ctx, command{max: maxScan, args: diffArgs(baseTree, tree, withRenames, "-p", fmt.Sprintf("--unified=%d", min(max(around, 0), maxAround)))})
	if errors.Is(err, errOutput) {
		return nil, nil
	}
	if err != nil {
		return nil, r.missing(err)
	}
	parts := splitSections(out)
	all := make([][]byte, len(files))
	for i, f := range files {
		n := 1
		if f.Status == TypeChanged { // a deletion, then an addition
			n = 2
		}
		if len(parts) < n {
			return nil, nil
		}
		all[i], parts = parts[0], parts[n:]
		if n == 1 && !f.lineless() && !bytes.Contains(all[i], f.index()) {
			return nil, nil
		}
	}
	if len(parts) > 0 {
		return nil, nil
	}
	return all, nil
}

// splitSections cuts a diff where a file begins. Lines of files have a mark before them
// and git quotes names, so nothing but a header begins like one.
func splitSections(out []byte) [][]byte {
	const head = "diff --git "
	var parts [][]byte
	for len(out) > 0 {
		end := bytes.Index(out[1:], []byte("\n"+head))
		if end < 0 {
			end = len(out) - 2
		}
		if bytes.HasPrefix(out, []byte(head)) {
			parts = append(parts, out[:end+2])
		}
		out = out[end+2:]
	}
	return parts
}

// index is the header line by which git names both contents of a file.
func (f File) index() []byte {
	old, id := f.OldBlob, f.NewBlob
	if old == "" {
		old = strings.Repeat("0", len(id))
	}
	if id == "" {
		id = strings.Repeat("0", len(old))
	}
	return []byte("\nindex " + old + ".." + id)
}

// lineless reports whether nothing of the file can be shown in lines.
func (f File) lineless() bool {
	return f.Binary || f.TooLarge() || f.OldBlob == f.NewBlob || f.OldMode == modeGit || f.NewMode == modeGit
}

// hunks compares the two contents of one file.
func (r *Mirror) hunks(ctx context.Context, f File, around int) ([]Hunk, error) {
	switch {
	case f.lineless():
		return nil, nil
	case f.OldBlob == "" || f.NewBlob == "":
		return r.wholeFile(ctx, f)
	}
	if err := checkIDs(f.OldBlob, f.NewBlob); err != nil {
		return nil, err
	}
	around = min(max(around, 0), maxAround)
	// Two blobs are compared by id: no name takes part, so none can be misread.
	out, err := r.git(ctx, command{max: 3 * maxShown, args: []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index",
		"--diff-algorithm=histogram", fmt.Sprintf("--unified=%d", around), f.OldBlob, f.NewBlob}})
	if err != nil {
		return nil, r.missing(err)
	}
	return readHunks(out)
}

// wholeFile shows an added or deleted file as one hunk.
func (r *Mirror) wholeFile(ctx context.Context, f File) ([]Hunk, error) {
	id, kind := f.NewBlob, byte('+')
	if id == "" {
		id, kind = f.OldBlob, '-'
	}
	content, err := r.Blob(ctx, id, maxShown)
	if err != nil {
		return nil, err
	}
	return wholeHunk(content, kind), nil
}

// wholeHunk is all lines of a content as one hunk, added or removed; none of an empty one.
func wholeHunk(content []byte, kind byte) []Hunk {
	if len(content) == 0 {
		return nil
	}
	h := Hunk{}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		text, fed := strings.CutSuffix(line, "\n")
		l := Line{Kind: kind, Text: text, NoNewline: !fed}
		if kind == '+' {
			l.New = n
		} else {
			l.Old = n
		}
		h.Lines = append(h.Lines, l)
	}
	if kind == '+' {
		h.NewStart, h.NewLines = 1, n
	} else {
		h.OldStart, h.OldLines = 1, n
	}
	return []Hunk{h}
}

// readHunks reads what git diff printed about two blobs.
func readHunks(out []byte) ([]Hunk, error) {
	var hunks []Hunk
	var h *Hunk
	oldAt, newAt, oldLeft, newLeft := 0, 0, 0, 0
	for len(out) > 0 {
		line := out
		if n := bytes.IndexByte(out, '\n'); n >= 0 {
			line, out = out[:n], out[n+1:]
		} else {
			out = nil
		}
		s := string(line)
		switch {
		case h != nil && strings.HasPrefix(s, `\ `):
			h.Lines[len(h.Lines)-1].NoNewline = true
		case h != nil && oldLeft+newLeft > 0 && s != "":
			l := Line{Kind: s[0], Text: s[1:]}
			if l.Kind != '+' {
				l.Old = oldAt
				oldAt++
				oldLeft--
			}
			if l.Kind != '-' {
				l.New = newAt
				newAt++
				newLeft--
			}
			h.Lines = append(h.Lines, l)
		case strings.HasPrefix(s, "@@ "):
			head, ok := parseHunkHead(s)
			if !ok {
				return nil, fmt.Errorf("git diff printed %q", textcut.Brief(s, 60))
			}
			_, section, _ := strings.Cut(s[3:], " @@")
			hunks = append(hunks, Hunk{OldStart: head.oldStart, OldLines: head.oldLines, NewStart: head.newStart,
				NewLines: head.newLines, Section: strings.TrimPrefix(section, " ")})
			h = &hunks[len(hunks)-1]
			oldAt, newAt, oldLeft, newLeft = head.oldStart, head.newStart, head.oldLines, head.newLines
		}
	}
	return hunks, nil
}

// EachWhole yields all lines of the wanted files as they are in the result, as of added
// ones: of a file that moved, all is new where it is now. One process reads them all.
func (r *Mirror) EachWhole(ctx context.Context, files []File, want func(i int) bool, yield func(i int, hunks []Hunk) error) error {
	var ids []string
	var at []int
	for i, f := range files {
		if want(i) && !f.Binary && f.NewBlob != "" && f.NewMode != modeGit && !f.TooLarge() {
			ids, at = append(ids, f.NewBlob), append(at, i)
		}
	}
	return r.blobs(ctx, ids, func(k int, _ int64, in io.Reader) error {
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		return yield(at[k], wholeHunk(content, '+'))
	})
}
