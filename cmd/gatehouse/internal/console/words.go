package console

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
)

// StateWidth is that of the longest state, changes requested, with its icon.
const StateWidth = 19

// State shows a state as icon and word, padded to width columns.
func (sh *Shell) State(s string, width int) string {
	l := badge.Of(s)
	text := l.Mark + " " + strings.ReplaceAll(Line(s), "_", " ")
	return sh.Paint(l.Role, text) + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// Icon shows a state as its icon alone.
func (sh *Shell) Icon(s string) string {
	if !badge.Known(s) {
		return "·"
	}
	l := badge.Of(s)
	return sh.Paint(l.Role, l.Mark)
}

// Short is the ending of an id that people type.
func Short(id string) string {
	if len(id) <= 6 {
		return Line(id)
	}
	return Line(id[len(id)-6:])
}

// Length is a time in at most two units: 12 s, 3 min, 2 d 23 h.
func Length(d time.Duration) string {
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

// Ago is relative up to 24 hours, then the date.
func Ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "–"
	case d < time.Second:
		return "now"
	case d < 24*time.Hour:
		return Length(d)
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Age says how old a commit is; "" where that is not known.
func Age(at *time.Time, now time.Time) string {
	switch {
	case at == nil:
		return ""
	case now.Sub(*at) >= time.Second && now.Sub(*at) < 24*time.Hour:
		return ", committed " + Ago(*at, now) + " ago"
	}
	return ", committed " + Ago(*at, now)
}

// Expiry says when a request expires; "" when it never does.
func Expiry(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return ""
	case t.Before(now):
		return "past its time"
	}
	return "expires in " + Length(t.Sub(now).Round(time.Second))
}

// Used says what was used; a cost that nobody reported is not 0.
func Used(u agent.Usage) string {
	cost := "cost not reported"
	if u.USD != nil {
		cost = fmt.Sprintf("$%.2f", *u.USD)
	}
	return Tokens(u.InputTokens+u.OutputTokens) + " tokens · " + cost
}

func Tokens(n int64) string {
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

// Counted is "1 file", "3 files".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Joined is a list in words: ann, bob or cleo.
func Joined(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// Parts joins what is not empty with a dot.
func Parts(all ...string) string {
	var kept []string
	for _, p := range all {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " · ")
}

// List shows a row for each item, or with --json the document that has them. An empty list is explained.
func List[T any](sh *Shell, document any, items []T, empty string, row func(T) []string) error {
	switch {
	case sh.JSON:
		return sh.Document(document)
	case len(items) == 0:
		sh.Hint("%s", empty)
		return nil
	}
	return Table(sh.Out, each.Of(items, row))
}

// Table writes rows as columns; the last column is not padded. Colours count nothing.
func Table(w io.Writer, rows [][]string) error {
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

// Abbreviated is the abbreviated id that git would print.
func Abbreviated(id string) string { return Line(id[:min(len(id), 7)]) }

func Pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-columns(s))) }
