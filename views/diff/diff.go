package diff

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/views"
)

// DiffFile is one changed file, ready to draw.
type DiffFile struct {
	N          int // from 1; the anchor is F<N>
	Path       string
	OldPath    string // for renames and copies
	Status     string // added, modified, deleted, renamed, copied
	Added      int
	Removed    int
	OldMode    string
	NewMode    string
	Similarity int // per cent, for renames
	Warnings   []string
	Binary     *BinaryChange
	Viewed     bool   // the reader marked it
	Closed     string // why it starts closed: "lock file, 1,204 lines"; empty: open
	Cut        string // what is not shown, with its size
	FullHref   string // where the whole file is; may be empty
	FullOpen   string // what the address of FullHref opens: 3:1-80; empty: it is another page
	Hunks      []DiffHunk
	Tail       *DiffHunk  // the unchanged lines after the last hunk, without lines; nil: none
	Tab        int        // columns of a tab; 0: the usual
	Elsewhere  string     // the page that has its lines, where this one has not
	Remarks    []Remark   // on lines of this file as it is shown
	Whole      *WholeFile // of a file that moved: what it is where it is now
	BesideDiff bool       // these are its lines, beside a diff
	Edit       *FileEdit  // the file is open in an editor
	NoEdit     string     // why it cannot be, where the page is opened for editing
}

// WholeFile is a renamed or copied file as what it is at its new place: all new there.
type WholeFile struct {
	Unseen   bool  // nobody has approved this content there
	Seen     bool  // a person has; neither: nothing is known of that
	Lines    int   // −1: not counted
	Size     int64 // bytes
	Open     bool  // lines of it are here, From to To
	From, To int
	Hunks    []DiffHunk
	Href     string // its first lines
	Prev     string // the lines before these
	Next     string // those after
}

// SizeWords is how long the file is.
func (w WholeFile) SizeWords() string {
	if w.Lines < 0 {
		return views.BytesSize(w.Size)
	}
	return views.Plural(w.Lines, "line", "lines")
}

// PartWords says which lines are shown, "" for all.
func (w WholeFile) PartWords() string {
	if !w.Open || w.From <= 1 && w.To >= w.Lines {
		return ""
	}
	return "lines " + views.Thousands(w.From) + " to " + views.Thousands(w.To)
}

// ApprovedWords says whether a person has approved the content at its new place.
func (w WholeFile) ApprovedWords() string {
	switch {
	case w.Unseen:
		return "Nobody has approved this content at this place."
	case w.Seen:
		return "A person approved this content at this place before."
	}
	return ""
}

// AsWhole is the file with the lines of all of it in place of its diff. Where it has a
// diff, too, each line of that keeps its name, and comments stand there.
func (f DiffFile) AsWhole() DiffFile {
	if f.BesideDiff = len(f.Hunks) > 0; f.BesideDiff {
		f.Remarks = nil
	}
	f.Hunks, f.Tail, f.FullHref, f.FullOpen = f.Whole.Hunks, nil, "", ""
	return f
}

// BinaryChange is all that can be said of a file that is not text.
type BinaryChange struct {
	OldSize, NewSize int64  // bytes; −1: not there
	OldHash, NewHash string // blob ids
	OldHref, NewHref string // the pictures; empty where it is none
}

// DiffHunk is one stretch of changed lines with its context.
type DiffHunk struct {
	Skipped int     // unchanged lines since the hunk before, not shown
	Up      *Expand // shows those of them right above this hunk; nil: not needed
	Down    *Expand // those right below the hunk before
	All     *Expand // all of them
	Header  string  // the function's line, without the @@
	Lines   []DiffLine
}

// Expand is a link that shows folded lines.
type Expand struct {
	Lines int
	Open  string // how the address names them: 3:21-40
	Href  string
}

// DiffLine is one line of a diff.
type DiffLine struct {
	Op     Op
	Old    int // 0: not on this side
	New    int
	Tokens []Token
	Space  bool // nothing but whitespace changed
	NoEOL  bool // the file ends here without a newline
	CR     bool // it ends with a carriage return, as on Windows
	// Of a line that is cut: the bytes before what is drawn, those drawn, those after, and
	// where more of them are.
	Before, Shown, Cut int
	Less, More         string
	// Where a cut line changed: the byte, the columns, and whether that is not drawn here.
	ChangeAt, ColFrom, ColTo int
	ChangeOff                bool
	Change                   string // where it is drawn
}

// Op is what happened to a line.
type Op byte

// The three kinds of lines.
const (
	OpContext Op = ' '
	OpAdded   Op = '+'
	OpRemoved Op = '-'
)

// Token is a run of characters of one syntax class.
type Token struct {
	Class   string // CSS class: k, s, m, n, t, c; empty for plain
	Text    string
	Changed bool // this is what differs from the line's other side
}

// RawLine is a line of a diff before highlighting.
type RawLine struct {
	Op       Op
	Old      int
	New      int
	Text     string
	Changed  [][2]int // byte ranges in Text that differ from the other side
	NoEOL    bool
	From, To int // the bytes of a long line that are drawn; To 0: the usual
}

// NewHunk highlights the lines of a hunk: the old side and the new side are read
// apart, so that a string opened on one of them does not colour the other.
func NewHunk(path string, skipped int, header string, raw []RawLine) DiffHunk {
	lines := highlightLines(path, raw)
	markSpace(raw, lines)
	return DiffHunk{Skipped: skipped, Header: header, Lines: lines}
}

