package mask_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"gatehouse/orchestrator/mask"

	"pgregory.net/rapid"
)

// none of these is real, and none stands whole in the source.
func secrets(t testing.TB) map[string][2]string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	r36, r40 := strings.Repeat("aB3", 12), strings.Repeat("aB3/", 10)
	return map[string][2]string{ // the secret, and what stays of it
		"AWS id":          {"AKIA" + "IOSFODNN7EXAMPLE", "AKIA…[masked]"},
		"AWS key":         {"aws_secret_access_key = " + r40, "aws_secret_access_key = …[masked]"},
		"AWS key in JSON": {`"SecretAccessKey": "` + r40 + `"`, `"SecretAccessKey": "…[masked]"`},
		"GitHub":          {"ghp_" + r36, "ghp_…[masked]"},
		"GitHub OAuth":    {"gho_" + r36, "gho_…[masked]"},
		"GitHub fine":     {"github_pat_" + r36 + r36, "github_pat_…[masked]"},
		"GitLab":          {"glpat-" + r36[:20], "glpat-…[masked]"},
		"Slack":           {"xoxb-" + "123456789012-abcdefABCDEF", "xoxb-…[masked]"},
		"Google":          {"AIza" + r36[:35], "AIza…[masked]"},
		"Stripe":          {"sk_live_" + r36[:24], "sk_live_…[masked]"},
		"OpenAI":          {"sk-proj-" + r36, "sk-…[masked]"},
		"Anthropic":       {"sk-ant-api03-" + r36, "sk-ant-…[masked]"},
		"Telegram":        {"123456789:AA" + r36[:33], "1234…[masked]"},
		"a bot's address": {"https://api.telegram.org/bot123456789:AA" + r36[:33] + "/getMe", "https://api.telegram.org/bot1234…[masked]/getMe"},
		"npm":             {"npm_" + r36, "npm_…[masked]"},
		"PyPI":            {"pypi-" + r36 + r36, "pypi-…[masked]"},
		"JWT":             {"eyJ" + r36 + ".eyJ" + r36 + "." + r36, "eyJ…[masked]"},
		"our token":       {"ght_" + strings.Repeat("aB-_3", 9)[:43], "ght_…[masked]"},
		"an address":      {"postgres://app:hunter2!@db.example/app", "postgres://app:…[masked]@db.example/app"},
		"a private key":   {strings.TrimSpace(block), "-----BEGIN PRIVATE KEY-----…[masked]"},
		"one in a string": {strings.ReplaceAll(strings.TrimSpace(block), "\n", `\n`), "-----BEGIN PRIVATE KEY-----…[masked]"},
	}
}

func TestSecretsAreMaskedByShape(t *testing.T) {
	for name, s := range secrets(t) {
		text := "the key is " + s[0] + " and more"
		want := "the key is " + s[1] + " and more"
		got := mask.Text(text)
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if again := mask.Text(got); again != got {
			t.Errorf("%s: masked twice it is %q", name, again)
		}
		if !mask.Has(text) || mask.Has(got) {
			t.Errorf("%s is not told from what stays of it", name)
		}
		raw, _ := json.Marshal(map[string]any{"text": text, "n": 12345678901234567, s[0]: []string{s[0]}})
		if masked := string(mask.JSON(raw)); strings.Contains(masked, s[0][len(s[0])/2-5:len(s[0])/2+5]) || !strings.Contains(masked, "12345678901234567") || !json.Valid([]byte(masked)) {
			t.Errorf("%s in JSON: %s", name, masked)
		}
	}
}

// What only looks random stays: ids, digests, addresses, words.
func TestWhatIsNoSecretStays(t *testing.T) {
	for _, text := range []string{
		"dlg_01k9xk2v8m5q7w3e4r5t6y7u8i approved 9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b",
		"sha256:9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b9f2c1a7b",
		"https://user@example.com/a:b@c http://127.0.0.1:8080/x git@github.com:owner/repo.git",
		"postgres://user:password@host/name", "https://x:${TOKEN}@host/y", "https://x:***@host",
		"task-list-of-many-words-that-goes-on-and-on-and-on risk-assessment-for-the-whole-department-of",
		"sk-this-is-a-class-name-of-a-style-sheet-with-dashes", "12:34:56 AAPL 1234567890:AAA", "ghp_short eyJ.eyJ.x",
		"if strings.Contains(s, \"-----BEGIN PRIVATE KEY-----\") { return errors.New(\"a private key\") }",
		"-----BEGIN CERTIFICATE-----\n" + strings.Repeat("QUJD", 16) + "\n-----END CERTIFICATE-----",
	} {
		if got := mask.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		raw, _ := json.Marshal(map[string]string{"b": text, "a": "<x>"})
		if got := mask.JSON(raw); string(got) != string(raw) {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

// However a text is cut into pieces, its stream shows what the whole would: no secret
// slips through between two pieces, and nothing is lost.
func TestAStreamMasksAcrossItsPieces(t *testing.T) {
	all := secrets(t)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			text.WriteString(rapid.SampledFrom([]string{"see ", "é ", "\n", "a word, ", "-----BEGIN of it ", "https://x/y "}).Draw(t, "words"))
			if rapid.Bool().Draw(t, "secret") {
				text.WriteString(all[rapid.SampledFrom(names).Draw(t, "which")][0] + "\n")
			}
		}
		whole := text.String()
		var s mask.Stream
		var got strings.Builder
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			got.WriteString(s.Write(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(s.Flush())
		if got.String() != mask.Text(whole) {
			t.Fatalf("in pieces:\n%q\nwhole:\n%q", got.String(), mask.Text(whole))
		}
	})
}
