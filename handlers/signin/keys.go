package signin

import (
	"context"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"

	"github.com/labstack/echo/v4"
)

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
