package config

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// inside finds the place in the file of a place in a text that the file holds: line and
// column count from 1, in characters. YAML joins the lines of most texts with a space, so
// that what is one line to the reader of the value may be several in the file. Escapes
// within quotation marks move the column.
func (d *document) inside(n *yaml.Node, line, column int) (fileLine, fileColumn int) {
	lines := strings.Split(n.Value, "\n")
	if n.Style&yaml.LiteralStyle != 0 {
		if at := n.Line + line; at <= len(d.lines) {
			return at, indent(d.lines[n.Line]) + column // the first line sets the indentation
		}
		return n.Line, n.Column
	}
	left := column - 1 // characters of the value before the place
	for _, l := range lines[:min(line-1, len(lines))] {
		left += utf8.RuneCountInString(l) + 1
	}
	at, start := n.Line, n.Column
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		start++
	}
	if n.Style&yaml.FoldedStyle != 0 && at < len(d.lines) {
		at++
		start = indent(d.lines[at-1]) + 1
	}
	for at <= len(d.lines) {
		text := []rune(strings.TrimRight(d.lines[at-1], " \t\r"))
		if here := len(text) - start + 1; left < here || at == len(d.lines) {
			return at, start + left
		} else if left -= here + 1; left < 0 {
			left = 0 // the space that stands for the end of the line
		}
		at++
		if at <= len(d.lines) {
			start = indent(d.lines[at-1]) + 1
		}
	}
	return n.Line, n.Column
}

// indent is how many blanks a line begins with.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
