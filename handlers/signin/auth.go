package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"

	"github.com/labstack/echo/v4"
)

// People keeps users, sessions, links and tokens; the store does. What is not there,
// or not good any more, is orchestrator.ErrNotFound. actor is who does it, for the log.
type People interface {
	Users(ctx context.Context) ([]people.User, error)
	UserByName(ctx context.Context, name string) (people.User, error)
	CreateSession(ctx context.Context, actor string, s people.Session) error
	Session(ctx context.Context, hash string) (people.Session, people.User, error)
	DeleteSession(ctx context.Context, actor, hash string) error
	PeekSigninLink(ctx context.Context, hash string) (people.SigninLink, people.User, error)
	// UseSigninLink uses a link up; of many who try at once one succeeds.
	UseSigninLink(ctx context.Context, hash string) (people.User, error)
	TokenByHash(ctx context.Context, hash string) (people.Token, people.User, error)
	// TouchToken records that a token was used; told often, it writes rarely.
	TouchToken(ctx context.Context, t people.Token) error
	CreateSigninLink(ctx context.Context, actor string, l people.SigninLink) error
	CreateToken(ctx context.Context, actor string, t people.Token) (people.Token, error)
	// SetPassword replaces a hash, "" for none, and ends the person's sessions.
	SetPassword(ctx context.Context, actor, userID, hash string) error
}

// SessionLife is how long a sign-in lasts, maxClient how much of a browser's name for
// itself is kept, in bytes.
const (
	SessionLife = 30 * 24 * time.Hour
	maxClient   = 300
)

// Options is what an Auth is made of.
type Options struct {
	People People
	// RunByToken finds the live delegation whose run token has this hash.
	RunByToken func(ctx context.Context, hash string) (orchestrator.Delegation, error)
	// Secure keeps the cookie to https; set when the public URL is https.
	Secure bool
	Now    func() time.Time
	Log    *slog.Logger
}

// Auth lets people, tokens and runs in. It is safe for concurrent use.
type Auth struct {
	Options
	passwords *passwords
	byAddress *tries
	byName    *tries
}

// New makes an Auth.
func New(o Options) *Auth {
	return &Auth{Options: o, passwords: newPasswords(),
		byAddress: newTries(50, 5*time.Minute, o.Now), byName: newTries(10, 5*time.Minute, o.Now)}
}

// cookieName differs with Secure, so that the cookie of a plain-http server can
// never stand in for the one of an https server on the same host.
func (d *Auth) cookieName() string {
	if d.Secure {
		return "__Host-gatehouse"
	}
	return "gatehouse"
}

// unauthorized is the answer to a credential that is not good, whatever is wrong with it.
func unauthorized(message string) error { return handlers.Refuse(handlers.CodeUnauthorized, message) }

// Caller finds out who makes a request. ok is false without any credential; a
// credential that is not good is an error, except for a cookie, which may simply be old.
func (d *Auth) Caller(c echo.Context) (who handlers.Caller, ok bool, err error) {
	ctx := c.Request().Context()
	if h := c.Request().Header.Get(echo.HeaderAuthorization); h != "" {
		kind, secret, _ := strings.Cut(h, " ")
		if !strings.EqualFold(kind, "Bearer") || secret == "" {
			return who, false, unauthorized("The Authorization header is not understood. Send: Authorization: Bearer TOKEN.")
		}
		who, err = d.bearer(ctx, HashSecret(strings.TrimSpace(secret)), strings.HasPrefix(secret, orchestrator.RunTokenPrefix))
		return who, err == nil, err
	}
	cookie, err := c.Cookie(d.cookieName())
	if err != nil || cookie.Value == "" {
		return who, false, nil
	}
	who, err = d.session(ctx, HashSecret(cookie.Value))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return who, false, nil
	}
	return who, err == nil, err
}

// bearer finds the caller behind a token's hash.
func (d *Auth) bearer(ctx context.Context, hash string, run bool) (who handlers.Caller, err error) {
	if run {
		who.Principal, err = d.run(ctx, hash)
	} else {
		who.Principal, err = d.token(ctx, hash)
	}
	if errors.Is(err, orchestrator.ErrNotFound) {
		return who, unauthorized("This token is not known, has expired or was revoked. Make a new one with: gatehouse token create.")
	}
	had := who.Principal
	who.Alive = func(ctx context.Context) bool {
		var now people.Principal
		var err error
		if run {
			now, err = d.run(ctx, hash)
		} else {
			now, err = d.token(ctx, hash)
		}
		return alive(had, now, err)
	}
	return who, err
}

