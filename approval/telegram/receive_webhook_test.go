package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gatehouse/approval/sqlstore"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"
)

const hookSecret = "s3cret_S-1"

func byWebhook(o *telegram.ReceiverOptions) {
	o.Mode, o.PublicURL, o.Secret = telegram.Webhook, "https://gate.example/", hookSecret
}

// unread fails the test when somebody reads a body that was not to be read.
type unread struct{ *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body was read before the secret was checked")
	return 0, io.EOF
}

func TestOnlyTelegramMayPost(t *testing.T) {
	p := newPost(t)
	r := p.receiver("a", byWebhook)
	for name, values := range map[string][]string{
		"missing": nil, "empty": {""}, "wrong": {"s3cret_S-2"}, "twice": {hookSecret, hookSecret}, "right, then wrong": {hookSecret, "x"},
		"a list": {hookSecret + ", " + hookSecret}, "longer": {hookSecret + "x"}, "shorter": {hookSecret[1:]}, "other case": {strings.ToUpper(hookSecret)},
	} {
		req := httptest.NewRequest(http.MethodPost, telegram.WebhookPath, unread{t})
		req.Header["X-Telegram-Bot-Api-Secret-Token"] = values
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), hookSecret) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if last, err := p.store.LastUpdate(t.Context(), 4242); err != nil || last != 0 {
		t.Errorf("something was stored: %d %v", last, err)
	}
}

func TestWhatIsPosted(t *testing.T) {
	p := newPost(t)
	r := p.receiver("a", byWebhook)
	good := `{"update_id":5,"message":{"message_id":1,"from":{"id":7},"chat":{"id":7},"text":"one"}}`
	for _, tc := range []struct {
		name, method, body string
		want               int
	}{
		{"an update", "POST", good, 200},
		{"the same again", "POST", good, 200},
		{"a kind of tomorrow", "POST", `{"update_id":6,"telepathy":{"text":7}}`, 200},
		{"nothing", "POST", "", 400},
		{"no JSON", "POST", "{", 400},
		{"two", "POST", good + good, 400},
		{"a list", "POST", "[" + good + "]", 400},
		{"no number", "POST", `{"message":{}}`, 400},
		{"a number that is none", "POST", `{"update_id":"5"}`, 400},
		{"a negative number", "POST", `{"update_id":-5}`, 400},
		{"too great a number", "POST", `{"update_id":99999999999999999999}`, 400},
		{"a message that is none", "POST", `{"update_id":7,"message":"hello"}`, 400},
		{"1 MiB", "POST", `{"update_id":8,"x":"` + strings.Repeat("a", 1<<20-22) + `"}`, 200},
		{"more than 1 MiB", "POST", `{"update_id":9,"x":"` + strings.Repeat("a", 1<<20-21) + `"}`, 413},
		{"a look", "GET", "", 405},
	} {
		req := httptest.NewRequest(tc.method, telegram.WebhookPath, strings.NewReader(tc.body))
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hookSecret)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != tc.want {
			t.Errorf("%s: %d %s, want %d", tc.name, w.Code, w.Body, tc.want)
		}
	}
	now := time.Now()
	got, err := p.store.DueUpdates(t.Context(), 4242, now, now.Add(time.Minute), 10)
	if err != nil || len(got) != 3 || string(got[0].Body) != good || got[2].ID != 8 {
		t.Errorf("stored %d updates, %v", len(got), err)
	}
}

// full is an inbox that cannot store.
type full struct{ *sqlstore.Store }

func (full) AddUpdates(context.Context, int64, []telegram.RawUpdate, time.Time) error {
	return errors.New("disk full")
}

func TestWhatIsNotStoredIsNotAccepted(t *testing.T) {
	p := newPost(t)
	r := p.receiver("a", byWebhook, func(o *telegram.ReceiverOptions) { o.Inbox = full{p.store} })
	req := httptest.NewRequest(http.MethodPost, telegram.WebhookPath, strings.NewReader(`{"update_id":5}`))
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", hookSecret)
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAWebhookNeedsASecretAndHTTPS(t *testing.T) {
	p := newPost(t)
	for _, tc := range []struct{ url, secret, want string }{
		{"https://gate.example", "", "webhook_secret is empty"},
		{"https://gate.example", "with a blank", "webhook_secret has a character"},
		{"https://gate.example", strings.Repeat("a", 257), "webhook_secret"},
		{"http://gate.example", "s", "https addresses only"},
		{"", "s", "https addresses only"},
		{"gate.example", "s", "https addresses only"},
	} {
		_, err := telegram.NewReceiver(telegram.ReceiverOptions{Inbox: p.store, Mode: telegram.Webhook, PublicURL: tc.url, Secret: tc.secret})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q %q: %v", tc.url, tc.secret, err)
		}
	}
	if _, err := telegram.NewReceiver(telegram.ReceiverOptions{Mode: "push"}); err == nil || !strings.Contains(err.Error(), "poll or webhook") {
		t.Errorf("%v", err)
	}
	w := httptest.NewRecorder()
	p.receiver("a").ServeHTTP(w, httptest.NewRequest(http.MethodPost, telegram.WebhookPath, unread{t}))
	if w.Code != http.StatusNotFound {
		t.Errorf("a bot that polls answered a webhook with %d", w.Code)
	}
}

func TestUpdatesComeByWebhook(t *testing.T) {
	p := newPost(t)
	r := p.receiver("a", byWebhook)
	web := httptest.NewServer(r)
	t.Cleanup(web.Close)
	p.tg.Reach(web.URL)
	p.tg.DuplicateUpdates(true)
	p.tg.Misbehave("setWebhook", bottest.ServerError(), bottest.TooMany(3))
	p.start(r)
	p.say("one", "two")
	p.wantHandled("one", "two")
	if got := p.tg.Webhook(); got != "https://gate.example/hooks/telegram" {
		t.Errorf("webhook %s", got)
	}
	p.wantStates(telegram.Unreachable, telegram.Waiting, telegram.Connected)

	// Somebody else takes the bot; it is told, and taken back.
	if err := newClient(t, p.tg.Token, p.tg.URL).SetWebhook(t.Context(), "https://other.example/x", "other"); err != nil {
		t.Fatal(err)
	}
	p.say("three")
	p.wantHandled("one", "two", "three")
	p.wantStates(telegram.Unreachable, telegram.Waiting, telegram.Connected, telegram.Conflict, telegram.Connected)
}

func TestAWebhookThatTelegramCannotReachIsTold(t *testing.T) {
	p := newPost(t)
	down := true
	r := p.receiver("a", byWebhook)
	gate := make(chan bool, 1)
	gate <- down
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		closed := <-gate
		gate <- closed
		if closed {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		r.ServeHTTP(w, req)
	}))
	t.Cleanup(web.Close)
	p.tg.Reach(web.URL)
	p.tg.SetClock(func() time.Time { return time.Now().Add(2 * time.Second) }) // its dates have whole seconds
	p.start(r)
	p.say("one")
	p.wantStates(telegram.Connected, telegram.Unreachable)
	<-gate
	gate <- false
	p.wantHandled("one")
	p.wantStates(telegram.Connected, telegram.Unreachable, telegram.Connected)
	if n := len(p.tg.Calls("setWebhook")); n != 1 {
		t.Error(fmt.Sprint("registered ", n, " times"))
	}
}
