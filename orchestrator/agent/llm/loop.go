package llm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"gatehouse/orchestrator/agent"
)

// LoopLimits are the figures of the loop detector, in calls (P30, P35). A 0 is the
// default: a window of 30, a warning at 10, a block at 20, the end at 30.
type LoopLimits struct {
	Window  int
	Warn    int
	Block   int
	Breaker int
}

// DefaultLoop are the thresholds that picoclaw runs in production (P35).
var DefaultLoop = LoopLimits{Window: 30, Warn: 10, Block: 20, Breaker: 30}

func (l LoopLimits) orDefaults() LoopLimits {
	for _, f := range []struct{ at, or *int }{{&l.Window, &DefaultLoop.Window}, {&l.Warn, &DefaultLoop.Warn}, {&l.Block, &DefaultLoop.Block}, {&l.Breaker, &DefaultLoop.Breaker}} {
		if *f.at <= 0 {
			*f.at = *f.or
		}
	}
	return l
}

// Detector finds a model that goes in circles. It is a hook with four engines over the
// last calls of one run: the same call again and again, two calls in turn, the same call
// with the same outcome, and a breaker that ends the run. It lives and ends with its run
// (P56), and is rebuilt from the stored turns. With the defaults the 10th such call is
// warned of, the 20th is not run, and the 30th ends the run.
type Detector struct {
	limits LoopLimits
	window []seen
	// streaks count how often in a row a call had the same outcome, for the calls that
	// are in the window; another outcome is progress and resets it (P34). A streak may be
	// longer than the window, when other calls stand between.
	streaks map[string]streak
	blocked int // calls blocked since one was let go on
}

// seen is one call: what was asked, and what came of it.
type seen struct {
	id     string
	call   string // hash of tool and input
	result string // hash of the outcome, "" until it is known
}

type streak struct {
	result string
	n      int
}

// NewDetector makes the detector of one run.
func NewDetector(limits LoopLimits) *Detector {
	d := &Detector{limits: limits.orDefaults()}
	d.Reset()
	return d
}

// Reset forgets everything (P36).
func (d *Detector) Reset() {
	d.window, d.blocked, d.streaks = nil, 0, map[string]streak{}
}

// Replay rebuilds the state from the stored turns.
func (d *Detector) Replay(ctx context.Context, turns []agent.Turn) {
	for i, t := range turns {
		if t.Message.Role != agent.FromModel || i+1 >= len(turns) || turns[i+1].Message.Role != agent.FromTools {
			continue
		}
		var calls []Call
		for _, b := range t.Message.Calls() {
			call := Call{ID: b.ID, Tool: b.Name, Input: b.Input}
			call.Blocked = d.Before(ctx, call).Block != ""
			calls = append(calls, call)
		}
		texts := map[string]agent.Block{}
		for _, b := range turns[i+1].Message.Blocks {
			texts[b.ID] = b
		}
		for _, call := range calls {
			d.After(ctx, call, texts[call.ID].Text, texts[call.ID].IsError)
		}
	}
}

// Before counts the call and blocks one that was made too often.
func (d *Detector) Before(_ context.Context, call Call) Verdict {
	key := callHash(call)
	d.window = append(d.window, seen{id: call.ID, call: key})
	if len(d.window) > d.limits.Window {
		gone := d.window[0].call
		if d.window = d.window[1:]; d.repeats(gone) == 0 {
			delete(d.streaks, gone)
		}
	}
	n, why := d.worst(key, 1)
	if n < d.limits.Block {
		d.blocked = 0
		return Verdict{}
	}
	return Verdict{Block: fmt.Sprintf("This call was not run: you made %s %d times (%s). The same will not bring anything new. Do something else, or end with what you know.", call.Tool, n, why)}
}

// After notes the outcome, warns of a loop that begins, and ends the run at the breaker.
func (d *Detector) After(_ context.Context, call Call, text string, isError bool) Verdict {
	key := callHash(call)
	if call.Blocked {
		if d.blocked++; d.limits.Block-1+d.blocked < d.limits.Breaker {
			return Verdict{}
		}
		return Verdict{Stop: agent.Fail(agent.CodeLoop, "The model went in circles and was ended: it called %s with the same input %d times more after it was told that nothing new comes of it. Word the task differently, or give it another model.", call.Tool, d.blocked-1)}
	}
	result := hash(fmt.Sprint(isError), unnoted(text))
	for i := range d.window {
		if d.window[i].id == call.ID {
			d.window[i].result = result
		}
	}
	s := d.streaks[key]
	if s.result != result {
		s = streak{result: result}
	}
	s.n++
	d.streaks[key] = s
	if s.n >= d.limits.Breaker {
		return Verdict{Stop: agent.Fail(agent.CodeLoop, "The model went in circles and was ended: %s had the same outcome %d times in a row. Word the task differently, or give it another model.", call.Tool, s.n)}
	}
	n, why := d.worst(key, 0)
	if n < d.limits.Warn {
		return Verdict{}
	}
	return Verdict{Note: fmt.Sprintf("you made %s %d times (%s). If nothing new comes of it, do something else; from %d on it is not run any more.", call.Tool, n, why, d.limits.Block)}
}

// worst returns the engine that counts most for a call, and how it says so. Pending is 1
// for a call whose outcome is still to come.
func (d *Detector) worst(key string, pending int) (n int, why string) {
	n, why = d.repeats(key), "the same call"
	if p := d.pingPong(key); p > n {
		n, why = p, "two calls in turn without progress"
	}
	if s := d.streaks[key].n + pending; s > n {
		n, why = s, "the same call with the same outcome"
	}
	return n, why
}

// repeats counts the calls of the window that are the same (P31).
func (d *Detector) repeats(key string) int {
	n := 0
	for _, s := range d.window {
		if s.call == key {
			n++
		}
	}
	return n
}

// pingPong returns how many calls at the end of the window alternate between two, each
// with the same outcome every time (P32); 0 when there are none.
func (d *Detector) pingPong(key string) int {
	last := len(d.window) - 1
	if last < 3 || d.window[last].call == d.window[last-1].call || d.window[last].call != key && d.window[last-1].call != key {
		return 0
	}
	outcomes := map[string]string{}
	n := 0
	for i := last; i >= 0; i-- {
		s := d.window[i]
		if s.call != d.window[last-(last-i)%2].call {
			break
		}
		if known, ok := outcomes[s.call]; ok && s.result != "" && known != s.result {
			break // it had another outcome: there was progress
		}
		if s.result != "" {
			outcomes[s.call] = s.result
		}
		n++
	}
	if n < 4 {
		return 0
	}
	return n
}

// callHash is the same for inputs that mean the same (P36): keys in any order, any
// white space.
func callHash(call Call) string { return hash(call.Tool, canonical(call.Input)) }

func canonical(input json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(input)
	}
	b, err := json.Marshal(v) // sorts the keys of objects
	if err != nil {
		return string(input)
	}
	return string(b)
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
