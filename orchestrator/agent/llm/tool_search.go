package llm

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const (
	maxPattern   = 1000    // bytes of a pattern
	maxSearched  = 20_000  // files of one call
	maxScan      = 1 << 20 // bytes of a file that is searched
	maxMatches   = 200
	maxMatchLine = 300 // characters shown of a line
)

func (c *conversation) search() tool {
	type input struct {
		Pattern string `json:"pattern"`
		Path    string `json:"path"`
		Glob    string `json:"glob"`
	}
	return tool{Tool: describe(searchTool, `"pattern":{"type":"string"},"path":{"type":"string"},"glob":{"type":"string"}`, "pattern"),
		run: typed(func(ctx context.Context, in input) (answer, error) {
			if in.Pattern == "" || len(in.Pattern) > maxPattern {
				return sorry("The pattern has %d bytes. Give 1 to %d.", len(in.Pattern), maxPattern), nil
			}
			re, err := regexp.Compile(in.Pattern)
			if err != nil {
				return sorry("The pattern is no regular expression: %v.", err), nil
			}
			if _, err := path.Match(in.Glob, ""); err != nil {
				return sorry("glob: %q is no pattern for names.", in.Glob), nil
			}
			s := scan{re: re, glob: in.Glob}
			if err := c.walk(ctx, in.Path, func(name string, d fs.DirEntry) error { return s.file(c, name, d) }); err != nil {
				return answer{}, err
			}
			return s.answer(), nil
		})}
}

// scan is one search as it goes on.
type scan struct {
	re      *regexp.Regexp
	glob    string
	files   int
	matches int
	skipped int
	out     strings.Builder
}

func (s *scan) file(c *conversation, name string, d fs.DirEntry) error {
	if !d.Type().IsRegular() {
		return nil
	}
	if ok, _ := path.Match(s.glob, path.Base(name)); s.glob != "" && !ok {
		return nil
	}
	if s.files++; s.files > maxSearched || s.matches >= maxMatches {
		return fs.SkipAll
	}
	if info, err := d.Info(); err != nil || info.Size() > maxScan {
		s.skipped++
		return nil
	}
	content, err := c.content(name)
	if err != nil || binary(content) {
		s.skipped++
		return nil
	}
	n := 0
	for l := range strings.SplitSeq(string(content), "\n") {
		if n++; s.re.MatchString(l) && s.matches < maxMatches {
			s.matches++
			fmt.Fprintf(&s.out, "%s:%d: %s\n", name, n, cutRunes(strings.TrimRight(l, "\r"), maxMatchLine))
		}
	}
	return nil
}

func (s *scan) answer() answer {
	switch {
	case s.matches == 0:
		s.out.WriteString("Nothing matches.\n")
	case s.matches >= maxMatches:
		fmt.Fprintf(&s.out, "(only the first %d lines are shown; narrow the search)\n", maxMatches)
	}
	if s.files > maxSearched {
		fmt.Fprintf(&s.out, "(only the first %d files were searched; name a folder)\n", maxSearched)
	}
	if s.skipped > 0 {
		fmt.Fprintf(&s.out, "(%d binary, unreadable or very large files were left out)\n", s.skipped)
	}
	return answer{Text: strings.TrimSuffix(s.out.String(), "\n")}
}