// alive reports whether a caller still has every right that they came with. A database
// that is away for a moment ends nothing.
func alive(had, now people.Principal, err error) bool {
	if err != nil {
		return !errors.Is(err, orchestrator.ErrNotFound)
	}
	return !slices.ContainsFunc(had.Scopes, func(s people.Scope) bool { return !now.Has(s) })
}

func (d *Auth) token(ctx context.Context, hash string) (people.Principal, error) {
	t, u, err := d.People.TokenByHash(ctx, hash)
	if err != nil {
		return people.Principal{}, err
	}
	now := d.Now()
	if u.Disabled || t.RevokedAt != nil || (t.ExpiresAt != nil && !now.Before(*t.ExpiresAt)) {
		return people.Principal{}, orchestrator.ErrNotFound
	}
	if err := d.People.TouchToken(ctx, t); err != nil {
		d.Log.Warn("the use of a token was not recorded", "token", t.ID, "err", err)
	}
	p := people.As(u, append([]people.Scope{}, t.Scopes...))
	p.TokenID = t.ID
	return p, nil
}

func (d *Auth) run(ctx context.Context, hash string) (people.Principal, error) {
	del, err := d.RunByToken(ctx, hash)
	if err != nil {
		return people.Principal{}, err
	}
	return people.Principal{Scopes: handlers.RunScopes(),
		Run: &people.Run{TaskID: del.TaskID, DelegationID: del.ID, Agent: del.To, Attempt: del.Attempt}}, nil
}

func (d *Auth) session(ctx context.Context, hash string) (handlers.Caller, error) {
	p, err := d.signedIn(ctx, hash)
	if err != nil {
		return handlers.Caller{}, err
	}
	return handlers.Caller{Principal: p, Session: true, SessionName: sessionName(hash), Alive: func(ctx context.Context) bool {
		now, err := d.signedIn(ctx, hash)
		return alive(p, now, err)
	}}, nil
}

// sessionName is a name for the session with this hash, from which nobody gets to the hash
// itself, let alone to the cookie.
func sessionName(hash string) string {
	sum := sha256.Sum256([]byte("name of the session " + hash))
	return hex.EncodeToString(sum[:8])
}

func (d *Auth) signedIn(ctx context.Context, hash string) (people.Principal, error) {
	s, u, err := d.People.Session(ctx, hash)
	if err != nil {
		return people.Principal{}, err
	}
	if u.Disabled || !d.Now().Before(s.ExpiresAt) {
		return people.Principal{}, orchestrator.ErrNotFound
	}
	return people.As(u, nil), nil
}

// Password returns the person with this name and password. A wrong name and a wrong
// password cannot be told apart, by the answer or by its time.
func (d *Auth) Password(ctx context.Context, name, password, address string) (people.User, error) {
	key := strings.ToLower(name)
	if wait := max(d.byAddress.wait(address), d.byName.wait(address+" "+key)); wait > 0 {
		return people.User{}, handlers.Refuse(handlers.CodeRateLimited,
			fmt.Sprintf("There were too many tries. Wait %d s, or use a sign-in link.", int(wait.Seconds())+1))
	}
	u, err := d.People.UserByName(ctx, name)
	if err != nil && !errors.Is(err, orchestrator.ErrNotFound) {
		return people.User{}, err
	}
	if !d.passwords.verify(ctx, u.PasswordHash, password) || u.Disabled {
		return people.User{}, unauthorized("Name and password do not fit. Try again, or use a sign-in link.")
	}
	d.byAddress.won(address)
	d.byName.won(address + " " + key)
	return u, nil
}

// badLink is told of links that were used, ran out or never were.
var badLink = unauthorized("This link was used already, or it is older than 10 minutes.")

// CheckLink says whether a link could still be used; it uses nothing.
func (d *Auth) CheckLink(ctx context.Context, code string) error {
	_, _, err := d.People.PeekSigninLink(ctx, HashSecret(code))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return badLink
	}
	return err
}

