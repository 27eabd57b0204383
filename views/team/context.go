package team

import (
	"time"

	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
)

// ContextPage is `/context`: the namespaces; one namespace; or one value.
type ContextPage struct {
	views.Chrome
	Namespace string // "" shows the namespaces
	Key       string // "" shows the namespace
	Prefix    string // what names begin with
	Topics    []sharedctx.Topic
	Entries   []ContextRow
	Cut       int         // only so many entries are shown; 0: all of them
	NextHref  string      // further namespaces, or older lines of the history
	Later     bool        // pages come before this one
	Value     *ContextRow // nil: gone or expired
	Uses      []sharedctx.Use
	MayWrite  bool
	Form      ContextForm
}

// ContextRow is one value.
type ContextRow struct {
	Key       string
	Value     string
	Bytes     int // of the whole value where Value is only its beginning
	Author    string
	UpdatedAt time.Time
	ExpiresAt *time.Time
	// WriterHref is the delegation that wrote it; "" a person did, or that is forgotten.
	WriterHref string
	Readers    []string // who read it last, newest first
}

// ContextForm is the form that writes a value, as it was sent when that was refused.
type ContextForm struct {
	Namespace, Key, Value, TTL, Error string
}

// contextSpans are the life spans that the form offers.
var contextSpans = []views.Choice{{Value: "", Text: "as configured, else for ever"}, {Value: "performance", Text: "24 h", Note: "performance"}, {Value: "security", Text: "7 d", Note: "security"},
	{Value: "learnings", Text: "30 d", Note: "learnings"}, {Value: "memory", Text: "90 d", Note: "memory"}, {Value: "never", Text: "for ever"}}
