package telegram

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"gatehouse/approval"
)

// clock phrases times for one chat.
type clock struct {
	zone *time.Location
	now  time.Time
}

// at is a time with its zone; the day is left out when it is today.
func (c clock) at(t time.Time) string {
	t = t.In(c.zone)
	if t.Format(time.DateOnly) == c.now.In(c.zone).Format(time.DateOnly) {
		return t.Format("15:04 MST")
	}
	return t.Format("2006-01-02 15:04 MST")
}

// until is a deadline: with its weekday, within a week.
func (c clock) until(t time.Time) string {
	if ahead := t.Sub(c.now); ahead < 6*24*time.Hour && ahead > -24*time.Hour {
		return t.In(c.zone).Format("Mon 15:04 MST")
	}
	return t.In(c.zone).Format("2006-01-02 15:04 MST")
}

// long is a length of time in its largest unit.
func long(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
}

// left is the time to a deadline, rounded up: a reminder of an hour goes out some
// seconds late.
func left(d time.Duration) string {
	switch {
	case d > time.Hour:
		return long(d + 30*time.Minute - 1)
	case d > 50*time.Minute:
		return "1 h"
	case d > time.Minute:
		return long(d + time.Minute - 1)
	default:
		return long(d)
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// join lists names as a person would: "you, ann or bob".
func join(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}

// someone is who made a decision.
func someone(d approval.Decision) string {
	if rule, ok := d.ByRule(); ok {
		return "rule " + rule
	}
	return d.By().String()
}

// shortID is what people see of an id, and may write: its last six characters.
func shortID(id string) string { return id[max(0, len(id)-6):] }

// first cuts text to so many characters of ASCII, such as a digest.
func first(s string, n int) string { return s[:min(n, len(s))] }

// openable reports whether others can open an address: Telegram refuses a whole
// message for a button to this machine or to a name without a dot.
func openable(public string) bool {
	u, err := url.Parse(public)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip := net.ParseIP(host); ip != nil {
		return ip.To4() != nil && !ip.IsLoopback() && !ip.IsUnspecified()
	}
	return strings.Contains(host, ".") && !strings.HasSuffix(host, ".localhost")
}
