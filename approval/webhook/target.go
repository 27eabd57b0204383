package webhook

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"gatehouse/orchestrator/outward"
)

// The formats of messages.
const (
	Slack    = "slack"    // Slack's incoming webhooks, and what imitates them
	Standard = "standard" // standardwebhooks.com, signed
)

const secretPrefix = "whsec_"

// The bytes of a secret, from the specification of Standard Webhooks.
const (
	shortestSecret = 24
	longestSecret  = 64
)

// Target is one receiver. Its URL and Secret are secrets: whoever knows Slack's URL
// can write to the channel. Printed or logged, a target shows neither.
type Target struct {
	Name         string // what cards and pages call it
	URL          string
	Format       string // Slack or Standard; "" means Standard
	Secret       string // whsec_ and base64; with Standard only
	AllowPrivate bool   // it stands on this machine or in one's own network
	// Events are the kinds of messages that it is told, such as task.failed or approval.*;
	// none means all about requests.
	Events []string
}

// Check says what is wrong with t in a sentence for who wrote the configuration. It
// looks nothing up: where a name leads is judged at every delivery.
func (t Target) Check() error {
	if !validName(t.Name) {
		return fmt.Errorf("%.80q cannot be the name of a webhook. Use 1 to 64 letters a to z, digits, - and _", t.Name)
	}
	u, err := t.address()
	if err != nil {
		return fmt.Errorf("webhook %s: %w", t.Name, err)
	}
	if err := t.checkHost(u.Hostname()); err != nil {
		return fmt.Errorf("webhook %s: %w", t.Name, err)
	}
	if err := t.checkEvents(); err != nil {
		return fmt.Errorf("webhook %s: %w", t.Name, err)
	}
	switch t.format() {
	case Slack:
		if t.Secret != "" {
			return fmt.Errorf("webhook %s: messages to Slack are not signed. Remove its secret, or write format: standard", t.Name)
		}
	case Standard:
		if _, err := t.key(); err != nil {
			return fmt.Errorf("webhook %s: %w", t.Name, err)
		}
	default:
		return fmt.Errorf("webhook %s: format %.80q is unknown. Write slack or standard", t.Name, t.Format)
	}
	return nil
}

func validName(s string) bool {
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789-_"
	return s != "" && len(s) <= 64 && strings.Trim(s, chars) == ""
}

// address parses the URL. Its errors never repeat it.
func (t Target) address() (*url.URL, error) {
	if t.URL == "" {
		return nil, errors.New("it has no url. Write url: with the address that its messages go to")
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, errors.New("its url is no address. Write one such as https://example.com/hook")
	}
	if err := checkURL(u); err != nil {
		return nil, fmt.Errorf("its url %w", err)
	}
	return u, nil
}

// checkURL holds for the first address and for every one that a receiver names. The
// error goes on where "its url" stands.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("must begin with https:// or http://")
	case u.User != nil:
		return errors.New("must not hold a user name or password")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("names no host")
	case strings.Contains(u.Hostname(), "%"):
		return errors.New("names a network interface. Leave out the % and what follows")
	case u.Fragment != "":
		return errors.New("must not have a part after #: it would not be sent")
	}
	return nil
}

// checkHost refuses at load what every delivery would refuse.
func (t Target) checkHost(host string) error {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		if !t.AllowPrivate {
			return fmt.Errorf("%s is this machine. If that is meant, write allow_private: true", host)
		}
		return nil
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	return t.reach().check(a)
}

func (t Target) reach() reach {
	if t.AllowPrivate {
		return ownNetwork
	}
	return publicOnly
}

func (t Target) format() string {
	return cmp.Or(t.Format, Standard)
}

// key decodes the secret. Its errors never repeat it.
func (t Target) key() ([]byte, error) {
	text, ok := strings.CutPrefix(t.Secret, secretPrefix)
	switch {
	case t.Secret == "":
		return nil, errors.New("it has no secret, so its receiver could not tell our messages from forged ones. " + howToMakeSecret)
	case !ok:
		return nil, errors.New("its secret does not begin with whsec_. " + howToMakeSecret)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errors.New("its secret is not base64 after whsec_. " + howToMakeSecret)
	}
	if len(key) < shortestSecret || len(key) > longestSecret {
		return nil, fmt.Errorf("its secret has %d bytes and must have %d to %d. %s", len(key), shortestSecret, longestSecret, howToMakeSecret)
	}
	return key, nil
}

const howToMakeSecret = `Make one with: echo "whsec_$(openssl rand -base64 32)"`

// String names t without its secrets.
func (t Target) String() string {
	host := "no valid url"
	if u, err := t.address(); err == nil {
		host = u.Hostname()
	}
	return t.Name + " (" + host + ")"
}

// GoString is String, for %#v.
func (t Target) GoString() string { return t.String() }

// LogValue is String, for logs.
func (t Target) LogValue() slog.Value { return slog.StringValue(t.String()) }

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
