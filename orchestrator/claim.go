package orchestrator

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/guard"
)

// HashToken is how run tokens are stored and looked up.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// RunTokenPrefix starts every run token, so that a door tells it from an API token.
const RunTokenPrefix = "ghr_"

// newToken makes a run token of 256 random bits.
func newToken() string {
	var b [32]byte
	rand.Read(b[:]) //nolint:errcheck // crypto/rand.Read never fails
	return RunTokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// claim takes the lease of a delegation that is due, raising its attempt. ErrLost means
// that somebody else has it.
func (e *Engine) claim(ctx context.Context, r *run) error {
	err := e.inRow(ctx, r.task.ID, r.id, func(tx Tx, d *Delegation) error {
		r.over = false // as the try before may have found it
		now := tx.Now()
		if d.State == Waiting && d.Holder != "" && d.LeaseUntil.Before(now) {
			// The process that waited is gone with its node; the row goes on waiting alone.
			r.over = true
			return loseProcess(ctx, tx, d)
		}
		held := d.Holder != "" && d.LeaseUntil.After(now)
		due := d.State == Queued || d.State == Running || d.State == Checking || d.State == Landing
		if held || !due || d.ReadyAt.After(now) || tx.Task().PausedAt != nil && !d.intended() {
			return ErrLost
		}
		if e.overdue(tx, d) {
			r.over = true
			return e.giveUp(ctx, tx, d)
		}
		d.Work.Breaker = e.breakerSettings()
		if err := lostCall(ctx, tx, d); err != nil {
			return err
		}
		if d.State == Running || d.State == Queued && d.Holder != "" {
			d.Losses++
			if d.Losses >= e.Config().Settings.MaxAttempts {
				r.over = true
				return Fail(ctx, tx, d, agent.Fail(agent.CodeLost, "The node that ran %s went away %d times. The work was not started again. Look at its log, then retry.", d.To, d.Losses))
			}
		}
		return e.take(ctx, tx, r, d)
	})
	if err != nil || r.over {
		return err
	}
	e.claimed(r)
	return nil
}

// claimed notes that r has its row; a notice that came just before is looked after now.
func (e *Engine) claimed(r *run) {
	e.mu.Lock()
	r.claimed, r.attempt, r.leaseUntil = true, r.d.Attempt, r.d.LeaseUntil
	missed := r.missed
	e.mu.Unlock()
	if missed {
		r.look(r.ctx)
	}
	e.Trace("claimed")
}

// intended reports whether d is landing past its intent, which nothing stops.
func (d *Delegation) intended() bool {
	return d.State == Landing && d.Work.Land != nil && d.Work.Land.Intent != nil
}

// breakerSettings are those in force, nil where breakers are off.
func (e *Engine) breakerSettings() *BreakerSettings {
	if s := e.Config().Settings.Breaker; s.Failures > 0 {
		return &s
	}
	return nil
}

// take writes the claim of d for r.
func (e *Engine) take(ctx context.Context, tx Tx, r *run, d *Delegation) error {
	from := d.State
	starts := e.seize(tx, r, d)
	if err := writeClaim(ctx, tx, d, from); err != nil {
		return err
	}
	if err := e.probeAsked(ctx, tx, d); err != nil {
		return err
	}
	r.task, r.d = *tx.Task(), *d
	if !starts {
		return nil
	}
	if err := r.lookAhead(ctx, tx, d); err != nil {
		return err
	}
	return tx.Append(ctx, acknowledged(e.Node, d))
}

// ahead is what the transaction of a claim has read for an agent that begins at once, as it
// was committed: its callers, and whether the shared context has nothing for it.
type ahead struct {
	callers map[string]*Delegation
	none    func() bool
}

// lookAhead reads in the transaction of a claim what the agent begins with. Where a
// checkout has to be made before, it would be old by then, so it is read after that.
func (r *run) lookAhead(ctx context.Context, tx Tx, d *Delegation) error {
	r.ahead = nil
	spec, known := r.e.Config().Agents.Get(d.To)
	if !known || r.e.traits(spec).Files {
		return nil
	}
	a := &ahead{callers: map[string]*Delegation{}, none: tx.GivesNone(ctx, r.rights())}
	for id := d.ParentID; id != ""; {
		p, err := tx.Delegation(ctx, id)
		if err != nil {
			return fmt.Errorf("read the callers of %s: %w", d.ID, err)
		}
		a.callers[id], id = p, p.ParentID
	}
	r.ahead = a
	return nil
}

// own reads r's delegation inside a transaction and makes sure that r still is its
// attempt: the fence before every write of a worker.
func (r *run) own(ctx context.Context, tx Tx) (*Delegation, error) {
	d, err := tx.Delegation(ctx, r.id)
	if err != nil {
		return nil, err
	}
	if d.Attempt != r.attempt || d.Holder != r.e.Node || d.State.Ended() {
		return nil, fmt.Errorf("delegation %s is %s at attempt %d: %w", d.ID, d.State, d.Attempt, ErrLost)
	}
	return d, nil
}

// slots bounds how many delegations this node works on at once. Who waits for a
// child or a person holds none. A run that resumes comes before new work, so that
// what has begun ends first.
type slots struct {
	freed   chan struct{} // has a value after a slot became free for work that found none
	mu      sync.Mutex
	wanted  bool // new work found no slot
	behind  bool // … and nobody has looked since whether all of it has one
	size    int
	used    int
	resumes []chan struct{}
}

func newSlots(n int) *slots {
	return &slots{size: max(n, 1), freed: make(chan struct{}, 1)}
}

// available is how many slots new work could take now.
func (s *slots) available() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.left()
	if n == 0 {
		s.wanted, s.behind = true, true
	}
	return n
}

