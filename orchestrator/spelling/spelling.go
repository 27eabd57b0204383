// Package spelling says which texts a reader or a file system could take for one
// another: names of agents, paths of a repository, words of a program.
//
// The room imports only the standard library and golang.org/x/text.
package spelling

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold joins what common file systems take for one name: after NFKC and full case
// folding, without characters that are drawn as nothing. It is idempotent. NFKC
// goes further than any file system does, so two names may share a fold and still
// be two files everywhere; none that are one file anywhere have two folds.
func Fold(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	if !utf8.ValidString(s) {
		return pieces(s, Fold)
	}
	for range 8 { // taking a mark out may let its neighbours compose
		folded := foldOnce(s)
		if folded == s {
			break
		}
		s = folded
	}
	return s
}

// pieces changes what is UTF-8 and keeps other bytes: two names that differ in such a
// byte are two.
func pieces(s string, change func(string) string) string {
	var b strings.Builder
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b.WriteString(change(s[start:i]))
			b.WriteByte(s[i])
			start = i + 1
		}
		i += n
	}
	return b.String() + change(s[start:])
}

func foldOnce(s string) string {
	return drop(lowered(s), unicode.Mn)
}

// lowered is s without case and without what is drawn as nothing, which would keep a
// letter from its accent. Folding alone would swap the cases of Cherokee instead of
// joining them.
func lowered(s string) string {
	return norm.NFKC.String(strings.ToLower(cases.Fold().String(norm.NFKC.String(drop(s, unicode.Cf)))))
}

// drop takes out what is drawn as nothing, and a kind of characters.
func drop(s string, kind *unicode.RangeTable) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(kind, r) || drawnAsNothing(r) {
			return -1
		}
		return r
	}, s)
}

func drawnAsNothing(r rune) bool {
	return r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x2800
}

// Skeleton is Fold with letters and marks of other scripts in the place of the Latin
// ones that they look like: two texts with one skeleton read as the same. ASCII stays
// as it is, 0 is no o here.
func Skeleton(s string) string {
	switch {
	case ascii(s):
		return Fold(s)
	case !utf8.ValidString(s):
		return pieces(s, Skeleton)
	}
	// First with the accents taken off their letters: a Cyrillic and a Latin e with the same
	// accent look the same, and only one of them is composed by folding.
	return latin(Fold(latin(norm.NFD.String(lowered(s)))))
}

// latin puts the Latin letters in the place of their twins.
func latin(s string) string {
	return strings.Map(func(r rune) rune {
		if twin, ok := twins[r]; ok {
			return twin
		}
		return r
	}, s)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// twins maps folded letters and marks to the ASCII ones that they look like, in either
// case. It holds what Unicode's confusables list has for the letters, digits and signs
// that names consist of.
var twins = pairs(
	// Cyrillic
	"аa вb сc ԁd еe ԍg һh іi ӏl јj кk мm нh оo рp ԛq ѕs тt ѵv ԝw ѡw хx уy үy ҽe " +
		// Greek
		"αa βb εe ηn ιi κk μm νv οo ρp τt υu χx γy ζz ϳj " +
		// Armenian
		"սu օo ոn հh ցg զq ɑa ɡg ɩi ɪi ıi łl øo " +
		// Latin small capitals and letters of phonetics
		"ᴄc ᴏo ᴜu ᴠv ᴡw ᴢz ꜱs ᴀa ʙb ᴅd ᴇe ɢg ʜh ᴊj ᴋk ʟl ᴍm ɴn ᴘp ʀr ᴛt ʏy " +
		// Cherokee, whose small letters are what folding leaves
		"ꭺa ᏼb ꮯc ꭰd ꭼe ꮐg ꮋh ꭻj ꮶk ꮮl ꮇm ꮲp ꮢr ꮪs ꭲt ꮩv ꮃw ꮓz " +
		// Coptic and Lisu
		"ⲁa ⲃb ⲉe ⲏh ⲓi ⲕk ⲙm ⲛn ⲟo ⲣp ⲥc ⲧt ⲭx ⲩy " +
		"ꓐb ꓑp ꓓd ꓔt ꓖg ꓗk ꓙj ꓚc ꓜz ꓝf ꓟm ꓠn ꓡl ꓢs ꓣr ꓦv ꓧh ꓪw ꓫx ꓬy ꓮa ꓰe ꓲi ꓳo ꓴu " +
		// Marks
		"‐- ‑- ‒- –- −- ⁃- ⁄/ ∕/ ⧸/ ꞉: ∶: ː: ․. ∖\\ ⧵\\ ǃ!")

// exact are letters of other scripts that look like a Latin letter of the same case in
// most fonts: a word of these alone reads as a Latin word.
var exact = pairs("аa еe оo рp сc уy хx іi јj ѕs һh ԁd ԛq ԝw ӏl ѵv " +
	"АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ХX ҮY ԌG ԚQ ԜW " +
	"οo νv ϳj ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX " +
	"օo սu ոn ՕO ՍU ⲟo ⲣp ⲥc ⲞO ⲢP ⲤC " +
	"ᎪA ᏴB ᏟC ᎠD ᎬE ᏀG ᎻH ᎫJ ᏦK ᏞL ᎷM ᏢP ᏒR ᏚS ᎢT ᏙV ᎳW ᏃZ " +
	"ꓐB ꓑP ꓓD ꓔT ꓖG ꓗK ꓙJ ꓚC ꓜZ ꓝF ꓟM ꓠN ꓡL ꓢS ꓣR ꓦV ꓧH ꓪW ꓫX ꓬY ꓮA ꓰE ꓲI ꓳO ꓴU " +
	"ɑa ɡg ı" + "i")

// pairs reads "аa вb": each word is a character and its ASCII twin.
func pairs(table string) map[rune]rune {
	m := map[rune]rune{}
	for pair := range strings.FieldsSeq(table) {
		r := []rune(pair)
		m[r[0]] = r[1]
	}
	return m
}
