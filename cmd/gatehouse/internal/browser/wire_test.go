package browser

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// cable is a line between browser and server that can be cut.
type cable struct {
	net.Listener
	done sync.WaitGroup

	mu   sync.Mutex
	to   string
	off  bool
	open map[net.Conn]bool
}

// newWire listens and passes on to an address "http://host:port".
func newWire(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &cable{Listener: l, open: map[net.Conn]bool{}}
	w.lead(to)
	w.done.Go(w.run)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		w.cut()
		w.done.Wait()
	})
	return w
}

func (w *cable) url() string { return "http://" + w.Addr().String() }

// lead changes where new connections go.
func (w *cable) lead(to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.to = strings.TrimPrefix(to, "http://")
}

// cut drops every connection, and new ones too until mend.
func (w *cable) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = true
	w.drop()
}

// drop closes what is open now. The caller holds the lock.
func (w *cable) drop() {
	for c := range w.open {
		c.Close() //nolint:errcheck // it is meant to break
	}
	clear(w.open)
}

// blink drops every connection once.
func (w *cable) blink() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
}

func (w *cable) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off = false
}

func (w *cable) run() {
	for {
		c, err := w.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		w.mu.Lock()
		off, to := w.off, w.to
		w.mu.Unlock()
		server, err := net.Dial("tcp", to)
		if off || err != nil {
			c.Close() //nolint:errcheck // it is meant to break
			if err == nil {
				server.Close() //nolint:errcheck // nothing was said
			}
			continue
		}
		w.mu.Lock()
		w.open[c], w.open[server] = true, true
		w.mu.Unlock()
		for from, into := range map[net.Conn]net.Conn{c: server, server: c} {
			w.done.Go(func() {
				io.Copy(into, from) //nolint:errcheck // either side may break it
				from.Close()        //nolint:errcheck // as above
				into.Close()        //nolint:errcheck // as above
			})
		}
	}
}
