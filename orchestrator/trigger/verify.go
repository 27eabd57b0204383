package trigger

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The headers of the sources, as they document them.
const (
	githubSignature = "X-Hub-Signature-256" // sha256= and hex
	githubDelivery  = "X-GitHub-Delivery"
	githubEvent     = "X-GitHub-Event"

	gitlabToken = "X-Gitlab-Token"
	gitlabUUID  = "X-Gitlab-Event-UUID" // of hooks that caused each other; not of one delivery
	gitlabKey   = "Idempotency-Key"     // of one delivery, the same when it is sent again
	gitlabEvent = "X-Gitlab-Event"

	standardID        = "webhook-id"
	standardTimestamp = "webhook-timestamp"
	standardSignature = "webhook-signature"
	standardSecret    = "whsec_" // begins a secret that is base64; GitLab's signing tokens, too

	// DefaultHeader has the signature of a source of kind hmac that names none.
	DefaultHeader = "X-Signature"
)

const (
	maxSignatures = 16  // in one header: keys that are being changed
	maxID         = 200 // bytes of a sender's id or name of what happened
)

// ErrSignature is that nobody who knows the secret sent this. It never says more: a
// guess learns nothing.
var ErrSignature = errors.New("the signature is missing or wrong")

// Call is what the headers of a verified delivery say.
type Call struct {
	ExternalID string // the sender's id of the delivery, "" when there is none
	Signed     bool   // the id is covered by the signature: a repeat has the same
	Event      string // the sender's name of what happened, "" when there is none
	Headers    map[string]string
}

// Knocks reports whether headers look like a signed delivery, before the body is read: a
// flood of others costs nothing. The secret itself is the header of GitLab's older hooks.
func (t *Trigger) Knocks(h http.Header) bool {
	switch t.Source {
	case GitHub:
		v, ok := single(h, githubSignature)
		return ok && len(v) == len("sha256=")+2*sha256.Size
	case GitLab:
		return t.token(h) || t.signs() && t.stamped(h)
	case Standard:
		return t.stamped(h)
	default:
		_, ok := single(h, t.header())
		return ok
	}
}

// Verify reports who sent the body: nil only for somebody with one of the secrets. It
// looks at nothing in the body.
func (t *Trigger) Verify(h http.Header, body []byte, now time.Time) (Call, error) {
	if !t.Knocks(h) || !t.genuine(h, body, now) {
		return Call{}, ErrSignature
	}
	return t.call(h)
}

func (t *Trigger) genuine(h http.Header, body []byte, now time.Time) bool {
	switch t.Source {
	case GitHub:
		v, _ := single(h, githubSignature)
		sum, ok := strings.CutPrefix(v, "sha256=")
		return ok && t.signed(sum, hex.DecodeString, body)
	case GitLab:
		// A hook that signs is held to its signature; its token alone is a lesser proof.
		if t.signs() && len(h.Values(standardSignature)) > 0 {
			return t.standard(h, body, now)
		}
		return t.token(h)
	case Standard:
		return t.standard(h, body, now)
	default:
		v, _ := single(h, t.header())
		sum, ok := strings.CutPrefix(v, t.Prefix)
		if t.Encoding == "base64" {
			return ok && t.signed(sum, base64.StdEncoding.DecodeString, body)
		}
		return ok && t.signed(sum, hex.DecodeString, body)
	}
}

// signed compares a signature with that of the body under each secret.
func (t *Trigger) signed(text string, decode func(string) ([]byte, error), body []byte) bool {
	sum, err := decode(text)
	if err != nil {
		return false
	}
	match := false
	for _, secret := range t.Secrets {
		match = hmac.Equal(sum, mac([]byte(secret), body)) || match
	}
	return match
}

