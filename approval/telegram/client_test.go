package telegram_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/telegram"
	"gatehouse/approval/telegram/bottest"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

const coreChat = -100123

var wireAnn = bottest.Account{ID: 7, Username: "ann", Name: "Ann"}

// newWire starts a Bot API with one chat, and a client of it.
func newWire(t *testing.T) (*bottest.Server, *telegram.Client) {
	t.Helper()
	tg := bottest.New(t)
	tg.AddChat(coreChat, "supergroup", "Core")
	tg.AddChat(wireAnn.ID, "private", wireAnn.Name)
	return tg, newClient(t, tg.Token, tg.URL)
}

func newClient(t *testing.T, token, url string) *telegram.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := telegram.New(telegram.ClientOptions{Token: token, APIURL: url, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, c *telegram.Client, m telegram.Message) int {
	t.Helper()
	id, err := c.Send(t.Context(), telegram.Place{Chat: coreChat}, m)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]telegram.Place{
		"-100123": {Chat: -100123}, "7": {Chat: 7}, "-100123:7": {Chat: -100123, Thread: 7},
	} {
		got, err := telegram.ParsePlace(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "core", "-100123:", "-100123:0", "-100123:-7", "-100123:7:8", ":7", " 7", "99999999999999999999", "@core"} {
		if p, err := telegram.ParsePlace(text); err == nil || !strings.Contains(err.Error(), "-100123:7") {
			t.Errorf("%q: %+v %v", text, p, err)
		}
	}
}

func TestAMessageShowsWhatItSays(t *testing.T) {
	tg, c := newWire(t)
	tg.AddTopic(coreChat, 9)
	first := send(t, c, telegram.Message{Text: "first"})
	text := "👍 <b>*_`[x](y)"
	id, err := c.Send(t.Context(), telegram.Place{Chat: coreChat, Thread: 9}, telegram.Message{
		Text: text, Entities: []tgbotapi.MessageEntity{{Type: "bold", Offset: 0, Length: 2}, {Type: "code", Offset: 3, Length: 3}},
		Rows: [][]telegram.Button{{{Text: "Approve", Data: "a1"}, {Text: "Open", URL: "https://gate.example/approvals/1"}}}, ReplyTo: first, Silent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := tg.Message(coreChat, id)
	if m.Text != text || len(m.Entities) != 2 || m.Entities[1].Offset != 3 || m.Thread != 9 || m.ReplyTo != first || !m.Silent || !m.NoPreview {
		t.Errorf("message %+v", m)
	}
	want := [][]bottest.Button{{{Text: "Approve", Data: "a1"}, {Text: "Open", URL: "https://gate.example/approvals/1"}}}
	if !slices.EqualFunc(m.Buttons, want, slices.Equal) {
		t.Errorf("buttons %v", m.Buttons)
	}
}

func TestAQuestionOpensTheReplyFieldOfWhomItMentions(t *testing.T) {
	tg, c := newWire(t)
	send(t, c, telegram.Message{Text: "Ann, why?", ForceReply: true, Placeholder: "The reason", ReplyTo: 999,
		Entities: []tgbotapi.MessageEntity{{Type: "text_mention", Offset: 0, Length: 3, User: &tgbotapi.User{ID: 7}}}})
	if m := tg.Last(coreChat); !m.ForceReply || !m.Selective || m.Placeholder != "The reason" || m.ReplyTo != 0 {
		t.Errorf("message %+v", m)
	}
	send(t, c, telegram.Message{Text: "Why?", ForceReply: true})
	if m := tg.Last(coreChat); !m.ForceReply || m.Selective {
		t.Errorf("message %+v", m)
	}
}

func TestEditing(t *testing.T) {
	tg, c := newWire(t)
	card := telegram.Message{Text: "◆ waits", Rows: [][]telegram.Button{{{Text: "Approve", Data: "a1"}}}}
	id := send(t, c, card)
	edit := func(m telegram.Message) error { return c.Edit(t.Context(), coreChat, id, m) }
	if err := edit(card); err != nil {
		t.Errorf("an edit that changes nothing: %v", err)
	}
	if err := edit(telegram.Message{Text: "✓ landed"}); err != nil {
		t.Fatal(err)
	}
	if m, _ := tg.Message(coreChat, id); m.Text != "✓ landed" || len(m.Buttons) != 0 || m.Edits != 1 || !slices.Equal(m.History, []string{"◆ waits"}) {
		t.Errorf("message %+v", m)
	}
	said := tg.Say(coreChat, wireAnn, "hello", 0)
	if err := c.Edit(t.Context(), coreChat, said, card); !errors.Is(err, telegram.ErrMessageGone) {
		t.Errorf("somebody else's message: %v", err)
	}
	tg.Delete(coreChat, id)
	if err := edit(card); !errors.Is(err, telegram.ErrMessageGone) || approval.IsGone(err) {
		t.Errorf("a deleted message: %v", err)
	}
}

func TestADocument(t *testing.T) {
	tg, c := newWire(t)
	first := send(t, c, telegram.Message{Text: "card"})
	id, err := c.Document(t.Context(), telegram.Place{Chat: coreChat}, "patch \"1\".diff", []byte("+a\n"), "3 files", first)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := tg.Message(coreChat, id)
	if m.Document == nil || m.Document.Name != `patch "1".diff` || string(m.Document.Data) != "+a\n" || m.Text != "3 files" || m.ReplyTo != first {
		t.Errorf("message %+v", m)
	}
	tg.Misbehave("sendDocument", bottest.TooMany(7))
	_, err = c.Document(t.Context(), telegram.Place{Chat: coreChat}, "a", []byte("a"), "", 0)
	var no *telegram.Error
	if !errors.As(err, &no) || no.Code != 429 || no.RetryAfter != 7*time.Second {
		t.Errorf("an upload that was refused: %v", err)
	}
}

func TestAnswering(t *testing.T) {
	tg, c := newWire(t)
	id := send(t, c, telegram.Message{Text: "card", Rows: [][]telegram.Button{{{Text: "Approve", Data: "a1"}}}})
	query, err := tg.Press(coreChat, id, "Approve", wireAnn)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Answer(t.Context(), query, "Approved.", true); err != nil {
		t.Fatal(err)
	}
	if got := tg.Answers(query); !slices.Equal(got, []bottest.Answer{{Text: "Approved.", Alert: true}}) {
		t.Errorf("answers %v", got)
	}
	tg.Forget()
	if err := c.Answer(t.Context(), query, "too late", false); err != nil {
		t.Errorf("an answer for which nobody waits: %v", err)
	}
}

// TestTheLimitsAreTelegrams counts in UTF-16 units: 👍 is two.
func TestTheLimitsAreTelegrams(t *testing.T) {
	_, c := newWire(t)
	button := func(b telegram.Button) telegram.Message {
		return telegram.Message{Text: "a", Rows: [][]telegram.Button{{b}}}
	}
	bold := func(text string, offset, length int) telegram.Message {
		return telegram.Message{Text: text, Entities: []tgbotapi.MessageEntity{{Type: "bold", Offset: offset, Length: length}}}
	}
	for name, tc := range map[string]struct {
		m    telegram.Message
		want string // "" when it is taken
	}{
		"4,096 units":        {telegram.Message{Text: strings.Repeat("👍", 2048)}, ""},
		"4,097 units":        {telegram.Message{Text: strings.Repeat("👍", 2048) + "a"}, "message is too long"},
		"nothing":            {telegram.Message{Text: " "}, "message text is empty"},
		"64 bytes":           {button(telegram.Button{Text: "A", Data: strings.Repeat("x", 64)}), ""},
		"65 bytes":           {button(telegram.Button{Text: "A", Data: strings.Repeat("x", 65)}), "BUTTON_DATA_INVALID"},
		"a loopback address": {button(telegram.Button{Text: "A", URL: "http://127.0.0.1:8080/a"}), "Wrong HTTP URL"},
		"a host without dot": {button(telegram.Button{Text: "A", URL: "http://localhost/a"}), "Wrong HTTP URL"},
		"inside":             {bold("👍ab", 2, 2), ""},
		"past the end":       {bold("👍ab", 2, 3), "ends after the end"},
		"half a character":   {bold("👍ab", 1, 2), "middle of a UTF-16 symbol"},
	} {
		_, err := c.Send(t.Context(), telegram.Place{Chat: coreChat}, tc.m)
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestErrorsSayWhatToDo also looks into every error and all that it wraps for the token.
func TestErrorsSayWhatToDo(t *testing.T) {
	gone := func(err error) bool { return approval.IsGone(err) }
	plain := func(err error) bool {
		var no *telegram.Error
		wait := errors.As(err, &no) && no.RetryAfter > 0
		return !approval.IsGone(err) && !wait && !errors.Is(err, telegram.ErrToken) && !errors.Is(err, telegram.ErrConflict) && !errors.Is(err, telegram.ErrMessageGone)
	}
	after := func(d time.Duration) func(error) bool {
		return func(err error) bool {
			var no *telegram.Error
			return errors.As(err, &no) && no.RetryAfter == d && !approval.IsGone(err)
		}
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for name, tc := range map[string]struct {
		how  bottest.Behaviour
		want func(error) bool
		text string
	}{
		"too many":                    {bottest.TooMany(7), after(7 * time.Second), "429"},
		"too many, no figure":         {bottest.Refuse(429, "Too Many Requests"), after(5 * time.Second), "429"},
		"blocked":                     {bottest.Blocked(), gone, "blocked by the user"},
		"kicked":                      {bottest.Refuse(403, "Forbidden: bot was kicked from the supergroup chat"), gone, "kicked"},
		"deactivated":                 {bottest.Refuse(403, "Forbidden: user is deactivated"), gone, "deactivated"},
		"no chat":                     {bottest.Refuse(400, "Bad Request: chat not found"), gone, "chat not found"},
		"no rights":                   {bottest.Refuse(400, "Bad Request: not enough rights to send text messages to the chat"), gone, "rights"},
		"no topic":                    {bottest.Refuse(400, "Bad Request: message thread not found"), gone, "thread"},
		"migrated":                    {bottest.Migrated(-100777), gone, "the group is now -100777"},
		"to edit not found":           {bottest.Refuse(400, "Bad Request: message to edit not found"), is(telegram.ErrMessageGone), "can no longer be edited"},
		"cannot be edited":            {bottest.Refuse(400, "Bad Request: message can't be edited"), is(telegram.ErrMessageGone), "can no longer be edited"},
		"unauthorized":                {bottest.Refuse(401, "Unauthorized"), is(telegram.ErrToken), "@BotFather"},
		"no such bot":                 {bottest.Refuse(404, "Not Found"), is(telegram.ErrToken), "@BotFather"},
		"conflict":                    {bottest.Conflict409(), is(telegram.ErrConflict), "another program"},
		"too long":                    {bottest.TooLong(), plain, "message is too long"},
		"not modified":                {bottest.NotModified(), plain, "not modified"}, // a message that is sent cannot be that
		"a fault of Telegram":         {bottest.Refuse(500, "Internal Server Error: restart"), plain, "500"},
		"a web server alone":          {bottest.ServerError(), plain, "502 an answer that is not of the Bot API"},
		"broken JSON":                 {bottest.BrokenJSON(), plain, "not of the Bot API"},
		"a cut":                       {bottest.CutConnection(), plain, "does not answer"},
		"a token in Telegram's words": {bottest.Refuse(400, "Bad Request: /bot"+bottest.DefaultToken+"/x AAFakeTokenOfTheTestBot_0123456789"), plain, "[token]"},
	} {
		t.Run(name, func(t *testing.T) {
			tg, c := newWire(t)
			tg.Misbehave("sendMessage", tc.how)
			tg.Misbehave("sendDocument", tc.how)
			_, err := c.Send(t.Context(), telegram.Place{Chat: coreChat}, telegram.Message{Text: "a"})
			_, err2 := c.Document(t.Context(), telegram.Place{Chat: coreChat}, "a", []byte("a"), "", 0)
			for _, err := range []error{err, err2} {
				if err == nil || !tc.want(err) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("error %v", err)
				}
				noToken(t, err)
			}
			send(t, c, telegram.Message{Text: "it goes on"})
		})
	}
}

// noToken fails if the token is in anything that err may print as.
func noToken(t *testing.T, err error) {
	t.Helper()
	for _, text := range append(unwrapped(err), fmt.Sprintf("%+v %#v", err, err)) {
		if strings.Contains(text, "AAFakeToken") {
			t.Errorf("the token is in %q", text)
		}
	}
}

// unwrapped are the texts of err and of everything inside of it.
func unwrapped(err error) []string {
	if err == nil {
		return nil
	}
	texts := []string{err.Error()}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		texts = append(texts, unwrapped(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			texts = append(texts, unwrapped(inner)...)
		}
	}
	return texts
}

func TestTheTokenIsInNothingThatPrints(t *testing.T) {
	_, c := newWire(t)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v|%#v|%s|%v", c, c, c, struct{ c *telegram.Client }{c})} {
		if strings.Contains(text, "AAFakeToken") {
			t.Errorf("printed: %s", text)
		}
	}
	if b, err := json.Marshal([]any{c}); err != nil || strings.Contains(string(b), "AAFake") {
		t.Errorf("%s %v", b, err)
	}
	// Nobody there, no such host, no TLS, a redirect, and a token that cannot be one.
	closed := httptest.NewServer(nil)
	closed.Close()
	redirect := httptest.NewServer(http.RedirectHandler("http://127.0.0.1:1/bot"+bottest.DefaultToken, http.StatusFound))
	defer redirect.Close()
	for _, url := range []string{closed.URL, "http://nobody.invalid", "https" + strings.TrimPrefix(redirect.URL, "http"), redirect.URL} {
		_, err := newClient(t, bottest.DefaultToken, url).Me(t.Context())
		if err == nil {
			t.Errorf("%s: no error", url)
		}
		noToken(t, err)
	}
	for _, o := range []telegram.ClientOptions{{}, {Token: "1:AAFakeToken/../x"}, {Token: "1:AAFakeToken\n"}, {Token: bottest.DefaultToken, APIURL: "ftp://h/" + bottest.DefaultToken}} {
		_, err := telegram.New(o)
		if err == nil || !strings.Contains(err.Error(), "channels.telegram.") {
			t.Errorf("%v", err)
		}
		noToken(t, err)
	}
}

func TestARedirectGetsNoToken(t *testing.T) {
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer other.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer first.Close()
	if _, err := newClient(t, bottest.DefaultToken, first.URL).Me(t.Context()); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	select {
	case path := <-asked:
		t.Errorf("the redirect was followed to %s", path)
	default:
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	tg, c := newWire(t)
	for method, call := range map[string]func(context.Context) error{
		"sendMessage": func(ctx context.Context) error {
			_, err := c.Send(ctx, telegram.Place{Chat: coreChat}, telegram.Message{Text: "a"})
			return err
		},
		"sendDocument": func(ctx context.Context) error {
			_, err := c.Document(ctx, telegram.Place{Chat: coreChat}, "a", make([]byte, 1<<20), "", 0)
			return err
		},
		"getUpdates": func(ctx context.Context) error {
			_, err := c.GetUpdates(ctx, 0, 100, 50*time.Second)
			return err
		},
	} {
		tg.Misbehave(method, bottest.Hang())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- call(ctx) }()
		tg.Until(t, method+" to hang", func() bool { return len(tg.Calls(method)) == 1 })
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", method, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s goes on after its context ended", method)
		}
	}
	tg.Misbehave("sendMessage", bottest.Hang())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Send(ctx, telegram.Place{Chat: coreChat}, telegram.Message{Text: "a"}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("%v", err)
	}
}

func TestWhoTheBotIs(t *testing.T) {
	tg, c := newWire(t)
	for range 2 {
		if me, err := c.Me(t.Context()); err != nil || me != (telegram.Me{ID: 4242, Username: "gatehouse_test_bot", Name: "Gatehouse"}) {
			t.Errorf("%+v %v", me, err)
		}
	}
	if n := len(tg.Calls("getMe")); n != 1 {
		t.Errorf("asked %d times", n)
	}
	// The number stands in the token, so nobody need answer to learn it.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if id, err := newClient(t, "77:AAx", "http://"+listener.Addr().String()).ID(t.Context()); err != nil || id != 77 {
		t.Errorf("%d %v", id, err)
	}
	tg.Token = "odd-token"
	if id, err := newClient(t, "odd-token", tg.URL).ID(t.Context()); err != nil || id != 4242 {
		t.Errorf("%d %v", id, err)
	}
	if err := newClient(t, "odd-token", tg.URL).SetCommands(t.Context()); err != nil || !slices.Contains(tg.Commands(), "pending") {
		t.Errorf("%v %v", tg.Commands(), err)
	}
}
