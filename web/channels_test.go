package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
)

// places are the inbox and a Telegram whose test card arrives at linked people only.
func (h *house) places() []handlers.Place {
	return []handlers.Place{{Name: "inbox"}, {Name: "telegram", Bot: func(context.Context) string { return "gatehouse_bot" },
		Test: func(_ context.Context, mine []people.Account) error {
			if len(mine) == 0 {
				return errors.New("Nobody is linked.")
			}
			return nil
		}}}
}

// givenUp makes a card of a request of dora's that was given up in Telegram.
func (h *house) givenUp() approval.Request {
	h.Helper()
	r := h.request(h.user("dora", people.Operator))
	h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
		return tx.EnsureCard(h.ctx, approval.Card{RequestID: r.ID, Channel: "telegram", Address: "-100123"})
	}))
	h.must(h.store.SaveCard(h.ctx, approval.Card{RequestID: r.ID, Channel: "telegram", Address: "-100123", Dead: true, Error: "bot was kicked", Attempts: 12}))
	return r
}

func TestAMessageThatWasGivenUpIsSeenAndTriedAgain(t *testing.T) {
	h := open(t)
	r := h.givenUp()
	h.must(h.store.SetHealth(h.ctx, "telegram", approval.Conflict, "Another program is polling this bot (409). Stop the other one."))
	h.must(h.store.SetHealth(h.ctx, "matrix", approval.Unreachable, "It is not configured any more."))
	finn := h.signIn(h.user("finn", people.Admin))
	overview := finn.get("/")
	for _, says := range []string{"Telegram: Another program is polling this bot", "1 message was given up", "/settings/channels"} {
		if !strings.Contains(overview.body, says) {
			t.Errorf("the overview does not say %q", says)
		}
	}
	if strings.Contains(overview.body, "not configured any more") {
		t.Error("the overview tells of a channel that is gone")
	}
	page := finn.get("/settings/channels")
	for _, says := range []string{"conflict", "bot was kicked", r.Title, "Retry all", "always on"} {
		if page.StatusCode != http.StatusOK || !strings.Contains(page.body, says) {
			t.Errorf("%d: the page does not say %q", page.StatusCode, says)
		}
	}
	letter := regexp.MustCompile(`name="letter" value="([^"]+)"`).FindStringSubmatch(page.body)
	if letter == nil {
		t.Fatal("nothing to try again")
	}
	if a := finn.post("/settings/channels/retry", url.Values{"letter": {letter[1]}}); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "It is tried again now.") ||
		!strings.Contains(a.body, "Nothing was given up.") {
		t.Errorf("%d %.300s", a.StatusCode, a.body)
	}
	if a := finn.post("/settings/channels/retry", url.Values{"letter": {letter[1]}}); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "may have been tried again already") {
		t.Errorf("a second time: %d", a.StatusCode)
	}
	if a := finn.post("/settings/channels/retry", url.Values{}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("nothing named: %d", a.StatusCode)
	}
}

func TestAPersonLinksTheirOwnAccount(t *testing.T) {
	h := open(t)
	dora, bob := h.user("dora", people.Operator), h.user("bob", people.Approver)
	b := h.signIn(dora)
	a := b.post("/settings/channels/link", url.Values{"channel": {"telegram"}})
	found := regexp.MustCompile(`https://t\.me/gatehouse_bot\?start=([0-9a-zA-Z_-]+)"`).FindStringSubmatch(a.body)
	if a.StatusCode != http.StatusOK || found == nil || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d, cached %q: no code in %.500s", a.StatusCode, a.Header.Get("Cache-Control"), a.body)
	}
	if _, err := h.store.UseLinkCode(h.ctx, "telegram", found[1], 1001, "dora_tg"); err != nil {
		t.Fatal(err)
	}
	if page := b.get("/settings/channels"); !strings.Contains(page.body, "dora_tg") || strings.Contains(page.body, found[1]) {
		t.Error("the page does not show the account, or still the code")
	}
	if a := h.signIn(bob).post("/settings/channels/unlink", url.Values{"channel": {"telegram"}, "account": {"1001"}}); a.StatusCode != http.StatusNotFound {
		t.Errorf("somebody else's account: %d", a.StatusCode)
	}
	if a := b.post("/settings/channels/unlink", url.Values{"channel": {"telegram"}, "account": {"1001"}}); a.StatusCode != http.StatusOK || strings.Contains(a.body, "dora_tg") {
		t.Errorf("%d: still linked", a.StatusCode)
	}
	if a := b.post("/settings/channels/link", url.Values{"channel": {"inbox"}}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("linking with the inbox: %d", a.StatusCode)
	}
}

func TestATestCardSaysWhyItDidNotArrive(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin)
	b := h.signIn(ann)
	if a := b.post("/settings/channels/test", url.Values{"channel": {"telegram"}}); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Nobody is linked.") {
		t.Errorf("%d %.300s", a.StatusCode, a.body)
	}
	code, err := h.store.CreateLinkCode(h.ctx, "test", "telegram", ann.ID)
	h.must(err)
	_, err = h.store.UseLinkCode(h.ctx, "telegram", code, 1001, "ann_tg")
	h.must(err)
	if a := b.post("/settings/channels/test", url.Values{"channel": {"telegram"}}); !strings.Contains(a.body, "The test card was sent.") {
		t.Errorf("%d %.300s", a.StatusCode, a.body)
	}
	for _, name := range []string{"inbox", "nothing"} {
		if a := b.post("/settings/channels/test", url.Values{"channel": {name}}); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
}

func TestTheChannelsForPrograms(t *testing.T) {
	h := open(t)
	r := h.givenUp()
	h.must(h.store.SetHealth(h.ctx, "telegram", approval.Connected, ""))
	reader, admin := h.token(h.user("eve", people.Auditor)), h.token(h.user("finn", people.Admin))
	got := h.expect(http.StatusOK, "", "GET", v1+"/channels", reader, "").json(t)
	items, letters := got["items"].([]any), got["dead_letters"].([]any)
	if len(items) != 2 || len(letters) != 1 || got["next"] != nil {
		t.Fatalf("%v", got)
	}
	tg, letter := items[1].(map[string]any), letters[0].(map[string]any)
	since, err := time.Parse(time.RFC3339, tg["since"].(string))
	if tg["name"] != "telegram" || tg["state"] != "connected" || tg["dead"] != 1.0 || err != nil || since.IsZero() || items[0].(map[string]any)["since"] != nil {
		t.Errorf("%v", items)
	}
	if letter["request_id"] != r.ID || letter["error"] != "bot was kicked" || letter["kind"] != "card" {
		t.Errorf("%v", letter)
	}
	h.expect(http.StatusForbidden, "forbidden", "POST", v1+"/channels/retry", reader, `{"all":true}`)
	h.expect(http.StatusBadRequest, "bad_request", "POST", v1+"/channels/retry", admin, `{}`)
	h.expect(http.StatusNotFound, "not_found", "POST", v1+"/channels/retry", admin, `{"letter":"card/none"}`)
	if n := h.expect(http.StatusOK, "", "POST", v1+"/channels/retry", admin, `{"channel":"telegram"}`).json(t)["retried"]; n != 1.0 {
		t.Errorf("%v tried again", n)
	}
}
