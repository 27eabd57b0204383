package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/record/event"
)

// What an agent says wrong is its own failure, once, in words; it is no fault of the
// machinery, which would be tried again.
func TestWhatAnAgentSaysWrongIsItsOwnFailure(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]agent.ContextWrite{
		"a line break":     {Namespace: "a\nb", Key: "k", Value: "v"},
		"a long key":       {Namespace: "a", Key: strings.Repeat("k", 1000), Value: "v"},
		"a large value":    {Namespace: "a", Key: "k", Value: strings.Repeat("v", 1<<20)},
		"an endless life":  {Namespace: "a", Key: "k", Value: "v", TTLSeconds: 1 << 62},
		"an overflow to 1": {Namespace: "a", Key: "k", Value: "v", TTLSeconds: 18446744074},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), specs("coder")...)
			w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
				return agenttest.Done("kept"), host.PutContext(ctx, write)
			})
			w.start()
			d := w.state(w.send("coder", "Write it down").ID, orchestrator.Failed)
			if d.Attempt != 1 || d.Error.Code != agent.CodeProtocol || !strings.Contains(d.Error.Message, "coder wrote something") {
				t.Errorf("attempt %d ended with %v", d.Attempt, d.Error)
			}
		})
	}
}

// A hand-over that cannot be made is data for the agent that asked, and whatever it
// calls its hops is no name of a ref or an index entry.
func TestAHandOverThatCannotBeMadeIsAnswered(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		coder := agent.Spec{Name: "coder", Repository: "app"}
		w := newWorld(t, url, append(specs("helper"), coder)...)
		w.script("helper", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
			return agenttest.Done("helped"), nil
		})
		many, large := map[string]string{}, strings.Repeat("v", 256<<10)
		for i := range 1000 {
			many[fmt.Sprint("key", i)] = "v"
		}
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			for name, hop := range map[string]agent.Hop{
				"blank": {Text: "  "}, "too long": {Text: strings.Repeat("x", orchestrator.MaxText+1)},
				"bad context":      {Text: "Help", Context: map[string]string{"a\nb": "v"}},
				"too many entries": {Text: "Help", Context: many},
				"a large context":  {Text: "Help", Context: map[string]string{"a": large, "b": large, "c": large, "d": large, "e": large}},
				"a large command":  {Text: "Help", Handover: &agent.Handover{Update: agent.HandoverUpdate{Artifacts: map[string]*string{"a": &large}}}},
			} {
				hop.To = "helper"
				if c, err := host.Delegate(ctx, hop); err != nil || c.State != agent.Refused || c.Error.Code != orchestrator.CodeBadRequest {
					t.Errorf("%s: %+v, %v", name, c, err)
				}
			}
			for _, ref := range []string{"../../heads/main", "-rf @{~^:?*[\\", "long" + strings.Repeat("ü", 9000)} {
				c, err := host.Delegate(ctx, agent.Hop{Ref: ref, To: "helper", Text: "Help " + ref[:4]})
				if err != nil || c.State == agent.Refused {
					t.Errorf("%.20q: %+v, %v", ref, c, err)
					continue
				}
				if c, err = host.Await(ctx, c.ID); err != nil || c.Result.Text != "helped" {
					t.Errorf("%.20q: %+v, %v", ref, c, err)
				}
			}
			return agenttest.Done("done"), nil
		})
		w.start()
		if d := w.state(w.send("coder", "Hand it on").ID, orchestrator.Completed); d.Attempt != 1 {
			t.Errorf("it took %d attempts", d.Attempt)
		}
	})
}

// A name of a megabyte is refused as unknown like any other, and neither its event nor
// what the caller is told repeats it; both run-time hops and parked ones.
func TestAnEndlessNameIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), specs("coder", "helper")...)
	long := strings.Repeat("ü", 1<<20)
	hops := []agent.Hop{{Ref: "a", To: long, Text: "Help"}, {Ref: "b", Capability: long, Text: "Help"}, {Ref: "c", To: "helper", Text: long}}
	said := func(c agent.Child) {
		if told, err := json.Marshal(c); err != nil || len(told) > 16<<10 || c.Error == nil {
			t.Errorf("%s is answered with %d bytes, %v", c.Ref, len(told), err)
		}
	}
	w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		if job.Memo == nil {
			for _, h := range hops {
				c, err := host.Delegate(ctx, h)
				if err != nil {
					return agent.Outcome{}, err
				}
				said(c)
			}
			return agent.Outcome{Park: &agent.Park{Hops: hops, Memo: json.RawMessage(`{}`)}}, nil
		}
		for _, c := range job.Children {
			said(c)
		}
		return agenttest.Done(fmt.Sprint(len(job.Children))), nil
	})
	w.start()
	d := w.state(w.send("coder", "Hand it on").ID, orchestrator.Completed)
	if d.Result.Text != "3" {
		t.Errorf("it was told of %s children", d.Result.Text)
	}
	all, err := w.store.Events(t.Context(), d.TaskID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if len(e.Data) > 16<<10 {
			t.Errorf("the event %s has %d bytes", e.Type, len(e.Data))
		}
	}
	if n := w.count(d.TaskID, event.DelegationRefused); n != 4 {
		t.Errorf("%d refusals are on record; want 4", n)
	}
}
