package diff

import (
	"path"
	"strings"
	"sync"

	"gatehouse/views/internal/lexers"

	"github.com/alecthomas/chroma/v2"
)

// lexerNames finds lexers by the names of files. The library's own search tries every
// pattern of every lexer, 2 ms for each file of a page that may have hundreds.
type lexerNames struct {
	plain map[string][]chroma.Lexer // by pattern: a whole name, or * with an ending
	odd   []oddName
}

// oddName is a pattern that has to be tried.
type oddName struct {
	glob  string
	lexer chroma.Lexer
}

// namedLexers are the names that lexers ask for, and those that they also take.
var namedLexers = sync.OnceValue(func() [2]lexerNames {
	var both [2]lexerNames
	for i := range both {
		both[i].plain = map[string][]chroma.Lexer{}
	}
	for _, l := range lexers.All().Lexers {
		for i, globs := range [2][]string{l.Config().Filenames, l.Config().AliasFilenames} {
			for _, g := range globs {
				both[i].add(g, l)
			}
		}
	}
	return both
})

func (n *lexerNames) add(glob string, l chroma.Lexer) {
	const special = `*?[\`
	if rest, ending := strings.CutPrefix(glob, "*."); ending && !strings.ContainsAny(rest, special) || !strings.ContainsAny(glob, special) {
		n.plain[glob] = append(n.plain[glob], l)
		return
	}
	n.odd = append(n.odd, oddName{glob, l})
}

// find returns the lexer with the highest priority, nil for none.
func (n *lexerNames) find(base string) chroma.Lexer {
	found := append([]chroma.Lexer{}, n.plain[base]...)
	for i := range len(base) {
		if base[i] == '.' {
			found = append(found, n.plain["*"+base[i:]]...)
		}
	}
	for _, o := range n.odd {
		if ok, err := path.Match(o.glob, base); err == nil && ok {
			found = append(found, o.lexer)
		}
	}
	var best chroma.Lexer
	for _, l := range found {
		if best == nil || priority(l) > priority(best) {
			best = l
		}
	}
	return best
}

func priority(l chroma.Lexer) float32 {
	if p := l.Config().Priority; p != 0 {
		return p
	}
	return 1
}

// lexerOf is the lexer for a file, nil where none is known.
func lexerOf(name string) chroma.Lexer {
	names, base := namedLexers(), path.Base(name)
	for i := range names {
		if l := names[i].find(base); l != nil {
			return l
		}
	}
	return nil
}
