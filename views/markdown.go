package views

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// maxFormatted is the longest text that is formatted; a longer one is shown as it was written.
const maxFormatted = 64 << 10

// maxNested bounds how deep quotes, lists and emphasis may go: a reader needs no more, and
// the parser's time grows with the square of it.
const maxNested = 60

// answers turns what an agent wrote into HTML. Markup stays text, pictures become their
// description, headings become strong lines (a heading is ours), and every link names its host.
var answers = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify),
	goldmark.WithRendererOptions(html.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(answerNodes{}, 1))),
)

// allowed is the second fence: whatever the renderer did, only this reaches the page.
var allowed = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "strong", "em", "del", "code", "pre", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "span")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^(md-head|md-host|md-image)$`)).OnElements("p", "span")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https")
	p.RequireParseableURLs(true)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}()

// markdown is a text of an agent as safe HTML; ok is false where it should be shown as it
// was written: it is too long, or made to be slow.
func markdown(text string) (safe string, ok bool) {
	if len(text) > maxFormatted || nested(text) {
		return "", false
	}
	var b bytes.Buffer
	if err := answers.Convert([]byte(VisibleText(text)), &b); err != nil {
		return "", false
	}
	// Once more, for a character may have been written as an entity.
	return invisible.ReplaceAllString(VisibleText(allowed.Sanitize(b.String())), `<span class="risky">$0</span>`), true
}

// invisible finds the code points that stand for characters which cannot be seen; none is
// in an attribute, for addresses escape their brackets.
var invisible = regexp.MustCompile(`⟦(?:U\+[0-9A-F]{4,6}|0x[0-9A-F]{2})⟧`)

// nested reports whether a line opens more than any writer would.
func nested(text string) bool {
	for line := range strings.Lines(text) {
		if strings.Count(line, ">") > 4*maxNested || strings.Count(line, "[") > 4*maxNested || strings.Count(line, "*")+strings.Count(line, "_") > 8*maxNested || strings.Count(line, "`") > 8*maxNested {
			return true
		}
		if lead := len(line) - len(strings.TrimLeft(line, " \t>-*+")); lead > 4*maxNested {
			return true
		}
	}
	return false
}

// answerNodes draw what must not be drawn as Markdown means it.
type answerNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (answerNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, heading)
	r.Register(ast.KindHTMLBlock, markupBlock)
	r.Register(ast.KindRawHTML, markup)
	r.Register(ast.KindImage, image)
	r.Register(ast.KindLink, link)
	r.Register(ast.KindAutoLink, autoLink)
}

func heading(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, err := w.WriteString(`<p class="md-head">`)
		return ast.WalkContinue, err
	}
	_, err := w.WriteString("</p>\n")
	return ast.WalkContinue, err
}

// markupBlock shows a block of HTML as the text that it is.
func markupBlock(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	var b bytes.Buffer
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	if block, ok := n.(*ast.HTMLBlock); ok && block.HasClosure() {
		b.Write(block.ClosureLine.Value(source))
	}
	_, err := w.WriteString("<pre><code>" + string(util.EscapeHTML(b.Bytes())) + "</code></pre>\n")
	return ast.WalkSkipChildren, err
}

func markup(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkSkipChildren, nil
	}
	raw := n.(*ast.RawHTML)
	for i := range raw.Segments.Len() {
		s := raw.Segments.At(i)
		if _, err := w.Write(util.EscapeHTML(s.Value(source))); err != nil {
			return ast.WalkStop, err
		}
	}
	return ast.WalkSkipChildren, nil
}

// image never loads anything: its description stands for it.
func image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, err := w.WriteString(`<span class="md-image">picture: `)
		return ast.WalkContinue, err
	}
	_, err := w.WriteString(" (" + string(util.EscapeHTML(n.(*ast.Image).Destination)) + ")</span>")
	return ast.WalkContinue, err
}

func link(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	l := n.(*ast.Link)
	if entering {
		_, err := w.WriteString(`<a href="` + string(util.EscapeHTML(util.URLEscape(l.Destination, true))) + `">`)
		return ast.WalkContinue, err
	}
	_, err := w.WriteString("</a>" + hostOf(string(l.Destination)))
	return ast.WalkContinue, err
}

func autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	l := n.(*ast.AutoLink)
	_, err := w.WriteString(`<a href="` + string(util.EscapeHTML(util.URLEscape(l.URL(source), false))) + `">` + string(util.EscapeHTML(l.Label(source))) + "</a>")
	return ast.WalkContinue, err
}

// hostOf says where a link leads, whatever its words claim.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ` <span class="md-host">(` + string(util.EscapeHTML([]byte(First(address, 80)))) + `)</span>`
	}
	return ` <span class="md-host">(` + string(util.EscapeHTML([]byte(u.Host))) + `)</span>`
}
