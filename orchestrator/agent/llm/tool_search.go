package llm

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"gatehouse/orchestrator/textcut"
)

const (
	maxPattern   = 1000    // bytes of a pattern
	maxSearched  = 20_000  // files of one call
	maxScan      = 1 << 20 // bytes of a file that is searched
	maxMatches   = 200
	maxMatchLine = 300 // characters shown of a line
	// A pattern takes time in proportion to its steps and to the text, and cannot be
	// stopped within one line; both bounds together keep that to about a second.
	maxSteps   = 5_000
	maxTried   = 10 << 10 // bytes of a line that are tried
	searchTime = 20 * time.Second
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
			re, a := compile(in.Pattern)
			if a != nil {
				return *a, nil
			}
			if _, err := path.Match(in.Glob, ""); err != nil {
				return sorry("glob: %q is no pattern for names.", in.Glob), nil
			}
			late, cancel := context.WithTimeout(ctx, searchTime)
			defer cancel()
			s := scan{re: re, glob: in.Glob}
			err := c.walk(ctx, in.Path, func(name string, d fs.DirEntry) error { return s.file(late, c, name, d) })
			if err != nil {
				return answer{}, err
			}
			s.late = late.Err() != nil && ctx.Err() == nil
			return s.answer(), nil
		})}
}

// steps is about how many instructions a pattern becomes: counts multiply what they
// count.
func steps(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	if re.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range re.Sub {
		n += steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// compile makes a pattern ready, or says what is wrong with it.
func compile(pattern string) (*regexp.Regexp, *answer) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, new(sorry("The pattern is no regular expression: %v.", err))
	}
	if n := steps(parsed); n > maxSteps {
		return nil, new(sorry("The pattern is too costly: its counts make it %d steps long, and %d is the limit. Use smaller counts.", n, maxSteps))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, new(sorry("The pattern is no regular expression: %v.", err))
	}
	return re, nil
}

// scan is one search as it goes on.
type scan struct {
	re      *regexp.Regexp
	glob    string
	files   int
	matches int
	skipped int
	late    bool // it took too long and was ended
	out     strings.Builder
}

func (s *scan) file(late context.Context, c *conversation, name string, d fs.DirEntry) error {
	if late.Err() != nil {
		return fs.SkipAll
	}
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
		if late.Err() != nil || s.matches >= maxMatches {
			return nil
		}
		if n++; s.re.MatchString(l[:min(len(l), maxTried)]) {
			s.matches++
			fmt.Fprintf(&s.out, "%s:%d: %s\n", name, n, textcut.Characters(strings.TrimRight(l, "\r"), maxMatchLine))
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
	if s.late {
		fmt.Fprintf(&s.out, "(the search was ended after %s; name a folder, or use a simpler pattern)\n", searchTime)
	}
	if s.skipped > 0 {
		fmt.Fprintf(&s.out, "(%d binary, unreadable or very large files were left out)\n", s.skipped)
	}
	return answer{Text: strings.TrimSuffix(s.out.String(), "\n")}
}
