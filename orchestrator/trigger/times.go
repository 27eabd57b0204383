package trigger

import (
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

type times struct {
	schedule cron.Schedule
	zone     *time.Location
	fixed    bool // the hour is written out: an hour that comes twice counts once
}

// mostTimes bounds how many past times are counted one by one.
const mostTimes = 2000

// parseTimes reads the five fields of cron, or a word such as @daily. What is wrong with
// them is a sentence for people.
func parseTimes(spec string, zone *time.Location) (t *times, wrong string) {
	spec = strings.TrimSpace(spec)
	switch {
	case spec == "":
		return nil, `The schedule has no times. Write cron: "0 2 * * *" for every night at 2, or @daily.`
	case strings.Contains(spec, "TZ="):
		return nil, "The time zone stands in cron. Write it as timezone: Europe/Berlin."
	case strings.HasPrefix(spec, "@every"):
		return nil, `@every begins anew with each start. Write times of the clock, such as "*/10 * * * *" for every ten minutes.`
	}
	// As cron does since ever: with a day of the month and one of the week either is enough.
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom | cron.Extended)
	if err != nil {
		return nil, err.Error()
	}
	schedule, err := parser.Parse(spec)
	if err != nil {
		return nil, fmt.Sprintf("cron: %q is not understood (%v). Write minute, hour, day, month and weekday, such as \"0 2 * * *\", or @daily.", spec, err)
	}
	if s, ok := schedule.(*cron.SpecSchedule); ok {
		s.Location = zone
	}
	t = &times{schedule: schedule, zone: zone, fixed: fixedHour(spec)}
	if t.next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() { // a leap year
		return nil, fmt.Sprintf("cron: %q never comes. Write a day that there is.", spec)
	}
	return t, ""
}

// fixedHour reports whether the hour is written out.
func fixedHour(spec string) bool {
	fields := strings.Fields(spec)
	if len(fields) == 5 {
		return !strings.HasPrefix(fields[1], "*")
	}
	return spec != "@hourly"
}

// next is the first time after t; zero when there is none. Where clocks go forward a time
// that does not exist comes an hour later; where they go back, a time that comes twice
// counts once, unless the schedule runs every hour.
func (s *times) next(t time.Time) time.Time {
	for range 10 {
		t = s.schedule.Next(t.In(s.zone))
		if t.IsZero() || !s.fixed || !again(t) {
			return t
		}
	}
	return t
}

// again reports whether the clock of t's zone has shown t's time before.
func again(t time.Time) bool {
	const longest = 3 * time.Hour // no zone has turned its clocks by more at once
	_, now := t.Zone()
	_, before := t.Add(-longest).Zone()
	if before <= now {
		return false
	}
	first := t.Add(-time.Duration(before-now) * time.Second)
	return first.Format("15:04") == t.Format("15:04") && first.YearDay() == t.YearDay()
}

// Next lists the first n times of a schedule after t.
func (t *Trigger) Next(after time.Time, n int) []time.Time {
	if t.times == nil {
		return nil
	}
	var all []time.Time
	for range n {
		if after = t.times.next(after); after.IsZero() {
			break
		}
		all = append(all, after)
	}
	return all
}

// Due is the latest time of a schedule after since and up to now, and how many there were,
// counted up to 2000; zero when there was none.
func (t *Trigger) Due(since, now time.Time) (latest time.Time, passed int) {
	if t.times == nil {
		return time.Time{}, 0
	}
	for at := t.times.next(since); !at.IsZero() && !at.After(now); at = t.times.next(at) {
		latest = at
		if passed++; passed == mostTimes { // the last ones stand near to now
			for back := time.Hour; back < now.Sub(latest); back *= 2 {
				if near := t.times.next(now.Add(-back)); !near.IsZero() && !near.After(now) {
					at = now.Add(-back)
					break
				}
			}
		}
	}
	return latest, passed
}
