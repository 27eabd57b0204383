package budget

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Keys of a budget as people write it, in the order in which they are shown.
var keys = []string{Tokens, USD, Handoffs, Agents, Time}

// Published is a budget as people and programs write it: dollars, and a duration as text.
type Published struct {
	Tokens   *int64   `json:"tokens,omitempty"`
	USD      *float64 `json:"usd,omitempty"`
	Handoffs *int     `json:"handoffs,omitempty"`
	Agents   *int     `json:"agents,omitempty"`
	Time     *string  `json:"time,omitempty"`
}

// Published is l as the API writes it.
func (l Limits) Published() Published {
	w := Published{Tokens: l.Tokens, Handoffs: l.Handoffs, Agents: l.Agents}
	if l.MicroUSD != nil {
		w.USD = new(float64(*l.MicroUSD) / 1e6)
	}
	if l.Time != nil {
		w.Time = new(l.Time.String())
	}
	return w
}

// Published is a as the API writes it.
func (a Amount) Published() Published {
	return Limits{Tokens: &a.Tokens, MicroUSD: &a.MicroUSD, Time: &a.Time}.Published()
}

// Read reads a budget from the API: {"tokens", "usd", "handoffs", "agents", "time"}.
func Read(text json.RawMessage) (*Limits, error) {
	var w Published
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nil, fmt.Errorf("write an object with any of %s, such as {\"tokens\": 20000, \"time\": \"10m\"}", strings.Join(keys, ", "))
	}
	l := &Limits{Tokens: w.Tokens, Handoffs: w.Handoffs, Agents: w.Agents}
	if w.USD != nil {
		m, err := money(*w.USD)
		if err != nil {
			return nil, err
		}
		l.MicroUSD = &m
	}
	if w.Time != nil {
		t, err := time.ParseDuration(*w.Time)
		if err != nil {
			return nil, fmt.Errorf("time: %q is no duration; write one such as 90s or 10m", *w.Time)
		}
		l.Time = &t
	}
	return l, l.Check()
}

// Parse reads a budget from the command line: tokens=20000,usd=1.5,time=10m.
func Parse(text string) (*Limits, error) {
	fields := map[string]json.RawMessage{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || !slices.Contains(keys, key) {
			return nil, fmt.Errorf("%q is no limit; write %s=NUMBER, with a comma between several", part, strings.Join(keys, "= or "))
		}
		if key == Time {
			value = strconv.Quote(value)
		} else if _, err := strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("%s: %q is no number", key, value)
		}
		fields[key] = json.RawMessage(value)
	}
	joined, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("%q is no budget: %w", text, err)
	}
	return Read(joined)
}

func money(usd float64) (int64, error) {
	if math.IsNaN(usd) || math.IsInf(usd, 0) || usd < 0 || usd > 1e9 {
		return 0, errors.New("usd: write 0 or more dollars")
	}
	return Micro(usd), nil
}

// Check refuses what is below 0.
func (l *Limits) Check() error {
	switch {
	case l.Tokens != nil && *l.Tokens < 0:
		return fmt.Errorf("tokens: %d is below 0", *l.Tokens)
	case l.MicroUSD != nil && *l.MicroUSD < 0:
		return errors.New("usd: it is below 0")
	case l.Handoffs != nil && *l.Handoffs < 0:
		return fmt.Errorf("handoffs: %d is below 0", *l.Handoffs)
	case l.Agents != nil && *l.Agents < 1:
		return fmt.Errorf("agents: %d is below 1; the first agent counts", *l.Agents)
	case l.Time != nil && *l.Time <= 0:
		return fmt.Errorf("time: %s is not above 0", *l.Time)
	default:
		return nil
	}
}
