// Package nearest finds the name that a mistyped word was probably meant to be.
//
// The room imports only the standard library.
package nearest

import "unicode/utf8"

// most bounds what two texts are compared by, in characters, so that a long one costs little.
const most = 250

// Distance is Levenshtein's: how many characters must be added, removed or replaced.
func Distance(a, b string) int {
	from, to := letters(a), letters(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		diagonal := row[0]
		row[0] = i + 1
		for j := range to {
			cost := diagonal
			if from[i] != to[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(to)]
}

func letters(s string) []rune {
	all := []rune(s[:min(len(s), most*utf8.UTFMax)])
	return all[:min(len(all), most)]
}

// Within is the first of the names with the fewest changes from word, at most so many; "" where none is that near.
func Within(word string, names []string, changes int) string {
	best := ""
	for _, name := range names {
		if len(word)-len(name) > utf8.UTFMax*(changes+1) {
			continue // a text of a megabyte is no name
		}
		if d := Distance(word, name); d <= changes {
			best, changes = name, d-1
		}
	}
	return best
}
