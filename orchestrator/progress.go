package orchestrator

import (
	"context"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/record/event"
)

// Progress is written as events at this pace: often enough for a person who
// watches, seldom enough for the database.
const (
	progressEvery = 300 * time.Millisecond
	progressLines = 40   // of one event; more are counted, not kept
	progressBytes = 8000 // of one event
)

// progress gathers lines between two events. Whoever is first starts the wait.
type progress struct {
	mu      sync.Mutex
	lines   []string
	bytes   int
	dropped int
	mask    mask.Stream
	wait    sync.WaitGroup
	stop    chan struct{}
}

// Progress shows a line to whoever watches (K13).
func (r *run) Progress(ctx context.Context, text string) error {
	if err := r.live(); err != nil {
		return err
	}
	text = strings.TrimRight(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "\u2400"), "\ufffd"), "\r\n")
	p := &r.lines
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) >= progressLines || p.bytes+len(text) > progressBytes {
		p.dropped++
		return nil
	}
	p.lines, p.bytes = append(p.lines, text), p.bytes+len(text)
	if p.stop == nil {
		stop := make(chan struct{})
		p.stop = stop
		p.wait.Go(func() {
			select {
			case <-time.After(progressEvery):
			case <-stop:
			case <-r.ctx.Done():
			}
			r.writeProgress(r.ctx, false)
		})
	}
	return nil
}

// flushProgress writes what is left and waits for the writer.
func (r *run) flushProgress(ctx context.Context) {
	r.lines.mu.Lock()
	if r.lines.stop != nil {
		close(r.lines.stop)
		r.lines.stop = nil
	}
	r.lines.mu.Unlock()
	r.lines.wait.Wait()
	if r.lines.holds() {
		r.writeProgress(r.ctx, true)
	}
}

// masked is what can be shown of the lines by now: a key that goes over several events is
// kept back until its end. The caller holds mu.
func (p *progress) masked(text string, last bool) string {
	if text != "" {
		text += "\n"
	}
	text = p.mask.Write(text)
	if last {
		text += p.mask.Flush()
	}
	return strings.TrimSuffix(text, "\n")
}

// holds reports whether something is kept back.
func (p *progress) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mask.Holds()
}

// writeProgress stores the gathered lines as one event.
func (r *run) writeProgress(ctx context.Context, last bool) {
	p := &r.lines
	p.mu.Lock()
	text, dropped := strings.Join(p.lines, "\n"), p.dropped
	p.lines, p.bytes, p.dropped, p.stop = nil, 0, 0, nil
	text = p.masked(text, last)
	p.mu.Unlock()
	if text == "" && dropped == 0 {
		return
	}
	err := r.write(ctx, func(tx Tx, d *Delegation) error {
		return tx.Append(ctx, event.Of(d.ID, d.To, event.ProgressData{Text: text, DroppedLines: dropped}))
	})
	if err != nil && r.ctx.Err() == nil {
		r.e.Log.Warn("progress could not be stored", "delegation", r.id, "err", err)
	}
}
