package stream

import (
	"log/slog"
	"math"
	"slices"

	"gatehouse/orchestrator/record/event"
)

// keepParts is how many parts of messages a tail holds for its readers; who is further
// behind misses some.
const keepParts = 256

// heardNothing is what a reader has heard before it is up to date.
const heardNothing = -1

// passing is what is being written in a task: the newest parts as frames, and all of
// each message that is not stored yet for readers that come in the middle.
type passing struct {
	frames []frame
	last   int64 // place of the newest part
	over   map[string]int
	draft  event.Draft
	// drafted is draft as frames, encoded once for all readers, as of part draftedAt.
	drafted   []frame
	draftedAt int64
}

// show adds parts that stand behind the event with this cursor; false when none is new.
func (p *passing) show(parts []event.Part, cursor int64, log *slog.Logger) bool {
	shown := false
	for _, part := range parts {
		if n, ok := p.over[part.DelegationID]; ok && part.Turn <= n {
			continue // late, from another node: the whole message is there
		}
		part, ok := p.draft.Add(part)
		if !ok {
			continue
		}
		f, err := newFrame(cursor, 0, part.Event())
		if err != nil {
			log.Warn("a part of a message cannot be shown", "err", err)
			continue
		}
		p.last++
		f.part = p.last
		p.frames = append(p.frames, f)
		shown = true
	}
	if len(p.frames) > 2*keepParts {
		p.frames = slices.Clone(p.frames[len(p.frames)-keepParts:])
	}
	return shown
}

// stored notes an event: the turns that it completes are written no more.
func (p *passing) stored(e event.Event) {
	if p.over == nil {
		p.over = map[string]int{}
	}
	switch e.Type {
	case event.MessageCompleted:
		p.over[e.DelegationID] = e.Turn()
		p.draft.Drop(e.DelegationID, e.Turn())
	case event.Queued, event.Acknowledged: // turns may count from 1 again
		delete(p.over, e.DelegationID)
		p.draft.Over(e.DelegationID)
	case event.Completed, event.Failed, event.Cancelled:
		p.over[e.DelegationID] = math.MaxInt
		p.draft.Over(e.DelegationID)
	default:
		return
	}
	p.draftedAt = -1
}

// divide tells the parts of turns that the events complete from the others.
func divide(parts []event.Part, frames []frame) (before, after []event.Part) {
	complete := map[string]int{}
	for _, f := range frames {
		if f.event.Type == event.MessageCompleted {
			complete[f.event.DelegationID] = f.event.Turn()
		}
	}
	for _, p := range parts {
		if p.Turn <= complete[p.DelegationID] {
			before = append(before, p)
		} else {
			after = append(after, p)
		}
	}
	return before, after
}

// after returns the parts for a reader that has every event up to the newest.
func (p *passing) after(cursor, heard int64, log *slog.Logger) []frame {
	if heard != heardNothing {
		return p.at(cursor, heard)
	}
	if p.draftedAt != p.last {
		p.drafted, p.draftedAt = nil, p.last
		for _, part := range p.draft.Parts() {
			f, err := newFrame(cursor, 0, part.Event())
			if err != nil {
				log.Warn("a part of a message cannot be shown", "err", err)
				continue
			}
			f.part = p.last
			p.drafted = append(p.drafted, f)
		}
	}
	return p.drafted
}

// unheard is the place of the first part that a reader has not heard.
func (p *passing) unheard(heard int64) int {
	return len(p.frames) - int(min(max(0, p.last-heard), int64(len(p.frames))))
}

// at returns the parts behind the event with this cursor.
func (p *passing) at(cursor, heard int64) []frame {
	parts := p.frames[p.unheard(heard):]
	for len(parts) > 0 && parts[0].cursor < cursor {
		parts = parts[1:]
	}
	for i, f := range parts {
		if f.cursor != cursor {
			return parts[:i]
		}
	}
	return parts
}

// next is the cursor of the next event with parts behind it; 0 when there is none.
func (p *passing) next(cursor, heard int64) int64 {
	for _, f := range p.frames[p.unheard(heard):] {
		if f.cursor > cursor {
			return f.cursor
		}
	}
	return 0
}
