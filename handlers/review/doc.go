// Package review has the pages of approval requests: the list, and the page on which one is
// read, commented on, edited and decided, with the forms that it sends.
//
// review.go is the page, whose struct of views/review reviewHead fills, and decision.go the verdict; diff.go chooses what of a change is
// drawn, which handlers/change draws. It may import these, its room of views and what
// handlers may; no other subject's pages.
package review

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
