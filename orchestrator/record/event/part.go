package event

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// KindReset is the kind of a Part that takes back what was shown of its turn: the call
// broke in the middle and is made again.
const KindReset = "reset"

// Part is a piece of a message that an agent is writing. It is shown and never stored:
// the whole message is, once it is complete.
type Part struct {
	TaskID       string    `json:"task_id"`
	DelegationID string    `json:"delegation_id"`
	Actor        string    `json:"actor"`
	At           time.Time `json:"at"`
	Turn         int       `json:"turn"`
	Kind         string    `json:"kind"` // text, thinking, tool or reset
	Tool         string    `json:"tool,omitempty"`
	Text         string    `json:"text"`
	// Offset counts the characters of this turn, kind and tool before Text. Who has fewer
	// has missed some; who has more has seen this piece before.
	Offset int `json:"offset"`
}

// Event is p as streams show it.
func (p Part) Event() Event {
	e := Of(p.DelegationID, p.Actor, MessageDeltaData{Turn: p.Turn, Kind: p.Kind, Text: p.Text, Tool: p.Tool, Offset: p.Offset})
	e.TaskID, e.At = p.TaskID, p.At
	return e
}

// same reports whether p and q belong to one run of text.
func (p Part) same(q Part) bool {
	return p.DelegationID == q.DelegationID && p.Turn == q.Turn && p.Kind == q.Kind && p.Tool == q.Tool
}

// Join appends q to p when it goes on where p ends.
func (p *Part) Join(q Part) bool {
	if !p.same(q) || p.Kind == KindReset || q.Offset != p.Offset+utf8.RuneCountInString(p.Text) {
		return false
	}
	p.Text += q.Text
	return true
}

// Split cuts p into pieces of at most most bytes of text, at characters.
func (p Part) Split(most int) []Part {
	var pieces []Part
	for len(p.Text) > most {
		end := most
		for end > 0 && !utf8.RuneStart(p.Text[end]) {
			end--
		}
		if end == 0 { // no character begins there: the text is none
			end = most
		}
		piece := p
		piece.Text, p.Text = p.Text[:end], p.Text[end:]
		p.Offset += utf8.RuneCountInString(piece.Text)
		pieces = append(pieces, piece)
	}
	return append(pieces, p)
}

// Bounds of a Draft.
const (
	draftBytes   = 32 << 10 // of one delegation's turn; the beginning goes first
	draftWriters = 64       // delegations at a time; more are not kept
)

// Draft is what was shown so far of the messages that are being written in one task, so
// that who comes in the middle sees them from the start. It is bounded: of a long text
// the end is kept, and of very many writers the first. The zero value is ready to use;
// it is not safe for concurrent use.
type Draft struct{ of map[string][]Part }

// Add takes the next part and returns what of it is new: a part may come twice.
func (d *Draft) Add(p Part) (Part, bool) {
	known, ok := d.of[p.DelegationID]
	if len(known) > 0 && known[0].Turn > p.Turn {
		return p, false
	}
	if len(known) > 0 && known[0].Turn < p.Turn {
		known = nil
	}
	if p.Kind == KindReset {
		delete(d.of, p.DelegationID)
		return p, true
	}
	if !ok && len(d.of) >= draftWriters {
		return p, true
	}
	if p, ok = unseen(known, p); !ok {
		return p, false
	}
	if n := len(known); n == 0 || !known[n-1].Join(p) {
		known = append(known, p)
	}
	if d.of == nil {
		d.of = map[string][]Part{}
	}
	d.of[p.DelegationID] = keepEnd(known)
	return p, true
}

// unseen is the rest of p that is not in known; false when there is none.
func unseen(known []Part, p Part) (Part, bool) {
	for i := len(known) - 1; i >= 0; i-- {
		if !known[i].same(p) {
			continue
		}
		end := known[i].Offset + utf8.RuneCountInString(known[i].Text)
		for ; p.Offset < end && p.Text != ""; p.Offset++ {
			_, size := utf8.DecodeRuneInString(p.Text)
			p.Text = p.Text[size:]
		}
		return p, p.Text != ""
	}
	return p, true
}

// keepEnd drops what is more than draftBytes from the beginning.
func keepEnd(known []Part) []Part {
	total := 0
	for _, k := range known {
		total += len(k.Text)
	}
	for ; total > draftBytes && len(known) > 1 && total-len(known[0].Text) >= draftBytes; known = known[1:] {
		total -= len(known[0].Text)
	}
	for over := total - draftBytes; over > 0; {
		_, size := utf8.DecodeRuneInString(known[0].Text)
		known[0].Text, over = known[0].Text[size:], over-size
		known[0].Offset++
	}
	return known
}

// Over forgets a delegation's message: it is stored, or the run is over.
func (d *Draft) Over(delegationID string) { delete(d.of, delegationID) }

// Drop forgets a delegation's message if it is of this turn or an earlier one.
func (d *Draft) Drop(delegationID string, turn int) {
	if known := d.of[delegationID]; len(known) > 0 && known[0].Turn <= turn {
		delete(d.of, delegationID)
	}
}

// Parts is all of it; of one delegation in the order of writing.
func (d *Draft) Parts() []Part {
	var all []Part
	for _, known := range d.of {
		all = append(all, known...)
	}
	return all
}

// Empty reports whether nobody is writing.
func (d *Draft) Empty() bool { return len(d.of) == 0 }

// What streams show and no log has.
const (
	MessageDelta Type = "message.delta"
	Gap          Type = "gap"
)

// MessageDeltaData is the data of MessageDelta; see Part.
type MessageDeltaData struct {
	Turn   int    `json:"turn"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	Offset int    `json:"offset"`
}

func (d MessageDeltaData) sentence(Event, Words) string {
	return first(oneOf(d.Text), Prefixed("calls ", d.Tool), "writes")
}

// GapData is the data of Gap: the events that a reader has missed.
type GapData struct {
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Message string `json:"message"`
}

func (d GapData) sentence(Event, Words) string {
	return first(d.Message, fmt.Sprintf("events %d–%d could not be replayed", d.From, d.To))
}
