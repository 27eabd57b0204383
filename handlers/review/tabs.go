package review

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"gatehouse/approval"
	"gatehouse/views/diff"
	view "gatehouse/views/review"
)

// Limits of the .editorconfig files that are read for a page: bytes of each, and folders.
const (
	maxEditorConfig  = 64 << 10
	maxEditorConfigs = 100
	editorConfig     = ".editorconfig"
)

// tabs sets the width of tabs of each file: what the .editorconfig of its folder says, else
// those above it up to the root of the result, else what is usual for its kind. What cannot
// be read says nothing.
func (p *Pages) tabs(ctx context.Context, page *view.ReviewPage, r approval.Request, v approval.Revision) {
	var drawn []string
	for _, f := range page.Files {
		if len(f.Hunks) > 0 || f.Whole != nil {
			drawn = append(drawn, f.Path)
		}
	}
	texts, err := p.Reviewer.Files(ctx, v, r.Repository, editorConfigs(drawn), maxEditorConfig)
	if err != nil {
		texts = nil
	}
	rules := map[string]folderRules{}
	for name, text := range texts {
		rules[path.Dir(name)] = folderRules{tabRules(string(text)), topMost(string(text))}
	}
	for i, f := range page.Files {
		page.Files[i].Tab = tabIn(f.Path, rules)
	}
}

// editorConfigs are the files that may say something about these: each folder's, those
// nearer to the root first, and no more than maxEditorConfigs.
func editorConfigs(files []string) []string {
	names, had := []string{editorConfig}, map[string]bool{".": true}
	for _, f := range files {
		folders := strings.Split(path.Dir(f), "/")
		for n := range folders {
			folder := path.Join(folders[:n+1]...)
			if had[folder] {
				continue
			}
			if len(names) == maxEditorConfigs {
				return names
			}
			had[folder] = true
			names = append(names, path.Join(folder, editorConfig))
		}
	}
	return names
}

// folderRules is what the .editorconfig of one folder says.
type folderRules struct {
	rules []tabRule
	top   bool // nothing above it counts
}

// tabIn is the width for a file: what is nearer to it wins.
func tabIn(file string, byFolder map[string]folderRules) int {
	var chain []string // of folders, the nearest first
	for folder := path.Dir(file); ; folder = path.Dir(folder) {
		chain = append(chain, folder)
		if folder == "." || folder == "/" || byFolder[folder].top {
			break
		}
	}
	width := 0
	for _, folder := range slices.Backward(chain) {
		name := strings.TrimPrefix(file, folder+"/")
		if folder == "." {
			name = file
		}
		if w := named(name, byFolder[folder].rules); w > 0 {
			width = w
		}
	}
	if width == 0 {
		return tabOf(file, nil)
	}
	return width
}

// topMost reports whether the lines before the first section say root = true.
func topMost(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.ToLower(strings.TrimSpace(line))
		if strings.HasPrefix(line, "[") {
			return false
		}
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "root" {
			return strings.TrimSpace(value) == "true"
		}
	}
	return false
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
		tab = cmp.Or(tab, indent)
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
			if err != nil || !slices.Contains(diff.TabWidths(), n) {
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
	base := path.Base(file)
	switch w := named(file, rules); {
	case w > 0:
		return w
	case base == "Makefile" || strings.HasSuffix(base, ".mk") || strings.HasSuffix(base, ".c") || strings.HasSuffix(base, ".h"):
		return 8
	}
	return 4
}

// named is what the last rule that names a file says, 0 where none does; file is relative
// to the folder of the rules.
func named(file string, rules []tabRule) int {
	width, base := 0, path.Base(file)
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
