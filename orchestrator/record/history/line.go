package history

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// String writes the line that Parse, asked for the same list, time and zone, reads as q.
func (q Query) String() string {
	var parts []string
	for _, t := range q.Terms {
		parts = append(parts, t.String())
	}
	if period := q.period(); period != "" {
		parts = append(parts, string(Time)+":"+period)
	}
	for _, w := range q.Words {
		parts = append(parts, quote(w, keyed.MatchString(w)))
	}
	return strings.Join(parts, " ")
}

// String writes the term as it is typed.
func (t Term) String() string {
	var b strings.Builder
	if t.Not {
		b.WriteByte('-')
	}
	b.WriteString(string(t.Key))
	for i, v := range t.Values {
		b.WriteByte(":,"[min(i, 1)])
		b.WriteString(quote(v, strings.Contains(v, ",")))
	}
	return b.String()
}

// quote puts s in quotes where it must stand in them.
func quote(s string, must bool) string {
	if !must && s != "" && s[0] != '"' && !strings.ContainsFunc(s, unicode.IsSpace) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Empty reports whether q asks for everything.
func (q Query) Empty() bool {
	return len(q.Terms)+len(q.Words) == 0 && q.From.IsZero() && q.To.IsZero()
}

// With is q with the term, in place of what it says of the same key in the same sense.
// It is for terms of the program's own: its values are not looked at.
func (q Query) With(t Term) Query {
	terms := slices.DeleteFunc(slices.Clone(q.Terms), func(o Term) bool { return o.Key == t.Key && o.Not == t.Not })
	t.Values = slices.Clone(t.Values)
	slices.Sort(t.Values)
	q.Terms = append(terms, t)
	return q
}

// Without is q without everything that it says of the key.
func (q Query) Without(key Key) Query {
	if key == Time {
		q.From, q.To, q.Last = time.Time{}, time.Time{}, ""
		return q
	}
	q.Terms = slices.DeleteFunc(slices.Clone(q.Terms), func(t Term) bool { return t.Key == key })
	return q
}

// Values are those that q asks of the key, without opposites.
func (q Query) Values(key Key) []string {
	var all []string
	for _, t := range q.Terms {
		if t.Key == key && !t.Not {
			all = append(all, t.Values...)
		}
	}
	return all
}
