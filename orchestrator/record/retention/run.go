package retention

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	batch    = 500             // rows of one batch, which is one transaction
	runFor   = 2 * time.Second // of one run; the rest goes on at the next
	uncounts = 1000            // events that may not be counted yet: figures read their data
)

// Remover removes one batch of what is old. A is where a run goes on; its zero value begins.
type Remover[A any] interface {
	Retain(ctx context.Context, what What, before time.Time, after A, limit int) (Done, A, error)
}

// Run removes what the rules say is old.
type Run[A any] struct {
	Store Remover[A]
	Rules func() Rules
	// Uncounted is how many events the figures do not have yet.
	Uncounted func(ctx context.Context) (int64, error)
	Log       *slog.Logger
}

// Once removes in batches until it is done or the time of a run is over; more tells which. Only the node with the lease
// of housekeeping does it; of two that think so each removes what the other has not.
func (r Run[A]) Once(ctx context.Context, now time.Time) (more bool, err error) {
	rules := r.Rules()
	deadline := time.Now().Add(runFor)
	for _, pass := range []struct {
		what What
		age  time.Duration
	}{{Orphans, OrphanGrace}, {Texts, rules.Data}, {Blobs, rules.Blobs}} {
		if pass.age == 0 {
			continue
		}
		if pass.what == Texts {
			if n, err := r.Uncounted(ctx); err != nil || n > uncounts {
				more = true
				continue
			}
		}
		if late, err := r.pass(ctx, pass.what, now.Add(-pass.age), deadline); err != nil || late {
			return true, err
		}
	}
	return more, nil
}

// pass runs one pass; late says that the time was over before its end.
func (r Run[A]) pass(ctx context.Context, what What, before, deadline time.Time) (late bool, err error) {
	for after := *new(A); ; {
		done, next, err := r.Store.Retain(ctx, what, before, after, batch)
		if err != nil {
			return true, err
		}
		if !done.Nothing() {
			r.Log.Info("retention removed what was old", "what", done.What, "tasks", done.Tasks, "events", done.Events, "blobs", done.Blobs)
		}
		if after = next; !done.More {
			return false, nil
		}
		if time.Now().After(deadline) {
			return true, nil
		}
	}
}

// Rules say after which age something is removed; 0 keeps it for ever. Ages count from the
// end of the task, those of deliveries from their arrival.
type Rules struct {
	Data       time.Duration // texts, conversations and the data of events
	Blobs      time.Duration // bundles of patches, with their refs in the mirrors
	Deliveries time.Duration // bodies of webhooks
}

// Least is the shortest age that can be set: less would remove what people still look at.
const Least = time.Hour

// OrphanGrace is how long a blob stays that nothing refers to, after its task has ended: a
// run that was lost may still be taken up before.
const OrphanGrace = 7 * 24 * time.Hour

// GoneText stands where a text was that retention removed.
const GoneText = "(removed by retention)"

// Check refuses ages that make no sense.
func Check(age time.Duration) error {
	if age != 0 && age < Least {
		return fmt.Errorf("%s is too short. Write 1h or more, or leave it out to keep this for ever", age)
	}
	return nil
}

// What names a pass of retention, in its event and in what people read.
type What string

const (
	Texts   What = "data"
	Blobs   What = "blobs"
	Orphans What = "orphans" // blobs that nothing refers to
)

// Done is what one batch removed.
type Done struct {
	What   What
	Tasks  int
	Events int
	Blobs  int
	UpTo   time.Time // tasks that ended by then were looked at
	More   bool      // there may be more to do
}

// Nothing reports whether the batch removed nothing.
func (d Done) Nothing() bool { return d.Tasks == 0 && d.Events == 0 && d.Blobs == 0 }
