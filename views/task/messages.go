package task

import (
	"crypto/rand"
	"time"

	"gatehouse/orchestrator/origin"
)

// Message is what a person said to an agent while it worked.
type Message struct {
	ID     string
	From   string
	Text   string
	Via    origin.Origin
	At     time.Time
	ReadAt time.Time // zero while the agent has not read it
}

// Tell is what was typed into the form and refused.
type Tell struct {
	Text    string
	Refused string
	Apart   bool // whoever says something here approves nothing of what comes of it
}

// key makes two clicks one message.
func (Tell) key() string { return rand.Text() }

// unread is how many messages the agent has not read.
func (p DelegationPage) unread() int {
	n := 0
	for _, m := range p.Messages {
		if m.ReadAt.IsZero() {
			n++
		}
	}
	return n
}
