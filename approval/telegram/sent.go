package telegram

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/approval"
)

// document is where the whole change of a revision is: the number of the message with its
// file, or one of these.
type document int

const (
	noDocument      document = 0
	refusedDocument document = -1 // Telegram does not take its file
	inCard          document = -2 // it needs none
)

// whole reports whether all of the change is in the chat. It alone decides whether a card
// offers Approve, and whether a press of that counts.
func (d document) whole() bool { return d == inCard || d > 0 }

// sent is what a card has in its chat. The outbox keeps it as the card's ExternalID:
// "123@2" is message 123, which shows revision 2, "123@2/124" has that revision's diff in
// message 124, and "123@2/-2" has it in itself.
type sent struct {
	message  int // 0 for none
	revision int // 0 when it is not known
	document document
}

// parseSent reads what String writes; anything else is no message.
func parseSent(s string) sent {
	rest, file, _ := strings.Cut(s, "/")
	message, revision, _ := strings.Cut(rest, "@")
	var m sent
	var err error
	if m.message, err = strconv.Atoi(message); err != nil || m.message < 1 {
		return sent{}
	}
	if m.revision, err = strconv.Atoi(revision); err != nil {
		m.revision = 0
	}
	if n, err := strconv.Atoi(file); err == nil {
		m.document = document(n)
	}
	return m
}

func (m sent) String() string {
	switch {
	case m.message == 0:
		return ""
	case m.document == noDocument:
		return fmt.Sprintf("%d@%d", m.message, m.revision)
	default:
		return fmt.Sprintf("%d@%d/%d", m.message, m.revision, m.document)
	}
}

// newer reports whether r is a question that the message does not show: that of a
// later revision.
func (m sent) newer(r approval.Request) bool {
	return m.message != 0 && m.revision != 0 && m.revision < r.Revision.N && r.State == approval.Pending
}

// groupPause is how long a group is left alone after a new message. Telegram itself
// takes about 20 a minute.
const groupPause = 3 * time.Second

// pace holds up new messages to groups. It is for many goroutines, and forgets with
// the process: Telegram has limits of its own.
type pace struct {
	mu   sync.Mutex
	last map[int64]time.Time
}

// take says that a message goes to a place now, or returns an error that says when it
// may. Private chats are never held up.
func (p *pace) take(to Place, now time.Time) error {
	if to.Chat > 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// A clock that was set back must not silence a group.
	if since := now.Sub(p.last[to.Chat]); since >= 0 && since < groupPause {
		wait := groupPause - since
		return approval.RetryAfter(fmt.Errorf("this group had a message a moment ago: the next one goes out in %s", wait.Round(time.Millisecond)), wait)
	}
	p.mark(to, now)
	return nil
}

// note says that a message went to a place without being held up: somebody asked for it.
func (p *pace) note(to Place, now time.Time) {
	if to.Chat < 0 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mark(to, now)
	}
}

func (p *pace) mark(to Place, now time.Time) {
	if p.last == nil {
		p.last = map[int64]time.Time{}
	}
	p.last[to.Chat] = now
}
