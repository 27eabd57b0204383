package views

import (
	"context"
	"io"
	"slices"
	"strings"

	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/spelling"

	"github.com/a-h/templ"
)

// These components are written by hand: in code every space counts, and a page of a
// large diff has a hundred thousand tokens.

// Visible prints foreign text on one run of characters, with badges for what cannot be seen
// and without what looks like a secret. The lines of files are shown by code, as they are.
func Visible(text string) templ.Component {
	text = mask.Text(text)
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		if harmless(text) {
			_, err := io.WriteString(w, templ.EscapeString(text))
			return err
		}
		var b strings.Builder
		writeVisible(&b, text)
		_, err := io.WriteString(w, b.String())
		return err
	})
}

func writeVisible(b *strings.Builder, text string) {
	if harmless(text) {
		b.WriteString(templ.EscapeString(text))
		return
	}
	writePieces(b, visible(text))
}

func writePieces(b *strings.Builder, pieces []piece) {
	for _, p := range pieces {
		if p.Risky {
			b.WriteString(`<span class="risky" title="`)
			b.WriteString(templ.EscapeString(p.Title))
			b.WriteString(`">⟦`)
			b.WriteString(p.Text)
			b.WriteString(`⟧</span>`)
			continue
		}
		b.WriteString(templ.EscapeString(p.Text))
	}
}

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
			if harmless(t.Text) {
				b.WriteString(templ.EscapeString(t.Text))
			} else {
				writePieces(&b, visiblePart(t.Text, at, posing))
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
	if !slices.ContainsFunc(tokens, func(t Token) bool { return !harmless(t.Text) }) {
		return nil
	}
	var line strings.Builder
	for _, t := range tokens {
		line.WriteString(t.Text)
	}
	return spelling.Deceptive(line.String())
}
