package review

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/origin"
	"gatehouse/views"
	"gatehouse/views/diff"

	"github.com/a-h/templ"
)

// Find is the search over the whole of a long diff.
type Find struct {
	Text string
	Hits []Hit
	More bool   // there are more hits than are listed
	Note string // what was not searched
}

// Hit is one line that a search found.
type Hit struct {
	Path string
	Name string // "added line 42"
	Text string // the line, cut
	Href string
}

// commentFrom is the first line of the form that is open: what was asked for, else that
// of the draft which is changed.
func (p ReviewPage) commentFrom(line int, remarks []diff.Remark) int {
	if p.CommentFrom > 0 && p.CommentFrom <= line {
		return p.CommentFrom
	}
	for _, r := range remarks {
		if r.Draft && r.Ranged() {
			return r.First
		}
	}
	return line
}

// Commentable reports whether a form brings this path back as it is: browsers change
// what is no text, and the ends of lines.
func Commentable(path string) bool {
	return path != "" && utf8.ValidString(path) && strings.TrimSpace(path) == path && strings.IndexFunc(path, unicode.IsControl) < 0
}

// commentable reports whether this person may comment on a line here. Beside a
// comparison the left side is an older revision, which a remark cannot be about.
func (p ReviewPage) commentable(f diff.DiffFile, l diff.DiffLine) bool {
	return p.CanComment && !f.BesideDiff && !p.editing() && (p.Against == 0 || l.Op != diff.OpRemoved) && Commentable(f.Path)
}

// commentHref opens the form at a line, also without script.
func (p ReviewPage) commentHref(anchor string) string {
	return p.commentBase() + anchor + "#" + anchor
}

// commentBase is what all these addresses begin with.
func (p ReviewPage) commentBase() string {
	base := p.with(Reading, "")
	if strings.Contains(base, "?") {
		return base + "&comment="
	}
	return base + "?comment="
}

// sideOf is where a remark on a line of the diff belongs.
func sideOf(l diff.DiffLine) (side string, line int) {
	if l.Op == diff.OpRemoved {
		return "L", l.Old
	}
	return "R", l.New
}

// editor is the text of a file in a form. It is written by hand: a browser drops the
// first line feed after the tag, and every other character counts.
func editor(f diff.DiffFile) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		lines := min(max(strings.Count(f.Edit.Text, "\n")+2, 4), 30)
		_, err := fmt.Fprintf(w, `<textarea class="editor" form="edit" id="text-%d" name="text-%d" rows="%d" wrap="off" spellcheck="false" autocapitalize="off" autocomplete="off" data-edit="%s">%s%s</textarea>`,
			f.N, f.N, lines, templ.EscapeString(views.VisibleText(f.Path)), "\n", templ.EscapeString(f.Edit.Text))
		return err
	})
}

// Hidden counts the characters of a text that cannot be seen.
func Hidden(text string) int {
	n := 0
	for _, p := range views.Pieces(text) {
		if p.Risky {
			n++
		}
	}
	return n
}

// someFiles says what a yes to some files covers.
func someFiles(files []string) string {
	shown := each.Of(files[:min(len(files), 3)], views.VisibleText)
	s := "only " + strings.Join(shown, ", ")
	if more := len(files) - len(shown); more > 0 {
		s += fmt.Sprintf(" and %s", views.Plural(more, "other file", "other files"))
	}
	return s
}

// modeWords says where a yes counts, beside this page, the command line and the API.
func modeWords(mode string) string {
	if c := origin.Channel(mode); c.HasCards() {
		return "approved " + c.Said() + " or here"
	}
	if mode != string(origin.Web) {
		return ""
	}
	var elsewhere []string
	for _, c := range origin.Cards() {
		elsewhere = append(elsewhere, c.Said())
	}
	return "approved on this page, not " + strings.Join(elsewhere, " or ")
}
