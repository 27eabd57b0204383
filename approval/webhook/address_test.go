package webhook

import (
	"net/netip"
	"testing"

	"gatehouse/orchestrator/outward"
)

func TestWhereAWebhookMayGo(t *testing.T) {
	const no, private, public = "never", "allow_private", "always"
	for address, want := range map[string]string{
		"93.184.216.34": public, "8.8.8.8": public, "172.15.255.255": public, "172.32.0.0": public, "100.63.255.255": public,
		"100.128.0.0": public, "11.0.0.0": public, "169.253.0.1": public, "2606:2800:220:1::1": public, "2a00:1450::1": public,
		"::ffff:8.8.8.8": public, "64:ff9b::808:808": public, "2002:808:808::1": public,

		"127.0.0.1": private, "127.8.8.8": private, "::1": private, "10.0.0.1": private, "10.255.255.255": private, "172.16.0.1": private,
		"172.31.255.255": private, "192.168.1.1": private, "100.64.0.1": private, "100.127.255.255": private, "fc00::1": private, "fd12::1": private,
		"::ffff:127.0.0.1": private, "::ffff:10.0.0.1": private, "64:ff9b::7f00:1": private, "64:ff9b::a00:1": private, "2002:7f00:1::": private,
		"2002:c0a8:101::1": private,

		"0.0.0.0": no, "0.1.2.3": no, "::": no, "169.254.169.254": no, "169.254.0.1": no, "fe80::1": no, "fec0::1": no, "febf::1": no,
		"224.0.0.1": no, "239.1.1.1": no, "255.255.255.255": no, "240.0.0.1": no, "ff02::1": no, "ff0e::1": no, "192.0.2.1": no, "198.18.0.1": no,
		"198.51.100.1": no, "203.0.113.1": no, "192.0.0.1": no, "192.88.99.1": no, "::ffff:169.254.169.254": no, "64:ff9b::a9fe:a9fe": no,
		"2002:a9fe:a9fe::1": no, "64:ff9b:1::8.8.8.8": no, "::127.0.0.1": no, "::8.8.8.8": no, "2001::1": no, "2001:db8::1": no, "100::1": no,
		"5f00::1": no, "4000::1": no, "2606:2800:220:1::1%eth0": no, "fe80::1%eth0": no,
	} {
		a := netip.MustParseAddr(address)
		got := no
		switch {
		case publicOnly.check(a) == nil:
			got = public
		case ownNetwork.check(a) == nil:
			got = private
		}
		if got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	if publicOnly.check(netip.Addr{}) == nil || ownNetwork.check(netip.Addr{}) == nil {
		t.Error("no address at all was let through")
	}
}

func TestTheGuardRefusesWhatItDoesNotUnderstand(t *testing.T) {
	g := outward.Guard(func(netip.Addr) error { return nil })
	for _, c := range []struct {
		network, address string
		ok               bool
	}{
		{"tcp4", "8.8.8.8:443", true}, {"tcp6", "[2606:2800:220:1::1]:443", true}, {"udp4", "8.8.8.8:443", false},
		{"unix", "/run/docker.sock", false}, {"tcp4", "example.com:443", false}, {"tcp4", "", false},
	} {
		if err := g(t.Context(), c.network, c.address, nil); (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.network, c.address, err)
		}
	}
}
