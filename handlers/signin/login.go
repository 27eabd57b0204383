package signin

import (
	"net/http"

	"gatehouse/handlers"
	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// Login answers GET /login with 200 to anyone; who is signed in already goes on.
func (p *Pages) Login(c echo.Context) error {
	next := handlers.LocalPath(c.QueryParam("next"))
	if who, ok := handlers.Who(c); ok && who.Session {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return p.login(c, http.StatusOK, views.LoginPage{Next: next})
}

func (p *Pages) login(c echo.Context, status int, page views.LoginPage) error {
	first, err := p.Auth.First(c.Request().Context())
	if err != nil {
		return err
	}
	page.First = first
	page.Chrome = views.Chrome{Title: "Sign in", Path: handlers.PathOf(c), Now: p.Now()}
	return handlers.Render(c, status, views.Login(page))
}

// SignIn answers POST /login.
func (p *Pages) SignIn(c echo.Context) error {
	page := views.LoginPage{Name: c.FormValue("name"), Next: handlers.LocalPath(c.FormValue("next"))}
	u, err := p.Auth.Password(c.Request().Context(), page.Name, c.FormValue("password"), c.RealIP())
	if err == nil {
		err = p.Auth.Open(c, u)
	}
	if err != nil {
		f := handlers.FaultOf(err)
		if f.ID != "" {
			return err
		}
		page.Error = f.Message
		return p.login(c, f.Status, page)
	}
	return c.Redirect(http.StatusSeeOther, page.Next)
}

// Link answers GET /login/link: the page with the button. It uses nothing up, because
// previews and scanners fetch addresses too.
func (p *Pages) Link(c echo.Context) error {
	page := views.LinkPage{Code: c.QueryParam("code"), Next: handlers.LocalPath(c.QueryParam("next")), AutoPress: p.Loopback}
	status := http.StatusOK
	if err := p.Auth.CheckLink(c.Request().Context(), page.Code); err != nil {
		f := handlers.FaultOf(err)
		if f.ID != "" {
			return err
		}
		status, page.Error = f.Status, f.Message
	}
	return p.link(c, status, page)
}

func (p *Pages) link(c echo.Context, status int, page views.LinkPage) error {
	page.Chrome = views.Chrome{Title: "Sign in", Path: "/login/link", Now: p.Now()} // without the code
	c.Response().Header().Set("Referrer-Policy", "no-referrer")                     // the code stands in the address
	return handlers.Render(c, status, views.Link(page))
}

// UseLink answers POST /login/link: it uses the link up.
func (p *Pages) UseLink(c echo.Context) error {
	page := views.LinkPage{Next: handlers.LocalPath(c.FormValue("next"))}
	u, err := p.Auth.Link(c.Request().Context(), c.FormValue("code"), c.RealIP())
	if err == nil {
		err = p.Auth.Open(c, u)
	}
	if err != nil {
		f := handlers.FaultOf(err)
		if f.ID != "" {
			return err
		}
		page.Error = f.Message
		return p.link(c, f.Status, page)
	}
	return c.Redirect(http.StatusSeeOther, page.Next)
}

// SignOut answers POST /logout.
func (p *Pages) SignOut(c echo.Context) error {
	if err := p.Auth.Close(c); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, views.LoginPath)
}
