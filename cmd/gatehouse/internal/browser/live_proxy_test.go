package browser

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// middleman is a proxy between browser and server that treats streams badly.
type middleman struct {
	*httptest.Server
	buffers  atomic.Bool // a stream's answer is never passed on
	swallows atomic.Bool // what a stream says from now on vanishes, and nobody is told
	streams  atomic.Int32
}

func newMiddleman(t *testing.T, to string) *middleman {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	m := &middleman{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}, ModifyResponse: func(res *http.Response) error {
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			res.Body = &hole{ReadCloser: res.Body, m: m, done: res.Request.Context().Done()}
		}
		return nil
	}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			m.streams.Add(1)
			if m.buffers.Load() {
				<-r.Context().Done()
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// hole is a stream of which nothing arrives any more.
type hole struct {
	io.ReadCloser
	m    *middleman
	done <-chan struct{}
}

func (h *hole) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if h.m.swallows.Load() {
		<-h.done
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// TestLiveMeansLive: a proxy keeps what streams say for itself, and later a line vanishes
// without a word. The page says that it is not live, since when it truly is not, and goes on
// showing what happens; a change of page asks for one stream, and a tab that follows
// another can ask by itself.
func TestLiveMeansLive(t *testing.T) {
	t.Parallel()
	p := placetest.AwayPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), "10m")
	n := p.Start(p.Config, "")
	m := newMiddleman(t, n.URL)
	page := browsertest.New(t).Page()
	page.Expect("ERR_").Expect("htmx:").Expect("status of 50")
	enter(p, page, m.URL, "eve", people.Operator, people.Approver)
	quick := func(page *browsertest.Page) {
		browsertest.Eval[bool](page, `(window.ghLive = {dead: 1000, connect: 400, poll: 300, answer: 200}) !== null`)
	}
	slow := func(page *browsertest.Page) { // a healthy line is silent for longer than a test waits
		browsertest.Eval[bool](page, `(window.ghLive = null) === null`)
	}
	live(page)
	before := m.streams.Load()
	for _, path := range []string{"/delegations", "/approvals", "/agents"} {
		page.Open(m.URL + path)
		live(page)
	}
	if asked := m.streams.Load() - before; asked != 3 {
		t.Errorf("three pages asked for %d streams", asked)
	}

	m.buffers.Store(true)
	page.Open(m.URL + "/")
	quick(page)
	lost(page)
	n.Send("early", "app", "behind a proxy")
	page.WaitText("Do behind a proxy")
	page.WaitText("This page asked at")
	m.buffers.Store(false)
	slow(page)
	live(page)

	follower := page.Tab()
	follower.Expect("ERR_").Expect("htmx:").Expect("status of 50")
	follower.Open(m.URL + "/")
	live(follower)
	quick(page)
	quick(follower)
	m.swallows.Store(true)
	n.Send("early", "app", "into the hole")
	sunk := time.Now().UnixMilli()
	lost(page)
	lost(follower)
	for _, one := range []*browsertest.Page{page, follower} {
		if since := browsertest.Eval[float64](one, `Number(document.getElementById("live-dot").dataset.since)`); since <= 0 || since > float64(sunk) {
			t.Errorf("not live since %v, and nothing came after %d", since, sunk)
		}
		one.WaitText("Do into the hole")
	}
	follower.Click("button", "Now") // while nothing heals by itself and takes the button away
	m.swallows.Store(false)
	for _, one := range []*browsertest.Page{page, follower} { // long enough for a loaded machine to connect
		browsertest.Eval[bool](one, `(window.ghLive = {dead: 3000}) !== null`)
	}
	live(follower)
	slow(page)
	slow(follower)
	live(page)
	n.Send("early", "app", "out of it")
	for _, one := range []*browsertest.Page{page, follower} {
		one.WaitText("Do out of it")
		live(one)
	}
	p.Until("one stream for two tabs", func() bool { return streams(n) == 1 })
}
