// Package client speaks Gatehouse's JSON API, for the command line and for other Go
// programs.
//
// Every call takes a context and ends with it. Answers keep the JSON that the server
// wrote (marshalling a value gives it back unchanged), so that `--json` never loses a
// field that this package does not know. A refusal is an *Error with the code of the
// problem document, a server that cannot be reached an *Unreachable.
//
// The shapes are declared here and nowhere else: the room imports no other room, so
// that what is published and what is used stay two things that tests can compare.
package client
