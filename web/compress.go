package web

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"

	"gatehouse/static"

	"github.com/labstack/echo/v4"
)

// compressFrom is the size from which a page is compressed: a smaller one fits into the few
// packets that a connection sends at once anyway.
const compressFrom = 8 << 10 // bytes

// newGzip makes a writer, which is large and used for a moment: a pool keeps some. The
// fastest level makes a page of ours about six times smaller.
func newGzip() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	return w
}

// compress sends large pages compressed to browsers that take it. Streams, downloads and
// what is small pass untouched.
func (s *Server) compress(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if r.Method != http.MethodGet || !wantsPage(c) || !static.AcceptsGzip(r.Header) {
			return next(c)
		}
		w := &pageWriter{ResponseWriter: c.Response().Writer, writers: &s.writers}
		c.Response().Writer = w
		defer func() {
			c.Response().Writer = w.ResponseWriter
			w.end()
		}()
		return next(c)
	}
}

// pageWriter compresses what is written, where its beginning is that of a large page.
type pageWriter struct {
	http.ResponseWriter
	writers *sync.Pool
	status  int
	sent    bool         // the head
	gzip    *gzip.Writer // nil where nothing is compressed
}

// Unwrap lets a ResponseController reach the connection.
func (w *pageWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader waits for the body, which says whether compressing is worth it.
func (w *pageWriter) WriteHeader(status int) { w.status = status }

// head sends the head; first is how the body begins.
func (w *pageWriter) head(first []byte) {
	if w.sent {
		return
	}
	w.sent = true
	h := w.Header()
	page := strings.HasPrefix(h.Get("Content-Type"), "text/html")
	if page {
		h.Add("Vary", "Accept-Encoding")
	}
	if page && len(first) >= compressFrom && h.Get("Content-Encoding") == "" {
		h.Set("Content-Encoding", "gzip")
		h.Del("Content-Length")
		w.gzip = w.writers.Get().(*gzip.Writer)
		w.gzip.Reset(w.ResponseWriter)
	}
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *pageWriter) Write(b []byte) (int, error) {
	w.head(b)
	if w.gzip != nil {
		return w.gzip.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// FlushError sends what is written so far.
func (w *pageWriter) FlushError() error {
	w.head(nil)
	if w.gzip != nil {
		if err := w.gzip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// end completes the answer. A client that went away needs no more of it.
func (w *pageWriter) end() {
	if w.status != 0 {
		w.head(nil)
	}
	if w.gzip != nil {
		_ = w.gzip.Close()
		w.writers.Put(w.gzip)
		w.gzip = nil
	}
}
