package trigger_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"gatehouse/orchestrator/trigger"
)

const secret = "It's a Secret to Everybody"

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// made compiles a trigger that must be fine.
func made(t *testing.T, s trigger.Spec) *trigger.Trigger {
	t.Helper()
	if s.Name == "" {
		s.Name = "ci-failed"
	}
	if s.Kind == "" {
		s.Kind = trigger.Webhook
	}
	if s.Kind == trigger.Webhook && s.Secrets == nil {
		s.Secrets = []string{secret}
	}
	if s.Kind == trigger.Webhook && s.Source == "" {
		s.Source = trigger.GitHub
	}
	if s.Task == "" {
		s.Task = "Look"
	}
	compiled, problems := trigger.Compile(s)
	if len(problems) > 0 {
		t.Fatalf("problems: %+v", problems)
	}
	return compiled
}

func sum(key string, parts ...string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	for _, p := range parts {
		m.Write([]byte(p))
	}
	return m.Sum(nil)
}

// header makes headers of pairs; the same name twice comes twice.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func without(h http.Header, name string) http.Header {
	h = h.Clone()
	h.Del(name)
	return h
}

func with(h http.Header, name, value string) http.Header {
	h = h.Clone()
	h.Add(name, value)
	return h
}

func set(h http.Header, name, value string) http.Header {
	h = h.Clone()
	h.Set(name, value)
	return h
}

// GitHub's documentation gives this example: the secret, the payload and its signature.
func TestGitHubsOwnExample(t *testing.T) {
	g := made(t, trigger.Spec{Source: trigger.GitHub})
	h := header("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Event", "issues")
	call, err := g.Verify(h, []byte("Hello, World!"), noon)
	if err != nil || call.ExternalID != "72d3162e-cc78-11e3-81ab-4c9367dc0958" || call.Event != "issues" || call.Signed {
		t.Errorf("got %+v, %v", call, err)
	}
}

// Standard Webhooks gives this example in its specification's libraries.
func TestStandardWebhooksOwnExample(t *testing.T) {
	s := made(t, trigger.Spec{Source: trigger.Standard, Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}})
	h := header("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330", "webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	call, err := s.Verify(h, []byte(`{"test": 2432232314}`), time.Unix(1614265330+299, 0))
	if err != nil || call.ExternalID != "msg_p5jXN8AQM9LWM0D4loKWxJek" || !call.Signed {
		t.Errorf("got %+v, %v", call, err)
	}
}

