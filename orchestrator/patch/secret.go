package patch

import (
	"bytes"
	"regexp"
)

// privateKey is a PEM or PGP private key with its body, also when it stands
// escaped in a string. A header alone, as programs that look for keys have it,
// is only worth a warning.
var privateKey = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----` +
	`(?:\s|\\n|\\r|["'+,]|[A-Za-z-]+: [^\n]*\n)+[A-Za-z0-9+/=]{16}(?:[A-Za-z0-9+/=]|\s|\\n|\\r|["'+,]){40}`)

// secretLike are shapes that mostly are credentials. Sources: the token
// formats that GitHub, GitLab, AWS, Slack, Google, Stripe, OpenAI, Anthropic,
// Telegram and npm document.
var secretLike = regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY` +
	`|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b` +
	`|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{60}` +
	`|\bglpat-[A-Za-z0-9_-]{20}` +
	`|\bxox[abeoprs]-[A-Za-z0-9-]{10}` +
	`|\bAIza[A-Za-z0-9_-]{35}` +
	`|\b[sr]k_live_[A-Za-z0-9]{20}` +
	`|\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32}` +
	`|\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b` +
	`|\bnpm_[A-Za-z0-9]{36}\b` +
	`|\bgh[rt]_[A-Za-z0-9_-]{43}\b` + // our own run and API tokens
	`|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}` +
	`|(?i:\b(?:password|passwd|secret|api_?key|access_?token|auth_?token)["']?\s*[:=]\s*["'][^"'\s$\{<]{10,}["'])`)

// countPrivateKeys counts the private keys in content.
func countPrivateKeys(content []byte) int {
	if !bytes.Contains(content, []byte("PRIVATE KEY")) {
		return 0
	}
	return len(privateKey.FindAllIndex(content, -1))
}
