package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/record/event"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// How waiting goes. The contract says 10 minutes and polls of 3 seconds.
const (
	defaultWait = 10 * time.Minute
	pollEvery   = 3 * time.Second
	// netEvery is how often a live wait looks all the same.
	netEvery = 30 * time.Second
	// settle lets a burst of events be answered by one look.
	settle = 100 * time.Millisecond
	frame  = 200 * time.Millisecond // of the spinner
)

// WaitCmd waits for the end of a task or delegation.
type WaitCmd struct {
	ID      string        `arg:"" help:"An id, or its last 6 characters or more."`
	Timeout time.Duration `help:"How long at most; 10m without it." default:"10m" placeholder:"10m"`
}

// Run exits 0 when it completed, 1 when it did not, and 124 when time ran out.
func (c *WaitCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	if c.Timeout <= 0 {
		return badTimeout(c.Timeout)
	}
	return wait(ctx, sh, api, c.ID, c.Timeout)
}

func badTimeout(d time.Duration) error {
	return console.Usage("--timeout %s: write a time such as 90s or 10m.", d)
}

// waiter follows one delegation and shows each change of its state once.
type waiter struct {
	sh     *console.Shell
	api    *client.Client
	id     string
	d      wire.Delegation
	raw    json.RawMessage   // of d, as the server wrote it
	shown  string            // the last line's state, agent and revision
	remark string            // the last remark
	held   map[string]string // by id: why a landing is held up, as it was said last
	stuck  string            // why a landing is held up now, "" where none is
	away   bool              // the server did not answer last time

	live   atomic.Bool   // events arrive
	change chan struct{} // something happened; holds one
	mu     sync.Mutex
	doing  string // the newest line of progress
}

// wait shows changes until the delegation has ended, at most for the timeout.
func wait(ctx context.Context, sh *console.Shell, api *client.Client, id string, timeout time.Duration) error {
	w := &waiter{sh: sh, api: api, id: id, change: make(chan struct{}, 1), held: map[string]string{}}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ended, err := w.look(limited)
	if err != nil {
		return w.interrupted(ctx, limited, timeout, err)
	}
	w.id = w.d.ID
	if !ended {
		err = w.follow(limited)
	}
	w.erase()
	if err != nil {
		return w.interrupted(ctx, limited, timeout, err)
	}
	return w.finish()
}

// follow looks after every event, or every 3 s while there is no stream.
func (w *waiter) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var events sync.WaitGroup
	defer events.Wait()
	defer stop()
	events.Go(func() {
		// What ends the stream for good, such as a proxy without SSE, leaves the polls.
		_ = (&client.Follower{Client: w.api, ID: w.d.TaskID, Each: w.take, Live: w.stream}).Follow(ctx)
		w.live.Store(false)
	})
	poll, net := time.NewTicker(pollEvery), time.NewTicker(netEvery)
	defer poll.Stop()
	defer net.Stop()
	var spin <-chan time.Time
	if w.sh.Live {
		t := time.NewTicker(frame)
		defer t.Stop()
		spin = t.C
	}
	for n := 0; ; n++ {
		look := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-spin:
			w.redraw(n)
		case <-poll.C:
			look = !w.live.Load()
		case <-net.C:
			look = true
		case <-w.change:
			look = true
		}
		if !look {
			continue
		}
		if ended, err := w.look(ctx); err != nil || ended {
			return err
		}
	}
}

// take notes what happened; the state itself is read anew.
func (w *waiter) take(e client.Event) error {
	switch d := e.Payload().(type) {
	case event.ProgressData:
		if d.Code == event.LandingHeld {
			w.wake()
			return nil
		}
		w.mu.Lock()
		w.doing = console.Brief(d.Text, 48)
		w.mu.Unlock()
	case event.MessageDeltaData, event.UsageRecordedData:
	default:
		w.wake()
	}
	return nil
}

func (w *waiter) wake() {
	select {
	case w.change <- struct{}{}:
	default: // a look is due already
	}
}

func (w *waiter) stream(lost error) {
	w.live.Store(lost == nil)
	if lost == nil {
		w.wake() // something may have happened before the stream stood
	}
}

// look reads the state and shows it when it has changed. A server that has answered
// once may go away for a while.
func (w *waiter) look(ctx context.Context) (ended bool, err error) {
	find := w.api.Delegation
	if w.d.ID == "" { // later the id is whole
		find = func(ctx context.Context, id string) (client.Answer[wire.Delegation], error) {
			return findDelegation(ctx, w.api, id)
		}
	}
	d, err := find(ctx, w.id)
	var v view
	if err == nil {
		v, err = inspect(ctx, w.api, d.Value)
	}
	var away *client.Unreachable
	var refused *client.Error
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case w.d.ID != "" && (errors.As(err, &away) || errors.As(err, &refused) && refused.Status >= 500):
		if !w.away {
			w.erase()
			w.sh.Hint("No answer from %s since %s. Trying again.", w.api.Base(), w.sh.Now().Format(time.TimeOnly))
		}
		w.away = true
		return false, nil
	default:
		return false, err
	}
	w.away, w.d, w.raw, w.stuck = false, v.d, d.Raw, v.heldUp()
	if w.sh.JSON {
		return v.d.Ended(), nil
	}
	err = w.show(ctx, v)
	w.sayHeld(v)
	if v.d.Ended() {
		for _, said := range v.discarded() {
			w.sh.Hint("⚠ %s", said)
		}
	}
	return v.d.Ended(), err
}

