package stream

import (
	"context"
	"encoding/json"
	"log/slog"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/orchestrator/record/event"

	"github.com/gorilla/websocket"
)

// frame is one event, encoded once for all readers.
type frame struct {
	cursor int64 // n, or the position in the global stream; of a part that of the event before it
	part   int64 // a part's place among the parts; 0 for what is stored
	event  event.Event
	sse    []byte
	page   func() []byte // made when the first reader needs it, as is socket
	socket func() []byte
}

// published is an event as streams show it: without hashes, which are for the audit.
type published struct {
	Pos int64 `json:"pos,omitempty"`
	event.Event
}

func newFrame(cursor, pos int64, e event.Event) (frame, error) {
	e.PrevHash, e.Hash, e.At = "", "", e.At.UTC()
	body, err := json.Marshal(published{pos, e})
	if err != nil {
		return frame{}, err
	}
	f := frame{cursor: cursor, event: e, sse: sseFrame(cursor, e.Type, true, body)}
	f.page = sync.OnceValue(func() []byte { return sseFrame(cursor, e.Type, false, body) })
	f.socket = sync.OnceValue(func() []byte { return socketFrame(websocket.TextMessage, body) })
	return f, nil
}

// sseFrame is an event as text/event-stream, under the name of its type or under none.
func sseFrame(cursor int64, kind event.Type, named bool, body []byte) []byte {
	// JSON has no raw line feeds, so one data line is enough; the type is one of ours.
	b := make([]byte, 0, len(body)+64)
	if kind != event.MessageDelta { // a part is not replayed, so nobody resumes after it
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, cursor, 10)
		b = append(b, '\n')
	}
	if named {
		b = append(b, "event: "...)
		b = append(b, kind...)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, body...)
	return append(b, "\n\n"...)
}

// keep is how many frames a tail holds for its readers; who is further behind reads
// the store. batch is how many are read at once.
const (
	keep  = 1024
	batch = 200
)

