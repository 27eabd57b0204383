package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// rawDiff are the options under which every diff is made: nothing that the
// patch itself commits (attributes) and nothing on the machine changes them.
var rawDiff = []string{"diff-tree", "-r", "--full-index", "--no-abbrev", "--no-ext-diff", "--no-textconv",
	"--diff-algorithm=histogram", "--no-color", "--no-relative", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"}

// How a diff treats a file that moved. Facts and texts are complete in themselves: they
// show all of it where it is now. Only lists for reading show it as one.
var (
	withRenames = []string{"--find-renames=50%", "--find-copies=50%", "-l2000"}
	noRenames   = []string{"--no-renames"}
)

func diffArgs(baseTree, tree string, moves []string, options ...string) []string {
	return slices.Concat(rawDiff, moves, options, []string{baseTree, tree})
}

// Review computes what people see of a patch, from its two trees alone.
func (r *Mirror) Review(ctx context.Context, baseTree, tree string) (*Review, error) {
	review := &Review{Files: []File{}, Warnings: []Warning{}, Notes: []Note{}}
	plain, err := r.stat(ctx, baseTree, tree, noRenames)
	if err != nil || len(plain) == 0 {
		return review, err
	}
	if review.Files, err = r.shown(ctx, baseTree, tree, plain); err != nil {
		return nil, err
	}
	if err := r.measure(ctx, review.Files); err != nil {
		return nil, err
	}
	if err := r.twins(ctx, baseTree, review.Files); err != nil {
		return nil, err
	}
	scan, err := r.scan(ctx, baseTree, tree, plain)
	if err != nil {
		return nil, err
	}
	for i := range review.Files {
		f := &review.Files[i]
		review.Added += f.Added
		review.Removed += f.Removed
		f.Bytes = scan.bytes[f.Path]
	}
	if err := r.fold(ctx, baseTree, review.Files); err != nil {
		return nil, err
	}
	return review, r.warn(ctx, review, baseTree, tree, scan)
}

// stat lists the changed files with line counts, withRenames or with noRenames.
func (r *Mirror) stat(ctx context.Context, baseTree, tree string, moves []string) ([]File, error) {
	if err := checkIDs(baseTree, tree); err != nil {
		return nil, err
	}
	if baseTree == tree {
		return nil, nil
	}
	out, err := r.git(ctx, command{args: diffArgs(baseTree, tree, moves, "-z", "--raw", "--numstat"), max: 256 << 20})
	if err != nil {
		return nil, r.missing(err)
	}
	return parseStat(string(out))
}

// parseStat reads the raw list and, after it, the counts; both NUL-separated.
func parseStat(out string) ([]File, error) {
	fields := strings.Split(out, "\x00")
	var files []File
	at := map[string]int{}
	i := 0
	take := func() string {
		if i < len(fields) {
			i++
			return fields[i-1]
		}
		return ""
	}
	for i < len(fields) && strings.HasPrefix(fields[i], ":") {
		f, both, err := parseRawFile(take())
		if err != nil {
			return nil, err
		}
		f.Path = take()
		if both {
			f.OldPath, f.Path = f.Path, take()
		}
		at[f.Path] = len(files)
		files = append(files, f)
	}
	for i < len(fields) && fields[i] != "" {
		n := strings.SplitN(take(), "\t", 3)
		if len(n) != 3 {
			return nil, fmt.Errorf("git diff-tree printed the counts %q", n)
		}
		name := n[2]
		if name == "" {
			take()
			name = take()
		}
		k, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("git diff-tree counts %q, which it does not list", name)
		}
		f := &files[k]
		f.Binary = n[0] == "-"
		added, _ := strconv.Atoi(n[0])
		removed, _ := strconv.Atoi(n[1])
		f.Added, f.Removed = f.Added+added, f.Removed+removed
	}
	return files, nil
}

func parseRawFile(s string) (f File, both bool, err error) {
	c, ok := parseRaw(s)
	if !ok {
		return f, false, fmt.Errorf("git diff-tree printed %q", s)
	}
	f = File{OldMode: c.OldMode, NewMode: c.NewMode, OldBlob: c.OldID, NewBlob: c.NewID}
	if isZero(f.OldBlob) {
		f.OldBlob, f.OldMode = "", ""
	}
	if isZero(f.NewBlob) {
		f.NewBlob, f.NewMode = "", ""
	}
	status := strings.Fields(s)[4]
	switch status[0] {
	case 'A':
		f.Status = Added
	case 'D':
		f.Status = Deleted
	case 'T':
		f.Status = TypeChanged
	case 'R', 'C':
		f.Status, both = Renamed, true
		if status[0] == 'C' {
			f.Status = Copied
		}
		f.Similarity, _ = strconv.Atoi(status[1:])
	default:
		f.Status = Modified
		if f.OldBlob == f.NewBlob && f.OldMode != f.NewMode {
			f.Status = ModeChanged
		}
	}
	return f, both, nil
}

// measure fills in the sizes.
func (r *Mirror) measure(ctx context.Context, files []File) error {
	var ids []string
	for _, f := range files {
		if f.OldBlob != "" && f.OldMode != modeGit {
			ids = append(ids, f.OldBlob)
		}
		if f.NewBlob != "" && f.NewMode != modeGit {
			ids = append(ids, f.NewBlob)
		}
	}
	sizes, err := r.sizes(ctx, ids)
	if err != nil {
		return err
	}
	for i := range files {
		files[i].OldSize, files[i].NewSize = max(sizes[files[i].OldBlob], 0), max(sizes[files[i].NewBlob], 0)
	}
	return nil
}

