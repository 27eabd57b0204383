package views_test

import (
	"maps"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/views"
	settingsview "gatehouse/views/settings"

	"github.com/a-h/templ"
)

func settingsChrome(title, path string) views.Chrome {
	c := chrome(views.SectionSettings, title, path)
	c.Person = person("finn", people.Admin, people.Approver)
	return c
}

func rolesAll(has ...string) (all []settingsview.RoleChoice) {
	for _, r := range []string{"admin", "operator", "approver", "auditor"} {
		all = append(all, settingsview.RoleChoice{Name: r, Has: len(has) > 0 && has[0] == r})
	}
	return all
}

func tokenRows() []settingsview.TokenRow {
	return []settingsview.TokenRow{
		{ID: "tok_01k9m2c8w5q3z7x4v6b8n7f3k9q", Owner: "dora", Name: hostile, Scopes: []string{"tasks:write", "delegations:read"}, CreatedAt: before(48 * time.Hour), UsedAt: before(time.Minute), ExpiresAt: now.Add(700 * time.Hour), State: "works", MayRevoke: true},
		{ID: "tok_01k9m2c8w5q3z7x4v6b8n7f3k8q", Owner: "ann", Name: "ci", Scopes: []string{"audit:read"}, CreatedAt: before(900 * time.Hour), State: "revoked"},
	}
}

// settingsPages are what `/settings` shows.
func settingsPages() map[string]templ.Component {
	ann := settingsview.PersonRow{Name: "ann", Roles: []string{"approver", "auditor"}, Groups: []string{"leads", "maintainers"}, Password: true, Away: "until 2026-10-02 08:00 UTC; bob decides", Tokens: 2, Accounts: []string{"telegram " + hostile}, CreatedAt: before(2400 * time.Hour)}
	gone := settingsview.PersonRow{Name: "gone", Roles: []string{"operator"}, Disabled: true, CreatedAt: before(2400 * time.Hour)}
	scopes := []settingsview.ScopeChoice{{Name: "tasks:write", Has: true}, {Name: "delegations:read", Has: false}, {Name: "admin", Has: false}}
	you := settingsChrome("Settings", views.YouPath)
	all := map[string]templ.Component{
		"settings-you": settingsview.You(settingsview.YouPage{Chrome: you, Roles: rolesAll("admin")[:1], Groups: []string{"maintainers"}, HasPassword: true, Zone: "Europe/Berlin", Sessions: []settingsview.SessionRow{
			{Client: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0", Here: true, CreatedAt: before(time.Hour), ExpiresAt: now.Add(700 * time.Hour)}, {Client: hostile, CreatedAt: before(30 * time.Hour), ExpiresAt: now.Add(70 * time.Hour)}}}),
		"settings-you-refused": settingsview.You(settingsview.YouPage{Chrome: you, ZoneError: "There is no such time zone.", Password: "The two new passwords differ."}),
		"settings-people":      settingsview.People(settingsview.PeoplePage{Chrome: settingsChrome("People", views.PeoplePath), People: []settingsview.PersonRow{ann, {Name: "finn", Roles: []string{"admin", "approver"}, You: true, CreatedAt: before(time.Hour)}, gone}, Roles: rolesAll()}),
		"settings-person":      settingsview.OnePerson(settingsview.PersonPage{Chrome: settingsChrome("ann", views.PersonHref("ann")), Who: ann, Choices: rolesAll("approver"), Deputies: []string{"bob"}, Tokens: tokenRows(), Link: "http://localhost:8080/login/link?code=abc"}),
		"settings-person-gone": settingsview.OnePerson(settingsview.PersonPage{Chrome: settingsChrome("gone", views.PersonHref("gone")), Who: gone, Choices: rolesAll("operator"), Deputies: []string{"bob"}}),
		"settings-tokens":      settingsview.Tokens(settingsview.TokensPage{Chrome: settingsChrome("Tokens", views.TokensPath), All: true, Tokens: tokenRows(), Scopes: scopes, Life: "90d", Secret: "ght_secret"}),
		"settings-tokens-none": settingsview.Tokens(settingsview.TokensPage{Chrome: settingsChrome("Tokens", views.TokensPath), Scopes: scopes, Error: "Tick what it may do."}),
	}
	conf := settingsview.ConfigPage{Chrome: settingsChrome("Configuration", views.ConfigPath), File: "/etc/gatehouse/gatehouse.yaml", LoadedAt: before(time.Hour), MayReload: true, Warnings: []string{"rule core: if ann asks, only bob can satisfy it."}, Changed: []string{"engine.workers", "approval.rules[docs].when"},
		Sections: []settingsview.ConfigSection{{Name: "server", Rows: []settingsview.ConfigRow{{Key: "listen", Value: "127.0.0.1:9000", Flag: "--listen", Restart: true, Pending: "0.0.0.0:80"}, {Key: "public_url", Value: "https://gate.example.com", File: "gatehouse.yaml", Line: 1, Restart: true}, {Key: "timezone", Value: "UTC"}}},
			{Name: "agents", Rows: []settingsview.ConfigRow{{Key: "coder.command", Value: "claude, -p, " + hostile, File: "gatehouse.yaml", Line: 31, Env: []string{"CLAUDE_KEY"}}, {Key: "coder.env.ANTHROPIC_API_KEY", Value: "•••", File: "gatehouse.yaml", Line: 32, Env: []string{"ANTHROPIC_API_KEY"}}}}}}
	wrong := conf
	wrong.Problems, wrong.Flash = []string{"gatehouse.yaml:3:1: unknown key `aproval`. Did you mean `approval`?", "gatehouse.yaml:9:1: " + hostile}, &views.Flash{Bad: true, Text: "The file was not taken, so nothing was changed."}
	all["settings-config"], all["settings-config-wrong"] = settingsview.Config(conf), settingsview.Config(wrong)
	return all
}

// join puts galleries together.
func join(all ...map[string]templ.Component) map[string]templ.Component {
	joined := map[string]templ.Component{}
	for _, some := range all {
		maps.Copy(joined, some)
	}
	return joined
}
