package settings

import (
	"slices"
	"strings"
	"time"

	"gatehouse/views"
)

// settingsTab is one page under Settings.
type settingsTab struct{ Name, Text, Href string }

// is says whether the reader has one of the roles.
func hasRole(c views.Chrome, roles ...string) bool {
	return c.Person != nil && slices.ContainsFunc(c.Person.Roles, func(r string) bool { return slices.Contains(roles, r) })
}

// settingsTabs are the pages that this person may open.
func settingsTabs(c views.Chrome) []settingsTab {
	all := []settingsTab{{"you", "You", views.YouPath}}
	if hasRole(c, "admin") {
		all = append(all, settingsTab{"people", "People", views.PeoplePath})
	}
	all = append(all, settingsTab{"tokens", "Tokens", views.TokensPath}, settingsTab{"channels", "Channels", views.ChannelsPath})
	if hasRole(c, "admin", "approver", "auditor") {
		all = append(all, settingsTab{"policy", "Policy", views.PolicyPath})
	}
	if hasRole(c, "admin", "operator", "auditor") {
		all = append(all, settingsTab{"config", "Configuration", views.ConfigPath})
	}
	return all
}

// YouPage is `/settings/you`: what a person changes about themselves.
type YouPage struct {
	views.Chrome
	Roles       []RoleChoice
	Groups      []string
	HasPassword bool
	Sessions    []SessionRow
	Away        string // how long, and who decides; "" here
	Zone        string
	ZoneError   string
	Muted       bool   // the messages of their tasks do not go on
	Password    string // what is wrong with a password that was sent
}

// SessionRow is one browser where a person is signed in.
type SessionRow struct {
	Client    string // what the browser calls itself
	Here      bool   // this one
	CreatedAt time.Time
	ExpiresAt time.Time
}

// browser makes a name of what a browser calls itself: Firefox on Linux. What is not
// known is shown as it came.
func (s SessionRow) browser() string {
	name, system := "", ""
	for _, b := range [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"HeadlessChrome/", "Chrome without a window"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}} {
		if strings.Contains(s.Client, b[0]) {
			name = b[1]
			break
		}
	}
	for _, o := range [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"}} {
		if strings.Contains(s.Client, o[0]) {
			system = o[1]
			break
		}
	}
	switch {
	case s.Client == "":
		return "not known"
	case name == "":
		return views.OneLine(s.Client, 60)
	case system == "":
		return name
	}
	return name + " on " + system
}

// RoleChoice is one role with what it gives.
type RoleChoice struct {
	Name string
	Has  bool
}

// roleWords say what a role gives.
var roleWords = map[string]string{
	"admin":    "everything but deciding: people, tokens, channels, configuration, tasks and the audit",
	"operator": "sends, stops and retries tasks; writes the shared context",
	"approver": "reads requests and decides them",
	"auditor":  "reads everything, changes nothing",
}

// PeoplePage is `/settings/people`.
type PeoplePage struct {
	views.Chrome
	People []PersonRow
	Name   string // as it was sent, where that was refused
	Roles  []RoleChoice
	Error  string
}

// PersonRow is one person in the list.
type PersonRow struct {
	Name      string
	Roles     []string
	Groups    []string
	Disabled  bool
	Password  bool   // they have one; else they sign in by link
	Away      string // until when, and who decides
	Tokens    int    // that work
	Accounts  []string
	CreatedAt time.Time
	You       bool
}

// PersonPage is `/settings/people/{name}`.
type PersonPage struct {
	views.Chrome
	Who      PersonRow
	Choices  []RoleChoice
	Deputies []string // approvers who could decide in their place
	To       string   // as sent, where that was refused
	Until    string
	Link     string // a new sign-in link; shown once
	Tokens   []TokenRow
}

// TokensPage is `/settings/tokens`.
type TokensPage struct {
	views.Chrome
	All    bool // everybody's are listed, with their owners
	Tokens []TokenRow
	Scopes []ScopeChoice // those that the reader has
	Name   string        // as sent
	Life   string
	Error  string
	Secret string // a new one; shown once
}

// TokenRow is one API token; its secret is known to nobody.
type TokenRow struct {
	ID        string
	Owner     string
	Name      string
	Scopes    []string
	CreatedAt time.Time
	UsedAt    time.Time // zero: never
	ExpiresAt time.Time // zero: never
	State     string    // works, expired, revoked, idle: its owner is disabled
	MayRevoke bool
}

// ScopeChoice is one right that a new token may have.
type ScopeChoice struct {
	Name string
	Has  bool
}

// scopeWords say what a scope allows.
var scopeWords = map[string]string{
	"tasks:write": "send tasks", "delegations:read": "read tasks and agents", "delegations:control": "stop, pause and retry tasks",
	"approvals:read": "read requests and patches", "approvals:decide": "approve and reject as you", "context:read": "read the shared context",
	"context:write": "write the shared context", "audit:read": "read and export the audit", "audit:hold": "set and lift legal holds", "admin": "settings of the server",
}

// tokenLives are the life spans that the form offers.
var tokenLives = []views.Choice{{Value: "30d", Text: "30 days"}, {Value: "90d", Text: "90 days"}, {Value: "365d", Text: "a year"}, {Value: "never", Text: "for ever", Note: "until it is revoked"}}

// tokenWord is a state's role and icon.
func tokenWord(state string) (role, icon string) {
	switch state {
	case "works":
		return "ok", "tick"
	case "expired":
		return "neutral", "expired"
	}
	return "bad", "cross"
}

// zones are offered while typing; any other name of the tz database is taken, too.
var zones = []string{"UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "America/Anchorage", "America/Argentina/Buenos_Aires", "America/Bogota",
	"America/Chicago", "America/Denver", "America/Halifax", "America/Lima", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Phoenix", "America/Santiago",
	"America/Sao_Paulo", "America/Toronto", "America/Vancouver", "Asia/Bangkok", "Asia/Dhaka", "Asia/Dubai", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Jerusalem", "Asia/Karachi",
	"Asia/Kolkata", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Tashkent", "Asia/Tehran", "Asia/Tokyo", "Australia/Adelaide",
	"Australia/Brisbane", "Australia/Perth", "Australia/Sydney", "Europe/Amsterdam", "Europe/Athens", "Europe/Berlin", "Europe/Dublin", "Europe/Helsinki", "Europe/Istanbul",
	"Europe/Kyiv", "Europe/Lisbon", "Europe/London", "Europe/Madrid", "Europe/Moscow", "Europe/Oslo", "Europe/Paris", "Europe/Prague", "Europe/Rome", "Europe/Stockholm",
	"Europe/Vienna", "Europe/Warsaw", "Europe/Zurich", "Pacific/Auckland", "Pacific/Honolulu"}

// signsIn is how a person gets in.
func (r PersonRow) signsIn() string {
	if r.Password {
		return "password or link"
	}
	return "link"
}

// orNone joins names.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ConfigPage is `/settings/config`: every value in force and where it comes from.
type ConfigPage struct {
	views.Chrome
	File      string // "" when there is none
	LoadedAt  time.Time
	Sections  []ConfigSection
	Warnings  []string
	Problems  []string // of the file as it is now, one line each
	Changed   []string // keys that a reload would change
	MayReload bool
}

// ConfigSection is a section of the file.
type ConfigSection struct {
	Name string
	Rows []ConfigRow
}

// ConfigRow is one value.
type ConfigRow struct {
	Key     string // below the section
	Value   string
	File    string // name of the file
	Line    int    // 0: not in the file
	Flag    string
	Env     []string
	Restart bool
	Pending string // after a restart
}
