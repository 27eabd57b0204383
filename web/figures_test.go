package web_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/record/insight"
)

// figures is a busy site: every kind of figure, and names that nobody configured.
func (*house) figures() handlers.Figures {
	sums := insight.Sums{}
	for i, agent := range []string{"kik", "coder", "x1", "x2"} {
		sums.Add(insight.Key{Day: -1, Measure: insight.Handoffs, Agent: agent}, int64(i+1), 0)
	}
	sums.Add(insight.Key{Measure: insight.InputTokens, Agent: "kik", Model: "sonnet"}, 0, 120)
	sums.Add(insight.Key{Measure: insight.OutputTokens, Agent: "kik", Model: "made-up-9000"}, 0, 30)
	sums.Add(insight.Key{Measure: insight.Money, Agent: "kik", Model: "sonnet"}, 1, 2_500_000)
	sums.Add(insight.Key{Measure: insight.Refusals, Agent: "kik", Code: "cycle"}, 2, 0)
	sums.Add(insight.Key{Measure: insight.Refusals, Agent: "kik", Code: "repeat"}, 1, 0)
	sums.Add(insight.Key{Measure: insight.Refusals, Agent: "kik", Code: "made_up"}, 4, 0)
	sums.Add(insight.Key{Measure: insight.Failures, Agent: "coder", Code: "exit"}, 3, 0)
	sums.Add(insight.Key{Measure: insight.Accepted, Agent: "coder", Bucket: insight.BucketOf(time.Second)}, 2, 2_000_000)
	return handlers.Figures{Live: map[string]int64{"running": 2, "queued": 3, "waiting": 4, "awaiting_approval": 5}, Pending: 1, Events: 7, Stuck: 1, Used: 2, Slots: 8,
		Watchers: 6, Dropped: 9, Sums: sums, Breakers: []insight.Breaker{{Agent: "coder", State: "open"}, {Agent: "gone", State: "half_open"}},
		Agents: []string{"kik", "coder"}, Models: []string{"sonnet"}}
}

// TestMetricsTellWhatTheDashboardAsksFor (H31): hand-overs, tokens by agent and model, money,
// latency, breakers, refusals by code, deadlocks, queues and slots. A35: how full what
// passes events on is, and what it had to drop.
func TestMetricsTellWhatTheDashboardAsksFor(t *testing.T) {
	h := open(t)
	body := h.ask("GET", "/metrics", "", "").body
	for _, want := range []string{
		`gatehouse_handoffs_total{agent="coder"} 2`, `gatehouse_handoffs_total{agent="other"} 7`,
		`gatehouse_tokens_total{agent="kik",direction="input",model="sonnet"} 120`, `gatehouse_tokens_total{agent="kik",direction="output",model="other"} 30`,
		`gatehouse_usd_total{agent="kik",model="sonnet"} 2.5`, `gatehouse_refusals_total{code="cycle"} 2`, `gatehouse_refusals_total{code="other"} 4`,
		`gatehouse_deadlocks_total 3`, `gatehouse_failures_total{code="exit"} 3`,
		`gatehouse_handoff_latency_seconds_bucket{le="1.024"} 2`, `gatehouse_handoff_latency_seconds_bucket{le="0.512"} 0`, `gatehouse_handoff_latency_seconds_count 2`,
		`gatehouse_breaker_state{agent="coder"} 2`, `gatehouse_breaker_state{agent="kik"} 0`, `gatehouse_breaker_state{agent="other"} 1`,
		`gatehouse_queued 3`, `gatehouse_parked 9`, `gatehouse_stuck_runs 1`, `gatehouse_slots 8`, `gatehouse_slots_used 2`,
		`gatehouse_event_subscribers 6`, `gatehouse_event_notices_dropped_total 9`, `gatehouse_approval_requests_pending 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("/metrics does not have %s", want)
		}
	}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "# HELP gatehouse_") && !strings.Contains(line, "all nodes") && !strings.Contains(line, "process") {
			t.Errorf("this does not say whence it comes: %s", line)
		}
	}
	if strings.Contains(body, "x1") || strings.Contains(body, "made") && strings.Contains(body, "9000") {
		t.Error("a name that nobody configured made a series of its own")
	}
}
