package orchestrator

import (
	"slices"
	"time"
)

// LandingQueue is the approved changes of one repository that have not landed yet. They land
// one after the other: each moves the branch away from under the next, which is planned and
// checked on what is there by then.
type LandingQueue struct {
	Repository string
	Waiting    int       // the one that lands now included
	HeldUp     int       // of these, those that something is in the way of
	Since      time.Time // when the first of them was approved
	// Pace is what one landing takes, the median of the last Landed ones; zero where none
	// has landed yet.
	Landed int
	Pace   time.Duration
}

// PaceOf is how many landings the pace of a repository is taken of.
const PaceOf = 20

// LandingPace is what one landing took, as the median of the last PaceOf, and of how many.
// Each is given by its yes and its landing. What waited for the one before it began when
// that had landed: so a queue does not make the pace slower.
func LandingPace(landings [][2]time.Time) (int, time.Duration) {
	landings = slices.Clone(landings)
	slices.SortFunc(landings, func(a, b [2]time.Time) int { return a[1].Compare(b[1]) })
	took := make([]time.Duration, 0, len(landings))
	var before time.Time
	for _, l := range landings {
		began := l[0]
		if before.After(began) {
			began = before
		}
		took, before = append(took, max(0, l[1].Sub(began))), l[1]
	}
	if len(took) > PaceOf {
		took = took[len(took)-PaceOf:] // the first one's predecessor is not known
	}
	if len(took) == 0 {
		return 0, 0
	}
	n := len(took)
	slices.Sort(took)
	return n, took[n/2]
}

// Left is how long those that nothing is in the way of take at this pace, 0 where none is known.
func (q LandingQueue) Left() time.Duration {
	return time.Duration(q.Waiting-q.HeldUp) * q.Pace
}
