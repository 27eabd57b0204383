package handlers

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/views"
)

// maxEditorConfig is how much of an .editorconfig is read, in bytes.
const maxEditorConfig = 64 << 10

// tabs sets the width of tabs of each file: what the .editorconfig at the root of the
// result says, else what is usual for its kind. A file that cannot be read says nothing.
func (p *Pages) tabs(ctx context.Context, page *views.ReviewPage, r approval.Request, v approval.Revision) {
	text, found, err := p.Reviewer.File(ctx, v, r.Repository, ".editorconfig", maxEditorConfig)
	if err != nil || !found {
		text = nil
	}
	rules := tabRules(string(text))
	for i, f := range page.Files {
		page.Files[i].Tab = tabOf(f.Path, rules)
	}
}

// tabRule is one section of an .editorconfig.
type tabRule struct {
	globs []string
	width int
}

// tabRules reads the sections that say how wide a tab or an indent is, in their order.
func tabRules(text string) []tabRule {
	var rules []tabRule
	var globs []string
	tab, indent := 0, 0
	end := func() {
		if tab == 0 {
			tab = indent
		}
		if len(globs) > 0 && tab > 0 {
			rules = append(rules, tabRule{globs, tab})
		}
		tab, indent = 0, 0
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch key, value, ok := strings.Cut(line, "="); {
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			end()
			globs = braces(line[1 : len(line)-1])
		case ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";"):
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || !slices.Contains(views.TabWidths(), n) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "tab_width":
				tab = n
			case "indent_size":
				indent = n
			}
		}
	}
	end()
	return rules
}

// braces writes {a,b} out, one level of them.
func braces(glob string) []string {
	before, rest, open := strings.Cut(glob, "{")
	inner, after, closed := strings.Cut(rest, "}")
	if !open || !closed {
		return []string{glob}
	}
	var all []string
	for _, one := range strings.Split(inner, ",") {
		all = append(all, before+one+after)
	}
	return all
}

// tabOf is the width for a file: the last rule that names it wins.
func tabOf(file string, rules []tabRule) int {
	width, base := 4, path.Base(file)
	if base == "Makefile" || strings.HasSuffix(base, ".mk") || strings.HasSuffix(base, ".c") || strings.HasSuffix(base, ".h") {
		width = 8
	}
	for _, r := range rules {
		for _, g := range r.globs {
			name := base
			if strings.Contains(g, "/") {
				g, name = strings.TrimPrefix(g, "/"), file
			}
			if g == "**" {
				g = "*"
			}
			if ok, err := path.Match(strings.ReplaceAll(g, "**/", ""), name); err == nil && ok {
				width = r.width
			}
		}
	}
	return width
}
