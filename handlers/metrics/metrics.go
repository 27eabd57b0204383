package metrics

import (
	"context"
	"slices"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator/record/insight"

	"github.com/prometheus/client_golang/prometheus"
)

// collector tells Prometheus what the store and this node know. Names of agents and models
// are those of the configuration and "other": what comes from outside makes no series.
type collector struct {
	read func(context.Context) (handlers.Figures, error)
}

// Collector tells Prometheus the figures that read gives.
func Collector(read func(context.Context) (handlers.Figures, error)) prometheus.Collector {
	return collector{read}
}

// Whence a figure comes; each HELP ends with one of these.
const (
	fromStore   = " From the database, of all nodes and all time; seconds behind the log."
	fromNow     = " From the database, of all nodes, now."
	fromProcess = " Of this process, since its start."
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gatehouse_"+name, help, labels, nil)
}

var (
	liveDesc     = desc("delegations", "Live delegations by state."+fromNow, "state")
	queuedDesc   = desc("queued", "Delegations that are ready or wait for a worker."+fromNow)
	parkedDesc   = desc("parked", "Delegations that wait for others or for people, and hold no worker."+fromNow)
	pendingDesc  = desc("approval_requests_pending", "Requests that wait for people."+fromNow)
	eventsDesc   = desc("events", "Events in the log, by the newest position."+fromNow)
	stuckDesc    = desc("stuck_runs", "Delegations whose lease ran out and that no worker took up."+fromNow)
	usedDesc     = desc("slots_used", "Delegations that are worked on."+fromProcess)
	slotsDesc    = desc("slots", "Workers."+fromProcess)
	watchersDesc = desc("event_subscribers", "Who follows events."+fromProcess)
	droppedDesc  = desc("event_notices_dropped_total", "Notices that slow subscribers lost; they catch up from the log."+fromProcess)

	tasksDesc     = desc("tasks_total", "Tasks made."+fromStore)
	handoffsDesc  = desc("handoffs_total", "Hand-overs by the agent that got the work."+fromStore, "agent")
	endedDesc     = desc("delegations_ended_total", "Delegations by how they ended."+fromStore, "agent", "state")
	failuresDesc  = desc("failures_total", "Failed delegations by code."+fromStore, "code")
	refusalsDesc  = desc("refusals_total", "Hand-overs that a guard refused, by code."+fromStore, "code")
	deadlocksDesc = desc("deadlocks_total", "Hand-overs refused because they went in a circle: cycle and repeat."+fromStore)
	tokensDesc    = desc("tokens_total", "Tokens that agents reported."+fromStore, "agent", "model", "direction")
	moneyDesc     = desc("usd_total", "Money that was reported or follows from the price table; usage without a price counts nothing."+fromStore, "agent", "model")
	callsDesc     = desc("model_calls_total", "Answers of models."+fromStore, "agent", "model")
	latencyDesc   = desc("handoff_latency_seconds", "From a hand-over to its acknowledgement."+fromStore)
	lastsDesc     = desc("handoff_duration_seconds", "From a hand-over to its end."+fromStore)
	decidedDesc   = desc("approval_seconds", "From a request to its decision."+fromStore)
	inboxDesc     = desc("agent_inbox", "Delegations in the inbox of an agent: queued, and not taken up."+fromNow, "agent")
	inboxSizeDesc = desc("agent_inbox_size", "What an agent's inbox holds when it is full, by engine.inbox; nothing is refused."+fromNow, "agent")
	breakerDesc   = desc("breaker_state", "0 closed, 1 half open, 2 open."+fromNow, "agent")
)

// Describe implements prometheus.Collector. It tells of one: the others are checked when
// they are collected.
func (collector) Describe(out chan<- *prometheus.Desc) { out <- liveDesc }

// Collect implements prometheus.Collector.
func (f collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	got, err := f.read(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(liveDesc, err)
		return
	}
	c := collection{out: out, known: got}
	c.now()
	c.sums()
}

// collection sends the metrics of one moment.
type collection struct {
	out   chan<- prometheus.Metric
	known handlers.Figures
}

