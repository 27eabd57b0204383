// Package overview has the pages that say how all is going: the first page, the figures of
// many days, and who waits for whom.
//
// It may import handlers, its room of views and what handlers may; no other subject's pages.
package overview

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
