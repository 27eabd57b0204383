// Package hook answers what webhooks post to /hooks/NAME: it reads a call with its limits
// and says what became of it. Who sent it, and what is made of it, is intake's business.
//
// The room imports handlers, and orchestrator with its leaves.
package hook