// standard checks id, time and body under each secret and each signature of the list.
func (t *Trigger) standard(h http.Header, body []byte, now time.Time) bool {
	id, _ := single(h, standardID)
	stamp, _ := single(h, standardTimestamp)
	list, _ := single(h, standardSignature)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return false
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > t.Window || age < -t.Window {
		return false
	}
	var sums [][]byte
	for _, s := range strings.Fields(list) {
		text, ok := strings.CutPrefix(s, "v1,")
		if sum, err := base64.StdEncoding.DecodeString(text); ok && err == nil {
			sums = append(sums, sum)
		}
	}
	if len(sums) > maxSignatures {
		return false
	}
	match := false
	for _, secret := range t.Secrets {
		key := []byte(secret)
		if text, ok := strings.CutPrefix(secret, standardSecret); ok {
			if key, err = base64.StdEncoding.DecodeString(text); err != nil {
				continue // refused when the configuration is read
			}
		} else if t.Source == GitLab {
			continue // that is a token, which proves nothing about the body
		}
		want := mac(key, []byte(id), []byte("."), []byte(stamp), []byte("."), body)
		for _, sum := range sums {
			match = hmac.Equal(sum, want) || match
		}
	}
	return match
}

// stamped reports whether the three headers of Standard Webhooks are there, once each.
func (t *Trigger) stamped(h http.Header) bool {
	return !slices.ContainsFunc([]string{standardID, standardTimestamp, standardSignature}, func(name string) bool {
		v, ok := single(h, name)
		return !ok || v == ""
	})
}

// signs reports whether a secret is a signing token.
func (t *Trigger) signs() bool {
	return slices.ContainsFunc(t.Secrets, func(s string) bool { return strings.HasPrefix(s, standardSecret) })
}

// token compares GitLab's secret token, in the same time for every guess.
func (t *Trigger) token(h http.Header) bool {
	v, ok := single(h, gitlabToken)
	if !ok || v == "" {
		return false
	}
	got, match := sha256.Sum256([]byte(v)), false
	for _, secret := range t.Secrets {
		want := sha256.Sum256([]byte(secret))
		match = !strings.HasPrefix(secret, standardSecret) && subtle.ConstantTimeCompare(got[:], want[:]) == 1 || match
	}
	return match
}

func (t *Trigger) header() string {
	return cmp.Or(t.Header, DefaultHeader)
}

// call reads what the headers say besides. One that comes twice could be read two ways,
// so nothing is read.
func (t *Trigger) call(h http.Header) (Call, error) {
	c := Call{Headers: map[string]string{}}
	names := map[Source][]string{GitHub: {githubDelivery, githubEvent}, GitLab: {gitlabKey, gitlabEvent, gitlabUUID}, Standard: {standardID, standardTimestamp}}[t.Source]
	if t.Source == GitLab && t.signs() && len(h.Values(standardSignature)) > 0 {
		names = append(names, standardID, standardTimestamp)
	}
	for _, name := range append(names, "Content-Type", "User-Agent") {
		values := h.Values(name)
		if len(values) > 1 || len(values) == 1 && (len(values[0]) > maxID || strings.ContainsFunc(values[0], unicode.IsControl)) {
			return Call{}, ErrSignature
		}
		if len(values) == 1 {
			c.Headers[name] = values[0]
		}
	}
	switch t.Source {
	case GitHub:
		c.ExternalID, c.Event = c.Headers[githubDelivery], c.Headers[githubEvent]
	case GitLab:
		c.ExternalID, c.Event = c.Headers[gitlabKey], c.Headers[gitlabEvent]
		if id := c.Headers[standardID]; id != "" {
			c.ExternalID, c.Signed = id, true
		}
		c.ExternalID = cmp.Or(c.ExternalID, c.Headers[gitlabUUID])
	case Standard:
		c.ExternalID, c.Signed = c.Headers[standardID], true
	}
	return c, nil
}

// single is the value of a header that came exactly once.
func single(h http.Header, name string) (string, bool) {
	values := h.Values(name)
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

func mac(key []byte, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, key)
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}
