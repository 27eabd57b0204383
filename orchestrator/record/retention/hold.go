package retention

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is how far a hold reaches.
type Kind string

const (
	Task       Kind = "task"       // one task with all its delegations and requests
	Repository Kind = "repository" // every task with a delegation on it
	Everything Kind = "everything"
)

// HoldPrefix begins the ids of holds.
const HoldPrefix = "hld_"

// MaxReason is the longest reason, in characters.
const MaxReason = 500

// Hold is a legal hold: retention removes nothing that it covers until it is lifted.
type Hold struct {
	ID         string     `json:"id"`
	Kind       Kind       `json:"kind"`
	Subject    string     `json:"subject"`              // the task's id, the repository's name, "" for everything
	RequestID  string     `json:"request_id,omitempty"` // that the task was held for
	Reason     string     `json:"reason"`
	By         string     `json:"by"`
	At         time.Time  `json:"at"`
	LiftedBy   string     `json:"lifted_by,omitempty"`
	LiftedAt   *time.Time `json:"lifted_at,omitempty"`
	LiftReason string     `json:"lift_reason,omitempty"`
}

// Check refuses a hold that could not be understood later.
func (h Hold) Check() error {
	switch {
	case h.Kind == Everything && h.Subject != "":
		return errors.New("a hold on everything has no subject")
	case h.Kind != Everything && h.Kind != Task && h.Kind != Repository:
		return fmt.Errorf("there is no hold on a %.40q. Hold a task, a request, a repository or everything", string(h.Kind))
	case h.Kind != Everything && h.Subject == "":
		return fmt.Errorf("say which %s is held", h.Kind)
	}
	return CheckReason(h.Reason)
}

// CheckReason refuses to set or lift a hold without a reason.
func CheckReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return errors.New("say why: a legal hold and its end need a reason")
	}
	if n := utf8.RuneCountInString(reason); n > MaxReason {
		return fmt.Errorf("the reason has %d characters; %d is the limit", n, MaxReason)
	}
	return nil
}