// free is available for somebody who only asks.
func (s *slots) free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left()
}

func (s *slots) left() int {
	if s.used >= s.size || len(s.resumes) > 0 {
		return 0
	}
	return s.size - s.used
}

// try takes a slot for new work.
func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.size || len(s.resumes) > 0 {
		s.wanted, s.behind = true, true
		return false
	}
	s.used++
	return true
}

// spare takes a slot for r, which is about to be queued, unless older work waits for one.
func (s *slots) spare(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.size || len(s.resumes) > 0 || s.behind {
		return false
	}
	s.used++
	r.gainSlot()
	return true
}

// caughtUp says that all work which was due has a slot.
func (s *slots) caughtUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = false
}

// contended reports whether runs that go on wait for a slot.
func (s *slots) contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.resumes) > 0
}

// resume takes a slot for a run that goes on, waiting for one.
func (s *slots) resume(ctx context.Context) error {
	s.mu.Lock()
	if s.used < s.size {
		s.used++
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.resumes = append(s.resumes, turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		for i, c := range s.resumes {
			if c == turn {
				s.resumes = append(s.resumes[:i], s.resumes[i+1:]...)
				s.mu.Unlock()
				return ctx.Err()
			}
		}
		s.mu.Unlock()
		s.give() // the turn came together with the end
		return ctx.Err()
	}
}

func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.handOut()
}

// resize changes how many there are; slots in use are not taken away.
func (s *slots) resize(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = max(n, 1)
	s.handOut()
}

// handOut gives free slots to the runs that resume, then tells the dispatcher.
func (s *slots) handOut() {
	for len(s.resumes) > 0 && s.used < s.size {
		s.used++
		close(s.resumes[0])
		s.resumes = s.resumes[1:]
	}
	if s.used < s.size && s.wanted {
		s.wanted = false
		select {
		case s.freed <- struct{}{}:
		default:
		}
	}
}

// count is how many are in use, and how many there are.
func (s *slots) count() (used, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.size
}

// AgentStatus is an agent with what it is doing now.
type AgentStatus struct {
	Spec      agent.Spec
	Running   int
	Queued    int
	Waiting   int // for children or people
	LastError string
	LastAt    *time.Time // when it last ended something, nil if never
	Breaker   guard.Breaker
	Inbox     Inbox
}

// Inbox is how full the queue of an agent is (A35). The size is what engine.inbox calls
// full: it is shown and measured, and nothing is refused because of it.
type Inbox struct {
	Waiting int // delegations that nobody has taken up
	Size    int
}

// Percent is how full it is; above 100 more wait than it should hold.
func (i Inbox) Percent() int { return (100*i.Waiting + i.Size - 1) / max(i.Size, 1) }

// defaultInbox is the size where the configuration says nothing: the source's buffer of 200
// messages is about 50 delegations.
const defaultInbox = 50

func (s Settings) inbox() int {
	return cmp.Or(max(s.Inbox, 0), defaultInbox)
}

// Load counts the live delegations of one agent, and says how its last one ended.
type Load struct {
	Agent     string
	Running   int
	Queued    int
	Waiting   int
	LastError string
	LastAt    *time.Time
}

// Agents returns the registry with live state.
func (e *Engine) Agents(ctx context.Context) ([]AgentStatus, error) {
	loads, err := e.Store.Loads(ctx)
	if err != nil {
		return nil, err
	}
	breakers, err := e.breakers(ctx)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]Load, len(loads))
	for _, l := range loads {
		byKey[agent.Key(l.Agent)] = l
	}
	var all []AgentStatus
	for _, s := range e.Config().Agents.All() {
		l := byKey[agent.Key(s.Name)]
		all = append(all, AgentStatus{Spec: s, Running: l.Running, Queued: l.Queued, Waiting: l.Waiting, LastError: l.LastError, LastAt: l.LastAt, Breaker: breakers[s.Name],
			Inbox: Inbox{Waiting: l.Queued, Size: e.Config().Settings.inbox()}})
	}
	return all, nil
}
