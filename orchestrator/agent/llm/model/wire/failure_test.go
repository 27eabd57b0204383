package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent/llm/model"
)

// The texts are those that the services send.
func TestAFailureHasItsKind(t *testing.T) {
	for _, c := range []struct {
		status          int
		typ, code, text string
		want            model.Kind
	}{
		// P26: each of the names that are tried again.
		{429, "rate_limit_error", "", "This request would exceed your organization's rate limit of 50 requests per minute", model.RateLimited},
		{429, "", "", "", model.RateLimited},
		{400, "", "", "rpc error: code = ResourceExhausted desc = RESOURCE_EXHAUSTED", model.RateLimited},
		{200, "", "", "Too Many Requests", model.RateLimited},
		{0, "too_many_requests", "", "", model.RateLimited},
		{403 - 3, "", "", "Quota exceeded for quota metric 'Generate requests'", model.RateLimited},
		{0, "overloaded_error", "", "Overloaded", model.Overloaded},
		{529, "overloaded_error", "", "Overloaded", model.Overloaded},
		{503, "", "", "The engine is currently overloaded, please try again later", model.Overloaded},
		{500, "api_error", "", "Internal server error", model.Server},
		{502, "", "", "<html>Bad Gateway</html>", model.Server},
		{0, "api_error", "", "Internal server error", model.Server},
		{408, "", "", "", model.Network},
		{401, "authentication_error", "", "invalid x-api-key", model.Auth},
		{403, "permission_error", "", "Your API key does not have permission to use the specified resource.", model.Auth},
		{401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-abc**xyz.", model.Auth},
		{400, "invalid_request_error", "", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", model.Billing},
		{402, "billing_error", "", "", model.Billing},
		{429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.", model.Billing},
		{400, "invalid_request_error", "", "prompt is too long: 204800 tokens > 200000 maximum", model.Overflow},
		{400, "invalid_request_error", "", "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease input length or `max_tokens` and try again", model.Overflow},
		{413, "request_too_large", "", "Request exceeds the maximum size", model.Overflow},
		{400, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.", model.Overflow},
		{400, "exceed_context_size_error", "", "the request exceeds the available context size, try increasing it", model.Overflow},
		{400, "invalid_request_error", "", "messages.1: `tool_use` ids were found without `tool_result` blocks", model.Invalid},
		{404, "not_found_error", "", "model: claude-9", model.Invalid},
		{301, "", "", "", model.Invalid},
		{0, "", "", "", model.Server},
	} {
		if got := Classify(c.status, c.typ, c.code, c.text); got != c.want {
			t.Errorf("%d %s %s %q is %s, want %s", c.status, c.typ, c.code, c.text, got, c.want)
		}
	}
}

func TestARetryAfterIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header, value string
		want          time.Duration
		note          string
	}{
		{"Retry-After", "", 0, ""},
		{"Retry-After", "7", 7 * time.Second, ""},
		{"Retry-After", "0.5", 500 * time.Millisecond, ""},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond, ""},
		{"Retry-After", now.Add(20 * time.Second).Format(http.TimeFormat), 20 * time.Second, ""},
		{"Retry-After", now.Add(-time.Hour).Format(http.TimeFormat), 0, "past"},
		{"Retry-After", "31536000", MaxRetryAfter, "cut to that"},
		{"Retry-After", now.AddDate(1, 0, 0).Format(http.TimeFormat), MaxRetryAfter, "cut to that"},
		{"Retry-After", "1e300", MaxRetryAfter, "cut to that"},
		{"Retry-After", "+Inf", MaxRetryAfter, "cut to that"},
		{"Retry-After-Ms", "99999999999", MaxRetryAfter, "cut to that"},
		{"Retry-After", "-5", 0, "past"},
		{"Retry-After", "NaN", 0, "past"},
		{"Retry-After", "soon", 0, "cannot be read"},
		{"Retry-After", strings.Repeat("9", 4000), MaxRetryAfter, "cut to that"},
	} {
		got, note := RetryAfter(http.Header{c.header: {c.value}}, now)
		if got != c.want || c.note == "" != (note == "") || !strings.Contains(note, c.note) || len(note) > 200 {
			t.Errorf("%s: %.40s waits %s (%s), want %s (%s)", c.header, c.value, got, note, c.want, c.note)
		}
	}
}

func TestWordsHoldNoKeyAndNoControl(t *testing.T) {
	key := "secret-1234567"
	got := Clean("bad key "+key+" or sk-ant-api03-AbCdEf123456\x1b[31m\u202e\r\nBearer abcdefghijkl \xff"+strings.Repeat("ä", 1000), key)
	for _, bad := range []string{key, "sk-ant", "abcdefgh", "\x1b", "\u202e", "\n"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q holds %q", got, bad)
		}
	}
	if len(got) > maxWords+len("…") || !strings.HasPrefix(got, "bad key [key] or [key]") {
		t.Errorf("words are %d bytes: %q", len(got), got)
	}
}