func (c collection) gauge(d *prometheus.Desc, v float64, labels ...string) {
	c.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c collection) now() {
	f := c.known
	for state, n := range f.Live {
		c.gauge(liveDesc, float64(n), state)
	}
	c.gauge(queuedDesc, float64(f.Live["queued"]))
	c.gauge(parkedDesc, float64(f.Live["waiting"]+f.Live["awaiting_approval"]))
	c.gauge(pendingDesc, float64(f.Pending))
	c.gauge(eventsDesc, float64(f.Events))
	c.gauge(stuckDesc, float64(f.Stuck))
	c.gauge(usedDesc, float64(f.Used))
	c.gauge(slotsDesc, float64(f.Slots))
	c.gauge(watchersDesc, float64(f.Watchers))
	c.out <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(f.Dropped))
	for agent, in := range f.Inboxes {
		c.gauge(inboxDesc, float64(in.Waiting), agent)
		c.gauge(inboxSizeDesc, float64(in.Size), agent)
	}
	states := map[string]float64{}
	for _, agent := range f.Agents {
		states[agent] = 0
	}
	for _, b := range f.Breakers {
		name := bounded(b.Agent, f.Agents)
		states[name] = max(states[name], map[string]float64{"half_open": 1, "half-open": 1, "open": 2}[b.State])
	}
	for agent, state := range states {
		c.gauge(breakerDesc, state, agent)
	}
}

// bounded is a label whose values are known beforehand.
func bounded(name string, known []string) string {
	switch {
	case name == "":
		return "none"
	case slices.Contains(known, name):
		return name
	}
	return "other"
}

// series is one counter with its labels.
type series struct {
	desc   *prometheus.Desc
	labels [3]string
	n      int
}

// sums sends the counters. Several names may become one label, so they are added up first.
func (c collection) sums() {
	totals := map[series]float64{}
	add := func(d *prometheus.Desc, v float64, labels ...string) {
		s := series{desc: d, n: len(labels)}
		copy(s.labels[:], labels)
		totals[s] += v
	}
	add(tasksDesc, 0)
	add(deadlocksDesc, 0)
	for k, s := range c.known.Sums {
		agent, model, n := bounded(k.Agent, c.known.Agents), bounded(k.Model, c.known.Models), float64(s.N)
		switch k.Measure {
		case insight.Tasks:
			add(tasksDesc, n)
		case insight.Handoffs:
			add(handoffsDesc, n, agent)
		case insight.Ended:
			add(endedDesc, n, agent, k.Code)
		case insight.Failures:
			add(failuresDesc, n, bounded(k.Code, failureCodes))
		case insight.Refusals:
			add(refusalsDesc, n, bounded(k.Code, refusalCodes))
			if k.Code == "cycle" || k.Code == "repeat" {
				add(deadlocksDesc, n)
			}
		case insight.InputTokens:
			add(tokensDesc, float64(s.Total), agent, model, "input")
		case insight.OutputTokens:
			add(tokensDesc, float64(s.Total), agent, model, "output")
		case insight.Money:
			add(moneyDesc, float64(s.Total)/1e6, agent, model)
		case insight.ModelCalls:
			add(callsDesc, n, agent, model)
		}
	}
	for s, v := range totals {
		c.out <- prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, v, s.labels[:s.n]...)
	}
	for m, d := range map[insight.Measure]*prometheus.Desc{insight.Accepted: latencyDesc, insight.Done: lastsDesc, insight.Decided: decidedDesc} {
		h := insight.HistogramOf(c.known.Sums, m)
		c.out <- prometheus.MustNewConstHistogram(d, h.N, h.Seconds, h.Below)
	}
}

// The codes that have a series of their own: those of the contract and of our own agents.
// An agent may make up others.
var (
	refusalCodes = []string{"unknown_agent", "self", "not_allowed", "cycle", "max_depth", "max_handoffs", "repeat", "breaker_open", "budget_exceeded", "no_capacity", "human_refused"}
	failureCodes = []string{"path_outside", "path_protected", "bad_mode", "symlink", "git_internal", "gitlink", "too_large", "malformed", "context_mismatch", "duplicate_file",
		"secret", "exit", "timeout", "start", "output_limit", "sandbox_missing", "out_of_memory", "too_many_processes", "disk_full", "protocol", "step_failed", "lost", "no_checkout", "unavailable", "budget_exceeded", "model", "overflow", "loop",
		"no_ack", "stuck", "rejected", "expired", "max_turns", "remote", "input_required", "bad_output", "bad_artifact", "bad_attachment", "analysis_only", "path_alias", "bad_ref"}
)
