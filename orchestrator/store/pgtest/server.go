package pgtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver that waits for the server and makes databases
)

const (
	superuser      = "gatehouse"
	maxConnections = 300
	startLimit     = 60 * time.Second // initdb takes 1 to 2 s; a loaded machine needs far longer
	pollEvery      = 20 * time.Millisecond
)

// keeper stands between the test process and the server. It lives as long as the pipe on its standard input: "stop"
// shuts the server down in order and keeps the data, anything else, above all the end of the pipe, ends it at once
// and removes the folder. Passwords are checked with md5: SCRAM makes a connection take twice the time, on purpose.
const keeper = `
dir=$1 bin=$2; shift 2
cd "$dir" || exit 1
if [ ! -f data/PG_VERSION ]; then
  "$bin/initdb" -D data -U ` + superuser + ` --pwfile=password --auth=md5 -E UTF8 --locale=C --no-sync >>log 2>&1 ||
    { echo pgtest-gave-up >>log; read -r word; cd /; rm -rf "$dir"; exit 1; }
fi
"$bin/postgres" -D data "$@" >>log 2>&1 </dev/null &
server=$!
read -r word
if [ "$word" = stop ]; then kill -INT $server; wait $server; exit 0; fi
kill -QUIT $server; wait $server
cd /; rm -rf "$dir"
`

// An Option changes how a server of its own is set up.
type Option func(*Server)

// Durable makes every commit wait for the disk, as in production. Benchmarks want it; tests are much faster without.
func Durable(s *Server) { s.durable = true }

// Server is one throw-away PostgreSQL on a loopback port. It is used from one goroutine.
type Server struct {
	durable  bool
	bin      string
	dir      string
	password string
	port     int
	account  *syscall.Credential // nil: our own account
	keeper   *exec.Cmd           // nil while stopped
	pipe     io.WriteCloser      // its end is the keeper's sign to clean up
}

// NewServer starts a server for this test alone and removes it when the test ends. It skips the test when PostgreSQL
// is not installed, or fails it when GATEHOUSE_TEST_ALL is 1.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Launch(opts...)
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(s.Close)
	return s
}

// Launch is [NewServer] for programs that are no tests; the caller closes the server.
func Launch(opts ...Option) (*Server, error) {
	bin, err := Installed()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, password: rand.Text()}
	for _, opt := range opts {
		opt(s)
	}
	if err := s.prepareFolder(); err != nil {
		return nil, err
	}
	if s.port, err = freePort(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.run(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// URL returns the address of one database on this server; "postgres" always exists.
func (s *Server) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop shuts the server down and cuts every connection; its data stay. On return nothing listens on its port.
func (s *Server) Stop() {
	if s.keeper == nil {
		return
	}
	_, _ = io.WriteString(s.pipe, "stop\n") // a keeper that is gone already has stopped the server
	_ = s.pipe.Close()
	_ = s.keeper.Wait()
	s.keeper = nil
}

// Start runs a stopped server again on the same port, with the same data, and returns once it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.keeper != nil {
		return
	}
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// Close ends the server at once and removes its data.
func (s *Server) Close() {
	if s.keeper == nil {
		_ = os.RemoveAll(s.dir)
		return
	}
	_ = s.pipe.Close()
	_ = s.keeper.Wait()
	s.keeper = nil
}

func (s *Server) run() error {
	// With fsync off a killed server loses nothing: what it wrote is in the kernel's cache. Only a power cut would tell.
	settings := []string{
		"-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", "",
		"-c", "max_connections=" + strconv.Itoa(maxConnections), "-c", "log_min_messages=fatal",
	}
	if !s.durable {
		settings = append(settings, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "min_wal_size=32MB", "-c", "max_wal_size=256MB")
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", keeper, "pgtest", s.dir, s.bin}, settings...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	// A group of its own: a Ctrl-C on the terminal must reach the server through the keeper only.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.account}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start PostgreSQL: %w", err), pipe.Close())
	}
	s.keeper, s.pipe = cmd, pipe
	return s.awaitReady()
}

func (s *Server) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	db, err := sql.Open("postgres", s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("open the throw-away PostgreSQL: %w", err)
	}
	defer db.Close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		if ctx.Err() != nil || gaveUp(string(log)) {
			return fmt.Errorf("the throw-away PostgreSQL did not start: %w; its log:\n%s", err, log)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// gaveUp tells a start that failed for good from one that is only slow.
func gaveUp(log string) bool {
	return strings.Contains(log, "pgtest-gave-up") || strings.Contains(log, "could not create any TCP/IP sockets")
}

// prepareFolder makes the server's folder. PostgreSQL refuses to run as root, so root hands it to another account.
func (s *Server) prepareFolder() error {
	parent := ""
	if os.Getuid() == 0 {
		account, err := lesserAccount()
		if err != nil {
			return err
		}
		s.account = account
		parent = "/tmp" // TMPDIR may lie in a folder that only root can enter
	}
	if !s.durable && roomy(memory) {
		parent = memory
	}
	dir, err := os.MkdirTemp(parent, "gatehouse-pg-")
	if err != nil {
		return fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	s.dir = dir
	password := filepath.Join(dir, "password")
	err = os.WriteFile(password, []byte(s.password+"\n"), 0o600)
	if err == nil && s.account != nil {
		uid, gid := int(s.account.Uid), int(s.account.Gid)
		err = errors.Join(os.Chown(password, uid, gid), os.Chown(dir, uid, gid))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("prepare a folder for PostgreSQL: %w", err), os.RemoveAll(dir))
	}
	return nil
}

func lesserAccount() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and neither the account postgres nor nobody exists: make one of them")
}

// freePort picks a port below the range that kernels hand to outgoing connections. In that range a client that dials
// a stopped server could be given the very port it dials and end up connected to itself.
func freePort() (int, error) {
	const low, high, tries = 20000, 32000, 100
	for range tries {
		n, err := rand.Int(rand.Reader, big.NewInt(high-low))
		if err != nil {
			return 0, fmt.Errorf("pick a port: %w", err)
		}
		port := low + int(n.Int64())
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("try port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries", low, high, tries)
}
