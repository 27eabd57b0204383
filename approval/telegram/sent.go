package telegram

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/approval"
)

// What sent.document is besides the number of a message.
const (
	noDocument      = 0
	refusedDocument = -1
)

// sent is what a card has in its chat. The outbox keeps it as the card's ExternalID:
// "123@2" is message 123, which shows revision 2, and "123@2/124" has that revision's
// diff in message 124.
type sent struct {
	message  int // 0 for none
	revision int // 0 when it is not known
	document int
}

// parseSent reads what String writes; anything else is no message.
func parseSent(s string) sent {
	rest, document, _ := strings.Cut(s, "/")
	message, revision, _ := strings.Cut(rest, "@")
	var m sent
	var err error
	if m.message, err = strconv.Atoi(message); err != nil || m.message < 1 {
		return sent{}
	}
	if m.revision, err = strconv.Atoi(revision); err != nil {
		m.revision = 0
	}
	if m.document, err = strconv.Atoi(document); err != nil {
		m.document = noDocument
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
