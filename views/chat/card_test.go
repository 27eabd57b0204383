package chat

import (
	"testing"
	"time"

	"gatehouse/views"
)

// A decided card is one line that says who, where, and what became of it.
func TestADecidedCardIsOneLine(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for want, k := range map[string]ChatCard{
		"bob approved on Telegram, landed 4be1f02":               {ApprovalRow: views.ApprovalRow{State: "landed", Commit: "4be1f02aaa", DecidedBy: "bob"}, Verb: "approved", Channel: "telegram"},
		"ann rejected on the web, nothing landed":                {ApprovalRow: views.ApprovalRow{State: "rejected", DecidedBy: "ann"}, Verb: "rejected", Channel: "web"},
		"Rule docs approved, landing":                            {ApprovalRow: views.ApprovalRow{State: "approved", DecidedBy: "rule:docs"}, Verb: "approved", Channel: "rule"},
		"bob requested changes in chat, coder works on it again": {ApprovalRow: views.ApprovalRow{State: "changes_requested", DecidedBy: "bob", Agent: "coder"}, Verb: "requested changes", Channel: "chat"},
		"expired, ":                      {ApprovalRow: views.ApprovalRow{State: "expired"}, DecidedAt: at},
		"bob approved on the web, stale": {ApprovalRow: views.ApprovalRow{State: "stale", DecidedBy: "bob"}, Verb: "approved", Channel: "web"},
	} {
		if got := k.doneWords() + ", " + k.afterWords(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
