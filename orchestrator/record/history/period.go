package history

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ago is the short form of a period up to now: 30d, 12h, 4w.
var ago = regexp.MustCompile(`^([1-9][0-9]{0,4})([hdw])$`)

// The years that a period may name: ids hold times since 1970.
const firstYear, lastYear = 1970, 9998

func (q *Query) takeTime(t Term, part string, now time.Time) error {
	const how = "Write time:2026-07-01..2026-09-30, time:2026-07-01.., time:2026-07-01 or time:30d."
	if q.Last != "" || !q.From.IsZero() || !q.To.IsZero() {
		return wrong(part, "The filter names two periods. Leave one out.")
	}
	if t.Not || len(t.Values) != 1 {
		return wrong(part, "time takes one period and has no opposite. %s", how)
	}
	value := strings.ToLower(t.Values[0])
	if m := ago.FindStringSubmatch(value); m != nil {
		q.Last = value
		q.From = since(m, now)
		return nil
	}
	from, to, isRange := strings.Cut(value, "..")
	if !isRange {
		to = from
	}
	if from+to == "" {
		return wrong(part, "time has no begin and no end. %s", how)
	}
	var ok bool
	if from != "" {
		if q.From, _, ok = moment(from, now); !ok {
			return wrong(part, "%q is no day. %s", from, how)
		}
	}
	if to != "" {
		if _, q.To, ok = moment(to, now); !ok {
			return wrong(part, "%q is no day. %s", to, how)
		}
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return wrong(part, "The period ends before it begins. Turn its ends around.")
	}
	return nil
}

// since is when a short form begins: days at their first moment, hours to the minute.
func since(m []string, now time.Time) time.Time {
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return time.Time{}
	}
	if m[2] == "h" {
		return now.Add(-time.Duration(n) * time.Hour).Truncate(time.Minute)
	}
	if m[2] == "w" {
		n *= 7
	}
	begin := time.Date(now.Year(), now.Month(), now.Day()-n, 0, 0, 0, 0, now.Location())
	if begin.Year() < firstYear {
		begin = time.Date(firstYear, 1, 1, 0, 0, 0, 0, now.Location())
	}
	return begin
}

// moment reads one end of a period: a day, a month, or a time. begin is where it
// begins and end where it is over; of a time both are that.
func moment(s string, now time.Time) (begin, end time.Time, ok bool) {
	switch s {
	case "today":
		s = now.Format(time.DateOnly)
	case "yesterday":
		s = now.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	zone := now.Location()
	if t, err := time.ParseInLocation("2006-01", s, zone); err == nil {
		begin, end = t, t.AddDate(0, 1, 0)
	} else if t, err := time.ParseInLocation(time.DateOnly, s, zone); err == nil {
		begin, end = t, nextDay(t)
	} else if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		begin = t.In(zone)
		end = begin
	} else if t, err := time.ParseInLocation("2006-01-02t15:04", s, zone); err == nil {
		begin, end = t, t
	} else {
		return begin, end, false
	}
	return begin, end, begin.Year() >= firstYear && end.Year() <= lastYear
}

func nextDay(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
}

// period writes the times as Parse reads them; "" when both are open.
func (q Query) period() string {
	switch {
	case q.Last != "":
		return q.Last
	case q.From.IsZero() && q.To.IsZero():
		return ""
	}
	var from, to string
	if !q.From.IsZero() {
		from = q.From.Format(time.RFC3339Nano)
		if day := dayOf(q.From); day.Equal(q.From) {
			from = q.From.Format(time.DateOnly)
		}
	}
	if !q.To.IsZero() {
		to = q.To.Format(time.RFC3339Nano)
		before := time.Date(q.To.Year(), q.To.Month(), q.To.Day()-1, 0, 0, 0, 0, q.To.Location())
		if nextDay(before).Equal(q.To) {
			to = before.Format(time.DateOnly)
		}
		if to == from && len(to) == len(time.DateOnly) {
			return to
		}
	}
	return from + ".." + to
}

func dayOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}
