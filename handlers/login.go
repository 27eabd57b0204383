package handlers

import (
	"net/http"
	"net/url"
	"strings"

	"gatehouse/views"

	"github.com/labstack/echo/v4"
)

// LocalPath keeps a redirect on this server: one slash, no host, no tricks with
// backslashes or control characters, which browsers read as slashes or drop.
func LocalPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return "/"
	}
	if strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/login") || strings.HasPrefix(u.Path, "/logout") {
		return "/"
	}
	return next
}

// Login answers GET /login with 200 to anyone; who is signed in already goes on.
func (p *Pages) Login(c echo.Context) error {
	next := LocalPath(c.QueryParam("next"))
	if who, ok := Who(c); ok && who.Session {
		return c.Redirect(http.StatusSeeOther, next)
	}
	return p.login(c, http.StatusOK, views.LoginPage{Next: next})
}

func (p *Pages) login(c echo.Context, status int, page views.LoginPage) error {
	first, err := p.Door.First(c.Request().Context())
	if err != nil {
		return err
	}
	page.First = first
	page.Chrome = views.Chrome{Title: "Sign in", Path: pathOf(c), Now: p.Now()}
	return render(c, status, views.Login(page))
}

// SignIn answers POST /login.
func (p *Pages) SignIn(c echo.Context) error {
	page := views.LoginPage{Name: c.FormValue("name"), Next: LocalPath(c.FormValue("next"))}
	u, err := p.Door.Password(c.Request().Context(), page.Name, c.FormValue("password"), c.RealIP())
	if err == nil {
		err = p.Door.Open(c, u)
	}
	if err != nil {
		f := FaultOf(err)
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
	page := views.LinkPage{Code: c.QueryParam("code"), Next: LocalPath(c.QueryParam("next")), AutoPress: p.Loopback}
	status := http.StatusOK
	if err := p.Door.CheckLink(c.Request().Context(), page.Code); err != nil {
		f := FaultOf(err)
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
	return render(c, status, views.Link(page))
}

// UseLink answers POST /login/link: it uses the link up.
func (p *Pages) UseLink(c echo.Context) error {
	page := views.LinkPage{Next: LocalPath(c.FormValue("next"))}
	u, err := p.Door.Link(c.Request().Context(), c.FormValue("code"), c.RealIP())
	if err == nil {
		err = p.Door.Open(c, u)
	}
	if err != nil {
		f := FaultOf(err)
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
	if err := p.Door.Close(c); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, views.LoginPath)
}
