package views

import (
	"time"
)

// ContextUse is one line of a value's history.
type ContextUse struct {
	Kind, By string
	Href     string // the delegation; "" for people
	At       time.Time
}

// UseWords say what somebody did.
var UseWords = map[string]string{"read": "read it", "write": "wrote it", "touch": "let it live longer", "delete": "deleted it"}
