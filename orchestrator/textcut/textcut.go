// Package textcut shortens texts without breaking a character.
//
// The room imports only the standard library.
package textcut

import "unicode/utf8"

// Characters is s in at most n characters; where something is left out, the last of them is an ellipsis.
func Characters(s string, n int) string {
	if len(s) <= n {
		return s
	}
	left := n - 1
	for i := range s {
		if left == 0 && utf8.RuneCountInString(s[i:]) > 1 {
			return s[:i] + "…"
		}
		left--
	}
	return s
}

// Bytes is the beginning of s in at most n bytes, and whether that is all of it.
func Bytes(s string, n int) (head string, all bool) {
	if len(s) <= n {
		return s, true
	}
	for least := n - utf8.UTFMax; n > 0 && n > least && !utf8.RuneStart(s[n]); {
		n--
	}
	return s[:n], false
}

// Brief is s in about n bytes: an ellipsis says that something is left out.
func Brief(s string, n int) string {
	head, all := Bytes(s, n)
	if all {
		return s
	}
	return head + "…"
}
