package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// got is one message that a receiver was sent.
type got struct {
	method, path, body string
	header             http.Header
}

// inbox is a real receiver on this machine. It answers what answer says, 200 without.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	list   []got
	answer http.HandlerFunc
}

func receive(t *testing.T, start func(http.Handler) *httptest.Server, answer http.HandlerFunc) *inbox {
	t.Helper()
	in := &inbox{answer: answer}
	in.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a message: %v", err)
		}
		in.mu.Lock()
		in.list = append(in.list, got{r.Method, r.URL.RequestURI(), string(body), r.Header.Clone()})
		in.mu.Unlock()
		if in.answer != nil {
			in.answer(w, r)
		}
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) messages() []got {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]got{}, in.list...)
}

// status answers with codes in turn, then 200.
func status(codes ...int) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(codes) > 0 {
			w.WriteHeader(codes[0])
			codes = codes[1:]
		}
	}
}

// at is the receiver's URL under another host name, on the same port.
func (in *inbox) at(host, path string) string {
	scheme, rest, _ := strings.Cut(in.URL, "://")
	_, port, _ := strings.Cut(rest, ":")
	return scheme + "://" + host + ":" + port + path
}

// internet is a wire on which 127.0.0.1 stands for a public address, so that real
// sockets can be used with the check on. Every other address is judged as always.
func internet(t *testing.T, names *nameServer, servers ...*inbox) wire {
	roots := x509.NewCertPool()
	for _, s := range servers {
		if c := s.Certificate(); c != nil {
			roots.AddCert(c)
		}
	}
	return wire{resolver: names.resolver(), tls: &tls.Config{RootCAs: roots}, check: func(r reach, a netip.Addr) error {
		if a == netip.MustParseAddr("127.0.0.1") {
			return nil
		}
		return r.check(a)
	}}
}

// channel makes a channel with these targets on the wire.
func channel(t *testing.T, w wire, targets ...Target) *Channel {
	t.Helper()
	c, err := build(Options{Targets: targets, PublicURL: "https://gatehouse.example.com/", Now: func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler)}, w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func toHome(url string) Target {
	return Target{Name: "ops", URL: url, Format: Standard, Secret: testSecret, AllowPrivate: true}
}

// home is the wire that New uses.
func home() wire {
	return wire{check: func(r reach, a netip.Addr) error { return r.check(a) }}
}

// tell delivers r to the first target.
func tell(t *testing.T, c *Channel, r approval.Request) (string, error) {
	t.Helper()
	return c.Deliver(t.Context(), approval.Card{RequestID: r.ID, Channel: Name, Address: c.targets[0].Name}, r, approvaltest.View(r))
}

// nameServer is a DNS server that answers each name with its addresses in turn and
// stays at the last.
type nameServer struct {
	conn  net.PacketConn
	mu    sync.Mutex
	names map[string][]string
	asked map[string]int
}

func serveNames(t *testing.T, names map[string][]string) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{conn: conn, names: names, asked: map[string]int{}}
	var done sync.WaitGroup
	done.Go(s.run)
	t.Cleanup(func() { _ = conn.Close(); done.Wait() })
	return s
}

func (s *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

func (s *nameServer) run() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := s.reply(buf[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

// reply answers the one question of a query (RFC 1035, section 4).
func (s *nameServer) reply(query []byte) []byte {
	var labels []string
	at := 12
	for at < len(query) && query[at] != 0 {
		n := int(query[at])
		labels = append(labels, string(query[at+1:at+1+n]))
		at += 1 + n
	}
	end := at + 5
	if end > len(query) {
		return nil
	}
	ipv4 := binary.BigEndian.Uint16(query[at+1:]) == 1
	reply := append([]byte{}, query[:end]...)
	copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
	address := s.next(strings.ToLower(strings.Join(labels, ".")), ipv4)
	if address == "" {
		return reply
	}
	reply[7] = 1
	ip := netip.MustParseAddr(address).As4()
	return append(append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
}

func (s *nameServer) next(name string, ipv4 bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.names[name]
	if !ipv4 || len(list) == 0 {
		return ""
	}
	i := min(s.asked[name], len(list)-1)
	s.asked[name]++
	return list[i]
}
