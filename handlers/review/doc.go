// Package review has the pages of approval requests: the list, the change with its comments, and the verdict.
// A page is parse, call, render.
//
// It may import handlers, its own room of views, and what handlers may; no other subject's pages.
package review

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
