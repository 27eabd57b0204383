package retention

import (
	"fmt"
	"time"
)

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

// The passes.
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
