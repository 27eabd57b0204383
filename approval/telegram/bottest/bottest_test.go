package bottest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"gatehouse/approval/telegram/bottest"
)

var ann = bottest.Account{ID: 7, Username: "ann", Name: "Ann"}

// answer is what the Bot API says.
type answer struct {
	OK          bool
	Result      json.RawMessage
	ErrorCode   int `json:"error_code"`
	Description string
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		Migrate    int64 `json:"migrate_to_chat_id"`
	}
}

// ask calls a method with a JSON body, without any library between.
func ask(t *testing.T, tg *bottest.Server, method, body string) answer {
	t.Helper()
	resp, err := http.Post(tg.URL+"/bot"+tg.Token+"/"+method, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if want := max(a.ErrorCode, 200); resp.StatusCode != want {
		t.Errorf("%s: status %d, want %d", method, resp.StatusCode, want)
	}
	return a
}

func TestRefusalsAreTelegrams(t *testing.T) {
	tg := bottest.New(t)
	tg.AddChat(-1, "supergroup", "Core")
	tg.AddChat(-2, "supergroup", "Gone")
	tg.AddChat(-3, "group", "Old")
	tg.Block(-2, true)
	tg.Migrate(-3, -33)
	own := ask(t, tg, "sendMessage", `{"chat_id":-1,"text":"card","reply_markup":{"inline_keyboard":[[{"text":"A","callback_data":"a"}]]}}`)
	if !own.OK || !strings.Contains(string(own.Result), `"message_id":1`) {
		t.Fatalf("%+v", own)
	}
	for _, tc := range []struct {
		method, body string
		code         int
		want         string
	}{
		{"sendMessage", `{"text":"a"}`, 400, "chat_id is empty"},
		{"sendMessage", `{"chat_id":-9,"text":"a"}`, 400, "Bad Request: chat not found"},
		{"sendMessage", `{"chat_id":-2,"text":"a"}`, 403, "Forbidden: bot was kicked from the supergroup chat"},
		{"sendMessage", `{"chat_id":-3,"text":"a"}`, 400, "upgraded to a supergroup"},
		{"sendMessage", `{"chat_id":-1,"text":"a","message_thread_id":5}`, 400, "message thread not found"},
		{"sendMessage", `{"chat_id":-1,"text":"a","reply_parameters":{"message_id":99}}`, 400, "message to be replied not found"},
		{"sendMessage", `{"chat_id":-1,"text":"a","entities":[{"type":"bold","offset":0,"length":2}]}`, 400, "ends after the end"},
		{"sendMessage", `{"chat_id":-1,"text":"a","reply_markup":{"inline_keyboard":[[{"text":"A"}]]}}`, 400, "Text buttons are unallowed"},
		{"sendMessage", `{"chat_id":-1,"text":"a","reply_markup":{"inline_keyboard":[[{"text":"A","url":"http://[::1]/"}]]}}`, 400, "inline keyboard button URL 'http://[::1]/' is invalid: Wrong HTTP URL"},
		{"sendDocument", `{"chat_id":-1}`, 400, "there is no document"},
		{"editMessageText", `{"chat_id":-1,"message_id":99,"text":"a"}`, 400, "message to edit not found"},
		{"editMessageText", `{"chat_id":-1,"message_id":1,"text":"card","reply_markup":{"inline_keyboard":[[{"text":"A","callback_data":"a"}]]}}`, 400, "message is not modified"},
		{"editMessageReplyMarkup", `{"chat_id":-1,"message_id":1,"reply_markup":{"inline_keyboard":[[{"text":"A","callback_data":"a"}]]}}`, 400, "message is not modified"},
		{"answerCallbackQuery", `{"callback_query_id":"1"}`, 400, "query is too old"},
		{"setWebhook", `{"url":"http://gate.example/"}`, 400, "An HTTPS URL must be provided"},
		{"setMyCommands", `{"commands":[{"command":"Bad","description":"a"}]}`, 400, "BOT_COMMAND_INVALID"},
		{"levitate", `{}`, 404, "Not Found"},
	} {
		if a := ask(t, tg, tc.method, tc.body); a.OK || a.ErrorCode != tc.code || !strings.Contains(a.Description, tc.want) {
			t.Errorf("%s %s: %+v, want %d %s", tc.method, tc.body, a, tc.code, tc.want)
		}
	}
	if a := ask(t, tg, "sendMessage", `{"chat_id":-3,"text":"a"}`); a.Parameters.Migrate != -33 {
		t.Errorf("%+v", a)
	}
	if a := ask(t, tg, "editMessageReplyMarkup", `{"chat_id":-1,"message_id":1}`); !a.OK || len(tg.Last(-1).Buttons) != 0 {
		t.Errorf("%+v %+v", a, tg.Last(-1))
	}
	tg.Misbehave("getMe", bottest.TooMany(3))
	if a := ask(t, tg, "getMe", ""); a.ErrorCode != 429 || a.Parameters.RetryAfter != 3 {
		t.Errorf("%+v", a)
	}
	tg.Token = "other"
	resp, err := http.PostForm(tg.URL+"/bot"+bottest.DefaultToken+"/getMe", url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", resp.StatusCode)
	}
}

func TestUpdatesWaitUntilTheyAreAcknowledged(t *testing.T) {
	tg := bottest.New(t)
	tg.AddChat(ann.ID, "private", "Ann")
	tg.Say(ann.ID, ann, "/start abc", 0)
	for range 2 { // asked without an offset, they come again
		a := ask(t, tg, "getUpdates", `{"allowed_updates":["message"]}`)
		for _, want := range []string{`"update_id":700001`, `"text":"/start abc"`, `"type":"bot_command"`, `"length":6`, `"type":"private"`} {
			if !strings.Contains(string(a.Result), want) {
				t.Errorf("%s has no %s", a.Result, want)
			}
		}
	}
	if a := ask(t, tg, "getUpdates", `{"offset":700002}`); string(a.Result) != "[]" || tg.Pending() != 0 {
		t.Errorf("%s, %d wait", a.Result, tg.Pending())
	}
}

func TestTheLastOneWhoPollsGetsTheUpdates(t *testing.T) {
	tg := bottest.New(t)
	tg.AddChat(ann.ID, "private", "Ann")
	answers := make(chan answer, 2)
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() { answers <- ask(t, tg, "getUpdates", `{"timeout":20}`) })
		tg.Until(t, "the call", func() bool { return len(tg.Calls("getUpdates")) == n+1 })
	}
	if a := <-answers; a.ErrorCode != http.StatusConflict || !strings.Contains(a.Description, "terminated by other getUpdates request") {
		t.Errorf("the one before: %+v", a)
	}
	tg.Say(ann.ID, ann, "hello", 0)
	if a := <-answers; !strings.Contains(string(a.Result), "hello") {
		t.Errorf("the last one: %+v", a)
	}
	wg.Wait()
}

