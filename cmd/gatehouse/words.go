package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/badge"
)

// stateWidth is that of the longest state, changes requested, with its icon.
const stateWidth = 19

// state shows a state as icon and word, padded to width columns.
func (sh *shell) state(s string, width int) string {
	l := badge.Of(s)
	text := l.Mark + " " + strings.ReplaceAll(line(s), "_", " ")
	return sh.paint(l.Role, text) + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// icon shows a state as its icon alone.
func (sh *shell) icon(s string) string {
	if !badge.Known(s) {
		return "·"
	}
	l := badge.Of(s)
	return sh.paint(l.Role, l.Mark)
}

// short is the ending of an id that people type.
func short(id string) string {
	if len(id) <= 6 {
		return line(id)
	}
	return line(id[len(id)-6:])
}

// length is a time in at most two units: 12 s, 3 min, 2 d 23 h.
func length(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 24*time.Hour:
		return twoUnits(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return twoUnits(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

// twoUnits drops the small unit where it is 0 or the big one is 10 or more.
func twoUnits(big int, unit string, small int, smallUnit string) string {
	if small == 0 || big >= 10 {
		return fmt.Sprintf("%d %s", big, unit)
	}
	return fmt.Sprintf("%d %s %d %s", big, unit, small, smallUnit)
}

// ago is relative up to 24 hours, then the date.
func ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "–"
	case d < time.Second:
		return "now"
	case d < 24*time.Hour:
		return length(d)
	}
	return t.Local().Format("2006-01-02 15:04")
}

// age says how old a commit is; "" where that is not known.
func age(at *time.Time, now time.Time) string {
	switch {
	case at == nil:
		return ""
	case now.Sub(*at) >= time.Second && now.Sub(*at) < 24*time.Hour:
		return ", committed " + ago(*at, now) + " ago"
	}
	return ", committed " + ago(*at, now)
}

// expiry says when a request expires; "" when it never does.
func expiry(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return ""
	case t.Before(now):
		return "past its time"
	}
	return "expires in " + length(t.Sub(now).Round(time.Second))
}

// used says what was used; a cost that nobody reported is not 0.
func used(u agent.Usage) string {
	cost := "cost not reported"
	if u.USD != nil {
		cost = fmt.Sprintf("$%.2f", *u.USD)
	}
	return tokens(u.InputTokens+u.OutputTokens) + " tokens · " + cost
}

func tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 100_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + "k"
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

// counted is "1 file", "3 files".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// joined is a list in words: ann, bob or cleo.
func joined(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// parts joins what is not empty with a dot.
func parts(all ...string) string {
	var kept []string
	for _, p := range all {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}

// table writes rows as columns; the last column is not padded. Colours count nothing.
func table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-columns(cell)+2))
			}
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// columns is how wide a cell is without its colours.
func columns(s string) int {
	n := 0
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "\x1b["); ok {
			_, s, _ = strings.Cut(rest, "m")
			continue
		}
		_, width := utf8.DecodeRuneInString(s)
		s = s[width:]
		n++
	}
	return n
}
