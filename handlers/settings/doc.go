// Package settings has the pages of one's account, of people and their tokens, of channels,
// and of the policy and the configuration in force.
//
// It may import handlers, its room of views and what handlers may; no other subject's pages.
package settings

import (
	"gatehouse/handlers"
)

// Pages has the handlers of this subject.
type Pages struct{ *handlers.Site }
