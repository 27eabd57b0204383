package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"gatehouse/orchestrator/strictjson"
)

// WebhookPath is where a Receiver's ServeHTTP belongs.
const WebhookPath = "/hooks/telegram"

const (
	secretHeader  = "X-Telegram-Bot-Api-Secret-Token"
	largestUpdate = 1 << 20     // bytes; a message has at most 4,096 characters
	checkWebhook  = time.Minute // between looks at what Telegram says of the webhook
)

// secretShape is what Telegram allows, up to maxSecret bytes.
var secretShape = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

const maxSecret = 256

// webhookAddress is the address to register, if Telegram would take it.
func webhookAddress(publicURL, secret string) (string, error) {
	if secret == "" {
		return "", errors.New("channels.telegram.webhook_secret is empty: without it anybody could press buttons in other people's names; set 1 to 256 of A-Z a-z 0-9 _ -")
	}
	if len(secret) > maxSecret || !secretShape.MatchString(secret) {
		return "", errors.New("channels.telegram.webhook_secret has a character that Telegram does not send: use 1 to 256 of A-Z a-z 0-9 _ -")
	}
	if u, err := url.Parse(publicURL); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("public_url is %q, and Telegram posts to https addresses only: set it to where people reach Gatehouse by https, or channels.telegram.mode to poll", publicURL)
	}
	return strings.TrimRight(publicURL, "/") + WebhookPath, nil
}

// keepWebhook registers the webhook and looks after it until ctx ends.
func (r *Receiver) keepWebhook(ctx context.Context) {
	began := r.o.Now()
	for failures, registered := 0, false; ctx.Err() == nil; {
		var err error
		if registered {
			registered, err = r.lookAfterWebhook(ctx, began)
		} else {
			err = r.register(ctx)
			registered = err == nil
		}
		switch {
		case err != nil:
			failures++
			r.o.Sleep(ctx, r.trouble(ctx, err, failures))
		case registered:
			failures = 0
			r.o.Sleep(ctx, checkWebhook)
		}
	}
}

// register is done at every start, because the secret may be a new one.
func (r *Receiver) register(ctx context.Context) error {
	if err := r.o.Client.SetWebhook(ctx, r.webhook, r.o.Secret); err != nil {
		return err
	}
	if r.getState() != Conflict {
		r.report(ctx, Connected, "")
	}
	r.offerCommands(ctx)
	return nil
}

// lookAfterWebhook reports whether the webhook is still this one, and how deliveries go.
func (r *Receiver) lookAfterWebhook(ctx context.Context, began time.Time) (ours bool, err error) {
	hook, err := r.o.Client.WebhookInfo(ctx)
	switch now := r.o.Now(); {
	case err != nil:
		return true, err
	case hook.URL != r.webhook:
		r.report(ctx, Conflict, fmt.Sprintf("Somebody else set this bot's webhook to %q or removed it; it is set again. Give each program its own bot.", hook.URL))
		return false, nil
	case hook.Failed.After(began) && hook.Pending > 0 && now.Sub(hook.Failed) < 2*checkWebhook:
		r.report(ctx, Unreachable, fmt.Sprintf("Telegram cannot deliver to %s: %s", r.webhook, hook.Problem))
	default:
		r.report(ctx, Connected, "")
	}
	return true, nil
}

// envelope is what a Receiver has to know of an update. Other shapes are the handler's.
type envelope struct {
	ID       int64 `json:"update_id"`
	Message  *act  `json:"message"`
	Callback *act  `json:"callback_query"`
	Member   *act  `json:"my_chat_member"`
}

// act is what somebody did.
type act struct {
	From struct {
		ID int64 `json:"id"`
	} `json:"from"`
}

// sender is the account that acted, or 0.
func (u envelope) sender() int64 {
	for _, a := range []*act{u.Message, u.Callback, u.Member} {
		if a != nil {
			return a.From.ID
		}
	}
	return 0
}

// parseUpdate reads an update as far as a Receiver needs it.
func parseUpdate(body []byte) (envelope, error) {
	var u envelope
	if err := json.Unmarshal(body, &u); err != nil {
		return u, err
	}
	if u.ID <= 0 {
		return u, errors.New("an update without a number")
	}
	return u, nil
}

// ServeHTTP takes an update that Telegram posts. It answers 200 only after the update is
// stored; after anything else Telegram posts it again.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case r.o.Mode != Webhook:
		http.Error(w, "This bot polls; it has no webhook.", http.StatusNotFound)
		return
	case !r.knows(req.Header.Values(secretHeader)): // before the body is read
		http.Error(w, "The secret is missing or wrong.", http.StatusUnauthorized)
		return
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "Post an update.", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, largestUpdate))
	if errors.As(err, new(*http.MaxBytesError)) {
		http.Error(w, "The update is larger than 1 MiB.", http.StatusRequestEntityTooLarge)
		return
	}
	var u envelope
	if err == nil {
		u, err = parseUpdate(body)
	}
	if err == nil {
		err = strict(body)
	}
	if err != nil {
		http.Error(w, "This is no update of the Bot API.", http.StatusBadRequest)
		return
	}
	if r.drops(req.Context(), body) {
		w.WriteHeader(http.StatusOK) // else it comes again
		return
	}
	if err := r.accept(req.Context(), RawUpdate{ID: u.ID, Body: body}); err != nil {
		r.o.Log.Error("storing an update from Telegram's webhook failed; Telegram sends it again", "update", u.ID, "err", err)
		http.Error(w, "The update could not be stored. Try again later.", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (r *Receiver) accept(ctx context.Context, u RawUpdate) error {
	bot, err := r.o.Client.ID(ctx)
	if err != nil {
		return err
	}
	if err := r.o.Inbox.AddUpdates(ctx, bot, []RawUpdate{u}, r.o.Now()); err != nil {
		return err
	}
	r.look()
	return nil
}

// knows reports whether the header came exactly once and is the secret. Hashes have one
// length, so the time that the comparison takes tells nothing.
func (r *Receiver) knows(values []string) bool {
	if len(values) != 1 || r.o.Secret == "" {
		return false
	}
	got, want := sha256.Sum256([]byte(values[0])), sha256.Sum256([]byte(r.o.Secret))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// strict refuses an update that two readers could read in two ways: a key that stands
// twice, keys that differ in their case, and keys that are not as the Bot API writes them,
// in small letters. Go's own reader takes "From" for "from", and the last of two.
func strict(body []byte) error {
	value, err := strictjson.Object(body)
	if err != nil {
		return err
	}
	return plainKeys(value)
}

// plainKeys reports a key with anything but small letters, digits and underscores.
func plainKeys(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			for _, c := range key {
				if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
					return &strictjson.Refusal{What: fmt.Sprintf("the Bot API writes no key %.80q", key)}
				}
			}
			if err := plainKeys(inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := plainKeys(inner); err != nil {
				return err
			}
		}
	}
	return nil
}
