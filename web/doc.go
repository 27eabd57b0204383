// Package web is the server: all routes on one screen (routes.go), who may use them
// (access.go), and what surrounds every answer
// (middleware.go, hosts.go, errors.go, metrics.go).
//
// A request passes, in this order: a request id; a log line and figures; recovery;
// the Host check; headers; the cross-origin check; the credential; the right that
// the route's line in the table asks for; the limit of its body. Then a handler of the
// subject's room below handlers parses, calls and renders.
//
// The room may import handlers, views, static, orchestrator and people for their
// values. It keeps no rows: sessions, tokens and links are behind People.
package web
