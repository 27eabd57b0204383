// Package task has the pages of tasks and their delegations: the list, the tree, a delegation's conversation, and what stops or repeats work.
// A page is parse, call, render.
//
// It may import handlers, its own room of views, and what handlers may; no other subject's pages.
package task

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
