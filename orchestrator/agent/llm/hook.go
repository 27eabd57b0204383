package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/textcut"
)

// Call is a tool's call as hooks see it.
type Call struct {
	ID      string
	Tool    string // may be unknown
	Input   json.RawMessage
	Blocked bool // a hook refused it, so it did not run
	Again   bool // before: what hooks said is known, from before the run waited for its hops
}

// Verdict is what a hook says. The zero value lets the call go on.
type Verdict struct {
	Block string         // before: why the call is not run, as the model reads it
	Note  string         // after: what is added to the result
	Stop  *agent.Failure // after: ends the run, once the results are on record
}

// Hook stands before and after every call of one run (P20). After is called for blocked
// and failed calls, too. One goroutine uses it: first Before for all calls of a message
// in order, then After for all.
type Hook interface {
	Before(ctx context.Context, call Call) Verdict
	After(ctx context.Context, call Call, text string, isError bool) Verdict
}

// hooks are a chain. None at all lets everything go on.
type hooks []Hook

// before asks every hook, so that all of them see every call; the first block holds.
func (h hooks) before(ctx context.Context, call Call) Verdict {
	var first Verdict
	for _, hook := range h {
		if v := hook.Before(ctx, call); first.Block == "" {
			first.Block = v.Block
		}
	}
	return first
}

// after tells every hook, and joins what they say.
func (h hooks) after(ctx context.Context, call Call, a answer) Verdict {
	var all Verdict
	for _, hook := range h {
		v := hook.After(ctx, call, a.Text, a.IsError)
		if v.Note != "" && all.Note != "" {
			all.Note += " "
		}
		all.Note += v.Note
		all.Stop = cmp.Or(all.Stop, v.Stop)
	}
	return all
}

// The moments at which a hook's program is run.
const (
	BeforeCall = "before_call"
	AfterCall  = "after_call"
)

// HookProgram is a program of the operator's that is run around calls of tools (P20).
type HookProgram struct {
	Name     string
	At       string // BeforeCall or AfterCall
	Command  []string
	Agents   []string      // whose calls; nil: everybody's
	Tools    []string      // names or groups; nil: every call, also of tools that do not exist
	Timeout  time.Duration // of one call
	Env      map[string]string
	Writable []string // folders that it may write
}

// hookInput is what the program reads on standard input, as one JSON object. The README has
// its shape, which others rely on.
type hookInput struct {
	Hook         string     `json:"hook"`
	At           string     `json:"at"`
	TaskID       string     `json:"task_id"`
	DelegationID string     `json:"delegation_id"`
	Agent        string     `json:"agent"`
	From         string     `json:"from"`
	Repository   bool       `json:"repository"` // the agent has a checkout
	Call         hookCall   `json:"call"`
	Answer       *hookReply `json:"answer,omitempty"` // after the call
}

type hookCall struct {
	ID    string          `json:"id"`
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input"`
}

type hookReply struct {
	Text    string `json:"text"` // at most maxAnswer bytes
	IsError bool   `json:"is_error"`
	Blocked bool   `json:"blocked"` // a hook refused the call, so it did not run
}

// hookOutput is what it may print: nothing, or one JSON object.
type hookOutput struct {
	Block string `json:"block"` // before: why the call is not run
	Note  string `json:"note"`  // after: what is added to the answer
}

const (
	hookPrints = 16 << 10 // bytes that a hook may print
	hookSays   = 2000     // characters of a reason or a note
)

// hookRun is a hook's program as one run has it.
type hookRun struct {
	HookProgram
	job      agent.Job
	host     agent.Host
	commands Commands
	log      *slog.Logger
}

// programHooks are the programs that stand around the calls of this run.
func (c *conversation) programHooks(commands Commands) []Hook {
	var all []Hook
	for _, p := range c.settings.Hooks {
		if commands != nil && (p.Agents == nil || namesAgent(p.Agents, c.job.Agent.Name)) {
			all = append(all, &hookRun{HookProgram: p, job: c.job, host: c.host, commands: commands, log: c.log})
		}
	}
	return all
}

func namesAgent(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return agent.Key(n) == agent.Key(name) })
}

