package spelling

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a run of letters, marks, digits and underscores.
type word struct {
	start, end            int
	latin, foreign, plain bool // has Latin letters; has letters of a script that looks like Latin; has some without a Latin twin
}

// Deceptive lists, in order, where in a line the marks begin that pose as those of
// ASCII, and the letters that pose as Latin ones: letters of another script in a word that has Latin letters, too, and words
// that consist of such letters alone. Prose in those scripts is left alone: a short
// word beside a blank or a comma and a word that no Latin reader could read as his own is prose.
func Deceptive(s string) []int {
	if ascii(s) {
		return nil
	}
	words := split(s)
	found := marks(s)
	for i, w := range words {
		switch {
		case w.latin && w.foreign:
			found = append(found, letters(s, w, w.plain)...)
		case w.foreign && !w.plain && !(i > 0 && prose(s, words[i-1], w) || i+1 < len(words) && prose(s, w, words[i+1])):
			found = append(found, letters(s, w, false)...)
		}
	}
	slices.Sort(found)
	return found
}

// impostors are marks that look like ASCII ones in most fonts (from Unicode's
// confusables.txt): a Greek question mark is no semicolon.
var impostors = map[rune]bool{0x037e: true, 0x01c3: true, 0x02d0: true, 0x2024: true, 0x2044: true, 0x2215: true, 0x2216: true,
	0x2223: true, 0x2236: true, 0x29f8: true, 0xa789: true, 0xff1b: true, 0xff0f: true, 0xff08: true, 0xff09: true, 0xff02: true, 0xff07: true}

// marks lists where impostors stand.
func marks(s string) (found []int) {
	for i, r := range s {
		if impostors[r] {
			found = append(found, i)
		}
	}
	return found
}

// split cuts a line into its words.
func split(s string) []word {
	var words []word
	open := false
	for i, r := range s {
		switch {
		case impostors[r]:
			open = false
		case r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
			if !open {
				words = append(words, word{start: i})
				open = true
			}
			words[len(words)-1].take(r)
			words[len(words)-1].end = i + utf8.RuneLen(r)
		default:
			open = false
		}
	}
	return words
}

// take notes one character of the word.
func (w *word) take(r rune) {
	switch {
	case r < 0x80:
		w.latin = w.latin || r|0x20 >= 'a' && r|0x20 <= 'z'
	case exempt(r):
	case foreign(r):
		w.foreign = true
		if _, ok := exact[r]; !ok && !styled(r) {
			w.plain = true
		}
	case exact[r] != 0:
		w.foreign = true
	case unicode.IsLetter(r):
		w.plain = true
	}
}

// letters lists the letters of other scripts in a word; all of them, or those with a twin.
func letters(s string, w word, mixed bool) []int {
	var twin, all []int
	for i, r := range s[w.start:w.end] {
		if r < 0x80 || exempt(r) || !foreign(r) && exact[r] == 0 {
			continue
		}
		all = append(all, w.start+i)
		if _, ok := exact[r]; ok || styled(r) {
			twin = append(twin, w.start+i)
		}
	}
	if mixed && len(twin) == 0 {
		return all
	}
	return twin
}

// prose reports whether one of two neighbours is a word that does not read as Latin and
// nothing but blanks and commas stands between them.
func prose(s string, a, b word) bool {
	if !(a.foreign && a.plain && !a.latin) && !(b.foreign && b.plain && !b.latin) {
		return false
	}
	return !strings.ContainsFunc(s[a.end:b.start], func(r rune) bool { return r != ' ' && r != ',' })
}

// foreign: of a script whose letters look like Latin ones, or a styled form of Latin.
func foreign(r rune) bool {
	return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu) || styled(r)
}

// styled: fullwidth and mathematical letters.
func styled(r rune) bool { return r >= 0xff21 && r <= 0xff5a || r >= 0x1d400 && r <= 0x1d7ff }

// exempt are letters that stand in formulas and units beside Latin ones.
func exempt(r rune) bool { return r == 'µ' || r == 'Ω' || r == 'π' || r == 'Δ' || r == 'μ' }
