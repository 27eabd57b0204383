package diff

import (
	"context"
	"io"
	"slices"
	"strings"

	"gatehouse/orchestrator/spelling"
	"gatehouse/views"

	"github.com/a-h/templ"
)

// code prints the tokens of one line: classes only, every character escaped.
func code(tokens []Token) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		posing, at := posingIn(tokens), 0
		for _, t := range tokens {
			class := t.Class
			if t.Changed {
				class = strings.TrimSpace(class + " ch")
			}
			if class != "" {
				b.WriteString(`<span class="`)
				b.WriteString(templ.EscapeString(class))
				b.WriteString(`">`)
			}
			if views.Harmless(t.Text) {
				b.WriteString(templ.EscapeString(t.Text))
			} else {
				views.WritePieces(&b, views.VisiblePart(t.Text, at, posing))
			}
			at += len(t.Text)
			if class != "" {
				b.WriteString(`</span>`)
			}
		}
		if b.Len() == 0 {
			b.WriteString("\n") // an empty line keeps its height
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}

// posingIn finds the letters that pose as others in a whole line: a word that mixes
// alphabets may be several tokens.
func posingIn(tokens []Token) []int {
	if !slices.ContainsFunc(tokens, func(t Token) bool { return !views.Harmless(t.Text) }) {
		return nil
	}
	var line strings.Builder
	for _, t := range tokens {
		line.WriteString(t.Text)
	}
	return spelling.Deceptive(line.String())
}
