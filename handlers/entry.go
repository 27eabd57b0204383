package handlers

import (
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/sharedctx"
)

// Life is how long a value of the shared context shall stay.
type Life struct {
	Span   time.Duration // 0: for ever
	Named  bool          // somebody asked for Span
	Extend bool          // an expiry is only pushed forward (K39)
}

// NewEntry makes an entry that a person or a run writes. Where no life span was named it
// is the extension's 90 days, or what the configuration has for the namespace, or none (K29).
func NewEntry(now time.Time, conf *orchestrator.Config, namespace, key, value, by string, l Life) (sharedctx.Entry, error) {
	switch {
	case l.Named:
	case l.Extend:
		l.Span = sharedctx.ExtensionTTL
	default:
		l.Span = conf.Lifespans.Of(namespace)
	}
	e, err := sharedctx.New(now, namespace, key, value, by, l.Span)
	if err != nil {
		return e, orchestrator.Errorf(orchestrator.CodeBadRequest, "%w", err)
	}
	return e, nil
}
