// Package evidence makes the document that says of one request who asked, what was shown
// to whom, who decided and what came of it. The page and the API answer with the same.
//
// It may import handlers, views/evidence and what handlers may; no other subject's pages.
package evidence

import (
	"gatehouse/handlers"
)

// Pages has the page of the document.
type Pages struct{ *handlers.Site }
