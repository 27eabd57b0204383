package settings

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/sharedctx"
	"gatehouse/views"
	view "gatehouse/views/settings"

	"github.com/labstack/echo/v4"
)

// PeoplePage answers GET /settings/people.
func (p *Pages) PeoplePage(c echo.Context) error {
	return p.peoplePage(c, http.StatusOK, func(*view.PeoplePage) {})
}

func (p *Pages) peoplePage(c echo.Context, status int, with func(*view.PeoplePage)) error {
	f, err := p.Begin(c, views.SectionSettings, "People")
	if err != nil {
		return err
	}
	f.Chrome.Path = views.PeoplePath
	page := view.PeoplePage{Chrome: f.Chrome, Roles: roleChoices(nil)}
	all, tokens, err := p.everybody(f.Ctx)
	if err != nil {
		return err
	}
	for _, u := range all {
		page.People = append(page.People, p.personRow(u, all, tokens, f.Who))
	}
	with(&page)
	return handlers.Render(c, status, view.People(page))
}

// everybody reads people and tokens.
func (p *Pages) everybody(ctx context.Context) ([]people.User, []people.Token, error) {
	all, err := p.People.Users(ctx)
	if err != nil {
		return nil, nil, err
	}
	tokens, err := p.People.Tokens(ctx, "")
	return all, tokens, err
}

func (p *Pages) personRow(u people.User, all []people.User, tokens []people.Token, reader handlers.Caller) view.PersonRow {
	row := view.PersonRow{Name: u.Name, Groups: p.groupsOf(u.Name), Disabled: u.Disabled, Password: u.PasswordHash != "", CreatedAt: u.CreatedAt, You: u.ID == reader.User.ID}
	row.Roles = each.Of(u.Roles, each.String)
	for _, a := range u.Accounts {
		row.Accounts = append(row.Accounts, string(a.Channel)+" "+a.Name)
	}
	for _, t := range tokens {
		if t.UserID == u.ID && tokenState(t, false, p.Now()) == tokenWorks {
			row.Tokens++
		}
	}
	if u.Away != nil && p.Now().Before(u.Away.Until) {
		deputy := "nobody"
		for _, o := range all {
			if o.ID == u.Away.To {
				deputy = o.Name
			}
		}
		row.Away = absence(*u.Away, deputy, p.Now(), zoneOf(reader.User))
	}
	return row
}

// rolesOf reads the ticked roles of a form.
func rolesOf(c echo.Context) ([]people.Role, error) {
	form, err := c.FormParams()
	if err != nil {
		return nil, echo.ErrBadRequest
	}
	var roles []people.Role
	for _, text := range form["role"] {
		r, err := people.ParseRole(text)
		if err != nil {
			return nil, handlers.Refuse(orchestrator.CodeBadRequest, handlers.SentenceOf(err))
		}
		if !slices.Contains(roles, r) {
			roles = append(roles, r)
		}
	}
	if len(roles) == 0 {
		return nil, handlers.Refuse(orchestrator.CodeBadRequest, "Somebody without a role can do nothing. Tick one or more.")
	}
	return roles, nil
}

// AddPerson answers POST /settings/people.
func (p *Pages) AddPerson(c echo.Context) error {
	who, _ := handlers.Who(c)
	name := strings.TrimSpace(c.FormValue("name"))
	roles, err := rolesOf(c)
	if err == nil {
		_, err = p.People.CreateUser(c.Request().Context(), who.User.Name, people.User{Name: name, Roles: roles})
		if errors.Is(err, orchestrator.ErrExists) {
			err = handlers.Refuse(orchestrator.CodeConflict, "There is a person of that name already. Choose another name.")
		}
	}
	if err == nil {
		return handlers.SeeOther(c, views.PersonHref(name), "person_added")
	}
	f := handlers.FaultOf(err)
	if f.ID != "" {
		return err
	}
	return p.peoplePage(c, f.Status, func(page *view.PeoplePage) {
		page.Name, page.Roles, page.Error = name, roleChoices(roles), f.Message
	})
}

// Person answers GET /settings/people/{name}.
func (p *Pages) Person(c echo.Context) error {
	return p.person(c, http.StatusOK, func(*view.PersonPage) {})
}