func TestAWebhookGetsTheUpdatesUntilItTakesThem(t *testing.T) {
	tg := bottest.New(t)
	tg.AddChat(ann.ID, "private", "Ann")
	posts := make(chan string, 10)
	code := make(chan int, 2)
	code <- http.StatusInternalServerError
	code <- http.StatusOK
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts <- r.URL.Path + " " + r.Header.Get("X-Telegram-Bot-Api-Secret-Token") + " " + string(body)
		w.WriteHeader(<-code)
	}))
	t.Cleanup(web.Close)
	tg.Reach(web.URL)
	if a := ask(t, tg, "setWebhook", `{"url":"https://gate.example/hooks/telegram","secret_token":"s"}`); !a.OK {
		t.Fatalf("%+v", a)
	}
	if a := ask(t, tg, "getUpdates", `{}`); a.ErrorCode != http.StatusConflict {
		t.Errorf("polled beside a webhook: %+v", a)
	}
	tg.Say(ann.ID, ann, "hello", 0)
	for range 2 {
		if got := <-posts; !strings.HasPrefix(got, `/hooks/telegram s {"message"`) {
			t.Errorf("posted %s", got)
		}
	}
	tg.Until(t, "the update to be taken", func() bool { return tg.Pending() == 0 })
	if a := ask(t, tg, "getWebhookInfo", ""); !strings.Contains(string(a.Result), "500 Internal Server Error") {
		t.Errorf("%s", a.Result)
	}
}

func TestAPressedButton(t *testing.T) {
	tg := bottest.New(t)
	tg.AddChat(-1, "supergroup", "Core")
	ask(t, tg, "sendMessage", `{"chat_id":-1,"text":"card","reply_markup":{"inline_keyboard":[[{"text":"Yes","callback_data":"y"},{"text":"Open","url":"https://a.example"}]]}}`)
	id := tg.Last(-1).ID
	for _, button := range []string{"No", "Open"} {
		if _, err := tg.Press(-1, id, button, ann); err == nil {
			t.Errorf("pressed %s", button)
		}
	}
	query, err := tg.Press(-1, id, "Yes", ann)
	if err != nil {
		t.Fatal(err)
	}
	tg.Delete(-1, id)
	tg.PressData(-1, id, "made up", ann)
	got := string(ask(t, tg, "getUpdates", `{}`).Result)
	for _, want := range []string{`"callback_query"`, `"data":"y"`, `"id":"` + query + `"`, `"text":"card"`, `"data":"made up"`, `"date":0`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s has no %s", got, want)
		}
	}
}
