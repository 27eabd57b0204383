package views

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/history"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/orchestrator/textcut"
)

// Capital begins a line of ours, which starts with a plain letter, as a sentence begins.
func Capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// ago says how long before now t was: relative up to 24 hours, then the date.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "–"
	case d < 0:
		return "in " + Duration(-d)
	case d < 5*time.Second:
		return "now"
	case d < 24*time.Hour:
		return Duration(d) + " ago"
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// since is how long something has lasted, for "awaiting approval · bob · 4 min".
func since(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return Duration(now.Sub(t).Truncate(time.Second))
}

// Duration is a length of time in at most two units: 12 s, 3 min, 2 d 23 h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return twoUnits(int(d.Minutes()), "min", int(d.Seconds())%60, "s", 10)
	case d < 24*time.Hour:
		return twoUnits(int(d.Hours()), "h", int(d.Minutes())%60, "min", 10)
	}
	return twoUnits(int(d.Hours())/24, "d", int(d.Hours())%24, "h", 10)
}

// twoUnits drops the small unit when it is zero or the big one has reached most.
func twoUnits(big int, unit string, small int, smallUnit string, most int) string {
	if small == 0 || big >= most {
		return fmt.Sprintf("%d %s", big, unit)
	}
	return fmt.Sprintf("%d %s %d %s", big, unit, small, smallUnit)
}

// ShortID is the prefix and the last six characters; the start of a ULID is only the time.
func ShortID(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) <= 8 {
		return id
	}
	return prefix + "_…" + rest[len(rest)-6:]
}

// First cuts a hexadecimal id for reading: digests at 8, commits at 7.
func First(id string, n int) string {
	if len(id) <= n {
		return id
	}
	return id[:n]
}

// Plural counts things: 1 file, 3 files.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Thousands groups digits by comma: 12,345.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// BytesSize reads a number of bytes: 812 B, 14 kB, 3.2 MB.
func BytesSize(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.3g kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.3g MB", float64(n)/1e6)
}

// Bytes is BytesSize for sizes of disks.
func Bytes(n uint64) string {
	if n >= 1_000_000_000 {
		return fmt.Sprintf("%.3g GB", float64(n)/1e9)
	}
	return BytesSize(int64(n))
}

// Usage is what work used; an unknown cost is nil and reads "not reported", never 0.
type Usage struct {
	Reported bool
	Tokens   int      // input and output together
	USD      *float64 // nil: no price is known
	// MaxTokens and MaxUSD are the budget; nil: no limit.
	MaxTokens *int64
	MaxUSD    *float64
}

func (u Usage) Words() string {
	if !u.Reported {
		return "usage not reported" + u.budget()
	}
	count, cost := TokenWords(u.Tokens), Usd(u.USD)
	if u.MaxTokens != nil {
		count = strings.TrimSuffix(count, " tokens") + " of " + TokenWords(int(*u.MaxTokens))
	}
	if u.MaxUSD != nil && u.USD != nil {
		cost += " of " + Dollars(*u.MaxUSD)
	}
	return count + " · " + cost
}

// budget says what may be used where nothing is known of what was.
func (u Usage) budget() string {
	switch {
	case u.MaxTokens != nil && u.MaxUSD != nil:
		return " · budget " + TokenWords(int(*u.MaxTokens)) + ", " + Dollars(*u.MaxUSD)
	case u.MaxTokens != nil:
		return " · budget " + TokenWords(int(*u.MaxTokens))
	default:
		return ""
	}
}

// Dollars is a round sum without cents.
func Dollars(v float64) string { return strings.TrimSuffix(fmt.Sprintf("$%.2f", v), ".00") }

func TokenWords(n int) string { return Count(int64(n)) + " tokens" }

// Count is a large number in short: 812, 9.4k, 1.2M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e3), ".0") + "k"
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/1e6), ".0") + "M"
}

func Usd(v *float64) string {
	if v == nil {
		return "cost not reported"
	}
	return fmt.Sprintf("$%.2f", *v)
}

// AndMore lists a few names and says how many were left out.
func AndMore(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
}

// Stamp is a moment as it stands on paper: of no reader's zone.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Short cuts a name or label to n characters; hostile characters are code points.
func Short(s string, n int) string {
	return textcut.Characters(VisibleText(OneLine(s, 4*n)), n)
}

func CountN(c history.Count) string {
	n := Thousands(int(c.N))
	if c.Least {
		n += "+"
	}
	return n
}

// Percent writes a place for an attribute of the drawing.
func Percent(v float64) string { return fmt.Sprintf("%.2f%%", v) }

// SteeredWords says what an agent was given of the files that steer programs and that its
// caller had changed: those of a branch or tag, or the caller's.
func SteeredWords(from, place string, trusted bool) string {
	if trusted {
		return "as " + from + " left it, because of trust_checkout"
	}
	return "taken from " + place + ", not as " + from + " left it"
}

// UseWords say what somebody did with a value of the shared context.
var UseWords = map[sharedctx.Kind]string{"read": "read it", "write": "wrote it", "touch": "let it live longer", "delete": "deleted it"}

// sourceName is the shortest that names a source.
func sourceName(s *agent.Source) string { return cmp.Or(s.Ref, s.Title, s.URL) }
