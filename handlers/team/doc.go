// Package team has the pages of what the team has: its agents, the triggers that start tasks,
// and the shared context.
//
// It may import handlers, its room of views and what handlers may; no other subject's pages.
package team

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
