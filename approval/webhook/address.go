package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// reach says which addresses a target may be at.
type reach int

const (
	publicOnly reach = iota // what everybody on the internet could reach, too
	ownNetwork              // this machine and private networks as well
)

func nets(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParsePrefix(s)
	}
	return list
}

// own are the networks that allow_private opens.
func own() []netip.Prefix {
	return nets("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7")
}

// never are networks with no receiver of webhooks in them: link-local ones, where
// clouds hand out credentials, multicast, and what IANA's special-purpose registries
// keep for other uses.
func never() []netip.Prefix {
	return nets("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "3fff::/20")
}

// public6 is all of IPv6 that is given out to the internet.
func public6() []netip.Prefix { return nets("2000::/3") }

// check says why a may not be connected to, or nil.
func (r reach) check(a netip.Addr) error {
	a, known := plainAddress(a)
	switch {
	case !known || within(a, never()):
		return fmt.Errorf("%s is no address that a webhook may have", a)
	case within(a, own()):
		if r == ownNetwork {
			return nil
		}
		return fmt.Errorf("%s is in a private network. If that is meant, write allow_private: true", a)
	case a.Is6() && !within(a, public6()):
		return fmt.Errorf("%s is no address that a webhook may have", a)
	}
	return nil
}

// plainAddress unwraps the IPv4 address that an IPv6 one stands for: mapped, NAT64
// or 6to4. A form that hides one in other ways is not known.
func plainAddress(a netip.Addr) (netip.Addr, bool) {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" {
		return a, false
	}
	if a.Is4() {
		return a, true
	}
	b := a.As16()
	switch {
	case within(a, nets("64:ff9b::/96")):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case within(a, nets("2002::/16")):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case within(a, nets("64:ff9b:1::/48")):
		return a, false
	}
	return a, true
}

func within(a netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// refused is the guard's no.
type refused struct{ why error }

func (e refused) Error() string { return e.why.Error() }

// guard returns a net.Dialer's ControlContext. It sees the address that the socket
// is about to connect to, after every lookup, so a name that answers differently the
// second time gains nothing.
func guard(check func(netip.Addr) error) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return refused{errors.New("only TCP is used for webhooks")}
		}
		a, err := netip.ParseAddrPort(address)
		if err != nil {
			return refused{errors.New("the address to connect to is not understood")}
		}
		if err := check(a.Addr()); err != nil {
			return refused{err}
		}
		return nil
	}
}
