package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/handlers"

	"github.com/labstack/echo/v4"
)

// require finds out who asks and holds them to the rights of the route. Whoever has
// no credential is told so, before anything else is: whether an id exists is for
// those who may read it.
func (s *Server) require(path string, rights []handlers.Right) echo.MiddlewareFunc {
	open := slices.Contains(rights, handlers.Anyone)
	forRuns := open || answersRuns(path)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			who, ok, err := s.Auth.Caller(c)
			switch {
			case err != nil && !open:
				return err
			case ok:
				handlers.SetCaller(c, who)
			case !open && wantsPage(c):
				return c.Redirect(http.StatusSeeOther, "/login?next="+url.QueryEscape(returnTo(c)))
			case !open:
				return handlers.Refuse(handlers.CodeUnauthorized, "Nobody is signed in. Send a token: Authorization: Bearer TOKEN.")
			}
			if err := who.Require(rights); err != nil {
				if strings.HasSuffix(path, "/decision") {
					handlers.TurnedAway(c, s.Site.Ids, s.Site.Gateway, err)
				}
				return err
			}
			if err := who.RequirePerson(); err != nil && !forRuns {
				return err
			}
			if err := unescape(c); err != nil {
				return err
			}
			if path != telegramPath && path != hookPath { // which know their sender before they read anything
				if err := limitBody(c, uploads(c.Request().Method+" "+path)); err != nil {
					return err
				}
			}
			return next(c)
		}
	}
}

// uploads reports whether files may come with a request, so that its body may be larger.
func uploads(route string) bool {
	return slices.Contains([]string{post + " " + v1 + "/tasks", post + " /tasks", post + " /delegations", post + " /chat"}, route)
}

// answersRuns reports whether an address holds a run to its own task. The pages show
// everybody's work, and a run token reads like a reader's.
func answersRuns(path string) bool {
	return strings.HasPrefix(path, "/api/v1/") || slices.Contains([]string{"/ws", "/delegation-status", "/delegation-stream"}, path)
}

// returnTo is the page to show after signing in. A form that was sent signed out is
// not sent again by itself; the page that it stood on is shown.
func returnTo(c echo.Context) string {
	r := c.Request()
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return handlers.LocalPath(from.RequestURI())
	}
	return "/"
}

// unescape decodes the parts of the address: where one holds an escaped slash, the
// router has matched the address as it was sent.
func unescape(c echo.Context) error {
	if c.Request().URL.RawPath == "" {
		return nil
	}
	values := slices.Clone(c.ParamValues())
	for i, v := range values {
		plain, err := url.PathUnescape(v)
		if err != nil {
			return echo.ErrBadRequest
		}
		values[i] = plain
	}
	c.SetParamValues(values...)
	return nil
}
