package insight_test

import (
	"slices"
	"testing"
	"time"

	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/insight"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// TestTypesAreAllThatIsCounted: figures of large tasks read no other events.
func TestTypesAreAllThatIsCounted(t *testing.T) {
	for _, kind := range append(event.Types(), event.MessageDelta, event.Gap) {
		if slices.Contains(insight.Types(), kind) {
			continue
		}
		f := insight.NewFold()
		f.Add(event.Event{Type: kind, DelegationID: "d", Actor: "kik", At: time.Unix(1, 0), Data: []byte(`{"state":"failed","code":"x","verdict":"approve","channel":"web"}`)})
		if len(f.Sums)+len(f.Open) > 0 {
			t.Errorf("%s is counted: %v", kind, f.Sums)
		}
	}
	for _, kind := range insight.Types() {
		f := insight.NewFold()
		f.Open["d"] = insight.Open{Kind: insight.ForPeople, Since: time.Unix(0, 0)}
		f.Add(event.Event{Type: kind, DelegationID: "d", Actor: "kik", At: time.Unix(1, 0), Data: []byte(`{"to":"coder","model":"m","input_tokens":1,"verdict":"approve","channel":"web"}`)})
		if len(f.Sums) == 0 && len(f.Open) == 1 {
			t.Errorf("%s is read and counts for nothing", kind)
		}
	}
}

// story folds a task in which kik hands to coder, which waits for a person.
func story() *insight.Fold {
	f := insight.NewFold()
	f.Subjects["dlg_kik"] = insight.Subject{Agent: "kik", Repository: "app", CreatedAt: start}
	f.Subjects["dlg_coder"] = insight.Subject{Agent: "coder", Repository: "app", CreatedAt: start.Add(2 * time.Second), Hop: true}
	for _, e := range []struct {
		after time.Duration
		who   string
		kind  event.Type
		data  map[string]any
	}{
		{0, "kik", event.TaskCreated, nil},
		{0, "kik", event.Queued, map[string]any{"agent": "kik"}},
		{time.Second, "kik", event.Acknowledged, nil},
		{time.Second, "kik", event.MessageCompleted, map[string]any{"model": "sonnet", "took_ms": 900}},
		{time.Second, "kik", event.UsageRecorded, map[string]any{"model": "sonnet", "input_tokens": 100, "output_tokens": 20, "usd": 0.5}},
		{2 * time.Second, "kik", event.DelegationRefused, map[string]any{"to": "kik", "code": "cycle"}},
		{2 * time.Second, "kik", event.DelegationRefused, map[string]any{"to": "coder", "code": "repeat"}},
		{2 * time.Second, "kik", event.DelegationRefused, map[string]any{"to": "deep", "code": "max_depth"}},
		{2 * time.Second, "kik", event.Delegated, map[string]any{"to": "coder", "child": "dlg_coder"}},
		{2 * time.Second, "coder", event.Queued, map[string]any{"agent": "coder", "from": "kik"}},
		{2 * time.Second, "kik", event.Waiting, nil},
		{6 * time.Second, "coder", event.Acknowledged, nil},
		{7 * time.Second, "coder", event.UsageRecorded, map[string]any{"input_tokens": 7, "output_tokens": -3, "usd": nil}},
		{8 * time.Second, "coder", event.Requested, nil},
		{9 * time.Second, "coder", event.Decided, map[string]any{"state": "pending", "channel": "web", "verdict": "approve"}}, // one of two
		{68 * time.Second, "coder", event.Decided, map[string]any{"state": "approved", "channel": "telegram", "verdict": "approve"}},
		{70 * time.Second, "coder", event.BreakerOpened, nil},
		{70 * time.Second, "coder", event.Failed, map[string]any{"state": "failed", "code": "exit"}},
		{70 * time.Second, "kik", event.Resumed, nil},
		{71 * time.Second, "kik", event.Acknowledged, nil},
		{72 * time.Second, "kik", event.Completed, map[string]any{"state": "completed"}},
	} {
		f.Add(event.Event{Type: e.kind, DelegationID: "dlg_" + e.who, Actor: e.who, At: start.Add(e.after), Data: event.Data(e.data)})
	}
	return f
}

// TestTheLogBecomesFigures (H31): hand-overs, tokens and money, latency, refusals by code,
// deadlocks, breakers and each kind of waiting, from the events of one task.
func TestTheLogBecomesFigures(t *testing.T) {
	f := story()
	if len(f.Open) != 0 {
		t.Errorf("ended, and still under way: %v", f.Open)
	}
	got := insight.Of(f.Sums)
	if got.Tasks != 1 || got.Handoffs != 1 || got.Runs != 3 || got.ModelCalls != 1 {
		t.Errorf("counted %+v", got)
	}
	// O14: what the tree used is the sum of its reports; a negative one counts for nothing.
	if got.InputTokens != 107 || got.OutputTokens != 20 || got.USD == nil || *got.USD != 0.5 || got.Unpriced != 1 {
		t.Errorf("usage: %d in, %d out, %v, %d without a price", got.InputTokens, got.OutputTokens, got.USD, got.Unpriced)
	}
	if got.Refusals["cycle"] != 1 || got.Refusals["max_depth"] != 1 || got.Deadlocks != 2 {
		t.Errorf("refusals %v, deadlocks %d; want 2, cycle and repeat (H15)", got.Refusals, got.Deadlocks)
	}
	if got.Accepted.N != 1 || *got.Accepted.Mean != 4 || *got.Accepted.P95 != 4 || *got.Done.P50 != 68 {
		t.Errorf("hand-over latency %+v, to the end %+v", got.Accepted, got.Done)
	}
	if got.ForPeople.N != 1 || got.ForPeople.Seconds != 60 || *got.Decided.Mean != 60 {
		t.Errorf("people: %+v %+v; the first of two votes ends no waiting", got.ForPeople, got.Decided)
	}
	if got.Asked != 1 || got.Verdicts["web:approve"] != 1 || *got.ByChannel["telegram"].P50 != 60 || got.ByChannel["web"].N != 0 || got.Lasted.N != 1 || *got.Lasted.Mean != 72 {
		t.Errorf("requests: %+v", got)
	}
	if got.ForChildren.Seconds != 68 || got.ForSlot.Seconds != 1+4+1 {
		t.Errorf("children %+v, slots %+v", got.ForChildren, got.ForSlot)
	}
	if got.Opened != 1 || got.Failures["exit"] != 1 || got.Ended["completed"] != 1 || got.Ended["failed"] != 1 {
		t.Errorf("ends: %+v", got)
	}
}

func TestFiguresAreListedByEachDimension(t *testing.T) {
	sums := story().Sums
	for by, want := range map[insight.Dimension][]string{
		insight.ByAgent: {"coder", "kik"}, insight.ByModel: {"", "sonnet"}, insight.ByDay: {"2026-07-01"}, insight.ByRepository: {"app"},
	} {
		rows := insight.By(sums, by)
		if len(rows) != len(want) {
			t.Errorf("by %s: %d rows, want %v", by, len(rows), want)
			continue
		}
		for i, row := range rows {
			if row.Name != want[i] {
				t.Errorf("by %s: row %d is %q, want %q", by, i, row.Name, want[i])
			}
		}
	}
	byModel := insight.By(sums, insight.ByModel)
	if byModel[1].InputTokens != 100 || byModel[1].Handoffs != 0 {
		t.Errorf("a model has what models used only: %+v", byModel[1])
	}
}

// A batch may end anywhere: what is under way is carried on.
func TestBatchesAddUpToTheWhole(t *testing.T) {
	whole := story()
	open := insight.NewFold()
	open.Subjects["d"] = insight.Subject{Agent: "a", CreatedAt: start, Hop: true}
	open.Add(event.Event{Type: event.Queued, DelegationID: "d", At: start})
	next := insight.NewFold()
	next.Subjects, next.Open = open.Subjects, open.Open
	next.Add(event.Event{Type: event.Acknowledged, DelegationID: "d", At: start.Add(time.Hour)})
	if got := insight.Of(next.Sums); got.ForSlot.Seconds != 3600 || got.Accepted.N != 1 {
		t.Errorf("the wait over the end of a batch: %+v", got)
	}
	if len(whole.Sums) == 0 {
		t.Error("nothing was counted")
	}
}

func TestHostileDataIsCountedUnderOther(t *testing.T) {
	f := insight.NewFold()
	long := make([]byte, 4000)
	for i := range long {
		long[i] = 'x'
	}
	for _, data := range []string{`{"code":"` + string(long) + `"}`, `{"code":"a\u202eb"}`, `{"code":{"a":1}}`, `[]`, `null`, `{"input_tokens":-1e300,"usd":1e300}`} {
		f.Add(event.Event{Type: event.DelegationRefused, DelegationID: "d", Actor: "kik", At: start, Data: []byte(data)})
		f.Add(event.Event{Type: event.UsageRecorded, DelegationID: "d", Actor: "kik", At: start, Data: []byte(data)})
	}
	got := insight.Of(f.Sums)
	if got.Refusals["other"] != 2 || got.Refusals[""] != 4 || got.InputTokens != 0 {
		t.Errorf("refusals %v, %d tokens", got.Refusals, got.InputTokens)
	}
}

// Percentiles are read from buckets; each lies within a bucket of the true value.
func TestPercentilesAreRightToATenth(t *testing.T) {
	sums := insight.Sums{}
	for ms := int64(1); ms <= 1000; ms++ {
		d := time.Duration(ms) * time.Millisecond
		sums.Add(insight.Key{Measure: insight.Done, Bucket: insight.BucketOf(d)}, 1, d.Microseconds())
	}
	got := insight.Of(sums).Done
	for name, c := range map[string]struct{ got, want float64 }{"p50": {*got.P50, 0.5}, "p95": {*got.P95, 0.95}, "mean": {*got.Mean, 0.5005}} {
		if c.got < c.want*0.9 || c.got > c.want*1.1 {
			t.Errorf("%s is %.3f s, want about %.3f", name, c.got, c.want)
		}
	}
	if insight.BucketOf(-time.Second) != 0 || insight.BucketOf(1000*time.Hour) != insight.BucketOf(100000*time.Hour) {
		t.Error("a duration has no bucket of its own kind")
	}
	h := insight.HistogramOf(sums, insight.Done)
	if h.N != 1000 || h.Below[0.512] != 512 || h.Below[1.024] != 1000 {
		t.Errorf("histogram: %d, up to 0.512 s %d, up to 1.024 s %d", h.N, h.Below[0.512], h.Below[1.024])
	}
}

// Shares are of requests that were decided; what a rule let pass by itself is told apart, and
// an analysis, which asks nobody, is none of them.
func TestSharesOfDecisions(t *testing.T) {
	f := insight.NewFold()
	for _, data := range []map[string]any{
		{"verdict": "approve", "channel": "rule", "state": "approved"}, {"verdict": "approve", "channel": "web", "state": "approved"}, {"verdict": "reject", "channel": "web", "state": "rejected"},
		{"verdict": "request_changes", "channel": "web", "state": "changes_requested"}, {"verdict": "approve", "rule": "analysis-only"}, {"verdict": "approve", "channel": "chat", "state": "approved"},
	} {
		f.Add(event.Event{Type: event.Decided, DelegationID: "d", Actor: "x", At: start, Data: event.Data(data)})
	}
	f.Add(event.Event{Type: event.Expired, DelegationID: "d", Actor: "gatehouse", At: start})
	got := insight.Of(f.Sums)
	if s := got.Shares(); s != (insight.Shares{Decided: 4, ByRule: 1, Rejected: 1}) || insight.Part(s.ByRule, s.Decided) != 25 || insight.Part(0, 0) != 0 {
		t.Errorf("shares %+v", got.Shares())
	}
	rows := got.Channels()
	if len(rows) != 4 || rows[0].Expired != 1 || rows[1].Channel != "chat" || rows[3].Approved != 1 || rows[3].Rejected != 1 || rows[3].ChangesRequested != 1 {
		t.Errorf("by channel: %+v", rows)
	}
}
