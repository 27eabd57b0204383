package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"gatehouse/handlers"
	"gatehouse/static"

	"github.com/labstack/echo/v4"
)

// identify gives each request an id of ours: it stands in the log, in the answer's
// header and in problem documents.
func (s *Server) identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderXRequestID, handlers.ErrorID())
		return next(c)
	}
}

func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// observe writes the log line and the figures of each answer. The line has the path
// without its query: codes of sign-in links stand there.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		err := next(c)
		if err != nil {
			c.Error(err) // answers it, so that the status is known
		}
		took := time.Since(start)
		s.metrics.observe(c, took)
		level := slog.LevelInfo
		if quiet(c.Path()) {
			level = slog.LevelDebug
		}
		who, _ := handlers.Who(c)
		s.log.LogAttrs(c.Request().Context(), level, "request",
			slog.String("id", requestID(c)), slog.String("method", c.Request().Method), slog.String("path", c.Request().URL.Path),
			slog.Int("status", c.Response().Status), slog.Int64("bytes", c.Response().Size), slog.Duration("took", took),
			slog.String("who", who.Name()), slog.String("from", c.RealIP()))
		return nil
	}
}

// quiet routes are asked all the time.
func quiet(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, static.Prefix)
}

// recover turns a panic into an error page, with the stack in the log.
func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			what := recover()
			if what == nil {
				return
			}
			if cause, ok := what.(error); ok && errors.Is(cause, http.ErrAbortHandler) {
				panic(what) // net/http's own way to drop a connection
			}
			s.log.Error("a handler panicked", "request", requestID(c), "panic", what, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", what)
		}()
		return next(c)
	}
}

// checkHost refuses names that are not this server's.
func (s *Server) checkHost(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !s.hosts.allowed(c.Request().Host) {
			return handlers.Refuse(handlers.CodeBadHost, "This server is not asked under that name. Use its own address, or set server.public_url to the name.")
		}
		return next(c)
	}
}

// policy allows what our pages are made of: our own files, and no inline code.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"

// headers sets what keeps browsers careful. Answers are not stored anywhere; the
// files under /static/ set their own lifetime.
func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		if !strings.HasPrefix(c.Request().URL.Path, static.Prefix) {
			h.Set(echo.HeaderCacheControl, "no-store")
		}
		if strings.HasPrefix(c.Request().URL.Path, "/api/") && s.PublicURL != "" {
			h.Set("Gatehouse-Site", s.PublicURL) // the command line's links begin with it
		}
		return next(c)
	}
}

// checkOrigin refuses changes that another site's page asks for with a person's cookie.
func (s *Server) checkOrigin(next echo.HandlerFunc) echo.HandlerFunc {
	guard := http.NewCrossOriginProtection()
	return func(c echo.Context) error {
		r := c.Request()
		if err := guard.Check(r); err != nil && !(s.hosts.public != "" && s.hosts.sameOrigin(r)) {
			return handlers.Refuse(handlers.CodeCrossOrigin, "Another site asked for this change, so it was not made. Do it on Gatehouse's own page.")
		}
		return next(c)
	}
}

// deadlines bounds how long a request may take to come in and an answer to go out.
// Streams set a deadline of their own for each write.
func (s *Server) deadlines(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		// Without support for deadlines, as in tests that record answers, there are none.
		_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(cmp.Or(s.Patience, answerTime)))
		return next(c)
	}
}

// limitBody reads the body, up to the limit and within its time, so that a slow or
// endless one costs a handler nothing.
func limitBody(c echo.Context, files bool) error {
	r := c.Request()
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	most, took := int64(handlers.MaxBody), bodyTime
	if files {
		most, took = maxUpload, uploadTime
	}
	rc := http.NewResponseController(c.Response())
	_ = rc.SetReadDeadline(time.Now().Add(took)) // see deadlines
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, most))
	if err != nil {
		return err
	}
	_ = rc.SetReadDeadline(time.Time{})
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}
