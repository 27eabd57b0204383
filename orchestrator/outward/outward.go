// Package outward says which addresses a request may go to that others have a say in: a
// webhook's, a page that a model asks for. Names are judged by the address that a socket
// is about to connect to.
//
// The room imports only the standard library.
package outward

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// Kind is what an address is to this machine.
type Kind int

// The kinds of addresses.
const (
	Never   Kind = iota // link-local ones, where clouds hand out credentials, multicast, kept for other uses, unknown
	Private             // this machine and private networks
	Public              // what everybody on the internet could reach, too
)

func nets(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParsePrefix(s)
	}
	return list
}

// own are this machine and private networks.
func own() []netip.Prefix {
	return nets("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7")
}

// neverOnes are networks with nobody to be reached in them: link-local ones, where
// clouds hand out credentials, multicast, and what IANA's special-purpose registries
// keep for other uses.
func neverOnes() []netip.Prefix {
	return nets("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "3fff::/20")
}

// public6 is all of IPv6 that is given out to the internet.
func public6() []netip.Prefix { return nets("2000::/3") }

// Judge says what an address is, and which address it stands for.
func Judge(a netip.Addr) (netip.Addr, Kind) {
	a, known := plainAddress(a)
	switch {
	case !known || within(a, neverOnes()):
		return a, Never
	case within(a, own()):
		return a, Private
	case a.Is6() && !within(a, public6()):
		return a, Never
	}
	return a, Public
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
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Refused is the guard's no.
type Refused struct{ why error }

func (e Refused) Error() string { return e.why.Error() }

// Guard returns a net.Dialer's ControlContext. It sees the address that the socket
// is about to connect to, after every lookup, so a name that answers differently the
// second time gains nothing.
func Guard(check func(netip.Addr) error) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		if network != "tcp4" && network != "tcp6" {
			return Refused{errors.New("only TCP is used")}
		}
		a, err := netip.ParseAddrPort(address)
		if err != nil {
			return Refused{errors.New("the address to connect to is not understood")}
		}
		if err := check(a.Addr()); err != nil {
			return Refused{err}
		}
		return nil
	}
}
