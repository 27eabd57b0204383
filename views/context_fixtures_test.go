package views_test

import (
	"time"

	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
	teamview "gatehouse/views/team"
)

// contextFixture is the page of the shared context with hostile names and values.
func contextFixture(namespace, key string) teamview.ContextPage {
	soon := now.Add(36 * time.Hour)
	row := teamview.ContextRow{Key: hostile, Value: "upload/retry.go resets its counter\n" + hostile, Bytes: 262_144, Author: hostile, UpdatedAt: now.Add(-time.Hour), ExpiresAt: &soon, Readers: []string{"coder", hostile}, WriterHref: views.DelegationHref(taskID)}
	p := teamview.ContextPage{Chrome: chrome(views.SectionContext, "Context", views.ContextPath), Namespace: namespace, Key: key, MayWrite: true,
		Form: teamview.ContextForm{Namespace: namespace, Key: key, Value: row.Value, TTL: "security"}}
	switch {
	case namespace == "":
		p.Topics = []sharedctx.Topic{{Namespace: "codebase", Entries: 1200, UpdatedAt: now.Add(-time.Minute)}, {Namespace: hostile, Entries: 1, UpdatedAt: now}}
		p.NextHref, p.Later = "/context?after=x", true
	case key == "":
		p.Entries, p.Cut, p.Prefix = []teamview.ContextRow{row, {Key: "module:auth", Value: "fragile", Author: "coder", UpdatedAt: now}}, 50, hostile
		p.Form.Error = "The key is empty: give it 1 to 128 characters."
	default:
		p.Value = &row
		p.Uses = []sharedctx.Use{{Kind: "read", Agent: "coder", DelegationID: taskID, At: now}, {Kind: "write", Agent: hostile, At: now.Add(-time.Hour)}}
	}
	return p
}