// maxDiff is the longest text of a patch, in bytes: what validation lets through, with
// both sides of what was moved, fits.
const maxDiff = 256 << 20

// Diff is the patch as plain unified diff text, with full ids and binary
// content, the same for the same two trees. It is complete in itself: a file that was
// moved or copied is in it from its first line to its last. The limit is maxDiff.
func (r *Mirror) Diff(ctx context.Context, baseTree, tree string) ([]byte, error) {
	if err := checkIDs(baseTree, tree); err != nil {
		return nil, err
	}
	out, err := r.git(ctx, command{args: diffArgs(baseTree, tree, noRenames, "-p", "--binary", "--unified=3"), max: maxDiff})
	return out, r.missing(err)
}

// maxScan bounds how much added text is looked through for warnings, in bytes;
// validation has refused larger patches long before.
const maxScan = 128 << 20

// scanned is what the changed lines hold.
type scanned struct {
	risks map[string]map[string]bool // path → warning codes of added lines
	long  map[string]bool            // files with a line that is longer than what is drawn of it at once
	bytes map[string]int64           // of a file's added and removed lines
	cr    map[string]bool            // files with a carriage return in or beside a change
	cut   bool                       // there was more than maxScan
}

// scan looks through the changed lines of all files, which are all lines of one that was
// moved or copied, and those that are drawn beside them. git quotes odd names in the text, so the file is known by its place in
// the list, which is the one with noRenames.
func (r *Mirror) scan(ctx context.Context, baseTree, tree string, files []File) (*scanned, error) {
	s := &scanned{risks: map[string]map[string]bool{}, long: map[string]bool{}, bytes: map[string]int64{}, cr: map[string]bool{}}
	out, err := r.git(ctx, command{args: diffArgs(baseTree, tree, noRenames, "-p", "--unified=3"), max: maxScan})
	if errors.Is(err, errOutput) {
		s.cut = true
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.read(out, files)
	if err := r.scanEndings(ctx, files, s); err != nil {
		return nil, err
	}
	return s, r.scanLinks(ctx, files, s)
}

func (s *scanned) read(diff []byte, files []File) {
	i, left := -1, 0 // lines of the hunk still to come
	for len(diff) > 0 {
		line := diff
		if n := bytes.IndexByte(diff, '\n'); n >= 0 {
			line, diff = diff[:n], diff[n+1:]
		} else {
			diff = nil
		}
		if left > 0 && i >= 0 && i < len(files) && bytes.IndexByte(line, '\r') >= 0 {
			s.cr[files[i].Path] = true
		}
		switch {
		case left > 0 && len(line) > 0 && (line[0] == '+' || line[0] == '-'):
			left--
			if i >= 0 && i < len(files) {
				s.changed(files[i].Path, line[0], string(line[1:]))
			}
		case left > 0 && len(line) > 0 && line[0] == ' ':
			left--
			if i >= 0 && i < len(files) && LongLine(string(line[1:])) { // drawn, and cut, as well
				s.long[files[i].Path] = true
			}
		case bytes.HasPrefix(line, []byte("diff --git ")):
			left = 0
			i = s.next(line, files, i)
		case bytes.HasPrefix(line, []byte("@@ ")):
			if h, ok := parseHunkHead(string(line)); ok {
				left = h.oldLines + h.newLines
			}
		}
	}
}

// next finds the file that a header belongs to. A change of type is one file in
// the list and two in the text: a deletion, then an addition.
func (s *scanned) next(line []byte, files []File, i int) int {
	head := string(line[len("diff --git "):])
	if i >= 0 && i < len(files) && files[i].Status == TypeChanged {
		for _, p := range splitNames(head) {
			if p[1] == files[i].Path {
				return i
			}
		}
	}
	return i + 1
}

// changed looks at one added or removed line.
func (s *scanned) changed(name string, kind byte, text string) {
	s.bytes[name] += int64(len(text)) + 1 // with its line feed
	if LongLine(text) {
		s.long[name] = true
	}
	if kind == '+' {
		s.line(name, text)
	}
}

// line looks at one added line, all of it however long it is.
func (s *scanned) line(name, text string) {
	text = strings.TrimSuffix(text, "\r")
	ascii := true
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < 0x20 && c != '\t' {
			ascii = false
			break
		}
	}
	if !ascii {
		for _, p := range Visible(text) {
			if p.Risk != "" {
				s.add(name, p.Risk)
			}
		}
		if lookalike(text) {
			s.add(name, RiskLookalike)
		}
	}
	if len(text) > 12 && secretLike(text) {
		s.add(name, "secret_like")
	}
}

func (s *scanned) add(name, code string) {
	if s.risks[name] == nil {
		s.risks[name] = map[string]bool{}
	}
	s.risks[name][code] = true
}

// scanLinks looks at where links lead: their targets are text as well.
func (r *Mirror) scanLinks(ctx context.Context, files []File, s *scanned) error {
	var ids, names []string
	for _, f := range files {
		if f.NewMode == modeLink {
			ids, names = append(ids, f.NewBlob), append(names, f.Path)
		}
	}
	return r.blobs(ctx, ids, func(i int, _ int64, in io.Reader) error {
		target, err := io.ReadAll(io.LimitReader(in, maxTarget))
		s.line(names[i], string(target))
		return err
	})
}
