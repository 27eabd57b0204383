// Package agenttest holds what tests of agents share: a Host in memory, a scripted
// Runner that starts no process, and the contract suite that every kind passes.
//
// It may import package agent and the standard library. Only tests import it.
package agenttest
