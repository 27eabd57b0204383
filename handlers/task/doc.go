// Package task has the pages of tasks and their delegations: the list, and one task as a
// tree, a timeline, conversations, events, a flow and figures, with what stops or repeats work.
//
// delegation.go is the page, and each tab has its file. It may import handlers, its room of
// views and what handlers may; no other subject's pages.
package task

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
