package patch

import (
	"bytes"
	"context"
	"io"
)

// WarnLineEndings: the lines of a file end in another way than they did, or a carriage
// return stands within one, where a terminal begins the line again and hides what came
// before.
const WarnLineEndings = "line_endings"

// endings is how the lines of a text end.
type endings struct{ lf, crlf, lone int }

// countEndings counts the line feeds alone, those behind a carriage return, and the
// carriage returns before anything else.
func countEndings(content []byte) (e endings) {
	for i, c := range content {
		switch {
		case c == '\r' && (i+1 == len(content) || content[i+1] != '\n'):
			e.lone++
		case c == '\n' && i > 0 && content[i-1] == '\r':
			e.crlf++
		case c == '\n':
			e.lf++
		}
	}
	return e
}

// differ reports whether a text with the endings e became one that people should look
// at: it has a kind of ending that it had not, lost all of its carriage returns, or has
// more of them within lines. A new file may have either kind, but not both.
func (e endings) differ(after endings, isNew bool) bool {
	switch {
	case after.lone > e.lone:
		return true
	case isNew:
		return after.lf > 0 && after.crlf > 0
	case e.lf+e.crlf == 0 || after.lf+after.crlf == 0: // nothing to compare with
		return after.lf > 0 && after.crlf > 0
	}
	return after.crlf > 0 && e.crlf == 0 || after.lf > 0 && e.lf == 0 || after.crlf == 0 && e.crlf > 0
}

// scanEndings compares the line endings of the files that have a carriage return in or
// beside a change, as whole contents.
func (r *Mirror) scanEndings(ctx context.Context, files []File, s *scanned) error {
	var ids []string
	var of []*File
	for i := range files {
		f := &files[i]
		if !s.cr[f.Path] || f.Binary || f.NewBlob == "" || f.NewMode == modeLink || f.NewMode == modeGit {
			continue
		}
		if old := f.OldBlob; old != "" && f.OldMode != modeLink && f.OldMode != modeGit {
			ids, of = append(ids, old), append(of, f)
		}
		ids, of = append(ids, f.NewBlob), append(of, f)
	}
	before := map[*File]endings{}
	return r.blobs(ctx, ids, func(i int, _ int64, in io.Reader) error {
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		found := countEndings(bytes.TrimSuffix(content, []byte("\x1a"))) // DOS ends a text with it
		f := of[i]
		if ids[i] == f.OldBlob && (i+1 < len(of) && of[i+1] == f) {
			before[f] = found
			return nil
		}
		was, known := before[f]
		if was.differ(found, !known) {
			s.add(f.Path, WarnLineEndings)
		}
		return nil
	})
}
