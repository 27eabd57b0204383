package change

import (
	"fmt"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"
)

// Sizes of the changed files that pages draw.
const (
	UsualContext = 3
	MaxRows      = patch.MaxLines * (1 + 2*UsualContext) // of one page: none is cut that stands in the usual context
	usualLine    = 200                                   // bytes
	closedAbove  = 1500                                  // a single file of more lines starts closed
)

// Window is the part of the changed lines that a page shows.
type Window struct{ From, To int }

// FileRow is a file without its lines.
func FileRow(n int, f patch.File, v approval.Revision) diff.DiffFile {
	row := diff.DiffFile{N: n, Path: f.Path, OldPath: f.OldPath, Status: string(f.Status), Added: f.Added, Removed: f.Removed,
		OldMode: f.OldMode, NewMode: f.NewMode, Similarity: f.Similarity}
	for _, w := range v.Warnings {
		if w.Path == f.Path {
			row.Warnings = append(row.Warnings, w.Code)
		}
	}
	lines := f.Added + f.Removed
	if f.TooLarge() {
		row.Cut = "Cut: a file of more than 64 MB is not shown in lines. Read it in the repository, or with gatehouse review."
	}
	switch {
	case f.Binary:
		row.Binary = &diff.BinaryChange{OldSize: sizeOf(f.OldBlob, f.OldSize), NewSize: sizeOf(f.NewBlob, f.NewSize), OldHash: f.OldBlob, NewHash: f.NewBlob}
	case f.Generated:
		row.Closed = fmt.Sprintf("%s, %s", f.Reason, sizeWords(f))
	case f.Status == patch.Deleted:
		row.Closed = "show " + lineWords(lines)
	case lines > closedAbove:
		row.Closed = "large, " + lineWords(lines)
	}
	return row
}

// sizeWords is how big a file is that starts closed: a line may be a megabyte.
func sizeWords(f patch.File) string {
	s := lineWords(f.Added + f.Removed)
	if f.Bytes > int64(usualLine)*int64(f.Added+f.Removed) {
		s += ", " + views.Bytes(uint64(f.Bytes))
	}
	return s
}

func lineWords(n int) string {
	if n == 1 {
		return "1 line"
	}
	return strconv.Itoa(n) + " lines"
}

// sizeOf is a blob's size, −1 when there is none.
func sizeOf(blob string, size int64) int64 {
	if strings.Trim(blob, "0") == "" {
		return -1
	}
	return size
}
