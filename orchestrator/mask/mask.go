// Package mask takes out of texts what by its shape is a secret: keys of clouds, tokens of
// services and bots, private keys, passwords in addresses. A short beginning stays, so that
// people see what kind it was: ghp_…[masked].
//
// It is the one owner of these shapes. Every text of an agent, and the data of every event,
// goes through it before it is stored; texts that have to be stored as they were sent (the
// task that an agent is given, the conversation that a model goes on with) go through it
// wherever they are shown. Files never do: what people approve is bytes, so a secret in a
// patch is a warning (secret_like) and stays.
//
// What has no shape is not found: a password in a sentence, a key as 40 letters alone. Our
// own ids, ULIDs, git ids and digests have none of the shapes.
//
// The room imports only the standard library.
package mask

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret was.
const Mark = "…[masked]"

// shape is one kind of secret. Its expression is tried only where a text has one of its
// anchors. The first group, or else everything, is the secret; keep is how much of its
// beginning stays.
type shape struct {
	anchors []string
	expr    func() *regexp.Regexp
	keep    int
	real    func(string) bool // nil: always
}

// shapes are the formats that their makers document, as of 2026, and those of our own
// tokens. Lengths are the least that was ever given out.
var shapes = []shape{
	{[]string{"PRIVATE KEY"}, keyBlock, 0, nil},
	{[]string{"AKIA", "ASIA"}, compiled(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`), 4, nil},
	{[]string{"ecret", "ECRET"}, compiled(`(?i)secret_?-?access_?-?key[\\"'\s]*[:=][\\"'\s]*([a-z0-9/+=]{40})`), 0, nil},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, compiled(`\bgh[pousr]_[A-Za-z0-9]{36,251}`), 4, nil},
	{[]string{"ghr_", "ght_"}, compiled(`\bgh[rt]_[A-Za-z0-9_-]{43}`), 4, nil}, // ours: runs and people's tokens
	{[]string{"github_pat_"}, compiled(`\bgithub_pat_[A-Za-z0-9_]{36,251}`), 11, nil},
	{[]string{"glpat-", "gldt-", "glrt-", "glptt-"}, compiled(`\bgl(?:pat|dt|rt|ptt)-[A-Za-z0-9_.-]{20,200}`), 6, nil},
	{[]string{"xox"}, compiled(`\bxox[abeoprs]-[A-Za-z0-9-]{10,250}`), 5, nil},
	{[]string{"xapp-"}, compiled(`\bxapp-[0-9]-[A-Za-z0-9-]{20,250}`), 5, nil},
	{[]string{"AIza"}, compiled(`\bAIza[A-Za-z0-9_-]{35}`), 4, nil},
	{[]string{"GOCSPX-"}, compiled(`\bGOCSPX-[A-Za-z0-9_-]{28}`), 7, nil},
	{[]string{"k_live_", "k_test_"}, compiled(`\b[srp]k_(?:live|test)_[A-Za-z0-9]{20,250}`), 8, nil},
	{[]string{"whsec_"}, compiled(`\bwhsec_[A-Za-z0-9+/=]{24,200}`), 6, nil},
	{[]string{"sk-ant-"}, compiled(`\bsk-ant-[A-Za-z0-9_-]{20,250}`), 7, nil},
	{[]string{"sk-"}, compiled(`\bsk-[A-Za-z0-9_-]{32,250}`), 3, mixed},
	{[]string{":AA"}, compiled(`[0-9]{8,10}:AA[A-Za-z0-9_-]{33,40}`), 4, nil}, // Telegram; addresses write bot in front
	{[]string{"npm_"}, compiled(`\bnpm_[A-Za-z0-9]{36}`), 4, nil},
	{[]string{"pypi-"}, compiled(`\bpypi-[A-Za-z0-9_-]{50,250}`), 5, nil},
	{[]string{"hf_"}, compiled(`\bhf_[A-Za-z0-9]{30,60}\b`), 3, mixed},
	{[]string{"eyJ"}, compiled(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), 3, nil},
	{[]string{"AccountKey="}, compiled(`AccountKey=([A-Za-z0-9+/]{86}==)`), 0, nil},
	{[]string{"://"}, compiled(`\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'<>\\` + "`" + `]{0,200}:([^\s/@"'<>\\` + "`" + `]{1,500})@`), 0, password},
}

// keyBlock is a PEM or PGP private key with its body, also where its line ends are escaped.
var keyBlock = compiled(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----((?:` + between + `*[A-Za-z0-9+/=]{16,})+(?:` + between + `*[A-Za-z0-9+/=]{0,76}?` + between +
	`*-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?)`)

// between may stand between the lines of a key.
const between = `(?:\s|\\+[nrt]|\\*["'+,>|#*]|[A-Za-z-]+: [^\n\\]{0,200}(?:\n|\\+n))`

// compiled is expr, made when it is first needed: most processes of this program mask nothing.
func compiled(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// mixed: letters in both cases and a digit, as random texts of that length have and words
// with dashes have not.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s
}

// password leaves out what stands for one in examples and settings.
func password(s string) bool {
	switch strings.ToLower(s) {
	case "password", "pass", "pw", "secret", "token", "…[masked]", "xxxxx":
		return false
	}
	return strings.Trim(s, "*") != "" && !strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[")
}

// Has reports whether a text has something that Text would mask.
func Has(text string) bool {
	for i := range shapes {
		if s := &shapes[i]; s.near(text) && len(s.find(text)) > 0 {
			return true
		}
	}
	return false
}

// Text is a text without its secrets. Masking twice changes nothing more.
func Text(text string) string {
	for i := range shapes {
		if s := &shapes[i]; s.near(text) {
			text = s.mask(text)
		}
	}
	return text
}

// JSON is a JSON text whose strings, keys too, are masked; one without secrets comes back as
// it is, byte by byte. What is no JSON is masked as a text.
func JSON(raw json.RawMessage) json.RawMessage {
	if !near(raw) {
		return raw
	}
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		quoted, _ := json.Marshal(Text(string(raw)))
		return quoted
	}
	masked, changed := walk(value)
	if !changed {
		return raw
	}
	out, err := json.Marshal(masked)
	if err != nil {
		return json.RawMessage(`{}`) // cannot be: it was just read
	}
	return out
}

// near reports whether any shape may be in it. Anchors have no character that JSON escapes.
func near(raw []byte) bool {
	text := string(raw)
	for i := range shapes {
		if shapes[i].near(text) {
			return true
		}
	}
	return false
}

func walk(value any) (masked any, changed bool) {
	switch v := value.(type) {
	case string:
		t := Text(v)
		return t, t != v
	case []any:
		for i := range v {
			m, c := walk(v[i])
			v[i], changed = m, changed || c
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, one := range v {
			m, c := walk(one)
			k := Text(key)
			out[k], changed = m, changed || c || k != key
		}
		return out, changed
	}
	return value, changed
}

func (s *shape) near(text string) bool {
	return slices.ContainsFunc(s.anchors, func(a string) bool { return strings.Contains(text, a) })
}

// find lists where the secrets of the shape begin and end.
func (s *shape) find(text string) [][2]int {
	var found [][2]int
	for _, m := range s.expr().FindAllStringSubmatchIndex(text, -1) {
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		if s.real == nil || s.real(text[from:to]) {
			found = append(found, [2]int{from, to})
		}
	}
	return found
}

func (s *shape) mask(text string) string {
	found := s.find(text)
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(text[at : f[0]+s.keep])
		b.WriteString(Mark)
		at = f[1]
	}
	b.WriteString(text[at:])
	return b.String()
}