func TestOnlyWhoKnowsTheSecretIsHeard(t *testing.T) {
	const body = `{"action":"completed"}`
	signing := "whsec_" + base64.StdEncoding.EncodeToString([]byte("thirty-two bytes of signing key!"))
	stamp := fmt.Sprint(noon.Unix())
	standardSum := func(key, id, stamp string) string {
		return "v1," + base64.StdEncoding.EncodeToString(sum(key, id, ".", stamp, ".", body))
	}
	github := header("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum(secret, body)), "X-GitHub-Delivery", "d1", "X-GitHub-Event", "workflow_run")
	gitlab := header("X-Gitlab-Token", secret, "X-Gitlab-Event", "Pipeline Hook", "Idempotency-Key", "d2")
	signed := header("webhook-id", "d3", "webhook-timestamp", stamp, "webhook-signature", standardSum("thirty-two bytes of signing key!", "d3", stamp), "X-Gitlab-Event", "Pipeline Hook")
	standard := header("webhook-id", "d4", "webhook-timestamp", stamp, "webhook-signature", "v1a,bm90IG91cnM= "+standardSum("another", "d4", stamp)+" "+standardSum(secret, "d4", stamp))
	plain := header("X-My-Sum", "sha1="+base64.StdEncoding.EncodeToString(sum(secret, body)))

	gh, gl, st := trigger.Spec{Source: trigger.GitHub}, trigger.Spec{Source: trigger.GitLab}, trigger.Spec{Source: trigger.Standard}
	glSigned := trigger.Spec{Source: trigger.GitLab, Secrets: []string{signing}}
	hm := trigger.Spec{Source: trigger.HMAC, Header: "X-My-Sum", Encoding: "base64", Prefix: "sha1="}
	changing := trigger.Spec{Source: trigger.GitHub, Secrets: []string{"the new one, not used yet", secret}}
	for _, c := range []struct {
		name string
		spec trigger.Spec
		h    http.Header
		body string
		at   time.Time
		ok   bool
	}{
		{"github", gh, github, body, noon, true},
		{"github, while the secret is changed", changing, github, body, noon, true},
		{"github, another body", gh, github, body + " ", noon, false},
		{"github, no body", gh, github, "", noon, false},
		{"github, no signature", gh, without(github, "X-Hub-Signature-256"), body, noon, false},
		{"github, an empty signature", gh, set(github, "X-Hub-Signature-256", ""), body, noon, false},
		{"github, two signatures", gh, with(github, "X-Hub-Signature-256", github.Get("X-Hub-Signature-256")), body, noon, false},
		{"github, the older kind of signature", gh, set(github, "X-Hub-Signature-256", "sha1="+hex.EncodeToString(sum(secret, body))), body, noon, false},
		{"github, no hex", gh, set(github, "X-Hub-Signature-256", "sha256="+fmt.Sprintf("%064d", 0)[:62]+"zz"), body, noon, false},
		{"github, two ids", gh, with(github, "X-GitHub-Delivery", "d9"), body, noon, false},
		{"github, two events", gh, with(github, "X-GitHub-Event", "push"), body, noon, false},
		{"github, an endless id", gh, set(github, "X-GitHub-Delivery", fmt.Sprintf("%0300d", 1)), body, noon, false},
		{"gitlab", gl, gitlab, body, noon, true},
		{"gitlab, another token", gl, set(gitlab, "X-Gitlab-Token", secret+"x"), body, noon, false},
		{"gitlab, two tokens", gl, with(gitlab, "X-Gitlab-Token", secret), body, noon, false},
		{"gitlab, no token", gl, without(gitlab, "X-Gitlab-Token"), body, noon, false},
		{"gitlab that signs", glSigned, signed, body, noon, true},
		{"gitlab that signs, another body", glSigned, signed, body + " ", noon, false},
		{"gitlab that signs, its signing token as a token", glSigned, header("X-Gitlab-Token", signing), body, noon, false},
		{"gitlab that signs, a wrong signature beside a right token", trigger.Spec{Source: trigger.GitLab, Secrets: []string{signing, secret}}, with(set(signed, "webhook-signature", "v1,AAAA"), "X-Gitlab-Token", secret), body, noon, false},
		{"gitlab with a token is not asked for a signature", gl, signed, body, noon, false},
		{"standard", st, standard, body, noon, true},
		{"standard, at the edge of the window", st, standard, body, noon.Add(5 * time.Minute), true},
		{"standard, too late", st, standard, body, noon.Add(5*time.Minute + time.Second), false},
		{"standard, too early", st, standard, body, noon.Add(-5*time.Minute - time.Second), false},
		{"standard, another time", st, set(standard, "webhook-timestamp", fmt.Sprint(noon.Unix()+1)), body, noon, false},
		{"standard, no time", st, set(standard, "webhook-timestamp", "soon"), body, noon, false},
		{"standard, another id", st, set(standard, "webhook-id", "d5"), body, noon, false},
		{"standard, two ids", st, with(standard, "webhook-id", "d4"), body, noon, false},
		{"standard, two signature headers", st, with(standard, "webhook-signature", "v1,AAAA"), body, noon, false},
		{"standard, no signature that is known", st, set(standard, "webhook-signature", "v1a,AAAA v2,BBBB"), body, noon, false},
		{"a header of one's own", hm, plain, body, noon, true},
		{"a header of one's own, no prefix", hm, set(plain, "X-My-Sum", base64.StdEncoding.EncodeToString(sum(secret, body))), body, noon, false},
		{"a header of one's own, missing", hm, header(), body, noon, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := made(t, c.spec).Verify(c.h, []byte(c.body), c.at)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, trigger.ErrSignature) {
				t.Errorf("got %v", err)
			}
		})
	}
}
