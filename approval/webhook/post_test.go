package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/approvaltest"
)

// hang answers nothing until release is closed or the caller is gone.
func hang(release chan struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
}

func redirect(code int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(code)
	}
}

// raw answers with bytes that need be no HTTP.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}

// misbehaviours are answers that are no success, by receivers that repeat the secret.
func misbehaviours() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"no such channel":       status(404),
		"broken":                status(500),
		"gone":                  status(410),
		"see other":             redirect(303, "/services/hushhush"),
		"redirect loop":         redirect(307, "/services/hushhush"),
		"redirect to nothing":   redirect(307, ""),
		"redirect to nonsense":  redirect(307, "http://[hushhush"),
		"redirect to a file":    redirect(307, "file:///hushhush"),
		"redirect with a login": redirect(307, "http://hushhush@127.0.0.1/"),
		"status line":           raw("HTTP/1.1 hushhush no\r\n\r\n"),
		"not HTTP":              raw("hushhush\n"),
		"header without end":    raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("hushhush", 10<<10)),
		"nothing":               raw(""),
	}
}

func TestWhatAnswersMean(t *testing.T) {
	date := noon.Add(90 * time.Second).Format(http.TimeFormat)
	for _, tc := range []struct {
		name, retryAfter string
		code             int
		ok, gone, no     bool
		wait             time.Duration
	}{
		{name: "fine", code: 200, ok: true},
		{name: "accepted", code: 202, ok: true},
		{name: "no content", code: 204, ok: true},
		{name: "gone", code: 410, gone: true},
		{name: "slow down", code: 429, retryAfter: "30", wait: 30 * time.Second},
		{name: "until a date", code: 503, retryAfter: date, wait: 90 * time.Second},
		{name: "a date that has passed", code: 503, retryAfter: noon.Add(-time.Hour).Format(http.TimeFormat), wait: time.Second},
		{name: "no pause is never a flood", code: 429, retryAfter: "0", wait: time.Second},
		{name: "a year", code: 429, retryAfter: "31536000", wait: 24 * time.Hour},
		{name: "no number of seconds", code: 429, retryAfter: "99999999999999999999"},
		{name: "negative", code: 429, retryAfter: "-5"},
		{name: "nonsense", code: 503, retryAfter: "soon"},
		{name: "no hint", code: 429},
		{name: "a hint that does not count", code: 500, retryAfter: "30"},
		{name: "unauthorised", code: 401, no: true},
		{name: "not found", code: 404, no: true},
		{name: "a proxy without its server", code: 502},
		{name: "took too long", code: 408},
		{name: "see other is no delivery", code: 303, no: true},
		{name: "not modified", code: 304, no: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := receive(t, httptest.NewServer, func(w http.ResponseWriter, _ *http.Request) {
				if tc.retryAfter != "" {
					w.Header().Set("Retry-After", tc.retryAfter)
				}
				w.WriteHeader(tc.code)
			})
			_, err := tell(t, channel(t, home(), toHome(in.URL)), approvaltest.Request(approval.Pending))
			if (err == nil) != tc.ok || approval.IsGone(err) != tc.gone || approval.IsRefused(err) != tc.no {
				t.Fatalf("err = %v", err)
			}
			if wait := waitOf(err); wait != tc.wait {
				t.Errorf("waits %s, want %s: %v", wait, tc.wait, err)
			}
		})
	}
}

// waitOf is what an error asks for: made by RetryAfter it equals another one that
// wraps the same error with the same wait, and no error with another.
func waitOf(err error) time.Duration {
	inner := errors.Unwrap(err)
	for _, d := range []time.Duration{time.Second, 30 * time.Second, 90 * time.Second, 24 * time.Hour} {
		if err != nil && inner != nil && err == approval.RetryAfter(inner, d) {
			return d
		}
	}
	return 0
}

