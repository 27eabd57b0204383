// Package model is what a run of a model agent needs of a provider of models: one
// call, streamed, in no provider's format, and errors that say whether to try again.
//
// Each provider is one package below this one; providers puts them together. The room may
// import agent.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent"
)

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input: an object
}

type Request struct {
	Model     string // the provider's own name, without "provider/"
	System    string
	Messages  []agent.Message
	Tools     []Tool
	MaxTokens int64 // of the answer; 0 is the provider's own choice
	// Waits is told why a call failed and how long is waited before the next try; it may be
	// nil. Whoever watches must see why nothing comes.
	Waits func(failed *Error, wait time.Duration)
}

// Why a model stopped.
const (
	StopEnd       = "end"        // it said all it wanted
	StopTools     = "tool_use"   // it waits for results
	StopMaxTokens = "max_tokens" // it was cut
	StopRefusal   = "refusal"    // the provider or the model declined
)

// Response is the whole answer.
type Response struct {
	Message agent.Message
	Stop    string
	Model   string // provider/name that answered
	// Usage is what the provider reported. Reported is false where it said nothing or
	// something impossible, such as a negative number: the caller then counts the whole
	// reservation.
	Usage    agent.Usage
	Reported bool
	Priced   bool // the model has a price, so a call whose usage is unknown cost money, too
	// CacheRead and CacheWritten are the parts of Usage.InputTokens that the provider took
	// from, and put into, its cache of prompts.
	CacheRead, CacheWritten int64
}

// Client is one provider's models, or several clients as one. Complete streams parts of
// the answer to delta while it comes, in order and from one goroutine, and returns the
// whole. It returns an *Error when the provider failed, and an error of ctx soon after ctx
// ends. When it fails after parts were shown, the last part is an agent.DeltaReset: they
// are void. A call whose input is no JSON object comes as a call with the input {}, IsError
// set, and what the model wrote in Text.
type Client interface {
	Complete(ctx context.Context, r Request, delta func(agent.Delta)) (Response, error)
}

// Kind of a provider's failure.
type Kind string

// The kinds; Retriable says which are worth another try.
const (
	RateLimited Kind = "rate_limited" // 429, resource_exhausted, too_many_requests (P26)
	Overloaded  Kind = "overloaded"   // 529, 503
	Server      Kind = "server"       // 500 and the like
	Network     Kind = "network"      // no connection, or a stream that was cut
	Resting     Kind = "resting"      // all keys rest; RetryAfter says until when (P42)
	Billing     Kind = "billing"      // no credit: this key rests long (P41)
	Auth        Kind = "auth"         // the key is refused
	Overflow    Kind = "overflow"     // the conversation is longer than the model takes (P27)
	Malformed   Kind = "malformed"    // an answer that is none
	Invalid     Kind = "invalid"      // the request is refused: trying again ends the same way
)

// Error is a provider's failure. Message never holds a key.
type Error struct {
	Kind       Kind
	Provider   string
	Status     int           // HTTP, 0 when there was none
	RetryAfter time.Duration // as the provider asked, 0 when it did not
	Message    string
	// Usage is what the provider had reported of the call before it failed.
	Usage agent.Usage
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %s: %s", e.Provider, e.Kind, e.Message)
	}
	return fmt.Sprintf("%s: %s (HTTP %d): %s", e.Provider, e.Kind, e.Status, e.Message)
}

// Retriable reports whether the same call may work a little later, or elsewhere.
func (e *Error) Retriable() bool {
	switch e.Kind {
	case RateLimited, Overloaded, Server, Network, Resting, Billing, Auth, Malformed:
		return true
	default:
		return false
	}
}
