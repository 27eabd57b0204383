package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"gatehouse/handlers"

	"github.com/labstack/echo/v4"
)

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Code       string   `json:"code"`
	Instance   string   `json:"instance"` // names this answer in the server's log
	Candidates []string `json:"candidates,omitempty"`
}

// fail is echo's error handler: a problem document for programs, a page for browsers.
func (s *Server) fail(err error, c echo.Context) {
	f := handlers.FaultOf(err)
	log := s.log.With("request", requestID(c), "method", c.Request().Method, "path", c.Request().URL.Path)
	switch {
	case errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil:
		return // the client is gone
	case f.Status >= http.StatusInternalServerError:
		log.Error("a request failed", "err", err, "id", f.ID, "code", f.Code)
	default:
		log.LogAttrs(c.Request().Context(), slog.LevelDebug, "a request was refused", slog.String("code", f.Code))
	}
	if c.Response().Committed {
		return // a stream or download broke off; the log has why
	}
	if f.Status == http.StatusUnauthorized {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Bearer realm="gatehouse"`)
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if wantsPage(c) {
		s.knowWho(c, f)
		err = s.errorPage(c, f)
	} else {
		err = writeProblem(c, f)
	}
	if err != nil {
		log.Warn("an error could not be told", "err", err)
	}
}

// knowWho finds out who asks for an address that no route has: routes ask that themselves.
func (s *Server) knowWho(c echo.Context, f handlers.Fault) {
	if _, known := handlers.Who(c); known || f.Status != http.StatusNotFound && f.Status != http.StatusMethodNotAllowed {
		return
	}
	if who, ok, err := s.Auth.Caller(c); err == nil && ok {
		handlers.SetCaller(c, who)
	}
}

func writeProblem(c echo.Context, f handlers.Fault) error {
	p := Problem{Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status, Detail: f.Message, Code: f.Code,
		Instance: "urn:gatehouse:request:" + requestID(c), Candidates: f.Candidates}
	if f.ID != "" {
		p.Instance = "urn:gatehouse:error:" + f.ID
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return c.Blob(f.Status, "application/problem+json", body)
}

// programPaths are the addresses that answer programs, also in their errors.
var programPaths = []string{"/api/", "/ws", "/delegation-status", "/delegation-stream", "/healthz", "/readyz", "/metrics", "/static/", "/hooks/"}

// wantsPage reports whether a person's browser asked for a page.
func wantsPage(c echo.Context) bool {
	for _, p := range programPaths {
		if strings.HasPrefix(c.Request().URL.Path, p) {
			return false
		}
	}
	return true
}

// errorPage is a fault as a page.
func (s *Server) errorPage(c echo.Context, f handlers.Fault) error {
	return handlers.ErrorPage(c, f, s.Now())
}
