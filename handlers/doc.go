// Package handlers has the HTML pages, one file per resource: parse, call, render.
// The rooms below it answer programs: api (JSON) and stream (SSE and WebSocket).
//
// What all three need of the rest stands in ports.go as small interfaces; who is
// asking stands in who.go; ids.go understands the short forms of ids.
//
// The room may import orchestrator and its leaves' values, approval and views.
// It never imports web: web mounts the handlers and knows their routes.
package handlers
