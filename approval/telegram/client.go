package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// DefaultAPIURL is where Telegram serves the Bot API.
const DefaultAPIURL = "https://api.telegram.org"

const (
	callTime    = 30 * time.Second // one call, where its context allows more; a long poll has its wait on top
	largestBody = 16 << 20         // bytes of an answer; 100 updates of 4,096 characters are far below
)

// allowedUpdates are the kinds that Telegram is asked for.
const allowedUpdates = `["message","callback_query","my_chat_member"]`

// commands is the menu that Telegram offers when somebody types a slash.
var commands = []tgbotapi.BotCommand{
	{Command: "pending", Description: "What waits for a verdict"},
	{Command: "status", Description: "How a task goes: /status ID"},
	{Command: "send", Description: "Give an agent a task: /send AGENT TEXT"},
	{Command: "cancel", Description: "Stop a task: /cancel ID"},
	{Command: "retry", Description: "Run a failed task again: /retry ID"},
	{Command: "mute", Description: "Leave the messages of my tasks as they are"},
	{Command: "unmute", Description: "Keep the messages of my tasks up to date"},
	{Command: "link", Description: "Connect this account to yours in Gatehouse"},
	{Command: "help", Description: "What you can write here"},
}

// Sender is what shows and answers in Telegram; *Client is one. Its errors are sorted
// as [Client] says.
type Sender interface {
	// Send sends m and returns the number that its chat knows it by.
	Send(ctx context.Context, to Place, m Message) (id int, err error)
	// Edit makes a message show m. ErrMessageGone when it is no longer there to edit.
	Edit(ctx context.Context, chat int64, id int, m Message) error
	// Document sends a file; its caption has at most 1,024 UTF-16 units.
	Document(ctx context.Context, to Place, name string, data []byte, caption string, replyTo int) (id int, err error)
	// Answer ends the waiting of whoever pressed a button, with at most 200 characters; an alert has to be closed.
	Answer(ctx context.Context, callbackID, text string, alert bool) error
}

// Me is the bot itself.
type Me struct {
	ID       int64
	Username string // without the @
	Name     string
}

// RawUpdate is one thing that somebody did, as Telegram wrote it.
type RawUpdate struct {
	ID   int64
	Body []byte // JSON
}

// HookInfo is what Telegram says of the bot's webhook.
type HookInfo struct {
	URL     string // "" when there is none
	Pending int    // updates that were not accepted yet
	Failed  time.Time
	Problem string // why the last delivery failed, at Failed
}

// ClientOptions says how a Client works. Token is required.
type ClientOptions struct {
	Token  string
	APIURL string       // "" means DefaultAPIURL
	HTTP   *http.Client // nil means one of its own; redirects are never followed
	Log    *slog.Logger // nil means slog.Default
}

// Client speaks the Bot API as one bot. Its calls end when their context does.
//
// Errors are approval.RetryAfter when Telegram asks to be left alone, approval.Gone when
// a chat cannot be written to any more, ErrMessageGone, ErrConflict or ErrToken where
// they say so, and anything else may go away by itself. All that Telegram said is in the
// *Error inside.
type Client struct {
	token  func() string // no string, so that no verb of fmt prints it
	base   string
	format string // of tgbotapi: token, method
	http   *http.Client
	log    *slog.Logger

	mu sync.Mutex
	me Me // once known
}

var _ Sender = (*Client)(nil)

// tokenShape is what may stand in an address as it is. Telegram's are 123456789:AA….
var tokenShape = regexp.MustCompile(`^[A-Za-z0-9_:-]+$`)

// New makes a client. It asks nobody: a wrong token shows at the first call.
func New(o ClientOptions) (*Client, error) {
	if !tokenShape.MatchString(o.Token) {
		return nil, errors.New("the Telegram token is empty or has a character that none has: set channels.telegram.token to what @BotFather wrote, as in 123456789:AAE…")
	}
	c := &Client{token: func() string { return o.Token }, base: strings.TrimRight(o.APIURL, "/"), log: o.Log}
	c.base = cmp.Or(c.base, DefaultAPIURL)
	if u, err := url.Parse(c.base); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no address of a Bot API: set channels.telegram.api_url as in %s", c.redact(c.base), DefaultAPIURL)
	}
	c.log = cmp.Or(c.log, slog.Default())
	c.format = strings.ReplaceAll(c.base, "%", "%%") + "/bot%s/%s"
	c.http = &http.Client{}
	if o.HTTP != nil {
		*c.http = *o.HTTP
	}
	// A redirect would carry the token to wherever it points.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// String names the client without its token.