// How long a tail waits before it looks without a hint, and how it asks again after
// a hint whose events have no position yet.
const (
	lookEvery = time.Second
	firstLook = time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// tail follows one source for all readers of this process. It runs from its first
// reader to its last; stop waits for its goroutine.
type tail struct {
	src       source
	log       *slog.Logger
	beginning chan struct{}      // has a value while somebody begins it
	cancel    context.CancelFunc // nil before it has begun
	done      chan struct{}
	work      sync.WaitGroup // goroutines that deliver

	shards []*shard
	turn   atomic.Int64 // of the shards, for who comes next

	mu      sync.Mutex
	frames  []frame      // ascending, the newest ones
	floor   int64        // the cursor before frames[0]
	head    int64        // the newest cursor
	version atomic.Int64 // counts up when there is more; changed under mu
	passing passing      // what is being written
	readers int          // guarded by Streams.mu

	held []event.Part // of the goroutine that follows
}

// newTail makes a tail that nobody has begun.
func newTail(src source, log *slog.Logger) *tail {
	t := &tail{src: src, log: log, beginning: make(chan struct{}, 1), done: make(chan struct{})}
	for range min(runtime.GOMAXPROCS(0), mostShards) {
		t.shards = append(t.shards, &shard{tail: t})
	}
	return t
}

// begin makes a tail run, from the newest event that is committed now. The first reader does
// it, in its own time; the others wait for that, and where it failed the next one tries.
func (t *tail) begin(ctx context.Context) error {
	select {
	case t.beginning <- struct{}{}:
		defer func() { <-t.beginning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if t.cancel != nil {
		return nil
	}
	sub, parts := t.src.watch(), t.src.listen() // before looking, so that nothing falls between
	head, err := t.src.newest(ctx)
	if err != nil {
		sub.Close()
		if parts != nil {
			parts.Close()
		}
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel, t.floor, t.head = cancel, head, head
	var c <-chan event.Part
	if parts != nil {
		c = parts.C
		// What has passed by until now is part of a message that head completes, or comes once more with
		// what is being written, which is asked for after the newest event was read and so is not stored in it.
		t.holdAll(c)
		t.held = t.held[:0]
		t.passing.show(parts.SoFar(), head, t.log)
	}
	go func() {
		defer close(t.done)
		defer sub.Close()
		if parts != nil {
			defer parts.Close()
		}
		t.follow(run, sub, c)
	}()
	return nil
}

// stop ends a tail that nobody reads any more, and waits for its goroutines.
func (t *tail) stop() {
	if t.cancel == nil { // it never began
		return
	}
	t.cancel()
	<-t.done
	t.work.Wait()
}

// mostShards is how many goroutines deliver at once what came in one tail.
const mostShards = 8

// shard is where the next subscription belongs.
func (t *tail) shard() *shard { return t.shards[int(t.turn.Add(1))%len(t.shards)] }

// follow reads what is new after each hint, and once a second without one.
func (t *tail) follow(ctx context.Context, sub *event.Subscription, parts <-chan event.Part) {
	wait := time.NewTimer(lookEvery)
	defer wait.Stop()
	again := lookEvery // how long to wait when there is nothing
	for {
		more := t.src.grown() // before looking
		grew, err := t.pull(ctx, parts)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			t.log.Warn("a stream could not read the log; trying again", "err", err)
			again = lookEvery
		case !t.src.late():
			again = lookEvery
		case grew:
			again = firstLook // more may be on its way into the order
		default:
			again = min(again*2, lookEvery)
			if again > lastLook {
				again = lookEvery
			}
		}
		wait.Reset(again)
		if t.await(ctx, sub, parts, more, wait.C) {
			again = firstLook
		}
	}
}

// await waits until the log has to be read, and shows what passes by meanwhile. It
// reports whether there was a hint.
func (t *tail) await(ctx context.Context, sub *event.Subscription, parts <-chan event.Part, more <-chan struct{}, late <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-sub.C:
			drain(sub)
			return true
		case <-sub.Lagged():
			return true
		case <-more:
			return true
		case <-late:
			return false
		case p := <-parts:
			t.hold(p)
			t.holdAll(parts)
			// What was stored before these parts were written comes before them.
			select {
			case <-sub.C:
				drain(sub)
				return true
			case <-sub.Lagged():
				return true
			default:
				t.add(nil)
			}
		}
	}
}

// drain drops further hints: one look answers them all.
func drain(sub *event.Subscription) {
	for {
		select {
		case <-sub.C:
		default:
			return
		}
	}
}

// pull reads everything after head and tells the readers. What a run passed on before
// it stored an event has come by the time that the event is read.
func (t *tail) pull(ctx context.Context, parts <-chan event.Part) (grew bool, err error) {
	for {
		frames, err := t.src.read(ctx, t.head, batch)
		if err != nil {
			return grew, err
		}
		t.holdAll(parts)
		t.add(frames)
		if len(frames) < batch {
			return grew || len(frames) > 0, nil
		}
		grew = true
	}
}

// hold keeps a part until its place among the events is known.
func (t *tail) hold(p event.Part) {
	if len(t.held) < keepParts {
		t.held = append(t.held, p)
	}
}

// holdAll holds every part that has come.
func (t *tail) holdAll(parts <-chan event.Part) {
	for {
		select {
		case p := <-parts:
			t.hold(p)
		default:
			return
		}
	}
}

// add shows events and the held parts: those of turns that the events complete before
// them, the others after.
func (t *tail) add(frames []frame) {
	if len(frames)+len(t.held) == 0 || !t.grow(frames) {
		return
	}
	for _, s := range t.shards {
		s.kick()
	}
}

// grow is the part of add under the lock; it reports whether readers have to be told.
func (t *tail) grow(frames []frame) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, after := divide(t.held, frames)
	t.held = t.held[:0]
	shown := t.passing.show(before, t.head, t.log)
	if len(frames) > 0 {
		t.frames = append(t.frames, frames...)
		if over := len(t.frames) - keep; over > keep {
			t.floor = t.frames[over-1].cursor
			t.frames = append([]frame(nil), t.frames[over:]...) // lets the old ones go
		}
		t.head = frames[len(frames)-1].cursor
		for _, f := range frames {
			t.passing.stored(f.event)
		}
	}
	shown = t.passing.show(after, t.head, t.log) || shown
	if shown || len(frames) > 0 {
		t.version.Add(1)
		return true
	}
	return false
}

// after returns what follows a cursor and, of the parts, the one heard last: there may be
// more behind that. Without any, version counts up as soon as there may be some. behind says
// that the store has to be read instead.
func (t *tail) after(cursor, heard int64) (frames []frame, behind bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case cursor > t.head: // it read the store: of what is being written this tail knows less than it
		return nil, false
	case cursor == t.head:
		return t.passing.after(cursor, heard, t.log), false
	case cursor < t.floor:
		return nil, true
	}
	stored := t.frames[firstAfter(t.frames, cursor):]
	if heard == heardNothing { // it gets what is being written once it is up to date
		return stored, false
	}
	parts := t.passing.at(cursor, heard)
	if len(parts) > 0 {
		return parts, false
	}
	if next := t.passing.next(cursor, heard); next > 0 {
		stored = stored[:firstAfter(stored, next)]
	}
	return stored, false
}

// firstAfter is the place of the first frame behind a cursor.
func firstAfter(frames []frame, cursor int64) int {
	return sort.Search(len(frames), func(i int) bool { return frames[i].cursor > cursor })
}

// newestCursor is the newest cursor that the tail has seen.
func (t *tail) newestCursor() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}
