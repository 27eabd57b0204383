package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/outward"
	"gatehouse/orchestrator/patch"
)

// The limits of one delivery; its time is the context's.
const (
	maxRedirects  = 3
	maxHeader     = 32 << 10 // bytes of an answer's header
	shortestPause = time.Second
	longestPause  = 24 * time.Hour // the gateway waits less
)

// message is one thing to deliver, the same at every attempt but for its time.
type message struct {
	id   string // equal in every attempt, so that receivers can drop doubles
	body []byte
}

// receiver is a target with all that is needed to send to it.
type receiver struct {
	name   string
	target Target
	url    *url.URL
	key    []byte // nil: unsigned
	client *http.Client
	now    func() time.Time
}

// wire is how connections are made. Tests have their own names and certificates.
type wire struct {
	resolver *net.Resolver
	tls      *tls.Config
	check    func(reach, netip.Addr) error
}

// client makes a client that connects only to what r allows. Each delivery has a
// connection of its own: messages are rare, and a kept one would outlive the check.
func (w wire) client(r reach) *http.Client {
	d := &net.Dialer{Resolver: w.resolver, ControlContext: outward.Guard(func(a netip.Addr) error { return w.check(r, a) })}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: d.DialContext, TLSClientConfig: w.tls, ForceAttemptHTTP2: true,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post delivers m. Redirects are followed here and not by net/http, which would turn
// most of them into a GET without the message and hand the signature on.
func (v *receiver) post(ctx context.Context, m message) error {
	at := v.now()
	to := v.url
	for hops := 0; ; hops++ {
		req, err := v.request(ctx, to, m, at)
		if err != nil {
			return err
		}
		res, err := v.client.Do(req)
		if err != nil {
			return v.broken(ctx, to, err)
		}
		// The status says it all. Closed unread, a body without end costs nothing.
		_ = res.Body.Close()
		switch res.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
			if hops == maxRedirects {
				return fmt.Errorf("%s redirected more than %d times. Write its last address as url", v.at(v.url), maxRedirects)
			}
			if to, err = v.next(to, res.Header.Get("Location")); err != nil {
				return err
			}
		default:
			return v.verdict(to, res)
		}
	}
}

// request makes one hop's request. Only the host that was configured gets the
// signature.
func (v *receiver) request(ctx context.Context, to *url.URL, m message, at time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(m.body))
	if err != nil {
		return nil, fmt.Errorf("%s: its address cannot be asked", v.at(to))
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Gatehouse")
	r.Header.Set("webhook-id", m.id)
	r.Header.Set("webhook-timestamp", stamp)
	if v.key != nil && sameHost(v.url, to) {
		r.Header.Set("webhook-signature", sign(v.key, m.id, stamp, m.body))
	}
	return r, nil
}

// sign makes the signature of Standard Webhooks.
func sign(key []byte, id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// sameHost reports whether b is a's host and port, or the same host's other usual one.
func sameHost(a, b *url.URL) bool {
	usual := func(u *url.URL) string {
		if u.Port() == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
			return ""
		}
		return u.Port()
	}
	return strings.EqualFold(a.Hostname(), b.Hostname()) && usual(a) == usual(b)
}

// next is where a receiver sends us on to. From https there is no way back to http.
func (v *receiver) next(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || location == "" {
		return nil, fmt.Errorf("%s redirected to nowhere", v.at(from))
	}
	to.Fragment, to.RawFragment = "", ""
	if err := checkURL(to); err != nil {
		return nil, fmt.Errorf("%s redirected to an address that is not used: it %w", v.at(from), err)
	}
	if from.Scheme == "https" && to.Scheme != "https" {
		return nil, fmt.Errorf("%s redirected from https to http, where others could read the message", v.at(from))
	}
	return to, nil
}

// verdict is what an answer means for the card.
func (v *receiver) verdict(from *url.URL, res *http.Response) error {
	code := res.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	err := fmt.Errorf("%s answered %s", v.at(from), strings.TrimSpace(strconv.Itoa(code)+" "+http.StatusText(code)))
	switch code {
	case http.StatusGone:
		return approval.Gone(fmt.Errorf("%w: it wants no messages any more. Remove it from the configuration, or correct its url", err))
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait, ok := pause(res.Header.Get("Retry-After"), v.now()); ok {
			return approval.RetryAfter(err, wait)
		}
	}
	if code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code == http.StatusTooEarly {
		return err
	}
	return approval.Refused(err)
}

// pause reads Retry-After: seconds or a date.
func pause(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	at, err := http.ParseTime(text)
	wait := at.Sub(now)
	if err != nil {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return 0, false
		}
		wait = time.Duration(n) * time.Second
	}
	return min(max(wait, shortestPause), longestPause), true
}

// at names a hop without what is secret in its URL.
func (v *receiver) at(u *url.URL) string {
	return fmt.Sprintf("webhook %s (%s)", v.name, patch.Shown(u.Hostname()))
}

// broken says why there was no answer. Errors of net/http hold the whole URL and
// bytes that the receiver chose, so none of their text is passed on.
func (v *receiver) broken(ctx context.Context, to *url.URL, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s did not answer in time: %w", v.at(to), ctx.Err())
	}
	var no outward.Refused
	var lookup *net.DNSError
	var network *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &no):
		return approval.Refused(fmt.Errorf("%s was not connected to: %w", v.at(to), no))
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("%s: there is no host of that name", v.at(to))
	case errors.As(err, &lookup):
		return fmt.Errorf("%s: its host could not be looked up", v.at(to))
	case errors.As(err, &cert):
		return fmt.Errorf("%s: its certificate is not valid for that host, or not trusted here", v.at(to))
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%s: no connection: %w", v.at(to), network.Err)
	}
	return fmt.Errorf("%s: the connection broke before there was a valid answer", v.at(to))
}
