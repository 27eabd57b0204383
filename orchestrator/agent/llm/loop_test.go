package llm_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/agent/llm/model"

	"pgregory.net/rapid"
)

// said is what the detector said of one call.
type said struct {
	blocked bool
	warned  bool
	stopped bool
	text    string
}

// feed gives a detector the n-th call of its run, with its outcome.
func feed(d *llm.Detector, n int, tool, input, result string) said {
	c := llm.Call{ID: fmt.Sprint("call", n), Tool: tool, Input: []byte(input)}
	before := d.Before(context.Background(), c)
	c.Blocked = before.Block != ""
	after := d.After(context.Background(), c, result, false)
	return said{c.Blocked, after.Note != "", after.Stop != nil, before.Block + after.Note}
}

// What each engine finds, at the thresholds of production: 10, 20 and 30 in a window of
// 30 (P30–P35). Calls are numbered from 1.
func TestTheEnginesOfTheLoopDetector(t *testing.T) {
	same := func(int) (string, string, string) { return "search", `{"pattern":"x"}`, "nothing" }
	for _, c := range []struct {
		name               string
		call               func(n int) (tool, input, result string)
		warn, block, stops int // the first such call; 0: never within 200
	}{
		{"the same call with the same outcome (P31, P33, P34)", same, 10, 20, 30},
		{"the same call, though outcomes differ (P31)", func(n int) (string, string, string) {
			return "search", `{"pattern":"x"}`, fmt.Sprint(n)
		}, 10, 20, 30},
		{"keys in another order are the same call (P36)", func(n int) (string, string, string) {
			return "search", []string{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`}[n%2], "nothing"
		}, 10, 20, 30},
		{"two calls in turn without progress (P32)", func(n int) (string, string, string) {
			return "read_file", fmt.Sprintf(`{"path":"%d"}`, n%2), fmt.Sprint("content ", n%2)
		}, 10, 20, 30},
		{"two calls in turn with progress (P32) are only each the same", func(n int) (string, string, string) {
			return "read_file", fmt.Sprintf(`{"path":"%d"}`, n%2), fmt.Sprint("content ", n)
		}, 19, 0, 0},
		{"the same call among others, with the same outcome (P33)", func(n int) (string, string, string) {
			if n%4 == 0 {
				return same(n)
			}
			return "search", fmt.Sprintf(`{"pattern":"%d"}`, n), fmt.Sprint(n)
		}, 40, 80, 0},
		{"the same call among others, with progress (P34)", func(n int) (string, string, string) {
			if n%4 == 0 {
				return "search", `{"pattern":"x"}`, fmt.Sprint(n / 16)
			}
			return "search", fmt.Sprintf(`{"pattern":"%d"}`, n), fmt.Sprint(n)
		}, 0, 0, 0},
		{"other calls each time", func(n int) (string, string, string) {
			return "search", fmt.Sprintf(`{"pattern":"%d"}`, n), "nothing"
		}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := llm.NewDetector(llm.LoopLimits{})
			var warn, block, stops int
			for n := 1; n <= 200 && stops == 0; n++ {
				s := feed(d, n, first3(c.call(n)), second3(c.call(n)), third3(c.call(n)))
				mark(&warn, n, s.warned)
				mark(&block, n, s.blocked)
				mark(&stops, n, s.stopped)
			}
			if warn != c.warn || block != c.block || stops != c.stops {
				t.Errorf("warns at %d, blocks at %d, stops at %d; want %d, %d, %d", warn, block, stops, c.warn, c.block, c.stops)
			}
		})
	}
}

func first3(a, _, _ string) string  { return a }
func second3(_, b, _ string) string { return b }
func third3(_, _, c string) string  { return c }

func mark(first *int, n int, now bool) {
	if now && *first == 0 {
		*first = n
	}
}

// Thresholds are settings (P35), and Reset forgets (P36).
func TestTheThresholdsAreSettings(t *testing.T) {
	d := llm.NewDetector(llm.LoopLimits{Warn: 2, Block: 3, Breaker: 4})
	for round := range 2 {
		var got []said
		for n := range 4 {
			got = append(got, feed(d, n, "search", `{}`, "x"))
		}
		if got[0].warned || !got[1].warned || !got[2].blocked || got[2].stopped || !got[3].stopped {
			t.Errorf("round %d: %+v", round, got)
		}
		d.Reset()
	}
}

// Each run has a detector of its own, which ends with it: one runner works on task after
// task, each makes the same call, and none is told of what the others made (P36, P56).
func TestRunsDoNotShareTheirLoops(t *testing.T) {
	const each, tasks = 6, 3 // the 10th call of one run is told of it
	s := &script{steps: []step{func(ctx context.Context, r model.Request) (model.Response, error) {
		if len(r.Messages) > 2*each {
			return says("done")(ctx, r)
		}
		return calls(call("", "list_agents", `{}`))(ctx, r)
	}}}
	runner := runnerOf(s)
	for n := range tasks {
		host := team()
		if _, err := agenttest.Drive(t.Context(), runner, task("Work."), host); err != nil {
			t.Fatal(err)
		}
		for i := range each {
			if text := results(t, host.Turns(), i)[0].Text; strings.Contains(text, "you made list_agents") || strings.Contains(text, "This call was not run") {
				t.Errorf("call %d of task %d is told %q", i+1, n+1, text)
			}
		}
	}
}

// What a detector holds does not grow with its run, however many calls that makes (P56).
func TestADetectorHoldsItsWindowAlone(t *testing.T) {
	d := llm.NewDetector(llm.LoopLimits{})
	held := func(from, to int) uint64 {
		for n := from; n < to; n++ {
			feed(d, n, "search", fmt.Sprintf(`{"n":%d}`, n), "x")
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held(0, 100)
	if after := held(100, 30_100); after > before+2<<20 { // kept, they would be some 7 MB
		t.Errorf("30,000 calls left %d KB behind", (after-before)>>10)
	}
	runtime.KeepAlive(d)
}

// A model that makes the same call without end is warned, then refused, then ended; all
// its calls have results on record.
func TestAnEndlessLoopEnds(t *testing.T) {
	host := team()
	_, s, err := play(t, host, task("Work."), calls(call("x", "shared_context", `{"action":"get","key":"k"}`)))
	f := failure(t, err, agent.CodeLoop)
	has(t, f.Message, "shared_context")
	if n := len(s.requests()); n != 30 {
		t.Errorf("asked %d times; want 30", n)
	}
	warned, refused := results(t, host.Turns(), 9)[0], results(t, host.Turns(), 19)[0]
	if has(t, warned.Text, "Note: you made shared_context 10 times"); warned.IsError {
		t.Error("a warning is no error")
	}
	if has(t, refused.Text, "This call was not run"); !refused.IsError {
		t.Error("a refused call is an error")
	}
}

// A restart does not let a loop begin anew: the state is rebuilt from the stored turns.
func TestALoopIsRememberedOverARestart(t *testing.T) {
	loop := calls(call("x", "shared_context", `{"action":"get","key":"k"}`))
	for _, stop := range []int{3, 15, 41, 57} {
		host := team()
		host.OnSave = func(turn agent.Turn) error {
			if turn.N == stop {
				return agent.ErrPaused
			}
			return nil
		}
		s := &script{steps: []step{loop}}
		r := runnerOf(s)
		_, err := agenttest.Drive(t.Context(), r, task("Work."), host)
		if err != agent.ErrPaused {
			t.Fatal(err)
		}
		host.OnSave = nil
		_, err = agenttest.Drive(t.Context(), r, task("Work."), host)
		failure(t, err, agent.CodeLoop)
		if n := len(s.requests()); n != 30 {
			t.Errorf("stopped at turn %d: asked %d times in all; want 30", stop, n)
		}
	}
}

// Many same calls in one message are a loop as well.
func TestALoopInOneMessage(t *testing.T) {
	var many []agent.Block
	for range 40 {
		many = append(many, call("", "shared_context", `{"action":"list"}`))
	}
	host := team()
	_, s, err := play(t, host, task("Work."), calls(many...))
	failure(t, err, agent.CodeLoop)
	if len(s.requests()) != 1 || len(results(t, host.Turns(), 0)) != 40 {
		t.Errorf("asked %d times", len(s.requests()))
	}
}

// Whatever a model calls, a restart at any turn changes nothing of what the detector says.
func TestReplayIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := llm.LoopLimits{Window: 6, Warn: 2, Block: 3, Breaker: 5}
		live := llm.NewDetector(limits)
		var turns []agent.Turn
		for n := range rapid.IntRange(1, 30).Draw(t, "turns") {
			var asked, told []agent.Block
			var now []llm.Call
			for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
				b := call(fmt.Sprintf("c%d-%d", n, i), "search", fmt.Sprintf(`{"p":%d}`, rapid.IntRange(0, 2).Draw(t, "input")))
				c := llm.Call{ID: b.ID, Tool: b.Name, Input: b.Input}
				c.Blocked = live.Before(t.Context(), c).Block != ""
				now, asked = append(now, c), append(asked, b)
			}
			for _, c := range now {
				text := fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "outcome"))
				v := live.After(t.Context(), c, text, false)
				if v.Note != "" {
					text += "\n\nNote: " + v.Note
				}
				told = append(told, agent.Block{Type: agent.AnswerBlock, ID: c.ID, Text: text})
			}
			turns = append(turns, agent.Turn{Message: agent.Message{Role: agent.FromModel, Blocks: asked}}, agent.Turn{Message: agent.Message{Role: agent.FromTools, Blocks: told}})
		}
		again := llm.NewDetector(limits)
		again.Replay(t.Context(), turns)
		for i := range 3 {
			c := llm.Call{ID: fmt.Sprint("next", i), Tool: "search", Input: []byte(fmt.Sprintf(`{"p":%d}`, i))}
			if a, b := live.Before(t.Context(), c), again.Before(t.Context(), c); a.Block != b.Block {
				t.Fatalf("live says %q, rebuilt %q", a.Block, b.Block)
			}
		}
	})
}

// A conversation is shown shorter, tier by tier, only when the model says that it is too
// long; what is stored never changes (P27–P29), and other agents' answers stay whole (O22).
func TestAConversationThatIsTooLong(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 99)+"\n", 200), "\n") // 20,000 characters
	small := "small result"
	host := team()
	host.Child = func(hop agent.Hop) agent.Child {
		if hop.Text == "fail" {
			return agent.Child{State: "failed", Ended: true, Error: agent.Fail("exit", "%s", long)}
		}
		return agent.Child{State: "completed", Ended: true, Result: &agent.Result{Text: "answer of helper " + long}}
	}
	for key, value := range map[string]string{"long": long, "small": small} {
		if err := host.Shared().Set(t.Context(), agent.ContextWrite{Namespace: "shared", Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	talk := []step{
		calls(call("a", "shared_context", `{"action":"get","key":"long"}`), call("b", "shared_context", `{"action":"get","key":"small"}`)),
		calls(call("c", "delegate_to_agent", `{"agent":"helper","task":"x"}`), call("f", "delegate_to_agent", `{"agent":"helper","task":"fail"}`)),
		answers(model.StopTools, long, call("d", "list_agents", `{}`)),
		calls(call("e", "shared_context", `{"action":"get","key":"long"}`)),
	}
	_, s, err := play(t, host, task("The task."), append(talk, fails(model.Overflow))...)
	failure(t, err, agent.CodeOverflow)
	asked := s.requests()
	if len(asked) != 8 {
		t.Fatalf("asked %d times; want 4 and then 4 tries", len(asked))
	}
	whole, one, two, three := asked[4].Messages, asked[5].Messages, asked[6].Messages, asked[7].Messages
	for _, tries := range [][]agent.Message{whole, one, two, three} {
		callsPaired(t, tries)
		if !strings.HasPrefix(tries[0].Text(), "The task.") {
			t.Error("the task was left out")
		}
	}
	// Tier 1: results over 8,000 characters are cut at the end of a line, with a footer.
	if len(one) != len(whole) {
		t.Errorf("tier 1 dropped messages: %d of %d", len(one), len(whole))
	}
	cut := one[2].Blocks[0].Text
	if n := len(cut); n > 8100 || n < 7900 || !strings.Contains(cut, "x\n[cut: ") {
		t.Errorf("the long result has %d characters and ends with %q", n, cut[max(0, n-60):])
	}
	if !strings.HasSuffix(one[2].Blocks[1].Text, small) {
		t.Errorf("the small result was touched: %q", one[2].Blocks[1].Text)
	}
	if got := one[4].Blocks[0].Text; got != whole[4].Blocks[0].Text {
		t.Errorf("the answer of another agent was cut to %d (O22)", len(got))
	}
	if got := one[4].Blocks[1]; !got.IsError || len(got.Text) > 8100 {
		t.Errorf("what went wrong with another agent stands there in %d characters (O22)", len(got.Text))
	}
	if one[5].Text() != long {
		t.Error("what is no result of a tool was cut")
	}
	// Tier 2: the older half is left out, results are whole, other agents' answers are kept.
	if len(whole) != 9 || len(two) != 5 {
		t.Errorf("tier 2 has %d of %d messages", len(two), len(whole))
	}
	has(t, two[0].Text(), "(4 earlier messages of this conversation were left out", "answer of helper "+long)
	// What went wrong with another agent is left out like anything else (O22).
	if n := strings.Count(two[0].Text(), long); n != 1 {
		t.Errorf("%d long results of other agents are kept, want the answer alone", n)
	}
	// Tier 3: both.
	if len(three) != len(two) {
		t.Errorf("tier 3 has %d messages, tier 2 %d", len(three), len(two))
	}
	if late, cut := two[4].Blocks[0].Text, three[4].Blocks[0].Text; !strings.HasSuffix(late, long) || len(cut) > 8100 || !strings.Contains(cut, "x\n[cut: ") {
		t.Errorf("the last result has %d characters in tier 2 and %d in tier 3", len(late), len(cut))
	}
	// What is stored is whole.
	if b := results(t, host.Turns(), 0)[0]; !strings.HasSuffix(b.Text, long) {
		t.Error("the stored result was cut")
	}
}

// callsPaired holds that no view splits a call from its result.
func callsPaired(t *testing.T, messages []agent.Message) {
	t.Helper()
	open := map[string]bool{}
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch b.Type {
			case agent.CallBlock:
				open[b.ID] = true
			case agent.AnswerBlock:
				if !open[b.ID] {
					t.Errorf("the result of %s stands without its call", b.ID)
				}
				delete(open, b.ID)
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without results: %v", open)
	}
}

// Once a shorter view was taken, the run goes on with it.
func TestAShorterViewIsKept(t *testing.T) {
	host := team()
	n := 0
	tooLong := func(ctx context.Context, r model.Request) (model.Response, error) {
		if n++; len(r.Messages) > 6 {
			return fails(model.Overflow)(ctx, r)
		}
		if n > 20 {
			return says("done")(ctx, r)
		}
		return calls(call("", "shared_context", fmt.Sprintf(`{"action":"get","key":"%d"}`, n)))(ctx, r)
	}
	res, _, err := play(t, host, task("Work."), tooLong)
	if err != nil || res.Text != "done" {
		t.Fatalf("answer %q, %v", res.Text, err)
	}
}
