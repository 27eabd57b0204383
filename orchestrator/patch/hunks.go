package patch

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// maxShown is the largest file whose lines are shown, in bytes.
const maxShown = 64 << 20

// Hunks returns a file's changed lines with so many lines around them; a large
// number gives the whole file. A binary file has none. Changed words are marked
// in Spans.
func (r *Mirror) Hunks(ctx context.Context, baseTree, tree string, f File, around int) ([]Hunk, error) {
	switch {
	case f.Binary, f.OldBlob == f.NewBlob, f.OldMode == modeGit, f.NewMode == modeGit:
		return nil, nil
	case f.OldBlob == "" || f.NewBlob == "":
		return r.wholeFile(ctx, f)
	}
	if err := checkIDs(f.OldBlob, f.NewBlob); err != nil {
		return nil, err
	}
	around = min(max(around, 0), 10_000_000)
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
	if len(content) == 0 {
		return nil, nil
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
	return []Hunk{h}, nil
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
				return nil, fmt.Errorf("git diff printed %q", cut(s, 60))
			}
			_, section, _ := strings.Cut(s[3:], " @@")
			hunks = append(hunks, Hunk{OldStart: head.oldStart, OldLines: head.oldLines, NewStart: head.newStart,
				NewLines: head.newLines, Section: strings.TrimPrefix(section, " ")})
			h = &hunks[len(hunks)-1]
			oldAt, newAt, oldLeft, newLeft = head.oldStart, head.newStart, head.oldLines, head.newLines
		}
	}
	for i := range hunks {
		markWords(hunks[i].Lines)
	}
	return hunks, nil
}
