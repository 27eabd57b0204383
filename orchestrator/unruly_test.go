package orchestrator_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// What an agent says wrong is its own failure, once, in words; it is no fault of the
// machinery, which would be tried again.
func TestWhatAnAgentSaysWrongIsItsOwnFailure(t *testing.T) {
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
	databases(t, func(t *testing.T, url string) {
		coder := agent.Spec{Name: "coder", Repository: "app"}
		w := newWorld(t, url, append(specs("helper"), coder)...)
		w.script("helper", func(context.Context, agent.Job, agent.Host) (agent.Outcome, error) {
			return agenttest.Done("helped"), nil
		})
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			for name, hop := range map[string]agent.Hop{
				"blank": {Text: "  "}, "too long": {Text: strings.Repeat("x", orchestrator.MaxText+1)},
				"bad context": {Text: "Help", Context: map[string]string{"a\nb": "v"}},
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
