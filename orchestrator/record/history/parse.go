package history

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The most that a line may have. Each term is a question to the database.
const (
	MaxLine   = 2048 // bytes
	MaxTerms  = 20
	MaxValues = 20 // of one term
	MaxWords  = 20
)

// Error says what in a line was not understood, and what to write.
type Error struct {
	Part string // of the line, as it was typed; "" when it is the whole
	Text string // a sentence or two
}

func (e *Error) Error() string { return e.Text }

func wrong(part, format string, args ...any) *Error {
	return &Error{Part: part, Text: fmt.Sprintf(format, args...)}
}

// keyed is the beginning of a term; what has no such beginning is a word.
var keyed = regexp.MustCompile(`^-?([A-Za-z][A-Za-z_]*):`)

// Parse reads a line: key:value, key:a,b for alternatives, -key:value for its opposite,
// time:A..B or time:30d, and words; values and words with spaces stand in quotes. Days
// are those of zone. An error is an *Error.
func Parse(list List, line string, now time.Time, zone *time.Location) (Query, error) {
	q := Query{List: list}
	zone = cmp.Or(zone, time.UTC)
	if err := readable(list, line); err != nil {
		return q, err
	}
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		var err error
		head := keyed.FindString(rest)
		if head == "" {
			var word string
			if word, rest, err = text(rest, unicode.IsSpace); err != nil {
				return q, err
			}
			if word != "" && !slices.Contains(q.Words, word) {
				q.Words = append(q.Words, word)
			}
			if len(q.Words) > MaxWords {
				return q, wrong(word, "The line has more than %d words. Leave some out.", MaxWords)
			}
			continue
		}
		t := Term{Key: Key(strings.ToLower(strings.Trim(head, "-:"))), Not: head[0] == '-'}
		if t.Values, rest, err = values(head, rest[len(head):]); err != nil {
			return q, err
		}
		if err := q.take(t, head, now.In(zone)); err != nil {
			return q, err
		}
	}
	return q, nil
}

// readable refuses what no reader can have meant.
func readable(list List, line string) error {
	if lists[list] == nil {
		return wrong("", "There is no list %q.", list)
	}
	if len(line) > MaxLine {
		return wrong("", "The filter is %d bytes long; %d are the most. Write less.", len(line), MaxLine)
	}
	if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
		return wrong("", "The filter has characters that cannot be seen, such as a line break. Write it in one line.")
	}
	return nil
}

func (q *Query) take(t Term, head string, now time.Time) error {
	part := head + strings.Join(t.Values, ",")
	keys := lists[q.List]
	if !slices.Contains(keys, t.Key) {
		return unknownKey(q.List, t.Key, part)
	}
	if t.Key == Time {
		return q.takeTime(t, part, now)
	}
	if len(q.Terms) == MaxTerms {
		return wrong(part, "The filter has more than %d terms. Leave some out.", MaxTerms)
	}
	for i, v := range t.Values {
		if t.Key == Cost {
			if _, _, ok := CostRange(v); !ok {
				return wrong(part, "%q is no sum for cost. Write cost:>0.5, cost:<2 or cost:1..3, in US dollars.", v)
			}
			continue
		}
		allowed := fixed[q.List][t.Key]
		if allowed == nil {
			continue
		}
		t.Values[i] = strings.ReplaceAll(strings.ToLower(v), " ", "_")
		if !slices.Contains(allowed, t.Values[i]) {
			return unknownValue(t.Key, v, allowed, part)
		}
	}
	slices.Sort(t.Values)
	t.Values = slices.Compact(t.Values)
	if !slices.ContainsFunc(q.Terms, t.same) {
		q.Terms = append(q.Terms, t)
	}
	return nil
}

func (t Term) same(o Term) bool {
	return t.Key == o.Key && t.Not == o.Not && slices.Equal(t.Values, o.Values)
}

func unknownKey(list List, key Key, part string) error {
	var names, near []string
	for _, k := range lists[list] {
		names = append(names, string(k))
	}
	for l, keys := range lists {
		if l != list && slices.Contains(keys, key) {
			near = append(near, string(l))
		}
	}
	if len(near) > 0 {
		slices.Sort(near)
		return wrong(part, "The list of %s has no %q; that is a filter of %s. It knows %s.", list, key, strings.Join(near, " and "), strings.Join(names, ", "))
	}
	if n := meant(string(key), names); n != "" {
		return wrong(part, "There is no filter %q. Did you mean %s? To search for the text itself, put it in quotes.", key, n)
	}
	return wrong(part, "There is no filter %q. There are %s. To search for the text itself, put it in quotes.", key, strings.Join(names, ", "))
}

func unknownValue(key Key, value string, allowed []string, part string) error {
	if n := meant(strings.ToLower(value), allowed); n != "" {
		return wrong(part, "%s is never %q. Did you mean %s?", key, value, n)
	}
	return wrong(part, "%s is never %q. It is %s.", key, value, strings.Join(allowed, ", "))
}

// values reads a,"b c",d up to the next space.
func values(head, rest string) (all []string, after string, err error) {
	for {
		var v string
		quoted := strings.HasPrefix(rest, `"`)
		if v, rest, err = text(rest, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }); err != nil {
			return nil, "", err
		}
		if v == "" {
			return nil, "", wrong(head, "%s has no value. Write %sVALUE, or leave it out.", strings.Trim(head, "-:"), head)
		}
		if quoted && rest != "" && rest[0] != ',' && !unicode.IsSpace(first(rest)) {
			return nil, "", wrong(head, "After the closing quote of %s there is more text. Put a space or a comma between.", strings.Trim(head, "-:"))
		}
		if all = append(all, v); len(all) > MaxValues {
			return nil, "", wrong(head, "%s has more than %d values. Leave some out.", strings.Trim(head, "-:"), MaxValues)
		}
		if !strings.HasPrefix(rest, ",") {
			return all, rest, nil
		}
		rest = rest[1:]
	}
}

func first(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// text reads one value or word: "…" with \" and \\ inside, or up to where end says.
func text(s string, end func(rune) bool) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexFunc(s, end)
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return strings.TrimSpace(b.String()), s[i+1:], nil
		case c == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", wrong(s, "A quote is not closed. Write \"…\" around what has spaces.")
}

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
