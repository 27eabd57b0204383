package settings

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
	view "gatehouse/views/settings"

	"github.com/labstack/echo/v4"
)

// What a token's state is called.
const (
	tokenWorks   = "works"
	tokenRevoked = "revoked"
	tokenExpired = "expired"
	tokenIdle    = "idle" // its owner is disabled
)

func tokenState(t people.Token, disabled bool, now time.Time) string {
	switch {
	case t.RevokedAt != nil:
		return tokenRevoked
	case t.ExpiresAt != nil && !now.Before(*t.ExpiresAt):
		return tokenExpired
	case disabled:
		return tokenIdle
	}
	return tokenWorks
}

// tokenRows shows tokens to a reader; owners are those of whom it is known whether they
// are disabled.
func (p *Pages) tokenRows(tokens []people.Token, owners []people.User, reader handlers.Caller) []view.TokenRow {
	var rows []view.TokenRow
	for _, t := range tokens {
		disabled := slices.ContainsFunc(owners, func(u people.User) bool { return u.ID == t.UserID && u.Disabled })
		row := view.TokenRow{ID: t.ID, Owner: t.UserName, Name: t.Name, CreatedAt: t.CreatedAt, UsedAt: handlers.At(t.LastUsedAt), ExpiresAt: handlers.At(t.ExpiresAt), State: tokenState(t, disabled, p.Now())}
		row.Scopes = each.Of(t.Scopes, each.String)
		row.MayRevoke = t.RevokedAt == nil && row.State != tokenExpired && reader.Session && (t.UserID == reader.User.ID || reader.Has(people.AdminScope))
		rows = append(rows, row)
	}
	return rows
}

// TokensPage answers GET /settings/tokens: the reader's own, and everybody's to an admin.
func (p *Pages) TokensPage(c echo.Context) error {
	return p.tokensPage(c, http.StatusOK, func(*view.TokensPage) {})
}

func (p *Pages) tokensPage(c echo.Context, status int, with func(*view.TokensPage)) error {
	f, err := p.Begin(c, views.SectionSettings, "Tokens")
	if err != nil {
		return err
	}
	f.Chrome.Path = views.TokensPath
	page := view.TokensPage{Chrome: f.Chrome, All: f.Who.Has(people.AdminScope), Scopes: scopeChoices(f.Who.User, nil), Life: "90d"}
	whose, owners := f.Who.User.ID, []people.User{f.Who.User}
	if page.All {
		whose = ""
		if owners, err = p.People.Users(f.Ctx); err != nil {
			return err
		}
	}
	tokens, err := p.People.Tokens(f.Ctx, whose)
	if err != nil {
		return err
	}
	page.Tokens = p.tokenRows(tokens, owners, f.Who)
	with(&page)
	return handlers.Render(c, status, view.Tokens(page))
}

// scopeChoices are the rights that u has, with those ticked that were chosen.
func scopeChoices(u people.User, chosen []people.Scope) []view.ScopeChoice {
	var all []view.ScopeChoice
	for _, s := range people.As(u, nil).Scopes {
		all = append(all, view.ScopeChoice{Name: string(s), Has: slices.Contains(chosen, s)})
	}
	return all
}

// MakeToken answers POST /settings/tokens with the page that shows the new token once. It
// is always one of the person who asks: nobody makes keys to another's rights.
func (p *Pages) MakeToken(c echo.Context) error {
	who, _ := handlers.Who(c)
	t, err := p.tokenOf(c, who)
	secret := ""
	if err == nil {
		secret, err = p.Auth.MakeToken(c.Request().Context(), who.User.Name, t)
	}
	f := handlers.Fault{Status: http.StatusOK}
	if err != nil {
		if f = handlers.FaultOf(err); f.ID != "" {
			return err
		}
	}
	return p.tokensPage(c, f.Status, func(page *view.TokensPage) {
		page.Secret, page.Error = secret, f.Message
		if err != nil {
			page.Name, page.Life, page.Scopes = c.FormValue("name"), c.FormValue("life"), scopeChoices(who.User, t.Scopes)
		}
	})
}

// maxTokenName is how long what a token is for may be, in characters.
const maxTokenName = 80

// tokenOf reads the form.
func (p *Pages) tokenOf(c echo.Context, who handlers.Caller) (people.Token, error) {
	t := people.Token{UserID: who.User.ID, Name: strings.TrimSpace(c.FormValue("name"))}
	form, err := c.FormParams()
	if err != nil {
		return t, echo.ErrBadRequest
	}
	for _, text := range form["scope"] {
		s, err := people.ParseScope(text)
		if err != nil {
			return t, handlers.Refuse(orchestrator.CodeBadRequest, handlers.SentenceOf(err))
		}
		if !who.Has(s) {
			return t, orchestrator.Errorf(orchestrator.CodeBadRequest, "You have no right to %s, so a token of yours would have none either. Leave it out.", s)
		}
		if !slices.Contains(t.Scopes, s) {
			t.Scopes = append(t.Scopes, s)
		}
	}
	if len(t.Scopes) == 0 {
		return t, handlers.Refuse(orchestrator.CodeBadRequest, "A token without rights can do nothing. Tick what it may do.")
	}
	if utf8.RuneCountInString(t.Name) > maxTokenName {
		return t, orchestrator.Errorf(orchestrator.CodeBadRequest, "The name has more than %d characters. Say shorter what the token is for.", maxTokenName)
	}
	if life := c.FormValue("life"); life != "never" {
		d, err := sharedctx.ParseTTL(life)
		if err != nil || d <= 0 {
			return t, handlers.Refuse(orchestrator.CodeBadRequest, "How long it works was not understood. Choose one of the list.")
		}
		ends := p.Now().Add(d)
		t.ExpiresAt = &ends
	}
	return t, nil
}

// RevokeToken answers POST /settings/tokens/revoke. Somebody else's token does not exist
// for whoever is no admin.
func (p *Pages) RevokeToken(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	whose := who.User.ID
	if who.Has(people.AdminScope) {
		whose = ""
	}
	tokens, err := p.People.Tokens(ctx, whose)
	if err != nil {
		return err
	}
	id := c.FormValue("token")
	if !slices.ContainsFunc(tokens, func(t people.Token) bool { return t.ID == id }) {
		return handlers.Refuse(orchestrator.CodeNotFound, "There is no such token. See the list of tokens.")
	}
	if err := p.People.RevokeToken(ctx, who.User.Name, id); err != nil {
		return err
	}
	back := views.TokensPath
	if to := handlers.LocalPath(c.FormValue("back")); strings.HasPrefix(to, views.PeoplePath+"/") {
		back = to
	}
	return handlers.SeeOther(c, back, "revoked")
}
