package handlers

import (
	"fmt"

	"gatehouse/orchestrator"
	"gatehouse/views"
	"gatehouse/web/wire"
)

// QueueOf is how a queue is told.
func QueueOf(q orchestrator.LandingQueue) wire.Queue {
	return wire.Queue{Repository: q.Repository, Waiting: q.Waiting, HeldUp: q.HeldUp, Since: q.Since.UTC(), Landed: q.Landed,
		Pace: q.Pace.Seconds(), Left: q.Left().Seconds(), Says: queueSays(q)}
}

// queueSays: how many wait, what is in the way, at which pace they land, how long it takes.
func queueSays(q orchestrator.LandingQueue) string {
	says := fmt.Sprintf("%d approved changes of %s land one after the other", q.Waiting, q.Repository)
	if q.Waiting == 1 {
		says = fmt.Sprintf("1 approved change of %s lands", q.Repository)
	}
	if q.Waiting == 1 && q.HeldUp == 1 {
		says = fmt.Sprintf("1 approved change of %s waits to land; something is in its way", q.Repository)
	} else if q.HeldUp > 0 {
		says += fmt.Sprintf("; something is in the way of %d of them", q.HeldUp)
	}
	switch {
	case q.Landed == 0:
		return says + "; none has landed there yet, so the pace is not known"
	case q.Landed == 1:
		says += "; the last one took " + views.Duration(q.Pace)
	default:
		says += fmt.Sprintf("; the last %d took %s each", q.Landed, views.Duration(q.Pace))
	}
	if left := q.Left(); left > q.Pace {
		says += ", so all of them take about " + views.Duration(left)
	}
	return says
}
