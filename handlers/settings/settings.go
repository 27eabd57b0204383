package settings

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/views"
	view "gatehouse/views/settings"

	"github.com/labstack/echo/v4"
)

// Settings answers GET /settings with the first of its pages.
func (p *Pages) Settings(c echo.Context) error {
	return c.Redirect(http.StatusSeeOther, views.YouPath)
}

// You answers GET /settings/you.
func (p *Pages) You(c echo.Context) error {
	return p.you(c, http.StatusOK, func(*view.YouPage) {})
}

// you draws the page; with adds what a form has to say.
func (p *Pages) you(c echo.Context, status int, with func(*view.YouPage)) error {
	f, err := p.Begin(c, views.SectionSettings, "Settings")
	if err != nil {
		return err
	}
	f.Chrome.Path = views.YouPath
	u, err := p.People.User(f.Ctx, f.Who.User.ID)
	if err != nil {
		return err
	}
	page := view.YouPage{Chrome: f.Chrome, Groups: p.groupsOf(u.Name), HasPassword: u.PasswordHash != "", Zone: u.Zone, Muted: u.Muted}
	for _, r := range u.Roles {
		page.Roles = append(page.Roles, view.RoleChoice{Name: string(r), Has: true})
	}
	if u.Away != nil && p.Now().Before(u.Away.Until) {
		to, err := p.People.User(f.Ctx, u.Away.To)
		if err != nil {
			return err
		}
		page.Away = absence(*u.Away, to.Name, p.Now(), zoneOf(f.Who.User))
	}
	sessions, err := p.People.Sessions(f.Ctx, u.ID)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		page.Sessions = append(page.Sessions, view.SessionRow{Client: s.Client, Here: s.Hash == p.Auth.Here(c), CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt})
	}
	with(&page)
	return handlers.Render(c, status, view.You(page))
}

// groupsOf are the groups that a person is in, by the configuration in force.
func (p *Pages) groupsOf(name string) []string {
	groups := p.Gateway.Config().Groups
	return slices.DeleteFunc(slices.Sorted(maps.Keys(groups)), func(g string) bool {
		return !slices.ContainsFunc(groups[g], func(member string) bool { return strings.EqualFold(member, name) })
	})
}

// zoneOf is the zone in which the server writes times for u; the script turns them into
// that of the browser where u chose none.
func zoneOf(u people.User) *time.Location {
	if zone, err := time.LoadLocation(u.Zone); err == nil {
		return zone
	}
	return time.UTC // the machine does not know it any more
}

// absence says until when somebody is away, and who decides.
func absence(a people.Away, deputy string, now time.Time, zone *time.Location) string {
	const clock = "2006-01-02 15:04 MST"
	from := ""
	if a.From.After(now) {
		from = "from " + a.From.In(zone).Format(clock) + " "
	}
	return from + "until " + a.Until.In(zone).Format(clock) + "; " + deputy + " decides"
}

// SetZone answers POST /settings/you/zone.
func (p *Pages) SetZone(c echo.Context) error {
	who, _ := handlers.Who(c)
	zone := strings.TrimSpace(c.FormValue("zone"))
	if _, err := time.LoadLocation(zone); err != nil || zone == "Local" || len(zone) > 64 {
		return p.you(c, http.StatusBadRequest, func(page *view.YouPage) {
			page.Zone, page.ZoneError = zone, "There is no such time zone, so nothing was changed. Write a name such as Europe/Berlin, or nothing."
		})
	}
	if err := p.People.SetZone(c.Request().Context(), who.User.Name, who.User.ID, zone); err != nil {
		return err
	}
	return handlers.SeeOther(c, views.YouPath, "zone")
}

// SetMuted answers POST /settings/you/muted: whether the messages of the reader's tasks go on.
func (p *Pages) SetMuted(c echo.Context) error {
	who, _ := handlers.Who(c)
	muted := c.FormValue("muted") != ""
	if err := p.People.SetMuted(c.Request().Context(), who.User.Name, who.User.ID, muted); err != nil {
		return err
	}
	if muted {
		return handlers.SeeOther(c, views.YouPath, "muted")
	}
	return handlers.SeeOther(c, views.YouPath, "unmuted")
}

// SetPassword answers POST /settings/you/password.
func (p *Pages) SetPassword(c echo.Context) error {
	who, _ := handlers.Who(c)
	err := handlers.Refuse(orchestrator.CodeBadRequest, "The two new passwords differ. Nothing was changed.")
	if c.FormValue("new") == c.FormValue("again") {
		err = p.Auth.ChangePassword(c, who.User, c.FormValue("old"), c.FormValue("new"))
	}
	if err == nil {
		return handlers.SeeOther(c, views.YouPath, "password")
	}
	f := handlers.FaultOf(err)
	if f.ID != "" {
		return err
	}
	return p.you(c, f.Status, func(page *view.YouPage) { page.Password = f.Message })
}

// EndSessions answers POST /settings/you/sessions: signed out everywhere but here.
func (p *Pages) EndSessions(c echo.Context) error {
	who, _ := handlers.Who(c)
	if _, err := p.People.EndSessions(c.Request().Context(), who.User.Name, who.User.ID, p.Auth.Here(c)); err != nil {
		return err
	}
	return handlers.SeeOther(c, views.YouPath, "signed_out")
}

// roleChoices are all roles, with those marked that somebody has.
func roleChoices(has []people.Role) []view.RoleChoice {
	var all []view.RoleChoice
	for _, r := range people.Roles() {
		all = append(all, view.RoleChoice{Name: string(r), Has: slices.Contains(has, r)})
	}
	return all
}
