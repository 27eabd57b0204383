// Package chat has the page on which a person talks with the team: messages, what came of
// each, and cards to decide on with as much of the change as fits one.
//
// It may import handlers, handlers/change, its room of views and what handlers may; no other
// subject's pages.
package chat

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct {
	*handlers.Site
	cards cardDiffs
}
