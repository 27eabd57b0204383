package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"gatehouse/handlers/metrics"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// registry is what stands behind /metrics. What the database knows is read when somebody
// asks, not kept.
type registry struct {
	server   *Server
	handler  http.Handler
	requests *prometheus.HistogramVec
}

func newMetrics(s *Server) *registry {
	m := &registry{server: s,
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_http_request_duration_seconds", Help: "How long answers of this process took; of streams until they begin.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
		}, []string{"method", "route", "status"}),
	}
	r := prometheus.NewRegistry()
	if s.Figures != nil {
		r.MustRegister(metrics.Collector(s.Figures))
	}
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_streams_open", Help: "Event streams and WebSockets that are connected to this process.",
	}, func() float64 { return float64(s.Streams.Open()) }))
	r.MustRegister(m.requests, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return m
}

// observe counts one answer under its route, never under its path: ids would make a
// series each.
func (m *registry) observe(c echo.Context, took time.Duration) {
	route := c.Path()
	if route == "" || c.Response().Status == http.StatusNotFound && !m.server.known(c.Request().Method, route) {
		route = "none"
	}
	m.requests.WithLabelValues(methodLabel(c.Request().Method), route, strconv.Itoa(c.Response().Status)).Observe(took.Seconds())
}

// known says whether the table has the route.
func (s *Server) known(method, path string) bool {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	_, ok := s.access[method+" "+path]
	return ok
}

// methodLabel keeps made-up methods from making series.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete:
		return m
	}
	return "other"
}

func (m *registry) serve(c echo.Context) error {
	m.handler.ServeHTTP(c.Response(), c.Request())
	return nil
}

// healthz says that the process answers.
func (s *Server) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether the server can do its work; why not stays in the log.
func (s *Server) readyz(c echo.Context) error {
	if s.Ready != nil {
		ctx, cancel := context.WithTimeout(c.Request().Context(), 3*time.Second)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			s.log.Warn("not ready", "err", err)
			return c.JSON(http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
		}
	}
	return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
}

// telegramPath is where Telegram posts.
const telegramPath = "/hooks/telegram"

// hookPath is where other webhooks are called.
const hookPath = "/hooks/:name"

// telegram hands an update to the bot, which checks the secret before it reads the
// body, and bounds its size; its time is bounded here.
func (s *Server) telegram(c echo.Context) error {
	if s.Telegram == nil {
		return echo.ErrNotFound
	}
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(bodyTime)) // see deadlines
	s.Telegram.ServeHTTP(c.Response(), c.Request())
	return nil
}
