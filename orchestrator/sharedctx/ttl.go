package sharedctx

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Life spans that the sources found useful.
const (
	PerformanceTTL = day      // findings are stale after a deploy (K35: 86,400 s)
	LearningsTTL   = 30 * day // useful over projects (K36)
	SecurityTTL    = 7 * day  // patterns of addresses change (K37)
	// ExtensionTTL is what reading again or setting with extension gives: 129,600,
	// which is minutes in the source although set counts seconds (K39, X7).
	ExtensionTTL = 129_600 * time.Minute
	// MaxTTL keeps a time inside what both databases and time.Duration hold.
	MaxTTL = 100 * 365 * day
)

// presets are the life spans that have a name. Never is one for a namespace that has
// a configured life span: the value stays.
var presets = map[string]time.Duration{"performance": PerformanceTTL, "pm_learnings": LearningsTTL, "learnings": LearningsTTL,
	"security": SecurityTTL, "memory": ExtensionTTL, Never: 0}

// Never is the name of the life span without an end.
const Never = "never"

// Named reads a life span that has a name (performance, learnings, security, memory,
// never) or a unit, as ParseTTL does. A value that never expires is 0.
func Named(s string) (time.Duration, error) {
	if d, ok := presets[s]; ok {
		return d, nil
	}
	d, err := ParseTTL(s)
	if err != nil {
		return 0, fmt.Errorf("%w, or one of these names: performance (24h), learnings (30d), security (7d), memory (90d), never", err)
	}
	return d, nil
}

// Lifespans are the configured life spans by namespace; a name that ends in * stands
// for all that begin so. They apply where a write names no life span; without any, such
// a write never expires (K29).
type Lifespans map[string]time.Duration

// Of is the life span for a write that names none: that of the namespace itself, else
// of its longest beginning, else 0, which never expires.
func (l Lifespans) Of(namespace string) time.Duration {
	if d, ok := l[namespace]; ok {
		return d
	}
	longest, found := -1, time.Duration(0)
	for name, d := range l {
		begin, all := strings.CutSuffix(name, "*")
		if all && strings.HasPrefix(namespace, begin) && len(begin) > longest {
			longest, found = len(begin), d
		}
	}
	return found
}

// Seconds turns a ttl_seconds that somebody gave into a life span. Less than 1 is
// an error; a value that never expires is one without ttl_seconds.
func Seconds(n int64) (time.Duration, error) {
	if n < 1 || n > int64(MaxTTL/time.Second) {
		return 0, fmt.Errorf("ttl_seconds is %d: use 1 to %d, or leave it out for a value that stays", n, int64(MaxTTL/time.Second))
	}
	return time.Duration(n) * time.Second, nil
}

// ParseTTL reads a life span with a unit, such as 90s, 24h, 30d or 2w. A bare number
// is an error, because the sources do not agree on its unit (X7).
func ParseTTL(s string) (time.Duration, error) {
	bad := fmt.Errorf("life span %.40q: write a whole number of seconds or more with a unit, such as 90s, 24h or 30d", s)
	d, err := time.ParseDuration(s)
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			var n int64
			n, err = strconv.ParseInt(number, 10, 32)
			if n > int64(MaxTTL/length) {
				return 0, bad
			}
			d = time.Duration(n) * length
		}
	}
	if err != nil || d < time.Second || d > MaxTTL || d%time.Second != 0 {
		return 0, bad
	}
	return d, nil
}
