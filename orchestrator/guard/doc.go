// Package guard decides whether one agent may hand work to another, here and now.
//
// Every rule is one small function in one ordered list (pipeline). The list runs
// from the cheapest and most final rule to the dearest, stops at the first
// refusal, and keeps every verdict, so that a page can show the whole reasoning and
// a dry run is the same code as the real thing. A refusal is data for the calling
// agent (K11); nothing here fails, waits or reads a store.
//
// The room may import agent, budget, chain and leaves for lists and texts, and the standard library.
package guard
