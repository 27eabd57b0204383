package sharedctx

import (
	"slices"

	"gatehouse/orchestrator/textcut"
)

// Given is an entry as an agent is given it at the start of a run.
type Given struct {
	Entry
	Whole int // bytes of the whole value where Value was cut; else 0
}

// least is how much of a value is always kept, in bytes.
const least = 256

// Fit makes entries, newest first, fit into so many bytes of values: the largest are cut
// first, all to the same length, so that one long value does not push out many short
// ones. When even that is too much, the oldest are left out.
func Fit(entries []Entry, bytes int) []Given {
	entries = entries[:min(len(entries), max(1, bytes/least))]
	most := shortest(entries, bytes)
	given := make([]Given, len(entries))
	for i, e := range entries {
		given[i].Entry = e
		if len(e.Value) > most {
			given[i].Whole = len(e.Value)
			given[i].Value, _ = textcut.Bytes(e.Value, most)
		}
	}
	return given
}

// shortest is the length to which values are cut so that they fit: short values leave what
// they do not need to the long ones.
func shortest(entries []Entry, bytes int) int {
	lengths := make([]int, len(entries))
	for i, e := range entries {
		lengths[i] = len(e.Value)
	}
	slices.Sort(lengths)
	for i, n := range lengths {
		share := bytes / (len(lengths) - i)
		if n > share {
			return share
		}
		bytes -= n
	}
	return MaxValue
}
