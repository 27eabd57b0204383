package agenttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
)

// Host is an agent.Host in memory that records all it is told. Children end at
// once unless Child says otherwise. It is safe for concurrent use; read what it
// recorded through its methods, or after the run.
type Host struct {
	// Child says what a hop becomes. A child that has not ended is waited for: Await
	// blocks until End is called with its id. Nil lets every child complete with the
	// text "TO: TEXT".
	Child func(hop agent.Hop) agent.Child
	// Err, when set, is asked before every call, with the method's name.
	Err func(method string) error

	// Members, Left and Results are what Roster, Remaining and Checks answer. OnSave is asked
	// by SaveTurn once the turn is kept; ApplyDiff by Apply.
	Members   []agent.Member
	Left      budget.Limits
	Results   []agent.CheckResult
	OnSave    func(t agent.Turn) error
	ApplyDiff func(diff string) error
	// OnAsk is what people say. It must be safe for concurrent use.
	OnAsk func(a agent.Ask) agent.Answer
	// Gone is what Over answers.
	Gone atomic.Bool

	mu        sync.Mutex
	turns     []agent.Turn
	deltas    []agent.Delta
	entries   map[[2]string]agent.ContextEntry
	order     []string // spawned children, in the order of their ends
	made      []string // all children, in the order of their starts
	refused   []agent.Child
	progress  []string
	times     []time.Time
	usage     agent.Usage
	calls     []agent.ModelCall
	writes    []agent.ContextWrite
	hops      []agent.Hop
	asked     []agent.Ask
	begun     []string
	reports   []agent.Report
	session   string
	said      int // messages so far
	unread    []agent.PersonMessage
	more      chan struct{} // closed by the next message, where Hear waits for it
	confined  []agent.Confinement
	sandboxes []string
	children  map[string]agent.Child
	waiting   map[string]chan agent.Child
}

var _ agent.Host = (*Host)(nil)

// NewHost makes a Host whose children complete with "TO: TEXT".
func NewHost() *Host {
	return &Host{children: map[string]agent.Child{}, waiting: map[string]chan agent.Child{}}
}

func (h *Host) enter(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.Err != nil {
		return h.Err(method)
	}
	return nil
}

// Progress records a line.
func (h *Host) Progress(ctx context.Context, text string) error {
	if err := h.enter(ctx, "Progress"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, text)
	h.times = append(h.times, time.Now())
	return nil
}

// Usage adds up.
func (h *Host) Usage(ctx context.Context, u agent.Usage) error {
	if err := h.enter(ctx, "Usage"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.usage = h.usage.Add(u)
	return nil
}

// PutContext records a write.
func (h *Host) PutContext(ctx context.Context, w agent.ContextWrite) error {
	if err := h.enter(ctx, "PutContext"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes = append(h.writes, w)
	return nil
}

// Delegate makes a child as Child says. The same Ref returns the child that exists.
func (h *Host) Delegate(ctx context.Context, hop agent.Hop) (agent.Child, error) {
	if err := h.enter(ctx, "Delegate"); err != nil {
		return agent.Child{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if hop.Ref != "" {
		for _, c := range h.children {
			if c.Ref == hop.Ref {
				return c, nil
			}
		}
	}
	h.hops = append(h.hops, hop)
	child := agent.Child{State: "completed", Ended: true, Result: &agent.Result{Text: hop.To + ": " + hop.Text}}
	if h.Child != nil {
		child = h.Child(hop)
	}
	child.Ref, child.To, child.Text, child.Spawn = hop.Ref, cmp.Or(hop.To, child.To), hop.Text, hop.Spawn
	if child.State == agent.Refused {
		child.Ended = true
		h.refused = append(h.refused, child)
		return child, nil
	}
	if child.ID == "" {
		child.ID = fmt.Sprintf("dlg_child%d", len(h.hops))
	}
	h.children[child.ID] = child
	h.made = append(h.made, child.ID)
	if child.Ended && child.Spawn {
		h.order = append(h.order, child.ID)
	}
	if !child.Ended {
		h.waiting[child.ID] = make(chan agent.Child, 1)
	}
	return child, nil
}

// Await returns the child once it has ended.
func (h *Host) Await(ctx context.Context, id string) (agent.Child, error) {
	if err := h.enter(ctx, "Await"); err != nil {
		return agent.Child{}, err
	}
	h.mu.Lock()
	child, ok := h.children[id]
	ended := h.waiting[id]
	h.mu.Unlock()
	if !ok {
		return agent.Child{}, fmt.Errorf("no child %q", id)
	}
	if child.Ended {
		return child, nil
	}
	select {
	case child = <-ended:
		return child, nil
	case <-ctx.Done():
		return agent.Child{}, ctx.Err()
	}
}

// End ends an open child: with a text, or with a failure when err is set.
func (h *Host) End(id, text string, err *agent.Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	child, ended := h.children[id], h.waiting[id]
	if ended == nil {
		return
	}
	delete(h.waiting, id)
	child.Ended, child.State, child.Error = true, "failed", err
	if err == nil {
		child.State, child.Result = "completed", &agent.Result{Text: text}
	}
	h.children[id] = child
	if child.Spawn {
		h.order = append(h.order, id)
	}
	ended <- child
}

// Sandbox records the name.
func (h *Host) Sandbox(ctx context.Context, name string) error {
	if err := h.enter(ctx, "Sandbox"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sandboxes = append(h.sandboxes, name)
	return nil
}

// Confined records the limits of the run.
func (h *Host) Confined(ctx context.Context, c agent.Confinement) error {
	if err := h.enter(ctx, "Confined"); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confined = append(h.confined, c)
	return nil
}

// Confinements returns what Confined was told.
func (h *Host) Confinements() []agent.Confinement {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.confined)
}

// Shown returns all progress as one text, and the time of each message.
func (h *Host) Shown() (text string, at []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.progress, "\n"), slices.Clone(h.times)
}

// Used returns the sum of all usage.
func (h *Host) Used() agent.Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.usage
}

// Writes returns the writes to the shared context.
func (h *Host) Writes() []agent.ContextWrite {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.writes)
}

// Hops returns the hops that were asked for, refused ones too.
func (h *Host) Hops() []agent.Hop {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.hops)
}

// Sandboxes returns the names that Sandbox was told.
func (h *Host) Sandboxes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.sandboxes)
}
