package web

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hosts knows under which names this server may be asked. A page of another site
// whose name was made to point here (DNS rebinding) comes with that site's name.
type hosts struct {
	names   map[string]bool
	anyAddr bool // it listens on every address, so every address is its own
	public  string
}

// newHosts allows the listen address, the ways to write this machine, and the host
// of the public URL. Ports are not compared: a forwarded port is a usual set-up.
func newHosts(listen, publicURL string) hosts {
	h := hosts{names: map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		host = listen
	}
	if host != "" {
		h.names[strings.ToLower(host)] = true
	}
	ip, err := netip.ParseAddr(host)
	h.anyAddr = host == "" || (err == nil && ip.IsUnspecified())
	if u, err := url.Parse(publicURL); err == nil && u.Hostname() != "" {
		h.names[strings.ToLower(u.Hostname())] = true
		h.public = strings.ToLower(u.Host)
	}
	return h
}

// bare is a Host header without port and brackets, in lower case.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

// allowed reports whether a Host header names this server.
func (h hosts) allowed(host string) bool {
	name := bare(host)
	if h.names[name] {
		return true
	}
	_, err := netip.ParseAddr(name)
	return err == nil && h.anyAddr // rebinding needs a name; an address is none
}

// sameOrigin reports whether a browser's request comes from a page of ours. Programs
// send neither header and pass; they cannot send another person's cookie.
func (h hosts) sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false // "null" too: sandboxed pages are not ours
	}
	host := strings.ToLower(u.Host)
	return host == strings.ToLower(r.Host) || (h.public != "" && host == h.public)
}

// Loopback reports whether a listen address is only reachable from this machine.
func Loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		host = listen
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
