// Package audit has the pages of the history: its lists with their filters and saved views,
// the export, legal holds, and the verification, which Verifier runs for the API as well.
//
// It may import handlers, its room of views and what handlers may; no other subject's pages.
package audit

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
