package config_test

import (
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/config"
)

// What would make the gate ask nobody, or let anybody in, is refused at load with its
// place and what to write instead.
func TestTheGateIsRefusedAtLoad(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"a rule's group without people":  {"groups: {core: []}\napproval:\n  rules:\n    - {name: a, when: 'true', from: [core]}\n", "gatehouse.yaml:4:37: rule \"a\": from: Group \"core\" has nobody in it"},
		"a repository's group":           {"repositories:\n  app: {path: ., approvers: [core]}\ngroups: {cores: [ann]}\n", "gatehouse.yaml:2:30: there is no group \"core\". Did you mean \"cores\"?"},
		"an escalation to nobody":        {"groups: {leads: []}\napproval:\n  escalate: [{after: 1h, to: [leads]}]\n", "gatehouse.yaml:3:31: group \"leads\" has nobody in it"},
		"an escalation without a time":   {"groups: {leads: [ann]}\napproval:\n  escalate: [{to: [leads]}]\n", "has no after"},
		"an escalation back in time":     {"groups: {leads: [ann]}\napproval:\n  escalate: [{after: 2h, to: [leads]}, {after: 1h, to: [leads]}]\n", "is not later than the step before"},
		"a bot without a token":          {"channels: {telegram: {mode: poll}}\n", "that is no token of a bot"},
		"a webhook without a secret":     {"server: {public_url: 'https://gate.example.com'}\nchannels: {telegram: {token: '1:a', mode: webhook}}\n", "has no webhook_secret"},
		"a webhook on a local address":   {"channels: {telegram: {token: '1:a', mode: webhook, webhook_secret: s}}\n", "needs server.public_url with https://"},
		"a notice to a file":             {"channels: {webhooks: [{name: a, url: 'file:///etc/passwd', secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}]}\n", "gatehouse.yaml:1:"},
		"an event that there is not":     {"channels: {webhooks: [{name: a, url: 'https://a.example', format: slack, events: [task.done]}]}\n", `webhook a: there is no event "task.done"`},
		"two notices of one name":        {"channels:\n  webhooks:\n    - {name: a, url: 'https://a.example', format: slack}\n    - {name: a, url: 'https://b.example', format: slack}\n", "there are two webhooks"},
		"a token that is not set":        {"channels: {telegram: {token: '${NO_SUCH_TOKEN}'}}\n", "NO_SUCH_TOKEN"},
		"a reminder that is no duration": {"approval: {remind: [soon]}\n", "\"soon\" is no length of time"},
	} {
		_, err := config.Parse("gatehouse.yaml", []byte(c.text), func(string) (string, bool) { return "", false })
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: want %q, got %v", name, c.says, err)
		}
	}
}
