package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/handlers"
	"gatehouse/handlers/api"
	"gatehouse/handlers/audit"
	"gatehouse/handlers/chat"
	"gatehouse/handlers/hook"
	"gatehouse/handlers/signin"
	"gatehouse/handlers/stream"

	"github.com/labstack/echo/v4"
)

// Options is what a Server is made of. Everything but Ready, Figures and Now is needed.
type Options struct {
	Listen    string         // address, for the Host check
	PublicURL string         // how people reach the server; its host is allowed too
	Site      *handlers.Site // of the pages
	API       *api.API
	Streams   *stream.Streams
	Verifier  *audit.Verifier // of Site and API
	Hooks     hook.Hooks
	Auth      *signin.Auth
	Log       *slog.Logger
	// Ready says whether the server can do its work; nil means always.
	Ready func(ctx context.Context) error
	// Figures counts for /metrics; nil leaves these figures out.
	Figures func(ctx context.Context) (handlers.Figures, error)
	// Telegram takes what Telegram posts; nil where the bot asks for it itself.
	Telegram http.Handler
	Now      func() time.Time // time.Now when nil
	// Patience is how long one answer may take until the client has it; 0 means answerTime.
	// Then the connection is cut, whatever is left. Long exports have the API's patience.
	Patience time.Duration
}

// Server answers HTTP. Serve runs it until its context ends.
type Server struct {
	Options
	log     *slog.Logger
	echo    *echo.Echo
	hosts   hosts
	metrics *registry
	chat    *chat.Pages
	access  map[string][]handlers.Right // by "METHOD path"
	writers sync.Pool                   // of gzip
}

// Limits of connections. Streams have deadlines of their own.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	bodyTime   = 30 * time.Second
	uploadTime = 75 * time.Second          // of a body with files; shorter than answerTime
	answerTime = 90 * time.Second          // longer than the longest poll
	maxHeader  = 64 << 10                  // bytes
	maxUpload  = handlers.MaxBody + 15<<20 // bytes: with the largest attachments, in base64
	closeTime  = 10 * time.Second          // for answers under way at shutdown
)

// New makes a Server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{Options: o, log: o.Log, hosts: newHosts(o.Listen, o.PublicURL), access: map[string][]handlers.Right{}, chat: &chat.Pages{Site: o.Site}, writers: sync.Pool{New: newGzip}}
	s.metrics = newMetrics(s)
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = echo.ExtractIPDirect()
	e.HTTPErrorHandler = s.fail
	e.Use(s.identify, s.observe, s.recover, s.checkHost, s.headers, s.checkOrigin, s.deadlines, s.compress)
	s.echo = e
	s.mount()
	return s
}

// SameOrigin reports whether a browser's request comes from a page of the server at
// these addresses; stream.Options takes it.
func SameOrigin(listen, publicURL string) func(*http.Request) bool {
	return newHosts(listen, publicURL).sameOrigin
}

// Secure reports whether cookies are for https only, judged by the public URL.
func Secure(publicURL string) bool { return strings.HasPrefix(strings.ToLower(publicURL), "https://") }

// Handler is the whole server as a handler.
func (s *Server) Handler() http.Handler { return s.echo }

// Serve answers on l until ctx ends. Then it ends the streams and the verifications, lets answers under way
// finish for a while, and returns when all of them are gone.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s.echo, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		s.Streams.Close()
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.Streams.Close()
	s.Verifier.Close()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	err := srv.Shutdown(last)
	if err != nil {
		err = errors.Join(fmt.Errorf("some answers were cut off: %w", err), srv.Close())
	}
	if serving := <-ended; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}

// MayListen refuses an address that others can reach while nobody can sign in: the
// first stranger to find it would be alone with it.
func MayListen(listen string, users int) error {
	if users > 0 || Loopback(listen) {
		return nil
	}
	return fmt.Errorf("%s can be reached from other computers and nobody can sign in yet. Make the first person with `gatehouse user add NAME --role admin`, or listen on 127.0.0.1", listen)
}
