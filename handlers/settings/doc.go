// Package settings has the pages of accounts, people, tokens, channels, and the policy and configuration in force.
// A page is parse, call, render.
//
// It may import handlers, its own room of views, and what handlers may; no other subject's pages.
package settings

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
