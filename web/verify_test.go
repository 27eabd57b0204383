package web_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// hold makes verifications wait until the test lets them go on, or their client is gone.
func (h *house) hold() (release func()) {
	free := make(chan struct{})
	wait := func(ctx context.Context) {
		select {
		case <-free:
		case <-ctx.Done():
		}
	}
	h.slow.Store(&wait)
	return func() { close(free) }
}

// An auditor sees how far a long verification is, may stop it, and starts one at a time.
func TestALongVerificationShowsHowFarItIs(t *testing.T) {
	h := open(t)
	dora, ann, _, form := h.team()
	h.decided(dora, ann, "approve")
	iris, err := h.store.UserByName(h.ctx, "iris")
	h.must(err)
	token := h.token(iris)
	release := h.hold()
	page := h.seat(browsertest.New(t), iris)
	page.Open(h.url + "/audit/verify")
	page.WaitText("Nobody has verified")
	page.Click("button", "Verify now")
	page.WaitText("40% · 4,000 of about 10,000 events · 40 of 100 tasks")
	for _, guise := range []func() *browsertest.Page{page.Light, page.Dark} {
		guise().Desktop()
		page.Shot("audit-verifying-" + map[bool]string{true: "dark", false: "light"}[browsertest.Eval[bool](page, `matchMedia('(prefers-color-scheme: dark)').matches`)])
		page.Phone().Shot("audit-verifying-phone-" + map[bool]string{true: "dark", false: "light"}[browsertest.Eval[bool](page, `matchMedia('(prefers-color-scheme: dark)').matches`)])
	}
	page.Light().Desktop()
	if found := page.Violations(); len(found) > 0 {
		t.Errorf("while it runs: %v", found)
	}
	// The same person by the form, the API and the API in lines.
	has(t, form.post("/audit/verify", nil), http.StatusTooManyRequests, "You have been verifying the history since", "no second run was started", ">Verify now</button>")
	has(t, h.expect(http.StatusTooManyRequests, "rate_limited", "GET", v1+"/audit/verify", token, ""), http.StatusTooManyRequests, "that stops it")
	page.Click("button", "Stop")
	page.WaitText("Stopped. Nothing was recorded.")
	second := page.Tab().Expect("429")
	second.Open(h.url + "/audit/verify")
	second.WaitText("Nobody has verified")
	page.Click("button", "Verify now")
	page.WaitText("40% · 4,000 of about")
	second.Click("button", "Verify now")
	second.WaitText("You have been verifying the history since")
	release()
	page.WaitText("Everything fits.")
	second.Click("button", "Verify now")
	second.WaitText("Everything fits.")
}

// verifying asks for a verification in lines; the last line goes to ends when there was one.
func (h *house) verifying(token string, ends chan<- string) (status int, leave context.CancelFunc) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	r, err := http.NewRequestWithContext(ctx, "GET", h.url+v1+"/audit/verify", nil)
	h.must(err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Accept", "application/jsonl")
	a, err := http.DefaultClient.Do(r)
	h.must(err)
	if a.StatusCode != http.StatusOK {
		cancel()
		h.must(a.Body.Close())
		return a.StatusCode, cancel
	}
	go func() {
		defer cancel()
		defer a.Body.Close() //nolint:errcheck // it was read
		var last json.RawMessage
		for d := json.NewDecoder(a.Body); d.Decode(&last) == nil; {
		}
		ends <- string(last)
	}()
	return a.StatusCode, cancel
}

// A node verifies for three people at once; who goes away makes room.
func TestANodeVerifiesForAFewAtOnce(t *testing.T) {
	h := open(t)
	release := h.hold()
	ends := make(chan string, 4)
	var leave context.CancelFunc
	for _, name := range []string{"one", "two", "three"} {
		status, cancel := h.verifying(h.token(h.user(name, people.Auditor)), ends)
		if status != http.StatusOK {
			t.Fatalf("%s: %d", name, status)
		}
		leave = cancel
	}
	four := h.token(h.user("four", people.Auditor))
	has(t, h.expect(http.StatusTooManyRequests, "rate_limited", "GET", v1+"/audit/verify", four, ""), http.StatusTooManyRequests, "3 people are verifying", "try again")
	leave()
	<-ends
	for deadline := h.soon(); ; {
		status, _ := h.verifying(four, ends)
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody makes room: %d", status)
		}
	}
	release()
	for range 3 {
		if last := <-ends; !strings.Contains(last, `"ok":true`) {
			t.Errorf("the last line is %s", last)
		}
	}
}

// A server that stops ends a long verification and does not wait for it; nothing is
// recorded of it.
func TestAServerThatStopsEndsAVerification(t *testing.T) {
	h := open(t)
	token := h.token(h.user("iris", people.Auditor))
	defer h.hold()()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	h.must(err)
	ctx, stop := context.WithCancel(h.ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- h.web.Serve(ctx, l) }()
	h.url = "http://" + l.Addr().String()
	ends := make(chan string, 1)
	if status, _ := h.verifying(token, ends); status != http.StatusOK {
		t.Fatalf("it begins with %d", status)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Errorf("the server stopped with: %v", err)
	}
	if last := <-ends; strings.Contains(last, `"ok"`) {
		t.Errorf("the last line is %s", last)
	}
	if v, ok, err := h.store.LastVerified(h.ctx); ok || err != nil {
		t.Errorf("it was recorded: %+v %v", v, err)
	}
}
