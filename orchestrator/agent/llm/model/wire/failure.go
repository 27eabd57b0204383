package wire

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gatehouse/orchestrator/agent/llm/model"
)

// MaxRetryAfter bounds what a provider may ask for: longer rests are a mistake, or an
// attack on whoever waits.
const MaxRetryAfter = time.Hour

// Failure is what a provider said of a failed call, before it is understood.
type Failure struct {
	Provider string
	Key      string // taken out of every word
	Status   int    // HTTP; 0 for a failure inside a stream
	Header   http.Header
	Type     string // the provider's own classes: error.type and error.code
	Code     string
	Text     string
	Now      time.Time
}

func (f Failure) Error() *model.Error {
	e := &model.Error{Provider: f.Provider, Status: f.Status, Kind: Classify(f.Status, f.Type, f.Code, f.Text)}
	e.Message = Clean(f.Text, f.Key)
	if e.Message == "" {
		e.Message = strings.TrimSpace(f.Type + " " + http.StatusText(f.Status))
	}
	e.Message = cmp.Or(e.Message, "it gave no reason")
	wait, note := RetryAfter(f.Header, f.Now)
	e.RetryAfter = wait
	if note != "" {
		e.Message += " (" + note + ")"
	}
	return e
}

// Failed makes the error of a call that did not come to its end: api is what the service should
// speak, begun whether it did, and refused reads what it said instead.
func (x *Exchange) Failed(provider, key, api string, err error, begun bool, refused func(*Refused) *model.Error) *model.Error {
	said, ok := errors.AsType[*Refused](err)
	switch {
	case ok && x.Err() == nil:
		return refused(said)
	case err != nil || x.Err() != nil:
		return x.broken(provider, key, err)
	case begun:
		return &model.Error{Kind: model.Network, Provider: provider, Message: "the answer was cut before its end"}
	}
	return &model.Error{Kind: model.Malformed, Provider: provider,
		Message: "the answer is not of " + api + ". Check base_url of the provider"}
}

// broken makes the error of an exchange that ended without an answer: with the
// network's failure when there was one, else with what could not be read.
func (x *Exchange) broken(provider, key string, err error) *model.Error {
	e := &model.Error{Provider: provider, Kind: model.Malformed}
	cause := err
	if failed := x.Err(); failed != nil {
		cause = failed
		switch {
		case errors.Is(failed, errRedirect):
			e.Kind = model.Invalid
		case !errors.Is(failed, errLimit):
			e.Kind = model.Network
		}
	}
	if u, ok := errors.AsType[*url.Error](cause); ok {
		cause = u.Err // without the address, which may hold a password
	}
	switch {
	case e.Kind == model.Network:
		e.Message = "the connection failed or was cut: " + Clean(cause.Error(), key)
	case e.Kind == model.Invalid:
		e.Message = errRedirect.Error()
	case errors.Is(cause, bufio.ErrTooLong):
		e.Message = "one event of the answer is too long"
	default:
		e.Message = "the answer cannot be read: " + Clean(cause.Error(), key)
	}
	return e
}

// words of a class of failures, as providers and compatible servers write them.
var (
	overflowWords = []string{"prompt is too long", "context_length_exceeded", "maximum context length", "context window", "exceed context limit",
		"exceed_context_size", "available context size", "context length exceeded", "reduce the length of the messages", "input is too long", "request_too_large"}
	billingWords  = []string{"credit balance", "insufficient_quota", "billing", "payment required", "exceeded your current quota", "insufficient credits", "insufficient balance"}
	authWords     = []string{"authentication_error", "permission_error", "invalid_api_key", "invalid api key", "invalid x-api-key", "incorrect api key", "account_deactivated"}
	rateWords     = []string{"rate_limit", "rate limit", "resource_exhausted", "resource has been exhausted", "too_many_requests", "too many requests", "quota"}
	overloadWords = []string{"overloaded", "engine_overloaded", "server is busy", "at capacity"}
	serverWords   = []string{"api_error", "server_error", "internal", "timeout_error"}
	invalidWords  = []string{"invalid_request", "not_found", "model_not_found", "unsupported"}
)

// Classify says which kind of failure it is. The class that costs the least to get wrong
// comes last; the status decides where the words say nothing.
func Classify(status int, typ, code, text string) model.Kind {
	said := strings.ToLower(typ + " " + code + " " + text)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	refused := status >= 400 && status < 500 || status == 0
	switch {
	case status != 429 && status != 401 && status != 403 && has(overflowWords) || status == 413:
		return model.Overflow
	case status == 402, refused && has(billingWords):
		return model.Billing
	case status == 401, status == 403, refused && status != 429 && has(authWords):
		return model.Auth
	case status == 429, has(rateWords):
		return model.RateLimited
	case status == 503, status == 529, has(overloadWords):
		return model.Overloaded
	case status == 408:
		return model.Network
	case status >= 500, status == 409, status == 0 && has(serverWords):
		return model.Server
	case status >= 300, has(invalidWords):
		return model.Invalid
	}
	return model.Server
}

// RetryAfter reads how long the provider asks to wait, in milliseconds, seconds or as a
// date. What is longer than MaxRetryAfter, in the past or unreadable is bounded, and the
// note says so.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, note string) {
	unit := time.Millisecond
	text := strings.TrimSpace(h.Get("Retry-After-Ms"))
	if text == "" {
		unit, text = time.Second, strings.TrimSpace(h.Get("Retry-After"))
	}
	if text == "" {
		return 0, ""
	}
	n, err := strconv.ParseFloat(text, 64) // out of range is infinite, and bounded below
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		at, err := http.ParseTime(text)
		if err != nil {
			return 0, fmt.Sprintf("its retry-after %q cannot be read and is ignored", Clean(text[:min(len(text), 40)], ""))
		}
		n, unit = at.Sub(now).Seconds(), time.Second
	}
	switch {
	case !(n >= 0): // below 0, or not a number
		return 0, fmt.Sprintf("its retry-after %q lies in the past and is ignored", Clean(text[:min(len(text), 40)], ""))
	case n > MaxRetryAfter.Seconds()*float64(time.Second/unit):
		return MaxRetryAfter, fmt.Sprintf("its retry-after %q is longer than %s and is cut to that", Clean(text[:min(len(text), 40)], ""), MaxRetryAfter)
	}
	return time.Duration(n * float64(unit)), ""
}

// secrets look like the keys of the providers that we know.
var secrets = regexp.MustCompile(`\b(sk|pk|key|gsk|xai)-[A-Za-z0-9_\-]{8,}|(?i)bearer [A-Za-z0-9._\-]{8,}`)

// maxWords is how much of a provider's text is kept, in bytes.
const maxWords = 600

// Clean makes a provider's text fit to be shown and stored: one line, bounded, without
// the key and without what looks like one.
func Clean(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = secrets.ReplaceAllString(strings.ToValidUTF8(text, "�"), "[key]")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}
