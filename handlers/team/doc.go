// Package team has the pages of what the team has: agents, triggers and the shared context.
// A page is parse, call, render.
//
// It may import handlers, its own room of views, and what handlers may; no other subject's pages.
package team

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
