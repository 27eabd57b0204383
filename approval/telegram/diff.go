package telegram

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/patch"
)

const (
	documentLimit = 5 << 20 // bytes; above that a phone shows nothing useful
	captionLimit  = 200
	// inlineLines is from how many changed lines on a diff cannot fit into a card.
	inlineLines = 200
)

// shownDiff is the change as a chat can have it.
type shownDiff struct {
	inline string // all of it, when it may fit into the card
	file   []byte // all of it as it is; nil when it is too large or could not be read
	name   string // of the file
	why    string // why neither is there
}

// refused is the diff when Telegram does not take its file.
func (d shownDiff) refused() shownDiff {
	return shownDiff{inline: d.inline, why: "Telegram did not take its file"}
}

func (d shownDiff) where(at document) string {
	switch {
	case at == inCard:
		return "diff below, complete"
	case at.whole():
		return "diff in the file below"
	default:
		return "diff not here: " + d.missing()
	}
}

// missing is why it is not there, or not yet.
func (d shownDiff) missing() string {
	if d.file != nil {
		return "its file is not sent yet"
	}
	return d.why
}

// read gets the diff of a request's current revision. An error means that it could not
// be read now.
func (c *Channel) read(ctx context.Context, r approval.Request) (shownDiff, error) {
	switch {
	case r.IsAction(), r.IsQuestion():
		return wholeText(r), nil
	case r.IsHandover() && !r.Travels():
		return askedText(r, ""), nil
	}
	text, err := c.diff(ctx, r)
	if err != nil {
		return shownDiff{why: "it could not be read"}, fmt.Errorf("the diff of revision %d: %w", r.Revision.N, err)
	}
	if r.IsHandover() {
		return askedText(r, text), nil
	}
	if len(text) > documentLimit {
		return shownDiff{why: fmt.Sprintf("it has %d MB", (len(text)+1<<20-1)>>20)}, nil
	}
	if strings.TrimSpace(text) == "" {
		return shownDiff{why: "it is empty"}, nil
	}
	d := shownDiff{file: []byte(text), name: fileName(r)}
	if r.Revision.Added+r.Revision.Removed <= inlineLines {
		d.inline = inline(text)
	}
	return d, nil
}

// inline is a diff as text of a card, or "" when it does not fit. What cannot be seen
// is shown as code points. Telegram cuts blanks off the end of a message, so a diff that
// ends with some is not complete there.
func inline(diff string) string {
	if len(diff) > 4*inlineLimit {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i, l := range lines {
		lines[i] = patch.Shown(shortIndex(l))
	}
	text := strings.Join(lines, "\n")
	if units(text) > inlineLimit || strings.TrimSpace(text) != text {
		return ""
	}
	return text
}

// shortIndex shortens the ids of the line of a diff that git calls index, which fill a
// phone's screen and tell nobody anything. Lines of files begin otherwise.
func shortIndex(line string) string {
	ids, ok := strings.CutPrefix(line, "index ")
	if !ok {
		return line
	}
	ids, mode, _ := strings.Cut(ids, " ")
	was, is, _ := strings.Cut(ids, "..")
	return strings.TrimRight("index "+first(was, 7)+".."+first(is, 7)+" "+mode, " ")
}

// fileName is what the diff's file is called: app-9f2c1a-rev2.diff.
func fileName(r approval.Request) string {
	repository := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '-'
	}, cut(r.Repository, 40))
	repository = cmp.Or(strings.Trim(repository, "-"), "change")
	return fmt.Sprintf("%s-%s-rev%d.diff", repository, first(r.Revision.Digest, 6), r.Revision.N)
}

// caption stands below the file.
func caption(r approval.Request) string {
	v := r.Revision
	return cut(fmt.Sprintf("rev %d · %s · +%d −%d\n%s", v.N, plural(len(v.Files), "file", "files"), v.Added, v.Removed, cut(oneLine(r.Title), titleLimit)), captionLimit)
}
