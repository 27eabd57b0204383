package insight

import (
	"maps"
	"math"
	"slices"
	"time"

	"gatehouse/orchestrator/guard"
)

// Figures are the sums of a task, or of an agent, model, day or repository, as people read
// them (H31). Seconds are of the clock.
type Figures struct {
	Tasks        int64    `json:"tasks"`
	Handoffs     int64    `json:"handoffs"`
	Runs         int64    `json:"runs"`
	ModelCalls   int64    `json:"model_calls"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	USD          *float64 `json:"usd"`      // null: nobody reported a price
	Unpriced     int64    `json:"unpriced"` // reports of usage that had none

	Ended     map[string]int64 `json:"ended"`    // by state
	Failures  map[string]int64 `json:"failures"` // by code
	Refusals  map[string]int64 `json:"refusals"` // by code
	Deadlocks int64            `json:"deadlocks"`
	// Denied are the calls of tools that rules did not let agents make, by rule.
	Denied map[string]int64 `json:"denied_calls"`

	Asked    int64            `json:"asked"`    // requests
	Verdicts map[string]int64 `json:"verdicts"` // by channel:verdict

	Accepted Latency `json:"accepted"` // of hand-overs, from queued to acknowledged
	Done     Latency `json:"done"`     // of hand-overs, from queued to the end
	Decided  Latency `json:"decided"`  // of requests, from asked to decided
	Lasted   Latency `json:"lasted"`   // of tasks, from made to ended
	// ByChannel is Decided by where the verdict came from; "" is the end of the time.
	ByChannel map[string]Latency `json:"decided_by_channel"`

	ForSlot     Waited `json:"waited_for_slot"`
	ForChildren Waited `json:"waited_for_children"`
	ForPeople   Waited `json:"waited_for_people"`

	Opened int64 `json:"breaker_opened"`
	Closed int64 `json:"breaker_closed"`
}

// Latency says how long something took; percentiles are right to about a tenth. Null where
// nothing was measured.
type Latency struct {
	N    int64    `json:"n"`
	Mean *float64 `json:"mean_seconds"`
	P50  *float64 `json:"p50_seconds"`
	P95  *float64 `json:"p95_seconds"`
}

// Waited is time that was spent waiting, in seconds.
type Waited struct {
	N       int64   `json:"n"`
	Seconds float64 `json:"seconds"`
}

// deadlocks are the codes of hand-overs that would have gone in a circle (H15, H31).
var deadlocks = []string{"repeat", "cycle"}

// Of makes figures of sums.
func Of(sums Sums) Figures {
	f := Figures{Ended: map[string]int64{}, Failures: map[string]int64{}, Refusals: map[string]int64{}, Denied: map[string]int64{}, Verdicts: map[string]int64{}, ByChannel: map[string]Latency{}}
	counts := map[Measure]*int64{Tasks: &f.Tasks, Handoffs: &f.Handoffs, Runs: &f.Runs, ModelCalls: &f.ModelCalls, Unpriced: &f.Unpriced, Asked: &f.Asked, Opened: &f.Opened, Closed: &f.Closed}
	totals := map[Measure]*int64{InputTokens: &f.InputTokens, OutputTokens: &f.OutputTokens}
	waits := map[Measure]*Waited{ForSlot: &f.ForSlot, ForChildren: &f.ForChildren, ForPeople: &f.ForPeople}
	codes := map[Measure]map[string]int64{Ended: f.Ended, Failures: f.Failures, Refusals: f.Refusals, DeniedCalls: f.Denied, Verdicts: f.Verdicts}
	times := map[Measure]map[int]Sum{Accepted: {}, Done: {}, Decided: {}, Lasted: {}}
	channels := map[string]map[int]Sum{}
	priced, micros := int64(0), int64(0)
	for k, s := range sums {
		if into := counts[k.Measure]; into != nil {
			*into += s.N
		}
		if into := totals[k.Measure]; into != nil {
			*into += s.Total
		}
		if into := waits[k.Measure]; into != nil {
			into.N, into.Seconds = into.N+s.N, into.Seconds+float64(s.Total)/1e6
		}
		if into := codes[k.Measure]; into != nil {
			into[k.Code] += s.N
		}
		if into := times[k.Measure]; into != nil {
			was := into[k.Bucket]
			into[k.Bucket] = Sum{was.N + s.N, was.Total + s.Total}
		}
		if k.Measure == Decided {
			if channels[k.Code] == nil {
				channels[k.Code] = map[int]Sum{}
			}
			was := channels[k.Code][k.Bucket]
			channels[k.Code][k.Bucket] = Sum{was.N + s.N, was.Total + s.Total}
		}
		if k.Measure == Money {
			priced, micros = priced+s.N, micros+s.Total
		}
	}
	if priced > 0 {
		f.USD = new(float64(micros) / 1e6)
	}
	for _, code := range deadlocks {
		f.Deadlocks += f.Refusals[code]
	}
	f.Accepted, f.Done, f.Decided, f.Lasted = latency(times[Accepted]), latency(times[Done]), latency(times[Decided]), latency(times[Lasted])
	for channel, buckets := range channels {
		f.ByChannel[channel] = latency(buckets)
	}
	return f
}

// latency reads mean and percentiles from buckets.
func latency(buckets map[int]Sum) Latency {
	var l Latency
	total := int64(0)
	for _, s := range buckets {
		l.N, total = l.N+s.N, total+s.Total
	}
	if l.N == 0 {
		return l
	}
	mean := float64(total) / float64(l.N) / 1e6
	l.Mean, l.P50, l.P95 = &mean, percentile(buckets, l.N, 0.5), percentile(buckets, l.N, 0.95)
	return l
}

// percentile is the mean of the bucket in which the share p of all n is reached: what was
// measured there, so that equal durations come back as they were.
func percentile(buckets map[int]Sum, n int64, p float64) *float64 {
	order := slices.Sorted(maps.Keys(buckets))
	rank, seen := int64(math.Ceil(p*float64(n))), int64(0)
	for _, b := range order {
		if seen += buckets[b].N; seen >= rank {
			return new(float64(buckets[b].Total) / float64(buckets[b].N) / 1e6)
		}
	}
	return nil
}

// Histogram is one latency of all time for Prometheus: counts up to each bound, in seconds.
type Histogram struct {
	N       uint64
	Seconds float64
	Below   map[float64]uint64
}

// HistogramOf makes the histogram of a measure; its bounds double from 8 ms to about 73 hours.
func HistogramOf(sums Sums, m Measure) Histogram {
	h := Histogram{Below: map[float64]uint64{}}
	for bucket := 3 * perDoubling; bucket <= 28*perDoubling; bucket += perDoubling {
		h.Below[Bound(bucket).Seconds()] = 0
	}
	for k, s := range sums {
		if k.Measure != m {
			continue
		}
		h.N, h.Seconds = h.N+uint64(s.N), h.Seconds+float64(s.Total)/1e6
		for bound := range h.Below {
			if Bound(k.Bucket) <= time.Duration(math.Round(bound*1e9)) {
				h.Below[bound] += uint64(s.N)
			}
		}
	}
	return h
}

// Dimension is what figures are listed by.
type Dimension string

const (
	ByAgent      Dimension = "agent"
	ByModel      Dimension = "model"
	ByDay        Dimension = "day"
	ByRepository Dimension = "repository"
)

func Dimensions() []Dimension { return []Dimension{ByAgent, ByModel, ByDay, ByRepository} }

// Name is the value of a dimension in a key.
func (d Dimension) Name(k Key) string {
	switch d {
	case ByModel:
		return k.Model
	case ByDay:
		return DayTime(k.Day).Format(time.DateOnly)
	case ByRepository:
		return k.Repository
	default:
		return k.Agent
	}
}

// Row are the figures of one agent, model, day or repository; Name "" is where none was named.
type Row struct {
	Name string `json:"name"`
	Figures
}

// By makes a row for each value of a dimension, by name. Rows by model have what models
// used and nothing else.
func By(sums Sums, d Dimension) []Row {
	parts := map[string]Sums{}
	for k, s := range sums {
		if d == ByModel && !ofModel(k.Measure) {
			continue
		}
		name := d.Name(k)
		if parts[name] == nil {
			parts[name] = Sums{}
		}
		parts[name].Add(k, s.N, s.Total)
	}
	rows := make([]Row, 0, len(parts))
	for name, part := range parts {
		rows = append(rows, Row{Name: name, Figures: Of(part)})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return rows
}

func ofModel(m Measure) bool {
	return slices.Contains([]Measure{ModelCalls, InputTokens, OutputTokens, Money, Unpriced}, m)
}

// Breaker is how the breaker of one agent stands (H11, H31).
type Breaker struct {
	Agent     string     `json:"agent"`
	State     string     `json:"state"` // closed, open or half_open
	Failures  int        `json:"failures"`
	OpenedAt  *time.Time `json:"opened_at"`
	Until     *time.Time `json:"until"` // no probe before
	Reason    string     `json:"reason"`
	ChangedAt time.Time  `json:"changed_at"`
}

// Turn is one opening or closing of a breaker, newest first in lists.
type Turn struct {
	TaskID string    `json:"task_id"` // whose run caused it
	N      int64     `json:"n"`       // of the event
	Agent  string    `json:"agent"`
	Opened bool      `json:"opened"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// State is how far the sums have come.
type State struct {
	At     time.Time // of the newest event that is counted; zero when none is
	Behind int64     // events that are not counted yet
}

// Today is what happened since a moment, as the overview counts it.
type Today struct {
	Tasks     int           // made since then
	More      bool          // there were more tasks than are counted; USD is of those that are
	USD       *float64      // what these tasks used; nil: nobody reported a price
	Landed    int           // requests
	Rejected  int           // requests
	MedianYes time.Duration // from a request to the yes of a person; 0: there was none
}

// Refusal is a hand-over that a guard refused.
type Refusal struct {
	TaskID       string
	N            int64  // of the event
	DelegationID string // of the caller
	Task         string // what the task asks for
	From, To     string
	Code         string
	Reason       guard.Reason // which case of the code
	Message      string
	At           time.Time
}