// heldUp is why a landing of d, or of one below it, is held up; "" where none is.
func (v view) heldUp() string {
	below := subtree(v.d, v.all)
	for _, d := range v.all {
		if why := heldUp(d); why != "" && below[d.ID] {
			return why
		}
	}
	return ""
}

// sayHeld says once of each landing why it is held up.
func (w *waiter) sayHeld(v view) {
	below := subtree(v.d, v.all)
	for _, d := range v.all {
		why := heldUp(d)
		if why != "" && why != w.held[d.ID] && below[d.ID] {
			w.erase()
			w.sh.Hint("%s", why)
		}
		w.held[d.ID] = why
	}
}

// show prints a line when state, agent or revision are not those of the line before.
func (w *waiter) show(ctx context.Context, v view) error {
	key := v.focus.State + " " + v.focus.ID
	if v.request != nil && v.focus.State == "awaiting_approval" {
		key += fmt.Sprint(" ", v.request.Revision)
	}
	if key == w.shown {
		return nil
	}
	known := strings.Contains(w.shown, " "+v.focus.ID)
	w.shown = key
	w.erase()
	remark := ""
	switch {
	case v.focus.State == "awaiting_approval":
		remark = askedAgain(ctx, w.api, v.focus.ID, string(v.focus.ApprovalID), v.request)
	case known && (v.focus.State == "queued" || v.focus.State == "running"):
		remark = workedAgain(ctx, w.api, v.focus)
	}
	if remark != "" && remark != w.remark { // what is queued again says the same once it runs
		w.sh.Hint("%s", remark)
		w.remark = remark
	}
	var detail string
	switch v.focus.State {
	case "awaiting_approval":
		detail = console.Parts(overtaken(v.request), v.turnNames(), "gatehouse review "+console.Short(string(v.focus.ApprovalID)))
		if problem := v.problem(); problem != "" {
			w.sh.Hint("⚠ %s", problem)
		}
	case "completed":
		detail = console.Parts(v.landed(), took(v.focus))
	case "failed", "rejected", "expired", "cancelled":
		detail = console.Parts(reason(v.d), took(v.focus))
	default:
		detail = console.Line(v.focus.To)
	}
	return w.sh.Say("%s  %s", w.sh.State(v.focus.State, console.StateWidth), detail)
}

// turnNames names who must act.
func (v view) turnNames() string {
	switch {
	case v.request != nil:
		return who(*v.request)
	case len(v.focus.WaitsFor) > 0: // a token that may read no requests is told this much
		return console.Line(console.Joined(v.focus.WaitsFor, "or"))
	}
	return "an approver"
}

const spinner = `|/-\`

// redraw shows on a terminal that time goes on.
func (w *waiter) redraw(n int) {
	w.mu.Lock()
	doing := w.doing
	w.mu.Unlock()
	fmt.Fprintf(w.sh.Errs, "\r\x1b[K%c %s", spinner[n%len(spinner)], console.Parts(console.Ago(w.d.CreatedAt, w.sh.Now()), doing))
}

func (w *waiter) erase() {
	if w.sh.Live {
		fmt.Fprint(w.sh.Errs, "\r\x1b[K")
	}
}

// finish says how it ended by the exit code.
func (w *waiter) finish() error {
	if w.sh.JSON {
		if err := w.sh.Document(w.raw); err != nil {
			return err
		}
	}
	if w.d.State == "completed" {
		return nil
	}
	return &console.Failure{Code: console.ExitFailed} // the last line said why
}

// interrupted tells running out of time, Ctrl-C and everything else apart.
func (w *waiter) interrupted(ctx, limited context.Context, timeout time.Duration, err error) error {
	id := console.Short(w.id)
	if w.d.ID != "" {
		id = handle(w.d)
	}
	switch {
	case ctx.Err() != nil:
		return console.Fail(console.ExitInterrupted, "The task goes on. Follow it: gatehouse wait %s   Stop it: gatehouse cancel %s", id, id)
	case limited.Err() != nil:
		if w.stuck != "" {
			return console.Fail(console.ExitTimeout, "%s has not ended after %s. Its landing is held up: %s", id, agent.Span(timeout), w.stuck)
		}
		return console.Fail(console.ExitTimeout, "%s has not ended after %s; it goes on. Wait longer: gatehouse wait %s --timeout %s", id, agent.Span(timeout), id, agent.Span(2*timeout))
	}
	return err
}
