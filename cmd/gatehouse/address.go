package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
)

// addressFile is where a server says, in its data folder, where it listens. The server
// holds a lock on it: one that was killed leaves the file, and nobody believes it.
const addressFile = "address"

// answerWithin is how long a server of this machine may take to say that it lives.
const answerWithin = time.Second

// announce writes address, and the site as people open it, into the data folder until
// withdraw is called.
func announce(data, address, site string) (withdraw func() error, err error) {
	path := filepath.Join(data, addressFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("say where the server listens: %w", err)
	}
	// A reader holds its lock for a moment only, so this wait is short.
	err = errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), f.Truncate(0))
	if err == nil {
		_, err = f.WriteString(address + "\n" + site + "\n")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("say where the server listens: %w", err), f.Close())
	}
	return func() error {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return errors.Join(err, f.Close())
	}, nil
}

// announced is the address of the server that uses the data folder now, and its site; ""
// when none does or it does not answer.
func announced(ctx context.Context, data string) (address, site string) {
	f, err := os.Open(filepath.Join(data, addressFile))
	if err != nil {
		return "", ""
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		return "", "" // nobody holds it: its server is gone
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return "", ""
	}
	address, site, _ = strings.Cut(strings.TrimSpace(string(text)), "\n")
	api, err := client.New(address, "", nil)
	if err != nil {
		return "", ""
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if api.Live(ctx) != nil {
		return "", ""
	}
	return address, site
}

// serverOf is the address of the server that commands speak to when no --url and no
// GATEHOUSE_URL says so: what the configuration says, or the default.
func serverOf(ctx context.Context, sh *console.Shell) string {
	// A secret that only the server's environment has is no matter of the command line.
	cfg, err := config.LoadFor(sh.Globals.Config, sh.Env)
	if err != nil {
		fmt.Fprintf(sh.Errs, "The configuration cannot be read, so %s is tried: %s\n", defaultURL, console.Line(err.Error()))
		return defaultURL
	}
	address, _ := announced(ctx, cfg.Data)
	if address == "" {
		address = reachable(cfg.Listen)
	}
	// The file of the current folder may be anybody's, such as that of a clone, and the
	// token goes where it says: to this machine only.
	if sh.Globals.Config == "" && !local(address) {
		return defaultURL
	}
	return address
}

// local reports whether an address is on this machine.
func local(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// reachable is how a program of this machine reaches an address that is listened on.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "0" {
		return defaultURL
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// site is the address of the pages, for links: what the server that runs now says of
// itself, else what the configuration says.
func site(ctx context.Context, cfg *config.Config) string {
	if _, site := announced(ctx, cfg.Data); site != "" {
		return site
	}
	return cfg.PublicURL
}
