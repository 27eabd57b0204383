package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

var (
	// ErrMessageGone says that the message to edit was deleted, or is too old to be edited.
	ErrMessageGone = errors.New("the message can no longer be edited")
	// ErrConflict says that somebody else receives the bot's updates.
	ErrConflict = errors.New("another program receives this bot's updates: stop it, or give each its own bot")
	// ErrToken says that Telegram knows no such bot.
	ErrToken = errors.New("the token is not accepted: set channels.telegram.token to what @BotFather wrote")
)

// defaultWait is how long to leave Telegram alone when it asks for that without a figure.
const defaultWait = 5 * time.Second

// Error is a refusal of the Bot API. It has no token in it.
type Error struct {
	Method      string
	Code        int // as of HTTP
	Description string
	RetryAfter  time.Duration // 0 unless Telegram said how long to wait
	MigrateTo   int64         // the chat that a group has become, or 0
}

// Error is what Telegram said.
func (e *Error) Error() string {
	text := fmt.Sprintf("telegram %s: %d %s", e.Method, e.Code, e.Description)
	if e.MigrateTo != 0 {
		text += fmt.Sprintf("; the group is now %d: put that number into its place", e.MigrateTo)
	}
	return text
}

// said reports whether err is a refusal that has one of the phrases, in any case.
func said(err error, phrases ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	text := strings.ToLower(e.Description)
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}

// unwritable are the refusals under code 400 that say the place cannot be written to.
// What Telegram writes in capitals comes through from the layer below its Bot API.
var unwritable = []string{
	"chat not found", "not enough rights", "have no rights", "need administrator rights", "upgraded to a supergroup", "group chat was deactivated",
	"message thread not found", "topic_closed", "topic_deleted", "peer_id_invalid", "chat_write_forbidden", "chat_restricted", "user_deactivated", "chat_id is empty",
}

// uneditable are the refusals that say the message is not there to edit.
var uneditable = []string{"message to edit not found", "message can't be edited", "message_id_invalid"}

// sort turns what the library returned into an error that says what to do about it.
func (c *Client) sort(ctx context.Context, method string, l *line, answer *tgbotapi.APIResponse, err error) error {
	var refusal *tgbotapi.Error
	if !errors.As(err, &refusal) {
		return c.broken(ctx, method, l, err)
	}
	// For uploads the library drops the code from its error.
	e := &Error{Method: method, Code: answer.ErrorCode, Description: c.redact(refusal.Message), RetryAfter: seconds(refusal.RetryAfter), MigrateTo: refusal.MigrateToChatID}
	e.Code = cmp.Or(e.Code, l.status)
	switch {
	case e.Code == http.StatusTooManyRequests || e.RetryAfter > 0:
		if e.RetryAfter == 0 {
			e.RetryAfter = headerWait(l.wait)
		}
		return approval.RetryAfter(e, e.RetryAfter)
	case e.Code == http.StatusUnauthorized || e.Code == http.StatusNotFound:
		return fmt.Errorf("%w (%w)", ErrToken, e)
	case e.Code == http.StatusConflict:
		return fmt.Errorf("%w (%w)", ErrConflict, e)
	case e.Code == http.StatusForbidden || e.MigrateTo != 0:
		return approval.Gone(e)
	case e.Code == http.StatusBadRequest && said(e, uneditable...):
		return fmt.Errorf("%w (%w)", ErrMessageGone, e)
	case e.Code == http.StatusBadRequest && said(e, unwritable...):
		return approval.Gone(e)
	case e.Code >= 400 && e.Code < 500 && e.Code != http.StatusRequestTimeout:
		return approval.Refused(e)
	default:
		return e // the Bot API has a fault of its own
	}
}

// broken is the error of a call that got no answer of the Bot API. The cause is only
// quoted, never wrapped: it has the address in it, and that has the token.
func (c *Client) broken(ctx context.Context, method string, l *line, err error) error {
	if ended := ctx.Err(); errors.Is(ended, context.DeadlineExceeded) {
		return fmt.Errorf("telegram %s: no answer in time: %w", method, ended)
	} else if ended != nil {
		return fmt.Errorf("telegram %s: %w", method, ended)
	}
	if l.status == 0 {
		if address, ok := errors.AsType[*url.Error](err); ok {
			err = address.Err
		}
		return errors.New(c.redact(fmt.Sprintf("telegram %s: %s does not answer: %v", method, c.base, err)))
	}
	e := &Error{Method: method, Code: l.status, Description: c.redact("an answer that is not of the Bot API: " + err.Error())}
	if l.status == http.StatusTooManyRequests {
		e.RetryAfter = headerWait(l.wait)
		return approval.RetryAfter(e, e.RetryAfter)
	}
	return e
}

// strange is an answer of the Bot API that makes no sense.
func (c *Client) strange(method, what string) error {
	return errors.New(c.redact("telegram " + method + " answered something strange: " + what))
}

// seconds is a wait as Telegram says it, within what fits.
func seconds(n int) time.Duration { return time.Duration(max(0, min(n, 1<<31))) * time.Second }

// headerWait reads a Retry-After header in seconds.
func headerWait(value string) time.Duration {
	if n, err := strconv.Atoi(value); err == nil && n > 0 {
		return seconds(n)
	}
	return defaultWait
}

const blank = "[token]"

// redact takes the token out of a text, whole, escaped or only its second half.
func (c *Client) redact(text string) string {
	token := c.token()
	text = strings.NewReplacer(token, blank, url.QueryEscape(token), blank).Replace(text)
	if _, half, ok := strings.Cut(token, ":"); ok && len(half) >= 8 {
		text = strings.ReplaceAll(text, half, blank)
	}
	return text
}
