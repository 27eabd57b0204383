package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
)

// reader reads the files of one revision, each once as long as all of them are not too
// much to hold.
type reader struct {
	reviser Reviser // nil reads nothing
	r       Request
	v       Revision
	read    map[string]content
	kept    int // bytes in read
}

type content struct {
	lines []string
	found bool
	cut   bool // it is longer than what was read
}

func (g *Gateway) reader(r Request, v Revision) *reader {
	f := &reader{r: r, v: v, read: map[string]content{}}
	if p := g.reviser.Load(); p != nil {
		f.reviser = *p
	}
	return f
}

func (f *reader) lines(ctx context.Context, path, side string) ([]string, bool, error) {
	got, err := f.file(ctx, path, side == LeftSide)
	return got.lines, got.found, err
}

func (f *reader) file(ctx context.Context, path string, left bool) (content, error) {
	key := fmt.Sprint(left, path)
	if got, ok := f.read[key]; ok || f.reviser == nil {
		return got, nil
	}
	name := path
	for _, c := range f.v.Files {
		if left && c.Path == path && c.OldPath != "" {
			name = c.OldPath
		}
	}
	r := f.r
	r.Revision = f.v
	text, found, err := f.reviser.ReadFile(ctx, r.DelegationID, r.order(nil), left, name, maxRead)
	cut := errors.Is(err, patch.ErrCut)
	if err != nil && !cut {
		return content{}, orchestrator.Errorf(orchestrator.CodeUnavailable, "%q could not be read, so comments on its lines cannot be placed. Nothing was stored. Try again. (%w)", path, err)
	}
	got := content{found: found, cut: cut}
	if len(text) > 0 {
		got.lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	const header = 16 // bytes of a string beside its text
	size := len(text) + header*len(got.lines)
	if f.kept += size; f.kept > maxKept {
		clear(f.read)
		f.kept = size
	}
	f.read[key] = got
	return got, nil
}

// code is the line that a comment is about; a line that does not exist is refused. A
// comment that names no side is about the new file, or about the old one where the
// patch deletes it.
func (f *reader) code(ctx context.Context, path, side string, line int) (string, *orchestrator.Error, error) {
	if f.reviser == nil {
		return "", nil, nil
	}
	got, err := f.file(ctx, path, side == LeftSide)
	if err == nil && !got.found && side == "" {
		got, err = f.file(ctx, path, true)
	}
	switch {
	case err != nil:
		return "", nil, err
	case !got.found:
		return "", orchestrator.Errorf(orchestrator.CodeBadRequest, "There is no file %q on that side of revision %d, so it has no line to comment on.", path, f.v.N), nil
	case line == 0 || line > len(got.lines) && got.cut:
		return "", nil, nil
	case line < 0 || line > len(got.lines):
		return "", orchestrator.Errorf(orchestrator.CodeBadRequest, "%q has %d %s in revision %d, so there is no line %d to comment on.", path, len(got.lines), plural(len(got.lines), "line", "lines"), f.v.N, line), nil
	}
	return quote(got.lines[line-1]), nil, nil
}

// run is the code of the lines that a draft is about, from its First to its Line.
func (f *reader) run(ctx context.Context, d Draft) (string, *orchestrator.Error, error) {
	if d.First == 0 || d.First == d.Line {
		return f.code(ctx, d.Path, d.Side, d.Line)
	}
	switch n := d.Line - d.First + 1; {
	case d.First < 1 || n < 1:
		return "", orchestrator.Errorf(orchestrator.CodeBadRequest, "A comment cannot be about lines %d to %d. Name the first line before the last.", d.First, d.Line), nil
	case n > maxLines:
		return "", orchestrator.Errorf(orchestrator.CodeBadRequest, "A comment is about %d lines at most, and these are %d. Choose fewer, or comment on the first of them.", maxLines, n), nil
	}
	var code []string
	for n := d.First; n <= d.Line; n++ {
		line, refused, err := f.code(ctx, d.Path, d.Side, n)
		if refused != nil || err != nil {
			return "", refused, err
		}
		code = append(code, line)
	}
	return strings.Join(code, "\n"), nil, nil
}

// quote is a line as it is kept beside a comment: valid text of at most 400 bytes.
func quote(line string) string {
	line = strings.ReplaceAll(strings.ToValidUTF8(line[:min(len(line), 4*maxCode)], "\uFFFD"), "\x00", "")
	if len(line) > maxCode {
		line = strings.ToValidUTF8(line[:maxCode], "")
	}
	return strings.Clone(strings.TrimRight(line, " \t\r\n")) // not a part of the file, which it would hold
}

// stands finds code again, whose last line was at line of another text of the file: where
// it was, or at the only other place. Line 0 is the whole file; found says that there
// still is one.
func stands(code string, line int, lines []string, found bool) (now int, moved, gone bool) {
	want := strings.Split(code, "\n")
	at := func(n int) bool { // the last of them stands at n
		for i, w := range want {
			if k := n - len(want) + i; k < 0 || k >= len(lines) || !quotes(w, lines[k]) {
				return false
			}
		}
		return true
	}
	if !found || line == 0 || at(line) {
		return line, false, !found
	}
	only := 0
	for i := range lines {
		switch {
		case !at(i + 1):
		case only > 0:
			return line, false, true
		default:
			only = i + 1
		}
	}
	if only == 0 {
		return line, false, true
	}
	return only, true, false
}

// quotes reports whether code is quote(line); most lines differ early, and are not copied.
func quotes(code, line string) bool {
	for i := range min(len(code), len(line)) {
		if line[i] == 0 || line[i] >= utf8.RuneSelf {
			break
		}
		if line[i] != code[i] {
			return false
		}
	}
	return quote(line) == code
}
