package config

import (
	"net"
	"net/netip"
	"net/url"
)

// webAddress reads an address of the web; ok is false where it is none.
func webAddress(text string) (u *url.URL, ok bool) {
	u, err := url.Parse(text)
	return u, err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Site is how people of this machine open a server that listens there, where no public_url
// says how others do: by one name, because a browser that signed in at localhost is a
// stranger at 127.0.0.1. The server's start line, sign-in links, pages, cards and what the
// command line prints all begin with it.
func Site(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	ip, err := netip.ParseAddr(host)
	if host == "" || err == nil && (ip.IsUnspecified() || ip == netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
