package webhook

import (
	"fmt"
	"net/netip"

	"gatehouse/orchestrator/outward"
)

// reach says which addresses a target may be at.
type reach int

const (
	publicOnly reach = iota // what everybody on the internet could reach, too
	ownNetwork              // this machine and private networks as well
)

// check says why a may not be connected to, or nil.
func (r reach) check(a netip.Addr) error {
	a, kind := outward.Judge(a)
	switch {
	case kind == outward.Public, kind == outward.Private && r == ownNetwork:
		return nil
	case kind == outward.Private:
		return fmt.Errorf("%s is in a private network. If that is meant, write allow_private: true", a)
	}
	return fmt.Errorf("%s is no address that a webhook may have", a)
}
