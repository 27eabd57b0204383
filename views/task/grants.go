package task

import (
	"time"

	"gatehouse/views"
)

// Grant is a yes to calls of one kind for the rest of a task.
type Grant struct {
	ID        string
	Agent     string // whose calls
	Scope     string // foreign
	By        string
	At        time.Time
	RequestID string // with which it was given
	Uses      int
	UsedAt    time.Time // zero: never
	RevokedAt time.Time // zero: it holds
	RevokedBy string
	CanRevoke bool
}

// Revoked reports whether it holds no more.
func (g Grant) Revoked() bool { return !g.RevokedAt.IsZero() }

// standing are the grants that hold, ended those that were revoked.
func (p DelegationPage) standing() (standing, ended []Grant) {
	for _, g := range p.Grants {
		if g.Revoked() {
			ended = append(ended, g)
			continue
		}
		standing = append(standing, g)
	}
	return standing, ended
}

// usesWords says how often calls were let through by it.
func (g Grant) usesWords() string {
	if g.Uses == 0 {
		return "not used yet"
	}
	return "used " + views.Plural(g.Uses, "time", "times")
}
