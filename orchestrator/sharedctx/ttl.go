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