// Before asks the program. One that fails, hangs or prints what nobody can read blocks the
// call: it is there to keep things from happening.
func (h *hookRun) Before(ctx context.Context, call Call) Verdict {
	if h.At != BeforeCall || call.Again || !h.concerns(call) {
		return Verdict{}
	}
	said, failed := h.run(ctx, call, nil)
	switch {
	case failed != nil:
		h.tell(ctx, "before", call, failed)
		return Verdict{Block: fmt.Sprintf("This call was not run: the hook %s, which is asked first, failed. People have to mend it; go on without the call, or say what you would have done.", h.Name)}
	case said.Block != "":
		return Verdict{Block: fmt.Sprintf("This call was not run. The hook %s says: %s", h.Name, textcut.Characters(said.Block, hookSays))}
	}
	return Verdict{}
}

// After tells the program what came of a call. What goes wrong there changes nothing for the
// agent, and is told to people.
func (h *hookRun) After(ctx context.Context, call Call, text string, isError bool) Verdict {
	if h.At != AfterCall || !h.concerns(call) {
		return Verdict{}
	}
	said, failed := h.run(ctx, call, &hookReply{Text: strings.ToValidUTF8(text[:min(len(text), maxAnswer)], ""), IsError: isError, Blocked: call.Blocked})
	if failed != nil {
		h.tell(ctx, "after", call, failed)
		return Verdict{}
	}
	return Verdict{Note: textcut.Characters(said.Note, hookSays)}
}

func (h *hookRun) concerns(call Call) bool { return h.Tools == nil || names(h.Tools, call.Tool) }

// run starts the program and reads what it says.
func (h *hookRun) run(ctx context.Context, call Call, reply *hookReply) (hookOutput, error) {
	j := h.job
	in, err := json.Marshal(hookInput{Hook: h.Name, At: h.At, TaskID: j.TaskID, DelegationID: j.DelegationID, Agent: j.Agent.Name, From: j.From, Repository: j.Dir != "",
		Call: hookCall{ID: call.ID, Tool: call.Tool, Input: call.Input}, Answer: reply})
	if err != nil {
		return hookOutput{}, fmt.Errorf("write the call: %w", err)
	}
	ran, err := h.commands.Hook(ctx, j, h.host, h.HookProgram, string(in))
	switch {
	case err != nil:
		return hookOutput{}, err
	case ran.Ended != "":
		return hookOutput{}, errors.New(ran.Ended)
	case ran.Code != 0:
		return hookOutput{}, fmt.Errorf("it ended with code %d. %s", ran.Code, ran.Errors)
	case ran.Cut || len(ran.Output) > hookPrints:
		return hookOutput{}, fmt.Errorf("it printed more than %d bytes", hookPrints)
	case strings.TrimSpace(ran.Output) == "":
		return hookOutput{}, nil
	}
	return h.read(ran.Output)
}

// read takes one JSON object with the key that belongs to the moment, and nothing else: what
// is misspelled must not pass for a yes.
func (h *hookRun) read(text string) (out hookOutput, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&out)
	switch {
	case err != nil:
		return hookOutput{}, fmt.Errorf("what it printed cannot be read: %w", err)
	case !errors.Is(d.Decode(new(json.RawMessage)), io.EOF):
		return hookOutput{}, errors.New("it printed more than one JSON object")
	case !strings.HasPrefix(strings.TrimSpace(text), "{"):
		return hookOutput{}, errors.New("it printed no JSON object")
	case h.At == AfterCall && out.Block != "":
		return hookOutput{}, errors.New("it wants to block a call that was already made")
	case h.At == BeforeCall && out.Note != "":
		return hookOutput{}, errors.New("it has a note to an answer that is not there yet")
	}
	return out, nil
}

// tell says to people that a hook failed: in the log, and as an event of the delegation.
func (h *hookRun) tell(ctx context.Context, when string, call Call, failed error) {
	if ctx.Err() != nil {
		return // the run ended, which is not the hook's fault
	}
	h.log.Warn("a hook failed", "hook", h.Name, "tool", call.Tool, "delegation", h.job.DelegationID, "err", failed)
	words := fmt.Sprintf("the hook %s failed %s %s: %s", h.Name, when, textcut.Characters(call.Tool, 100), textcut.Characters(failed.Error(), interim))
	if err := h.host.Progress(ctx, words); err != nil {
		h.log.Debug("a hook's failure was not shown", "err", err)
	}
}
