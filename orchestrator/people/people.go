// Package people says who may do what: users, their roles, sessions, API tokens
// and the scopes that follow. It is pure; the store keeps the rows and web checks
// the credentials.
package people

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"gatehouse/orchestrator/origin"
)

// Role is what a person may be.
type Role string

// The roles; a person may have several.
const (
	Admin    Role = "admin"
	Operator Role = "operator"
	Approver Role = "approver"
	Auditor  Role = "auditor"
)

func Roles() []Role { return []Role{Admin, Operator, Approver, Auditor} }

func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("there is no role %q: use admin, operator, approver or auditor", s)
}

// Scope is one right.
type Scope string

const (
	TasksWrite         Scope = "tasks:write"
	DelegationsRead    Scope = "delegations:read"
	DelegationsControl Scope = "delegations:control"
	ApprovalsRead      Scope = "approvals:read"
	ApprovalsDecide    Scope = "approvals:decide"
	ContextRead        Scope = "context:read"
	ContextWrite       Scope = "context:write"
	AuditRead          Scope = "audit:read"
	AuditHold          Scope = "audit:hold" // set and lift legal holds
	AdminScope         Scope = "admin"
)

func Scopes() []Scope {
	return []Scope{TasksWrite, DelegationsRead, DelegationsControl, ApprovalsRead, ApprovalsDecide, ContextRead, ContextWrite, AuditRead, AuditHold, AdminScope}
}

func ParseScope(s string) (Scope, error) {
	if sc := Scope(s); slices.Contains(Scopes(), sc) {
		return sc, nil
	}
	return "", fmt.Errorf("there is no scope %q: use one of %v", s, Scopes())
}

// Scopes returns the rights of a role. An admin has all but deciding (contract).
func (r Role) Scopes() []Scope {
	switch r {
	case Operator:
		return []Scope{TasksWrite, DelegationsRead, DelegationsControl, ContextRead, ContextWrite}
	case Approver:
		return []Scope{ApprovalsRead, ApprovalsDecide, DelegationsRead}
	case Auditor:
		return []Scope{DelegationsRead, ApprovalsRead, ContextRead, AuditRead, AuditHold}
	case Admin:
		return slices.DeleteFunc(Scopes(), func(s Scope) bool { return s == ApprovalsDecide })
	default:
		return nil
	}
}