// Link uses a one-time link up and returns its person.
func (d *Auth) Link(ctx context.Context, code, address string) (people.User, error) {
	if wait := d.byAddress.blocked(address); wait > 0 {
		return people.User{}, handlers.Refuse(handlers.CodeRateLimited, fmt.Sprintf("There were too many tries. Wait %d s.", int(wait.Seconds())+1))
	}
	u, err := d.People.UseSigninLink(ctx, HashSecret(code))
	if errors.Is(err, orchestrator.ErrNotFound) {
		d.byAddress.wait(address) // counts
		return people.User{}, badLink
	}
	return u, err
}

// First reports whether nobody can sign in yet.
func (d *Auth) First(ctx context.Context) (bool, error) {
	all, err := d.People.Users(ctx)
	return len(all) == 0, err
}

// Open signs a person in: a new session, and its secret in the browser's cookie. A
// session that the browser had before ends.
func (d *Auth) Open(c echo.Context, u people.User) error {
	if err := d.end(c, u.Name); err != nil {
		return err
	}
	secret, hash := NewSecret(sessionPrefix)
	now := d.Now()
	client := c.Request().UserAgent()
	s := people.Session{Hash: hash, UserID: u.ID, Client: strings.ToValidUTF8(client[:min(len(client), maxClient)], ""), CreatedAt: now, ExpiresAt: now.Add(SessionLife)}
	if err := d.People.CreateSession(c.Request().Context(), u.Name, s); err != nil {
		return err
	}
	d.setCookie(c, secret, int(SessionLife.Seconds()))
	d.Log.Info("signed in", "user", u.Name)
	return nil
}

// Close signs the browser out.
func (d *Auth) Close(c echo.Context) error {
	d.setCookie(c, "", -1)
	who, _ := handlers.Who(c)
	return d.end(c, who.Name())
}

// end deletes the session that the request carries, if any.
func (d *Auth) end(c echo.Context, actor string) error {
	cookie, err := c.Cookie(d.cookieName())
	if err != nil || cookie.Value == "" {
		return nil
	}
	err = d.People.DeleteSession(c.Request().Context(), actor, HashSecret(cookie.Value))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return nil
	}
	return err
}

func (d *Auth) setCookie(c echo.Context, value string, age int) {
	c.SetCookie(&http.Cookie{Name: d.cookieName(), Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: d.Secure, SameSite: http.SameSiteLaxMode})
}

// linkLife is how long a sign-in link works (contract).
const linkLife = 10 * time.Minute

// MakeLink makes a one-time sign-in link for u and returns its code; only the hash is stored.
func (d *Auth) MakeLink(ctx context.Context, actor string, u people.User) (string, error) {
	code, hash := NewLinkCode()
	return code, d.People.CreateSigninLink(ctx, actor, people.SigninLink{Hash: hash, UserID: u.ID, ExpiresAt: d.Now().Add(linkLife)})
}

// MakeToken makes an API token and returns its secret, which nobody can read again.
func (d *Auth) MakeToken(ctx context.Context, actor string, t people.Token) (string, error) {
	secret, hash := NewToken()
	t.Hash = hash
	_, err := d.People.CreateToken(ctx, actor, t)
	return secret, err
}

// ChangePassword gives u another password, after the one that they have now, and signs
// them out everywhere but here. A person without a password names none.
func (d *Auth) ChangePassword(c echo.Context, u people.User, old, next string) error {
	ctx := c.Request().Context()
	if u.PasswordHash != "" {
		if _, err := d.Password(ctx, u.Name, old, c.RealIP()); err != nil {
			if handlers.FaultOf(err).Code == handlers.CodeUnauthorized {
				return handlers.Refuse(orchestrator.CodeBadRequest, "The current password is not that one. Nothing was changed.")
			}
			return err
		}
	}
	hash, err := HashPassword(next)
	if err != nil {
		return handlers.Refuse(orchestrator.CodeBadRequest, "The new password was not taken: "+err.Error()+". Choose another one.")
	}
	if err := d.People.SetPassword(ctx, u.Name, u.ID, hash); err != nil {
		return err
	}
	return d.Open(c, u)
}

// Here is the hash of the session that makes the request, "" without one.
func (d *Auth) Here(c echo.Context) string {
	cookie, err := c.Cookie(d.cookieName())
	if err != nil || cookie.Value == "" {
		return ""
	}
	return HashSecret(cookie.Value)
}
