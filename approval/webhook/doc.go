// Package webhook tells other systems what becomes of approval requests, and how tasks
// end: one way, in Slack's format or as a Standard Webhook. Nobody can decide through it,
// and neither the diff nor what an agent said leaves by it.
//
// A target is an address of its own in the outbox, so each is retried by itself.
// Where a message may go is judged at connect time, on every hop: see guard in
// target.go.
//
// It imports approval and the values that a request is made of.
package webhook