func (p *Pages) person(c echo.Context, status int, with func(*view.PersonPage)) error {
	f, err := p.Begin(c, views.SectionSettings, c.Param("name"))
	if err != nil {
		return err
	}
	all, tokens, err := p.everybody(f.Ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(all, func(u people.User) bool { return strings.EqualFold(u.Name, c.Param("name")) })
	if at < 0 {
		return errNobody
	}
	u := all[at]
	f.Chrome.Title, f.Chrome.Path = u.Name, views.PersonHref(u.Name)
	page := view.PersonPage{Chrome: f.Chrome, Who: p.personRow(u, all, tokens, f.Who), Choices: roleChoices(u.Roles)}
	for _, o := range all {
		if o.ID != u.ID && !o.Disabled && slices.Contains(o.Roles, people.Approver) {
			page.Deputies = append(page.Deputies, o.Name)
		}
	}
	page.Tokens = p.tokenRows(slices.DeleteFunc(tokens, func(t people.Token) bool { return t.UserID != u.ID }), []people.User{u}, f.Who)
	with(&page)
	return handlers.Render(c, status, view.OnePerson(page))
}

var errNobody = handlers.Refuse(orchestrator.CodeNotFound, "There is no person of that name. See the list of people.")

// ChangePerson answers POST /settings/people/{name}: what the form's do names.
func (p *Pages) ChangePerson(c echo.Context) error {
	who, _ := handlers.Who(c)
	ctx := c.Request().Context()
	u, err := p.People.UserByName(ctx, c.Param("name"))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return errNobody
	}
	if err != nil {
		return err
	}
	done := ""
	switch c.FormValue("do") {
	case "roles":
		done, err = "roles", p.setRoles(c, who, u)
	case "disable":
		done, err = "disabled", p.disable(ctx, who, u)
	case "enable":
		done, err = "enabled", p.People.SetDisabled(ctx, who.User.Name, u.ID, false)
	case "away":
		done, err = "away", p.setAway(c, who, u)
	case "back":
		done, err = "back", p.People.SetAway(ctx, who.User.Name, u.ID, nil)
	case "link":
		return p.showLink(c, who, u)
	default:
		err = handlers.Refuse(orchestrator.CodeBadRequest, "The form does not say what to do. Open the page and press a button there.")
	}
	if err == nil {
		return handlers.SeeOther(c, views.PersonHref(u.Name), done)
	}
	return p.personRefused(c, err)
}

// personRefused draws the page with the reason why a form did nothing.
func (p *Pages) personRefused(c echo.Context, err error) error {
	f := handlers.FaultOf(err)
	if f.ID != "" {
		return err
	}
	return p.person(c, f.Status, func(page *view.PersonPage) {
		page.Flash = &views.Flash{Bad: true, Text: f.Message}
		page.To, page.Until = c.FormValue("to"), c.FormValue("until")
	})
}

// setRoles replaces roles. Nobody takes admin from themselves: a slip of the finger would
// lock the person out of the page that mends it.
func (p *Pages) setRoles(c echo.Context, who handlers.Caller, u people.User) error {
	roles, err := rolesOf(c)
	if err != nil {
		return err
	}
	if u.ID == who.User.ID && !slices.Contains(roles, people.Admin) {
		return handlers.Refuse(orchestrator.CodeConflict, "You cannot take the role admin from yourself. Ask another admin.")
	}
	return p.People.SetRoles(c.Request().Context(), who.User.Name, u.ID, roles)
}

func (p *Pages) disable(ctx context.Context, who handlers.Caller, u people.User) error {
	if u.ID == who.User.ID {
		return handlers.Refuse(orchestrator.CodeConflict, "Nobody disables themselves. Ask another admin.")
	}
	return p.People.SetDisabled(ctx, who.User.Name, u.ID, true)
}

// setAway reads who decides and until when, in the reader's zone.
func (p *Pages) setAway(c echo.Context, who handlers.Caller, u people.User) error {
	ctx := c.Request().Context()
	to, err := p.People.UserByName(ctx, c.FormValue("to"))
	if errors.Is(err, orchestrator.ErrNotFound) {
		return handlers.Refuse(orchestrator.CodeBadRequest, "There is no person of that name who could decide meanwhile. Choose one of the list.")
	}
	if err != nil {
		return err
	}
	until, err := untilOf(strings.TrimSpace(c.FormValue("until")), p.Now(), zoneOf(who.User))
	if err != nil {
		return err
	}
	return p.People.SetAway(ctx, who.User.Name, u.ID, &people.Away{To: to.ID, From: p.Now(), Until: until})
}

// untilOf reads a date, a date with a time, or a length of time.
func untilOf(text string, now time.Time, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	life, err := sharedctx.ParseTTL(text)
	if err != nil {
		return time.Time{}, handlers.Refuse(orchestrator.CodeBadRequest, "The end was not understood, so nothing was changed. Write a date such as 2026-12-24, or a length such as 36h or 2w.")
	}
	return now.Add(life), nil
}

// showLink answers with the page that shows a new sign-in link. It is in no address and
// in no log.
func (p *Pages) showLink(c echo.Context, who handlers.Caller, u people.User) error {
	if u.Disabled {
		return p.personRefused(c, handlers.Refuse(orchestrator.CodeConflict, u.Name+" is disabled and cannot sign in. Enable them first."))
	}
	code, err := p.Auth.MakeLink(c.Request().Context(), who.User.Name, u)
	if err != nil {
		return err
	}
	return p.person(c, http.StatusOK, func(page *view.PersonPage) {
		page.Link = strings.TrimSuffix(p.PublicURL, "/") + views.LinkPath + "?code=" + url.QueryEscape(code)
	})
}
