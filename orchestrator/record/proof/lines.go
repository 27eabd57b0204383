package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// maxSums is how many sums of lines are kept. A seal with all of them has 64 kB.
const maxSums = 4096

// lineSum is the beginning of a SHA-256. It says which line was changed; that one was is
// said by the sum over all.
type lineSum [8]byte

// lineSums are sums of the lines of a file, one for each while there are few, and one for
// two, four, eight … when there are more: their number stays bounded.
type lineSums struct {
	level int       // a sum is of 1<<level lines
	sums  []lineSum // of whole blocks
	open  []lineSum // by level: what waits for its other half
	waits []bool
	lines int
}

func (s *lineSums) add(line []byte) {
	s.lines++
	full := sha256.Sum256(line)
	sum := lineSum(full[:8])
	for l := range s.level {
		if !s.waits[l] {
			s.open[l], s.waits[l] = sum, true
			return
		}
		sum, s.waits[l] = both(s.open[l], sum), false
	}
	if s.sums = append(s.sums, sum); len(s.sums) == maxSums {
		s.sums, s.level = folded(s.sums), s.level+1
		s.open, s.waits = append(s.open, lineSum{}), append(s.waits, false)
	}
}

// all are the sums with that of the last block, which may have fewer lines.
func (s *lineSums) all() []lineSum {
	var last lineSum
	some := false
	for l := range s.level {
		switch {
		case s.waits[l] && some:
			last = both(s.open[l], last)
		case s.waits[l]:
			last, some = s.open[l], true
		}
	}
	if !some {
		return s.sums
	}
	return append(s.sums[:len(s.sums):len(s.sums)], last)
}

// text is how a seal has them.
func (s *lineSums) text() string {
	var b []byte
	for _, sum := range s.all() {
		b = append(b, sum[:]...)
	}
	return hex.EncodeToString(b)
}

// sumsOf reads what text wrote.
func sumsOf(text string) ([]lineSum, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%len(lineSum{}) != 0 {
		return nil, false
	}
	sums := make([]lineSum, len(b)/len(lineSum{}))
	for i := range sums {
		copy(sums[i][:], b[i*len(lineSum{}):])
	}
	return sums, true
}

// maxEach is more lines than a file may have for each of its sums. Anybody can sign a seal
// with a key of their own, so what it says is not believed.
const maxEach = 1 << 40

// isEach reports whether a sum can be of so many lines: halves are put together, again and
// again.
func isEach(n int) bool { return n > 0 && n <= maxEach && n&(n-1) == 0 }

func both(a, b lineSum) lineSum {
	full := sha256.Sum256(append(a[:], b[:]...))
	return lineSum(full[:8])
}

// folded makes one of two.
func folded(sums []lineSum) []lineSum {
	half := make([]lineSum, 0, (len(sums)+1)/2)
	for i := 0; i+1 < len(sums); i += 2 {
		half = append(half, both(sums[i], sums[i+1]))
	}
	if len(sums)%2 == 1 {
		half = append(half, sums[len(sums)-1])
	}
	return half
}

// firstChanged says at which line the lines that are there begin to differ from the sealed
// ones, of which a sum covers each lines, and what happened there.
func (s *lineSums) firstChanged(sealed []lineSum, each, total int) (line int, what string) {
	here, step := s.all(), 1<<s.level
	for ; step < each; step *= 2 {
		here = folded(here)
	}
	for ; each < step; each *= 2 {
		sealed = folded(sealed)
	}
	i := 0
	for i < len(here) && i < len(sealed) && here[i] == sealed[i] {
		i++
	}
	line = i*step + 1
	at := func(sums []lineSum, i int) (lineSum, bool) {
		if i >= len(sums) {
			return lineSum{}, false
		}
		return sums[i], true
	}
	now, isNow := at(here, i)
	next, isNext := at(here, i+1)
	was, isWas := at(sealed, i)
	after, isAfter := at(sealed, i+1)
	switch {
	case !isWas:
		return line, fmt.Sprintf("line %d: what stands from here on was added", line)
	case !isNow:
		return line, fmt.Sprintf("the lines %d to %d are missing: they were cut off", line, total)
	case step > 1:
		return line, fmt.Sprintf("a line from %d to %d was changed, added or removed", line, line+step-1)
	case isNext && isAfter && now == after && next == was:
		return line, fmt.Sprintf("line %d and line %d were exchanged", line, line+1)
	case isAfter && now == after && s.lines < total:
		return line, fmt.Sprintf("before line %d a line was removed", line)
	case isNext && next == was && s.lines > total:
		return line, fmt.Sprintf("line %d was added", line)
	}
	return line, fmt.Sprintf("line %d was changed", line)
}