func TestARedirectKeepsTheMessage(t *testing.T) {
	for _, code := range []int{301, 302, 307, 308} {
		in := receive(t, httptest.NewServer, nil)
		in.answer = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/old" {
				redirect(code, "/new")(w, r)
			}
		}
		if _, err := tell(t, channel(t, home(), toHome(in.URL+"/old")), approvaltest.Request(approval.Pending)); err != nil {
			t.Fatal(err)
		}
		list := in.messages()
		if len(list) != 2 || list[1].method != "POST" || list[1].path != "/new" || list[1].body != list[0].body ||
			list[1].header.Get("webhook-signature") != list[0].header.Get("webhook-signature") {
			t.Errorf("%d: %d messages, the last %s %s", code, len(list), list[len(list)-1].method, list[len(list)-1].path)
		}
	}
}

func TestThreeRedirectsAreFollowedAndNoFourth(t *testing.T) {
	for hops, ok := range map[int]bool{3: true, 4: false} {
		in := receive(t, httptest.NewServer, nil)
		in.answer = func(w http.ResponseWriter, r *http.Request) {
			if len(r.URL.Path)-1 < hops {
				redirect(307, r.URL.Path+"x")(w, r)
			}
		}
		_, err := tell(t, channel(t, home(), toHome(in.URL+"/")), approvaltest.Request(approval.Pending))
		if (err == nil) != ok || len(in.messages()) != 4 {
			t.Errorf("%d hops: %d requests, %v", hops, len(in.messages()), err)
		}
	}
}

func TestTheSignatureStaysWithItsHost(t *testing.T) {
	names := serveNames(t, map[string][]string{"example.com": {"127.0.0.1"}, "other.example.com": {"127.0.0.1"}})
	in := receive(t, httptest.NewServer, nil)
	in.answer = func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "example.com") {
			redirect(307, in.at("other.example.com", "/moved"))(w, r)
		}
	}
	target := toHome(in.at("example.com", "/hook"))
	target.AllowPrivate = false
	if _, err := tell(t, channel(t, internet(t, names), target), approvaltest.Request(approval.Pending)); err != nil {
		t.Fatal(err)
	}
	list := in.messages()
	if len(list) != 2 || list[0].header.Get("webhook-signature") == "" {
		t.Fatalf("%d messages", len(list))
	}
	for name, values := range list[1].header {
		if strings.Contains(strings.Join(values, ""), "v1,") || name == "Referer" {
			t.Errorf("another host was told %s: %v", name, values)
		}
	}
}

func TestFromHTTPSThereIsNoWayToHTTP(t *testing.T) {
	names := serveNames(t, map[string][]string{"example.com": {"127.0.0.1"}})
	open := receive(t, httptest.NewServer, nil)
	safe := receive(t, httptest.NewTLSServer, nil)
	target := toHome(safe.at("example.com", "/hook"))
	target.AllowPrivate = false
	c := channel(t, internet(t, names, safe), target)
	r := approvaltest.Request(approval.Pending)
	if _, err := tell(t, c, r); err != nil {
		t.Fatalf("a plain delivery over https: %v", err)
	}
	safe.answer = redirect(308, open.at("example.com", "/hook"))
	r.Revision.N = 2
	_, err := tell(t, c, r)
	if err == nil || len(open.messages()) != 0 || !strings.Contains(err.Error(), "https to http") {
		t.Errorf("%d messages over http: %v", len(open.messages()), err)
	}
	// The other way is an improvement.
	up := receive(t, httptest.NewServer, redirect(301, safe.at("example.com", "/hook")))
	safe.answer = nil
	target.URL = up.at("example.com", "/hook")
	if _, err := tell(t, channel(t, internet(t, names, safe), target), r); err != nil {
		t.Errorf("from http to https: %v", err)
	}
}

