package event

import (
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/origin"
)

// What happens to people and their ways in, in the stream "system". The data never has a
// secret.
const (
	UserCreated     Type = "user.created"
	UserChanged     Type = "user.changed"
	SessionCreated  Type = "session.created"
	SessionEnded    Type = "session.ended"
	LinkCreated     Type = "signin_link.created"
	LinkUsed        Type = "signin_link.used"
	TokenCreated    Type = "token.created"
	TokenRevoked    Type = "token.revoked"
	LinkCodeCreated Type = "link_code.created"
	AccountLinked   Type = "account.linked"
	AccountUnlinked Type = "account.unlinked"
	ViewShared      Type = "view.shared"
	ViewUnshared    Type = "view.unshared"
)

// UserCreatedData is the data of UserCreated.
type UserCreatedData struct {
	User   string   `json:"user"`
	UserID string   `json:"user_id"`
	Roles  []string `json:"roles"`
}

func (UserCreatedData) kind() Type { return UserCreated }
func (d UserCreatedData) sentence(Event, Words) string {
	return "adds " + first(d.User, "a person") + Prefixed(" as ", strings.Join(d.Roles, ", "))
}

// UserChangedData is the data of UserChanged; what was changed is given.
type UserChangedData struct {
	UserID        string          `json:"user_id"`
	Roles         Maybe[[]string] `json:"roles,omitzero"`
	Password      Maybe[bool]     `json:"password,omitzero"` // there is one now
	Disabled      Maybe[bool]     `json:"disabled,omitzero"`
	TokensRevoked Maybe[[]string] `json:"tokens_revoked,omitzero"`
	Zone          Maybe[string]   `json:"zone,omitzero"`
	Away          Maybe[*Away]    `json:"away,omitzero"` // nil: is back
}

// Away is an absence.
type Away struct {
	From  time.Time `json:"from"`
	To    string    `json:"to"`
	Until time.Time `json:"until"`
}

func (UserChangedData) kind() Type { return UserChanged }
func (d UserChangedData) sentence(Event, Words) string {
	switch {
	case d.Roles.Set:
		return "gives other roles: " + first(strings.Join(d.Roles.V, ", "), "none")
	case d.Password.Set:
		return "sets another password"
	case d.Disabled.Set && d.Disabled.V:
		return "bars a person"
	case d.Disabled.Set:
		return "lets a person in again"
	case d.Zone.Set:
		return "sets the time zone" + Prefixed(" to ", d.Zone.V)
	case d.Away.V != nil:
		return "is out of office, and " + d.Away.V.To + " decides"
	}
	return "changes a person"
}

// SessionCreatedData is the data of SessionCreated.
type SessionCreatedData struct {
	UserID string `json:"user_id"`
}

func (SessionCreatedData) kind() Type                   { return SessionCreated }
func (SessionCreatedData) sentence(Event, Words) string { return "signs in" }

// SessionEndedData is the data of SessionEnded; empty for one's own sign-out.
type SessionEndedData struct {
	UserID   string `json:"user_id,omitempty"`
	Sessions int64  `json:"sessions,omitempty"` // how many
}

func (SessionEndedData) kind() Type { return SessionEnded }
func (d SessionEndedData) sentence(Event, Words) string {
	if d.Sessions > 0 {
		return fmt.Sprintf("signs out of %d other sessions", d.Sessions)
	}
	return "signs out"
}

// LinkCreatedData is the data of LinkCreated.
type LinkCreatedData struct {
	UserID string `json:"user_id"`
}

func (LinkCreatedData) kind() Type                   { return LinkCreated }
func (LinkCreatedData) sentence(Event, Words) string { return "makes a sign-in link" }

// LinkUsedData is the data of LinkUsed.
type LinkUsedData struct {
	UserID string `json:"user_id"`
}

func (LinkUsedData) kind() Type                   { return LinkUsed }
func (LinkUsedData) sentence(Event, Words) string { return "uses a sign-in link" }

// TokenCreatedData is the data of TokenCreated.
type TokenCreatedData struct {
	TokenID string   `json:"token_id"`
	UserID  string   `json:"user_id"`
	Name    string   `json:"name"`
	Scopes  []string `json:"scopes"`
}

func (TokenCreatedData) kind() Type { return TokenCreated }
func (d TokenCreatedData) sentence(Event, Words) string {
	return "makes a token" + Prefixed(": ", d.Name) + Prefixed(" for ", strings.Join(d.Scopes, ", "))
}

// TokenRevokedData is the data of TokenRevoked.
type TokenRevokedData struct {
	TokenID string `json:"token_id"`
}

func (TokenRevokedData) kind() Type                   { return TokenRevoked }
func (TokenRevokedData) sentence(Event, Words) string { return "ends a token" }

// LinkCodeCreatedData is the data of LinkCodeCreated.
type LinkCodeCreatedData struct {
	Channel origin.Channel `json:"channel"`
	UserID  string         `json:"user_id"`
}

func (LinkCodeCreatedData) kind() Type { return LinkCodeCreated }
func (d LinkCodeCreatedData) sentence(Event, Words) string {
	return "makes a code to link an account" + Prefixed(" of ", d.Channel)
}

// AccountLinkedData is the data of AccountLinked.
type AccountLinkedData struct {
	Channel origin.Channel `json:"channel"`
	Account int64          `json:"account"`
	Name    string         `json:"name"`
	UserID  string         `json:"user_id"`
}

func (AccountLinkedData) kind() Type { return AccountLinked }
func (d AccountLinkedData) sentence(Event, Words) string {
	return "links an account" + Prefixed(" of ", d.Channel) + Prefixed(": ", d.Name)
}

// AccountUnlinkedData is the data of AccountUnlinked.
type AccountUnlinkedData struct {
	Channel origin.Channel `json:"channel"`
	Account int64          `json:"account"`
	UserID  string         `json:"user_id"`
}

func (AccountUnlinkedData) kind() Type { return AccountUnlinked }
func (d AccountUnlinkedData) sentence(Event, Words) string {
	return "unlinks an account" + Prefixed(" of ", d.Channel)
}

// ViewSharedData is the data of ViewShared.
type ViewSharedData struct {
	Name   string `json:"name"`
	List   string `json:"list"`
	Filter string `json:"filter"`
}

func (ViewSharedData) kind() Type { return ViewShared }
func (d ViewSharedData) sentence(Event, Words) string {
	return "shares a view" + Prefixed(": ", d.Name)
}

// ViewUnsharedData is the data of ViewUnshared.
type ViewUnsharedData struct {
	Name string `json:"name"`
	List string `json:"list"`
}

func (ViewUnsharedData) kind() Type { return ViewUnshared }
func (d ViewUnsharedData) sentence(Event, Words) string {
	return "removes a shared view" + Prefixed(": ", d.Name)
}
