// Package chat has the pages of the conversation of a person with the team.
// A page is parse, call, render.
//
// It may import handlers, its own room of views, and what handlers may; no other subject's pages.
package chat

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct {
	*handlers.Site
	cards cardDiffs
}
