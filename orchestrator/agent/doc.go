// Package agent says what an agent is: its declaration (Spec), the registry that
// names are looked up in, and the contract that every kind fulfils (Runner, Host).
//
// A kind is one package below this one: command, llm, workflow and remote. A kind sees a
// Job, talks to the engine through a Host, and ends with an Outcome. It never sees the
// store.
//
// The room may import the standard library, text normalisation and other leaves.
package agent
