package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
	"gatehouse/views/diff"
	view "gatehouse/views/review"

	"github.com/labstack/echo/v4"
)

// What is opened in editors on one page. More would not come back in one form.
const (
	maxEditor  = 256 << 10 // bytes of one file
	maxEditors = 20        // files
	maxEdited  = 1 << 20   // bytes of all of them
)

// Edit answers POST /approvals/{id}/edit: the files that were changed make the next
// revision. A refusal shows the page again with every text as it was typed.
func (p *Pages) Edit(c echo.Context) error {
	ctx := c.Request().Context()
	r, err := p.request(c)
	if err != nil {
		return err
	}
	form, err := c.FormParams()
	if err != nil {
		return handlers.Refuse(orchestrator.CodeBadRequest, "The form could not be read: it may be larger than this server takes. Load the page again, and edit fewer files at once.")
	}
	typed := typedOf(form)
	who, _ := handlers.Who(c)
	b := approval.Ballot{RequestID: r.ID, Principal: who.Principal, Channel: handlers.Channel(c), Verdict: approval.Edit, Digest: form.Get("digest"), Revision: handlers.Count(form.Get("revision")),
		Comment: form.Get("comment"), Seen: approval.Seen{Surface: approval.SurfacePage}}
	no := refused{comment: b.Comment, edits: typed, back: form.Get("back")}
	if b.Digest == r.Revision.Digest { // else the numbers are those of other files
		if b.Edits, err = p.edited(ctx, r, typed); err != nil {
			return err
		}
		if len(b.Edits) == 0 {
			no.status, no.message = http.StatusBadRequest, "No file is different from before, so there is nothing to make a revision of. Change a text, or press Cancel."
			return p.review(c, no)
		}
	} else {
		b.Patch = "-" // never read: the digest is refused before
	}
	if _, err = p.Gateway.Decide(ctx, b); err != nil {
		return p.refuse(c, err, no)
	}
	return handlers.SeeOther(c, views.ApprovalHref(r.ID), "edit")
}

// typedOf are the texts of the form by the number of their file.
func typedOf(form url.Values) map[int]string {
	typed := map[int]string{}
	for key, texts := range form {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "text-")); err == nil && strings.HasPrefix(key, "text-") && len(texts) > 0 {
			typed[n] = texts[0]
		}
	}
	return typed
}

// edited are the files whose text is another than before.
func (p *Pages) edited(ctx context.Context, r approval.Request, typed map[int]string) ([]patch.FileEdit, error) {
	var edits []patch.FileEdit
	for i, f := range r.Revision.Files {
		text, ok := typed[i+1]
		if !ok {
			continue
		}
		old, why, err := p.editorText(ctx, r, r.Revision, f)
		if err != nil {
			return nil, err
		}
		if why != "" {
			return nil, handlers.Refuse(orchestrator.CodeBadRequest, fmt.Sprintf("File %d cannot be edited here. %s", i+1, why))
		}
		if text = endings(old, text); text != old {
			edits = append(edits, patch.FileEdit{Path: f.Path, Text: text})
		}
	}
	return edits, nil
}

// editorText is the text of a file, or why it cannot be edited in a form.
func (p *Pages) editorText(ctx context.Context, r approval.Request, v approval.Revision, f patch.File) (text, why string, err error) {
	switch {
	case f.Status == patch.Deleted:
		return "", "The change deletes it.", nil
	case f.Binary:
		return "", "It is binary.", nil
	case f.NewMode == "120000" || f.NewMode == "160000":
		return "", "It is a link or a submodule.", nil
	}
	content, found, err := p.Reviewer.File(ctx, v, r.Repository, f.Path, maxEditor)
	switch {
	case errors.Is(err, patch.ErrCut):
		return "", "It is larger than 256 kB. Request changes, or send a patch by the API.", nil
	case err != nil:
		return "", "", err
	case !found:
		return "", "It is not a plain file.", nil
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return "", "It is not UTF-8 text.", nil
	case bytes.Count(content, []byte("\r")) != bytes.Count(content, []byte("\r\n")):
		return "", "It has carriage returns inside of lines, which a browser would not keep.", nil
	}
	return string(content), "", nil
}

// openFiles opens files in editors: "all", or a list such as "F1,F3".
func (p *Pages) openFiles(ctx context.Context, which string, typed map[int]string, page *view.ReviewPage, r approval.Request, v approval.Revision) error {
	wanted := strings.Split(which, ",")
	files, size := 0, 0
	for i := range page.Files {
		row := &page.Files[i]
		if which != "all" && !slices.Contains(wanted, fmt.Sprintf("F%d", row.N)) {
			row.NoEdit = "Not opened for editing."
			continue
		}
		if files >= maxEditors || size >= maxEdited {
			row.NoEdit = fmt.Sprintf("Not opened: %d files are open already. Make a revision of these first.", files)
			continue
		}
		text, why, err := p.editorText(ctx, r, v, v.Files[i])
		if err != nil {
			return err
		}
		if why != "" {
			row.NoEdit = why + " It stays as it is."
			continue
		}
		files, size = files+1, size+len(text)
		row.Edit = &diff.FileEdit{Text: text, Hidden: view.Hidden(strings.ReplaceAll(text, "\r\n", "\n"))}
		if was, ok := typed[row.N]; ok {
			row.Edit.Text = was
		}
	}
	return nil
}

// endings gives a text that came back from a form, in which every line ends alike, the
// line ends that the file had: a line that is still there keeps its own, a new one gets
// the file's usual one.
func endings(old, typed string) string {
	typed = strings.ReplaceAll(typed, "\r\n", "\n")
	crlf, all := strings.Count(old, "\r\n"), strings.Count(old, "\n")
	switch crlf {
	case 0:
		return typed
	case all:
		return strings.ReplaceAll(typed, "\n", "\r\n")
	}
	had := map[string][]string{} // ends by line, in order
	for line := range strings.Lines(old) {
		text, end := lineEnd(line)
		had[text] = append(had[text], end)
	}
	usual := "\n"
	if 2*crlf > all {
		usual = "\r\n"
	}
	var b strings.Builder
	for line := range strings.Lines(typed) {
		text, end := lineEnd(line)
		if end != "" {
			end = usual
			if ends := had[text]; len(ends) > 0 {
				if ends[0] != "" {
					end = ends[0]
				}
				had[text] = ends[1:]
			}
		}
		b.WriteString(text + end)
	}
	return b.String()
}

func lineEnd(line string) (text, end string) {
	for _, end := range []string{"\r\n", "\n"} {
		if text, ok := strings.CutSuffix(line, end); ok {
			return text, end
		}
	}
	return line, ""
}
