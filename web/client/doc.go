// Package client speaks Gatehouse's JSON API, for the command line and for other Go
// programs.
//
// Every call takes a context and ends with it. Answers keep the JSON that the server
// wrote (marshalling a value gives it back unchanged), so that `--json` never loses a
// field that this package does not know. A refusal is an *Error with the code of the
// problem document, a server that cannot be reached an *Unreachable.
//
// The shapes are those of web/wire and of the values that the API publishes as they are: a field
// that is renamed there no longer compiles here.
package client
