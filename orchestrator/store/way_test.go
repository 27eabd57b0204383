package store_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/orchestrator/store/storetest"
)

// passage is what becomes of some bytes on a way.
type passage int

const (
	pass passage = iota
	cut          // they are lost, with the connection
	late         // the connection is lost, and they arrive when the test says so
	hold         // they arrive when the test says so, and the connection stands
)

// way is a way to a server on which a test loses what it chooses. It reads requests and
// answers in the pieces in which they were written.
type way struct {
	net.Listener
	to string

	mu              sync.Mutex
	request, answer func(b []byte) passage // nil passes all
	open            []net.Conn
	free            chan struct{} // closed where what is late or held arrives
	ends            sync.WaitGroup
}

// newWay opens a database and a store that reaches it by a way.
func newWay(t *testing.T) (w *way, direct, by *sqlstore.Store) {
	t.Helper()
	u, err := url.Parse(storetest.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w = &way{Listener: l, to: u.Host, free: make(chan struct{})}
	go w.serve()
	t.Cleanup(func() {
		_ = l.Close()
		w.set(nil, nil)
		w.arrive()
		w.breakAll()
		w.ends.Wait()
	})
	direct = open(t, u.String())
	u.Host = l.Addr().String()
	return w, direct, open(t, u.String())
}

// set chooses what is lost from now on.
func (w *way) set(request, answer func(b []byte) passage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.request, w.answer = request, answer
}

// arrive lets what is late or held arrive.
func (w *way) arrive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.free)
	w.free = make(chan struct{})
}

// arriving lets what is late arrive again and again while run runs.
func (w *way) arriving(each time.Duration, run func()) {
	tick := time.NewTicker(each)
	defer tick.Stop()
	done := make(chan struct{})
	var end sync.WaitGroup
	end.Go(func() {
		for {
			select {
			case <-tick.C:
				w.arrive()
			case <-done:
				return
			}
		}
	})
	defer end.Wait()
	defer close(done)
	run()
}

// breakAll breaks every connection.
func (w *way) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.open {
		_ = c.Close()
	}
	w.open = nil
}

func (w *way) serve() {
	for {
		client, err := w.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.open = append(w.open, client, server)
		w.mu.Unlock()
		w.ends.Go(func() { w.carry(client, server, func() func([]byte) passage { return w.request }) })
		w.ends.Go(func() { w.carry(server, client, func() func([]byte) passage { return w.answer }) })
	}
}

// carry brings bytes from one end to the other until either is closed.
func (w *way) carry(from, to net.Conn, choice func() func([]byte) passage) {
	defer from.Close()
	defer to.Close()
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		w.mu.Lock()
		choose, free, how := choice(), w.free, pass
		if choose != nil {
			how = choose(b[:n])
		}
		w.mu.Unlock()
		switch how {
		case cut:
			return
		case late:
			_ = from.Close()
			<-free
			_, _ = to.Write(b[:n])
			time.Sleep(50 * time.Millisecond) // the server reads it before it sees the end
			return
		case hold:
			<-free
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// nth chooses how for the n-th piece from now on and passes the others; seen counts all.
func nth(n int, how passage) (choose func([]byte) passage, seen *int) {
	seen = new(int)
	return func([]byte) passage {
		if *seen++; *seen == n {
			return how
		}
		return pass
	}, seen
}