func (c *Client) String() string { return "Telegram bot at " + c.redact(c.base) }

// GoString is String.
func (c *Client) GoString() string { return c.String() }

// ID is the bot's number: the part of its token before the colon, or else Me's.
func (c *Client) ID(ctx context.Context) (int64, error) {
	number, _, _ := strings.Cut(c.token(), ":")
	if id, err := strconv.ParseInt(number, 10, 64); err == nil && id > 0 {
		return id, nil
	}
	me, err := c.Me(ctx)
	return me.ID, err
}

// Me returns who the bot is. It asks once.
func (c *Client) Me(ctx context.Context) (Me, error) {
	c.mu.Lock()
	known := c.me
	c.mu.Unlock()
	if known.ID != 0 {
		return known, nil
	}
	var user tgbotapi.User
	if err := c.call(ctx, "getMe", nil, &user); err != nil {
		return Me{}, err
	}
	if user.ID == 0 {
		return Me{}, c.strange("getMe", "a bot without a number")
	}
	me := Me{ID: user.ID, Username: user.UserName, Name: strings.TrimSpace(user.FirstName + " " + user.LastName)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.me = me
	return me, nil
}

func (c *Client) Send(ctx context.Context, to Place, m Message) (int, error) {
	params := to.params()
	if err := m.params(params, false); err != nil {
		return 0, fmt.Errorf("write a message for Telegram: %w", err)
	}
	sent, err := c.sent(ctx, "sendMessage", params)
	return sent.ID, err
}

// Edit implements Sender. A message that shows m already is no error.
func (c *Client) Edit(ctx context.Context, chat int64, id int, m Message) error {
	params := Place{Chat: chat}.params()
	params.AddNonZero("message_id", id)
	if err := m.params(params, true); err != nil {
		return fmt.Errorf("write a message for Telegram: %w", err)
	}
	err := c.call(ctx, "editMessageText", params, nil)
	if said(err, "message is not modified") {
		return nil
	}
	return err
}

// Document implements Sender. A card offers Approve because of its answer, so that has to
// say that the whole file stands in that chat.
func (c *Client) Document(ctx context.Context, to Place, name string, data []byte, caption string, reply int) (int, error) {
	params := to.params()
	params.AddNonEmpty("caption", caption)
	replyTo(params, reply)
	const method = "sendDocument"
	m, err := c.sent(ctx, method, params, tgbotapi.RequestFile{Name: "document", Data: tgbotapi.FileBytes{Name: name, Bytes: data}})
	switch {
	case err != nil:
		return 0, err
	case m.Chat.ID != to.Chat:
		return 0, c.strange(method, "a message of another chat")
	case m.File == nil:
		return 0, c.strange(method, "a message without the file")
	case m.File.Size != 0 && m.File.Size != len(data):
		return 0, c.strange(method, fmt.Sprintf("a file of %d bytes, and %d were sent", m.File.Size, len(data)))
	}
	return m.ID, nil
}

// accepted is what Telegram says of a message that was sent.
type accepted struct {
	ID   int `json:"message_id"`
	Chat struct {
		ID int64 `json:"id"`
	} `json:"chat"`
	File *struct {
		Size int `json:"file_size"` // 0 where it is not said
	} `json:"document"`
}

// sent makes a call that sends a message.
func (c *Client) sent(ctx context.Context, method string, params tgbotapi.Params, files ...tgbotapi.RequestFile) (accepted, error) {
	var m accepted
	if err := c.call(ctx, method, params, &m, files...); err != nil {
		return accepted{}, err
	}
	if m.ID <= 0 {
		return accepted{}, c.strange(method, "a message without a number")
	}
	return m, nil
}

// Answer implements Sender. Telegram forgets who waits after a while; being late is no
// error, because nobody waits then.
func (c *Client) Answer(ctx context.Context, callbackID, text string, alert bool) error {
	params := tgbotapi.Params{"callback_query_id": callbackID}
	params.AddNonEmpty("text", text)
	params.AddBool("show_alert", alert)
	err := c.call(ctx, "answerCallbackQuery", params, nil)
	if said(err, "query is too old", "query id is invalid", "query_id_invalid") {
		return nil
	}
	return err
}

// GetUpdates returns at most limit updates from offset on, and waits that long for the
// first. Telegram forgets every update before offset.
func (c *Client) GetUpdates(ctx context.Context, offset int64, limit int, wait time.Duration) ([]RawUpdate, error) {
	params := tgbotapi.Params{"allowed_updates": allowedUpdates, "limit": strconv.Itoa(limit), "timeout": strconv.Itoa(int(wait / time.Second))}
	params.AddNonZero64("offset", offset)
	ctx, cancel := context.WithTimeout(ctx, wait+callTime)
	defer cancel()
	var bodies []json.RawMessage
	if err := c.call(ctx, "getUpdates", params, &bodies); err != nil {
		return nil, err
	}
	updates := make([]RawUpdate, len(bodies))
	for i, body := range bodies {
		id, err := updateID(body)
		if err != nil {
			return nil, c.strange("getUpdates", err.Error())
		}
		updates[i] = RawUpdate{ID: id, Body: body}
	}
	return updates, nil
}

// updateID reads the number of an update.
func updateID(body []byte) (int64, error) {
	var u struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(body, &u); err != nil {
		return 0, err
	}
	if u.ID <= 0 {
		return 0, errors.New("an update without a number")
	}
	return u.ID, nil
}

// SetWebhook makes Telegram post updates to the address, which must be https, with the secret in a header.
func (c *Client) SetWebhook(ctx context.Context, address, secret string) error {
	return c.call(ctx, "setWebhook", tgbotapi.Params{"url": address, "secret_token": secret, "allowed_updates": allowedUpdates}, nil)
}

// DeleteWebhook makes Telegram keep updates for GetUpdates. None is lost.
func (c *Client) DeleteWebhook(ctx context.Context) error {
	return c.call(ctx, "deleteWebhook", nil, nil)
}

// WebhookInfo returns the webhook that is set.
func (c *Client) WebhookInfo(ctx context.Context) (HookInfo, error) {
	var info tgbotapi.WebhookInfo
	if err := c.call(ctx, "getWebhookInfo", nil, &info); err != nil {
		return HookInfo{}, err
	}
	w := HookInfo{URL: info.URL, Pending: info.PendingUpdateCount, Problem: c.redact(info.LastErrorMessage)}
	if info.LastErrorDate > 0 {
		w.Failed = time.Unix(int64(info.LastErrorDate), 0).UTC()
	}
	return w, nil
}

// SetCommands tells Telegram which commands to offer.
func (c *Client) SetCommands(ctx context.Context) error {
	params := tgbotapi.Params{}
	if err := params.AddInterface("commands", commands); err != nil {
		return fmt.Errorf("write the bot's commands: %w", err)
	}
	return c.call(ctx, "setMyCommands", params, nil)
}

// call makes one call and reads its result into result, unless that is nil.
func (c *Client) call(ctx context.Context, method string, params tgbotapi.Params, result any, files ...tgbotapi.RequestFile) error {
	if _, set := ctx.Deadline(); !set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTime)
		defer cancel()
	}
	line := &line{ctx: ctx, http: c.http}
	// One for each call: the library takes no context, so its client has it.
	bot := &tgbotapi.BotAPI{Token: c.token(), Client: line}
	bot.SetAPIEndpoint(c.format)
	var answer *tgbotapi.APIResponse
	var err error
	if len(files) > 0 {
		answer, err = bot.UploadFiles(method, params, files)
	} else {
		answer, err = bot.MakeRequest(method, params)
	}
	if err != nil {
		return c.sort(ctx, method, line, answer, err)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return c.strange(method, err.Error())
	}
	return nil
}

// line is the way of one call: it binds the context, limits the answer and remembers
// what the library drops.
type line struct {
	ctx    context.Context
	http   *http.Client
	status int
	wait   string // the header Retry-After
}

// Do implements the library's HTTPClient.
func (l *line) Do(req *http.Request) (*http.Response, error) {
	resp, err := l.http.Do(req.WithContext(l.ctx))
	if err != nil {
		return nil, err
	}
	l.status, l.wait = resp.StatusCode, resp.Header.Get("Retry-After")
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, largestBody), resp.Body}
	return resp, nil
}