func TestANameThatTurnsPrivateIsNotConnectedTo(t *testing.T) {
	// 127.0.0.1 stands for a public address here and 127.0.0.2 is what it is.
	names := serveNames(t, map[string][]string{"example.com": {"127.0.0.1", "127.0.0.2"}})
	in := receive(t, httptest.NewServer, nil)
	target := toHome(in.at("example.com", "/hook"))
	target.AllowPrivate = false
	c := channel(t, internet(t, names), target)
	r := approvaltest.Request(approval.Pending)
	if _, err := tell(t, c, r); err != nil {
		t.Fatalf("while the name is public: %v", err)
	}
	r.Revision.N = 2
	_, err := tell(t, c, r)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.2 is in a private network") || approval.IsGone(err) {
		t.Errorf("after the name had turned private: %v", err)
	}
	if n := len(in.messages()); n != 1 {
		t.Errorf("%d messages", n)
	}
	target.AllowPrivate = true
	if _, err := tell(t, channel(t, internet(t, names), target), r); err == nil || strings.Contains(err.Error(), "private network") {
		t.Errorf("allowed, it should have been tried and nobody listen there: %v", err)
	}
}

func TestARedirectIntoTheMachineRoomIsRefused(t *testing.T) {
	names := serveNames(t, map[string][]string{"example.com": {"127.0.0.1"}, "inside.example.com": {"10.0.0.7"}})
	for to, why := range map[string]string{
		"http://169.254.169.254/latest/meta-data/":         "169.254.169.254",
		"http://[::ffff:169.254.169.254]/":                 "169.254.169.254",
		"http://[fe80::1]/":                                "fe80::1",
		"http://[fe80::1%25lo]/":                           "network interface",
		"http://127.0.0.2:1/":                              "private network",
		"http://[::1]:1/":                                  "private network",
		"http://inside.example.com/":                       "private network",
		"http://0.0.0.0:1/":                                "no address",
		"gopher://example.com/":                            "must begin with https",
		"//user:pass@example.com/":                         "user name",
		"http://[64:ff9b::a9fe:a9fe]/":                     "169.254.169.254",
		"http://[2002:a9fe:a9fe::]/":                       "169.254.169.254",
		"http://[2002:0a00:0001::1]/":                      "private network",
		"http://2852039166/latest/meta-data/":              "",
		"http://0xa9.0xfe.0xa9.0xfe/latest/meta-data/":     "",
		"http://169.254.169.254.:80/latest/meta-data/":     "",
		"http://metadata.google.internal/computeMetadata/": "",
	} {
		in := receive(t, httptest.NewServer, redirect(307, to))
		target := toHome(in.at("example.com", "/hook"))
		target.AllowPrivate = false
		_, err := tell(t, channel(t, internet(t, names), target), approvaltest.Request(approval.Pending))
		if err == nil || !strings.Contains(err.Error(), why) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", to, err)
		}
	}
	// Not even who may be in a private network leads to a cloud's credentials.
	in := receive(t, httptest.NewServer, redirect(307, "http://169.254.169.254/latest/meta-data/"))
	_, err := tell(t, channel(t, home(), toHome(in.URL)), approvaltest.Request(approval.Pending))
	if err == nil || !strings.Contains(err.Error(), "169.254.169.254 is no address that a webhook may have") {
		t.Errorf("with allow_private: %v", err)
	}
}

// A proxy would connect in our place, where no guard looks. The environment is read
// once per process, so the setting itself is looked at.
func TestNoProxyOfTheEnvironmentIsUsed(t *testing.T) {
	for _, r := range []reach{publicOnly, ownNetwork} {
		if tr, ok := home().client(r).Transport.(*http.Transport); !ok || tr.Proxy != nil || tr.DialTLSContext != nil {
			t.Errorf("%+v", tr)
		}
	}
}

func TestAnAnswerWithoutEndHoldsNothingUp(t *testing.T) {
	in := receive(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := approvaltest.Request(approval.Pending)
	if _, err := channel(t, home(), toHome(in.URL)).Deliver(ctx, approval.Card{RequestID: r.ID, Address: "ops"}, r, approvaltest.View(r)); err != nil {
		t.Error(err)
	}
}
