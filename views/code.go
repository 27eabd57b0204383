package views

import (
	"context"
	"io"
	"strings"

	"gatehouse/orchestrator/mask"

	"github.com/a-h/templ"
)

// These components are written by hand: in code every space counts, and a page of a
// large diff has a hundred thousand tokens.

// Visible prints foreign text on one run of characters, with badges for what cannot be seen
// and without what looks like a secret. The lines of files are shown by code, as they are.
func Visible(text string) templ.Component {
	text = mask.Text(text)
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		if Harmless(text) {
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
	if Harmless(text) {
		b.WriteString(templ.EscapeString(text))
		return
	}
	WritePieces(b, Pieces(text))
}

func WritePieces(b *strings.Builder, pieces []piece) {
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
