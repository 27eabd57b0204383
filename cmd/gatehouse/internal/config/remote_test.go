package config

import (
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
)

// An agent elsewhere is understood, with what deserves a look.
func TestARemoteAgentIsUnderstood(t *testing.T) {
	c, err := Parse("", []byte(`engine: {ack_timeout: 45s, max_remote_hops: 2}
agents:
  far: {kind: remote, url: "https://agents.example.org/far", token: "${FAR}", card: /card.json, budget: {tokens: 900}}
  near: {kind: remote, url: "http://10.0.0.7:9000", token: t}
`), env("FAR", "s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	if set := c.Engine.Settings; set.AckTimeout != 45*time.Second || set.MaxRemote != 2 {
		t.Errorf("settings %+v", set)
	}
	far, _ := c.Engine.Agents.Get("far")
	if far.Kind != agent.Remote || far.URL != "https://agents.example.org/far" || far.Token != "s3cret" || far.Card != "/card.json" || *far.Budget.Tokens != 900 {
		t.Errorf("far is %+v", far)
	}
	warned := strings.Join(c.Warnings, "\n")
	if strings.Contains(warned, "far") || !strings.Contains(warned, "in clear") || !strings.Contains(warned, "budget: {tokens: 20000}") {
		t.Errorf("warnings %q", warned)
	}
}

// Each mistake is named with its place, and no secret with it.
func TestMistakesOfRemoteAgents(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{kind: remote}", "1:13: agent a has no url"},
		{"{kind: remote, url: far.example.org}", "is no address of a server"},
		{"{kind: remote, url: \"ftp://far\"}", "is no address of a server"},
		{"{kind: remote, url: \"https://u:s3cret@far\"}", "has a password"},
		{"{kind: remote, url: \"https://far?key=s3cret\"}", "a query"},
		{"{kind: remote, url: \"https://far\", card: \"https://else/card\"}", "is no path below its url"},
		{"{kind: remote, url: \"https://far\", card: /../x}", "is no path below its url"},
		{"{kind: remote, url: \"https://far\", token: \"s3cret and more\"}", "its token has a blank"},
		{"{kind: remote, url: \"https://far\", repository: app}", "works elsewhere, and no files are sent to it"},
		{"{kind: command, command: [x], url: \"https://far\"}", "url is for agents of kind remote"},
		{"{kind: command, command: [x], token: s3cret}", "token is for agents of kind remote"},
	} {
		_, err := Parse("", []byte("agents: {a: "+c.text+"}\n"), env())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", c.text, err, c.want)
		}
	}
}
