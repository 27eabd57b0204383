// Package cli has the commands that speak to a server over its API: sending work, waiting for it, reading requests and
// deciding them, and looking at what a server knows.
//
// A command has a file of its own, named after it, or stands with its next of kin: pause with cancel, waits with list.
// act.go shows what was asked for, one thing or a list, words of states come from badge, and console has what commands
// share with those of the program itself.
//
// May import: web/client, web/wire, console and the values that the API publishes as they are; nothing of the engine, the
// store or the gate.
package cli
