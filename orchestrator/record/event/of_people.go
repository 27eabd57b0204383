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

type UserCreatedData struct {
	User   string   `json:"user"`
	UserID string   `json:"user_id"`
	Roles  []string `json:"roles"`
}

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
	Muted         Maybe[bool]     `json:"muted,omitzero"`
	Away          Maybe[*Away]    `json:"away,omitzero"` // nil: is back
}

// Away is an absence.
type Away struct {
	From  time.Time `json:"from"`
	To    string    `json:"to"`
	Until time.Time `json:"until"`
}

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
	case d.Muted.Set && d.Muted.V:
		return "mutes the messages of their tasks"
	case d.Muted.Set:
		return "wants the messages of their tasks again"
	case d.Away.V != nil:
		return "is out of office, and " + d.Away.V.To + " decides"
	}
	return "changes a person"
}

type SessionCreatedData struct {
	UserID string `json:"user_id"`
}

func (SessionCreatedData) sentence(Event, Words) string { return "signs in" }

// SessionEndedData is the data of SessionEnded; empty for one's own sign-out.
type SessionEndedData struct {
	UserID   string `json:"user_id,omitempty"`
	Sessions int64  `json:"sessions,omitempty"` // how many
}

func (d SessionEndedData) sentence(Event, Words) string {
	if d.Sessions > 0 {
		return fmt.Sprintf("signs out of %d other sessions", d.Sessions)
	}
	return "signs out"
}

type LinkCreatedData struct {
	UserID string `json:"user_id"`
}

func (LinkCreatedData) sentence(Event, Words) string { return "makes a sign-in link" }

type LinkUsedData struct {
	UserID string `json:"user_id"`
}

func (LinkUsedData) sentence(Event, Words) string { return "uses a sign-in link" }

type TokenCreatedData struct {
	TokenID string   `json:"token_id"`
	UserID  string   `json:"user_id"`
	Name    string   `json:"name"`
	Scopes  []string `json:"scopes"`
}

func (d TokenCreatedData) sentence(Event, Words) string {
	return "makes a token" + Prefixed(": ", d.Name) + Prefixed(" for ", strings.Join(d.Scopes, ", "))
}

type TokenRevokedData struct {
	TokenID string `json:"token_id"`
}

func (TokenRevokedData) sentence(Event, Words) string { return "ends a token" }

type LinkCodeCreatedData struct {
	Channel origin.Channel `json:"channel"`
	UserID  string         `json:"user_id"`
}

func (d LinkCodeCreatedData) sentence(Event, Words) string {
	return "makes a code to link an account" + Prefixed(" of ", d.Channel)
}

type AccountLinkedData struct {
	Channel origin.Channel `json:"channel"`
	Account int64          `json:"account"`
	Name    string         `json:"name"`
	UserID  string         `json:"user_id"`
}

func (d AccountLinkedData) sentence(Event, Words) string {
	return "links an account" + Prefixed(" of ", d.Channel) + Prefixed(": ", d.Name)
}

type AccountUnlinkedData struct {
	Channel origin.Channel `json:"channel"`
	Account int64          `json:"account"`
	UserID  string         `json:"user_id"`
}

func (d AccountUnlinkedData) sentence(Event, Words) string {
	return "unlinks an account" + Prefixed(" of ", d.Channel)
}

type ViewSharedData struct {
	Name   string `json:"name"`
	List   string `json:"list"`
	Filter string `json:"filter"`
}

func (d ViewSharedData) sentence(Event, Words) string {
	return "shares a view" + Prefixed(": ", d.Name)
}

type ViewUnsharedData struct {
	Name string `json:"name"`
	List string `json:"list"`
}

func (d ViewUnsharedData) sentence(Event, Words) string {
	return "removes a shared view" + Prefixed(": ", d.Name)
}
