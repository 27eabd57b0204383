package views

import (
	"maps"
	"time"

	"gatehouse/orchestrator/people"

	"github.com/a-h/templ"
)

func settingsChrome(title, path string) Chrome {
	c := chrome(SectionSettings, title, path)
	c.Person = person("finn", people.Admin, people.Approver)
	return c
}

func rolesAll(has ...string) (all []RoleChoice) {
	for _, r := range []string{"admin", "operator", "approver", "auditor"} {
		all = append(all, RoleChoice{r, len(has) > 0 && has[0] == r})
	}
	return all
}

func tokenRows() []TokenRow {
	return []TokenRow{
		{ID: "tok_01k9m2c8w5q3z7x4v6b8n7f3k9q", Owner: "dora", Name: hostile, Scopes: []string{"tasks:write", "delegations:read"}, CreatedAt: before(48 * time.Hour), UsedAt: before(time.Minute), ExpiresAt: now.Add(700 * time.Hour), State: "works", MayRevoke: true},
		{ID: "tok_01k9m2c8w5q3z7x4v6b8n7f3k8q", Owner: "ann", Name: "ci", Scopes: []string{"audit:read"}, CreatedAt: before(900 * time.Hour), State: "revoked"},
	}
}

// settingsPages are what `/settings` shows.
func settingsPages() map[string]templ.Component {
	ann := PersonRow{Name: "ann", Roles: []string{"approver", "auditor"}, Groups: []string{"leads", "maintainers"}, Password: true, Away: "until 2026-10-02 08:00 UTC; bob decides", Tokens: 2, Accounts: []string{"telegram " + hostile}, CreatedAt: before(2400 * time.Hour)}
	gone := PersonRow{Name: "gone", Roles: []string{"operator"}, Disabled: true, CreatedAt: before(2400 * time.Hour)}
	scopes := []ScopeChoice{{"tasks:write", true}, {"delegations:read", false}, {"admin", false}}
	you := settingsChrome("Settings", YouPath)
	all := map[string]templ.Component{
		"settings-you": You(YouPage{Chrome: you, Roles: rolesAll("admin")[:1], Groups: []string{"maintainers"}, HasPassword: true, Zone: "Europe/Berlin", Sessions: []SessionRow{
			{Client: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0", Here: true, CreatedAt: before(time.Hour), ExpiresAt: now.Add(700 * time.Hour)}, {Client: hostile, CreatedAt: before(30 * time.Hour), ExpiresAt: now.Add(70 * time.Hour)}}}),
		"settings-you-refused": You(YouPage{Chrome: you, ZoneError: "There is no such time zone.", Password: "The two new passwords differ."}),
		"settings-people":      People(PeoplePage{Chrome: settingsChrome("People", PeoplePath), People: []PersonRow{ann, {Name: "finn", Roles: []string{"admin", "approver"}, You: true, CreatedAt: before(time.Hour)}, gone}, Roles: rolesAll()}),
		"settings-person":      OnePerson(PersonPage{Chrome: settingsChrome("ann", PersonHref("ann")), Who: ann, Choices: rolesAll("approver"), Deputies: []string{"bob"}, Tokens: tokenRows(), Link: "http://localhost:8080/login/link?code=abc"}),
		"settings-person-gone": OnePerson(PersonPage{Chrome: settingsChrome("gone", PersonHref("gone")), Who: gone, Choices: rolesAll("operator"), Deputies: []string{"bob"}}),
		"settings-tokens":      Tokens(TokensPage{Chrome: settingsChrome("Tokens", TokensPath), All: true, Tokens: tokenRows(), Scopes: scopes, Life: "90d", Secret: "ght_secret"}),
		"settings-tokens-none": Tokens(TokensPage{Chrome: settingsChrome("Tokens", TokensPath), Scopes: scopes, Error: "Tick what it may do."}),
	}
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
