package diff

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
)

// Above these sizes text is shown plain: lexers are regular expressions, and a patch is hostile input.
const (
	maxHighlightBytes = 256 << 10 // of all lines together
	maxHighlightLine  = 1000      // bytes of one line
)

// Highlight gives each line its tokens. It never fails: what it cannot read comes back plain.
// The texts of a line's tokens always join to exactly that line.
func Highlight(path string, lines []string) [][]Token {
	plain := make([][]Token, len(lines))
	total := 0
	long := false
	for i, l := range lines {
		plain[i] = []Token{{Text: l}}
		total += len(l) + 1
		long = long || len(l) > maxHighlightLine
	}
	if total > maxHighlightBytes || long || len(lines) == 0 {
		return plain
	}
	lexer := lexerOf(path)
	if lexer == nil {
		return plain
	}
	it, err := chroma.Coalesce(lexer).Tokenise(nil, strings.Join(lines, "\n")+"\n")
	if err != nil {
		return plain
	}
	out := make([][]Token, 1, len(lines)+1)
	for t := it(); t != chroma.EOF; t = it() {
		class := tokenClass(t.Type)
		for i, part := range strings.Split(t.Value, "\n") {
			if i > 0 {
				out = append(out, nil)
			}
			if part != "" {
				last := len(out) - 1
				out[last] = append(out[last], Token{Class: class, Text: part})
			}
		}
	}
	return verified(out, plain)
}

// verified takes a highlighted line only where it still reads exactly as given: a lexer
// that drops or rewrites a character must not change what a person approves.
func verified(out, plain [][]Token) [][]Token {
	for i := range plain {
		if i >= len(out) {
			break
		}
		var b strings.Builder
		for _, t := range out[i] {
			b.WriteString(t.Text)
		}
		if b.String() != plain[i][0].Text {
			break // from here on lines may be shifted
		}
		plain[i] = out[i]
	}
	return plain
}

// tokenClass maps the lexer's many types to the six colours of the stylesheet.
func tokenClass(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "c"
	case t == chroma.KeywordType || t == chroma.NameClass || t == chroma.NameBuiltin:
		return "t"
	case t.InCategory(chroma.Keyword) || t == chroma.OperatorWord || t == chroma.NameTag:
		return "k"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	case t == chroma.NameFunction || t == chroma.NameAttribute || t == chroma.NameFunctionMagic:
		return "n"
	}
	return ""
}