type User struct {
	ID           string    `json:"id"` // usr_…
	Name         string    `json:"name"`
	Roles        []Role    `json:"roles"`
	PasswordHash string    `json:"-"` // argon2id, "" when none is set
	Disabled     bool      `json:"disabled,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
	Away         *Away     `json:"away,omitempty"`     // nil: here
	Zone         string    `json:"zone,omitempty"`     // time zone of pages, "" that of the browser
	Muted        bool      `json:"muted,omitempty"`    // the messages of their tasks in channels do not go on
	Accounts     []Account `json:"accounts,omitempty"` // filled by lists of people only
}

// CheckUserName says whether a person may have this name. The name is what events,
// trailers and cards show, so it is one printable word.
func CheckUserName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("user name %q has %d bytes: use 1 to 64", name, len(name))
	}
	for i, r := range name {
		if !(unicode.IsLetter(r) || unicode.IsDigit(r) || (i > 0 && strings.ContainsRune("-_.@", r))) {
			return fmt.Errorf("user name %q: use letters, digits, - _ . and @, starting with a letter or digit", name)
		}
	}
	return nil
}

// Token is an API token; only its hash is stored.
type Token struct {
	ID         string     `json:"id"` // tok_…
	UserID     string     `json:"user_id"`
	UserName   string     `json:"user"`
	Name       string     `json:"name"`
	Scopes     []Scope    `json:"scopes"`
	Hash       string     `json:"-"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// Session is a signed-in browser; the cookie holds the secret, the store its hash.
type Session struct {
	Hash      string
	UserID    string
	Client    string // what the browser calls itself, cut
	CreatedAt time.Time
	ExpiresAt time.Time
}

// SigninLink is a one-time link; the store holds the hash of its code.
type SigninLink struct {
	Hash      string
	UserID    string
	ExpiresAt time.Time
}

// Principal is who makes a request: a person by session or token, or a running
// delegation by its run token.
type Principal struct {
	User    User
	TokenID string  // set when an API token was used
	Scopes  []Scope // the rights: the roles' ones, cut down to the token's
	Run     *Run    // set when a run token was used; User is empty then
}

// Run identifies one attempt of one delegation.
type Run struct {
	TaskID       string
	DelegationID string
	Agent        string
	Attempt      int
}

// As returns the principal of a user, with the rights of all their roles, or with
// those that only lists as well when only is not nil (a token's scopes).
func As(u User, only []Scope) Principal {
	p := Principal{User: u}
	for _, s := range Scopes() {
		has := slices.ContainsFunc(u.Roles, func(r Role) bool { return slices.Contains(r.Scopes(), s) })
		if has && (only == nil || slices.Contains(only, s)) {
			p.Scopes = append(p.Scopes, s)
		}
	}
	return p
}

func (p Principal) Has(s Scope) bool { return slices.Contains(p.Scopes, s) }

// Name is how events and pages call the principal.
func (p Principal) Name() string {
	if p.Run != nil {
		return p.Run.Agent
	}
	return p.User.Name
}

// Away says that a person is out of office and who decides in their place. While it
// lasts the person does not decide: one seat has one voice.
type Away struct {
	To    string    `json:"to"` // id of a user
	From  time.Time `json:"from"`
	Until time.Time `json:"until"` // the first moment at which it holds no more
}

// Now reports whether it holds at t.
func (a *Away) Now(t time.Time) bool { return a != nil && !t.Before(a.From) && t.Before(a.Until) }

// Check says whether u may be away like that from now on; to is the user a.To.
func (a *Away) Check(u, to User, now time.Time) error {
	switch {
	case a.To == u.ID:
		return fmt.Errorf("nobody stands in for themselves: name another approver to decide for %s", u.Name)
	case !a.From.Before(a.Until):
		return fmt.Errorf("the end of the absence must come after its beginning")
	case !now.Before(a.Until):
		return fmt.Errorf("the end of the absence has passed already: name one that is still to come")
	case to.Disabled:
		return fmt.Errorf("the deputy %s is disabled: name another approver to decide for %s", to.Name, u.Name)
	case !slices.Contains(to.Roles, Approver):
		return fmt.Errorf("the deputy %s does not have the role approver: name one who has it to decide for %s", to.Name, u.Name)
	}
	return nil
}

// Account is an account of a channel that belongs to a person. It is known by the
// channel's numeric id alone; Name is how it was called when it was linked, and gives
// no right: names change hands.
type Account struct {
	Channel  origin.Channel `json:"channel"`
	ID       int64          `json:"id"`
	UserID   string         `json:"user_id"`
	Name     string         `json:"name"`
	LinkedAt time.Time      `json:"linked_at"`
}

// The figures of link codes: one-time codes that link an account, of which the store holds
// the hash. A code has 60 random bits: with five guesses in ten
// minutes none is ever found.
const (
	LinkCodeLife  = 10 * time.Minute // how long one works (contract)
	MaxLinkCodes  = 5                // open ones of one person
	MaxGuesses    = 5                // wrong codes of one account within GuessWindow
	GuessWindow   = 10 * time.Minute // and how long further ones are refused then
	linkCodeChars = 12
)

// crockford is Crockford's base32: digits and letters without I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewLinkCode makes a code that a person can type, and its hash.
func NewLinkCode() (code, hash string) {
	var b [linkCodeChars]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime stops the program instead
	for i := range b {
		b[i] = crockford[b[i]%byte(len(crockford))] // 256 is a multiple of 32: no letter is likelier
	}
	return string(b[:]), HashLinkCode(string(b[:]))
}

// HashLinkCode is the hash under which a code is stored. It reads a typed code as
// Crockford meant it: case, dashes and blanks do not count, O is 0, I and L are 1.
func HashLinkCode(code string) string {
	code = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "").Replace(strings.ToUpper(strings.TrimSpace(code)))
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}
