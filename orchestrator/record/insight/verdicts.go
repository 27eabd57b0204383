package insight

import (
	"maps"
	"slices"
	"strings"
)

// Filter keeps the sums of one agent or one repository; empty fields keep all.
type Filter struct{ Agent, Repository string }

// byRule is the channel of verdicts that no person gave.
const byRule = "rule"

// VerdictCode is the code under which verdicts are counted; the channel is "" where the
// time ran out.
func VerdictCode(channel, verdict string) string { return channel + ":" + verdict }

// Shares say how requests ended: of how many, and what part of them.
type Shares struct {
	Decided  int64 // yes and no, of people and rules
	ByRule   int64 // of these, those of rules
	Rejected int64 // of these, those that said no
	Answered int64 // questions, which are none of these
}

// Shares adds up the verdicts that end a request.
func (f Figures) Shares() Shares {
	var s Shares
	for code, n := range f.Verdicts {
		channel, verdict, _ := strings.Cut(code, ":")
		if verdict == "answer" {
			s.Answered += n
		}
		if verdict != "approve" && verdict != "reject" {
			continue
		}
		s.Decided += n
		if channel == byRule {
			s.ByRule += n
		}
		if verdict == "reject" {
			s.Rejected += n
		}
	}
	return s
}

// Part is n of all in percent; 0 of 0 is 0.
func Part(n, all int64) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(n) / float64(all)
}

// ChannelRow is what came through one channel; Channel "" is where the time ran out.
type ChannelRow struct {
	Channel                                                            string
	Approved, Rejected, ChangesRequested, Withdrawn, Expired, Answered int64
	Took                                                               Latency
}

// Channels lists verdicts by channel, by name.
func (f Figures) Channels() []ChannelRow {
	rows := map[string]*ChannelRow{}
	of := func(channel string) *ChannelRow {
		if rows[channel] == nil {
			rows[channel] = &ChannelRow{Channel: channel}
		}
		return rows[channel]
	}
	for code, n := range f.Verdicts {
		channel, verdict, _ := strings.Cut(code, ":")
		r := of(channel)
		switch verdict {
		case "approve":
			r.Approved += n
		case "reject":
			r.Rejected += n
		case "request_changes", "edit":
			r.ChangesRequested += n
		case "withdraw":
			r.Withdrawn += n
		case "answer":
			r.Answered += n
		case "expired":
			r.Expired += n
		}
	}
	for channel, took := range f.ByChannel {
		of(channel).Took = took
	}
	var all []ChannelRow
	for _, channel := range slices.Sorted(maps.Keys(rows)) {
		all = append(all, *rows[channel])
	}
	return all
}