func highlightLines(path string, raw []RawLine) []DiffLine {
	raw = slices.Clone(raw)
	ends := make([]bool, len(raw))
	for i, r := range raw {
		raw[i].Text, ends[i] = strings.CutSuffix(r.Text, "\r")
	}
	oldSide, newSide := side(raw, OpAdded), side(raw, OpRemoved)
	oldTokens, newTokens := Highlight(path, oldSide), Highlight(path, newSide)
	lines := make([]DiffLine, len(raw))
	o, n := 0, 0
	for i, r := range raw {
		l := DiffLine{Op: r.Op, Old: r.Old, New: r.New, NoEOL: r.NoEOL, CR: ends[i]}
		l.cutOf(r)
		switch r.Op {
		case OpRemoved:
			l.Tokens = oldTokens[o]
			o++
		case OpAdded:
			l.Tokens = newTokens[n]
			n++
		default:
			l.Tokens = newTokens[n]
			o++
			n++
		}
		l.Tokens = markChanged(l.Tokens, inPart(r.Changed, l.Before))
		lines[i] = l
	}
	return lines
}

// side is the text of one side: every line but those of the other operation.
func side(raw []RawLine, not Op) []string {
	var lines []string
	for _, r := range raw {
		if r.Op != not {
			lines = append(lines, r.cut())
		}
	}
	return lines
}

// Anchor is the deep link of one line of file n: F3R42.
func Anchor(n int, l DiffLine) string { return DiffFile{N: n}.LineAnchor(l) }

// WholeAnchor is that of a line of a whole file that stands beside its diff: W3R42.
func WholeAnchor(n int, l DiffLine) string { return DiffFile{N: n, BesideDiff: true}.LineAnchor(l) }

// markChanged splits tokens at the borders of the changed ranges.
func markChanged(tokens []Token, changed [][2]int) []Token {
	if len(changed) == 0 {
		return tokens
	}
	var out []Token
	at := 0
	for _, t := range tokens {
		rest := t.Text
		for rest != "" {
			in, n := changedAt(changed, at, len(rest))
			out = append(out, Token{Class: t.Class, Text: rest[:n], Changed: in})
			rest = rest[n:]
			at += n
		}
	}
	return out
}

// inPart counts the changed ranges from where the drawn part of a line begins.
func inPart(changed [][2]int, from int) [][2]int {
	if from == 0 {
		return changed
	}
	out := make([][2]int, len(changed))
	for i, c := range changed {
		out[i] = [2]int{c[0] - from, c[1] - from}
	}
	return out
}

// changedAt says whether position at is changed, and for how many of the next n bytes that holds.
func changedAt(changed [][2]int, at, n int) (bool, int) {
	for _, c := range changed {
		switch {
		case at >= c[0] && at < c[1]:
			return true, min(n, c[1]-at)
		case at < c[0]:
			n = min(n, c[0]-at)
		}
	}
	return false, n
}

// SplitRow is one row side by side; a nil side is empty.
type SplitRow struct {
	Left, Right *DiffLine
}

// SplitRows pairs a run of removed lines with the run of added lines after it.
func SplitRows(lines []DiffLine) []SplitRow {
	var rows []SplitRow
	for i := 0; i < len(lines); {
		if lines[i].Op == OpContext {
			rows = append(rows, SplitRow{&lines[i], &lines[i]})
			i++
			continue
		}
		r := i
		for r < len(lines) && lines[r].Op == OpRemoved {
			r++
		}
		a := r
		for a < len(lines) && lines[a].Op == OpAdded {
			a++
		}
		for k := 0; k < max(r-i, a-r); k++ {
			var row SplitRow
			if i+k < r {
				row.Left = &lines[i+k]
			}
			if r+k < a {
				row.Right = &lines[r+k]
			}
			rows = append(rows, row)
		}
		i = a
	}
	return rows
}

// StartsOpen keeps what nobody reads closed, unless it is warned of for another reason
// than what it is.
func (f DiffFile) StartsOpen() bool {
	if f.Viewed {
		return false
	}
	return f.Closed == "" || slices.ContainsFunc(f.Warnings, func(code string) bool { return code != "lock_file" && code != "large" })
}

// Anchor is the id of the file's block.
func (f DiffFile) Anchor() string { return fmt.Sprintf("F%d", f.N) }

// Href is where the file's lines are.
func (f DiffFile) Href() string {
	if f.Elsewhere != "" {
		return f.Elsewhere
	}
	return "#" + f.Anchor()
}

// TabWidths are the widths that the stylesheet has a class for.
func TabWidths() []int { return []int{1, 2, 3, 4, 5, 6, 8} }

// TabClass is the class that sets the width of tabs.
func (f DiffFile) TabClass() string {
	if f.Tab == 0 {
		return "tab-4"
	}
	return fmt.Sprintf("tab-%d", f.Tab)
}

// LineAnchor is the deep link of one line: F3R42.
func (f DiffFile) LineAnchor(l DiffLine) string {
	if f.BesideDiff {
		return fmt.Sprintf("W%dR%d", f.N, l.New)
	}
	if l.Op == OpRemoved {
		return fmt.Sprintf("F%dL%d", f.N, l.Old)
	}
	return fmt.Sprintf("F%dR%d", f.N, l.New)
}

// Dir and name split a path for the file list.
func (f DiffFile) Dir() string {
	if i := strings.LastIndexByte(f.Path, '/'); i >= 0 {
		return f.Path[:i]
	}
	return ""
}

func (f DiffFile) Name() string { return f.Path[strings.LastIndexByte(f.Path, '/')+1:] }

// StatusMark is the letter of a file's change.
func (f DiffFile) StatusMark() string {
	switch f.Status {
	case "added":
		return "A"
	case "deleted":
		return "D"
	case "renamed":
		return "R"
	case "copied":
		return "C"
	}
	return "M"
}
