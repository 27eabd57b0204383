package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const provenance = `server: {listen: "127.0.0.1:${PORT}"}
database: "postgres://gate:${DB_PASSWORD}@db/gate?sslmode=disable"
engine:
  workers: 4
  budget: {tokens: 1000}
repositories:
  app: {path: ./app, credential: "${GIT_TOKEN}", checks: ["go vet ./...", "go test ./..."]}
providers:
  openai: {api_key: sk-written-here, base_url: "http://h/$${X}"}
agents:
  coder: {kind: command, command: [claude, "--key=${CLAUDE_KEY}"], repository: app, env: {ANTHROPIC_API_KEY: sk-ant}}
approval:
  rules:
    - {name: docs, when: "true", need: 1}
    - {name: rest, when: "true"}
channels:
  webhooks:
    - {name: ops, url: "https://hooks.example.com/services/T0/B0/very-secret", secret: "${OPS}"}
`

// Every value says where it comes from, and no secret is among them, wherever it was
// written: in the file, in the environment, in the middle of an address.
func TestValuesSayWhereTheyComeFromAndHideSecrets(t *testing.T) {
	c, err := Parse("gatehouse.yaml", []byte(provenance), env("PORT", "9999", "DB_PASSWORD", "pw-secret", "GIT_TOKEN", "git-secret", "CLAUDE_KEY", "claude-secret", "OPS", "whsec_b3BzLXNlY3JldC1vcHMtc2VjcmV0LW9wcy1zZWNyZXQ="))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Value{}
	for _, v := range c.Values() {
		if _, twice := got[v.Key]; twice {
			t.Errorf("%s is listed twice", v.Key)
		}
		got[v.Key] = v
		for _, secret := range []string{"pw-secret", "git-secret", "claude-secret", "b3Bz", "sk-written", "sk-ant", "very-secret"} {
			if strings.Contains(v.Value, secret) {
				t.Errorf("%s shows a secret: %s", v.Key, v.Value)
			}
		}
	}
	for key, want := range map[string]Value{
		"server.listen":                      {Value: "127.0.0.1:9999", Line: 1, Env: []string{"PORT"}, Restart: true},
		"server.timezone":                    {Value: "UTC"},
		"database":                           {Value: "postgres://gate:•••@db/gate?•••", Line: 2, Env: []string{"DB_PASSWORD"}, Restart: true},
		"engine.workers":                     {Value: "4", Line: 4},
		"engine.max_depth":                   {Value: "3"},
		"engine.lease":                       {Value: "30s"},
		"engine.budget.tokens":               {Value: "1000", Line: 5},
		"engine.budget.usd":                  {Value: "5"},
		"repositories.app.credential":        {Value: Hidden, Line: 7, Env: []string{"GIT_TOKEN"}},
		"repositories.app.checks":            {Value: "go vet ./..., go test ./...", Line: 7},
		"repositories.app.deliver":           {Value: "merge"},
		"providers.openai.api_key":           {Value: Hidden, Line: 9},
		"providers.openai.base_url":          {Value: "http://h/${X}", Line: 9},
		"agents.coder.command":               {Value: "claude, --key=${CLAUDE_KEY}", Line: 11, Env: []string{"CLAUDE_KEY"}},
		"agents.coder.env.ANTHROPIC_API_KEY": {Value: Hidden, Line: 11},
		"agents.coder.timeout":               {Value: "15m"},
		"approval.rules[rest].when":          {Value: "true", Line: 15},
		"channels.webhooks[ops].url":         {Value: "https://hooks.example.com/•••", Line: 18},
		"channels.webhooks[ops].secret":      {Value: Hidden, Line: 18, Env: []string{"OPS"}},
	} {
		v, ok := got[key]
		v.Key, want.Env = "", append([]string{}, want.Env...)
		if !ok || !reflect.DeepEqual(v, want) {
			t.Errorf("%s is %+v, want %+v", key, v, want)
		}
	}
}

// A secret that somebody wrote beside a variable is hidden, and what the variable is called is not.
func TestASecretBesideAVariableIsHidden(t *testing.T) {
	for raw, want := range map[string]string{
		"https://ann:s3cret@${HOST}/a.git":    "https://•••@${HOST}/a.git",
		"https://ann:${TOKEN}@git.example/a":  "https://•••@git.example/a",
		"ssh://${WHO}@git.example.com/${A}/b": "ssh://${WHO}@git.example.com/${A}/b",
		"https://${HOST}/a?key=s3cret&n=${N}": "https://${HOST}/a?•••",
		"--key=${CLAUDE_KEY}":                 "--key=${CLAUDE_KEY}",
	} {
		if got := maskedAround(raw); got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
	}
}

// However a password is written into an address, or a token in place of a name, it is not
// shown; and what is no secret is.
func TestNoWritingOfAnAddressShowsItsSecret(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://gate:s3cret@db/x":                  "postgres://gate:•••@db/x",
		"postgres://gate:s3cret!@db/x?sslmode=disable": "postgres://gate:•••@db/x?•••",
		"postgres://gate:s3cret@s3cret@db/x":           "postgres://gate:•••@db/x",
		"postgres://gate:s3cret:s3cret@db/x":           "postgres://gate:•••@db/x",
		"postgres://gate:s3cr%7Eet@db/x":               "postgres://gate:•••@db/x",
		"postgres://gate:s3cret#s3cret@db/x":           "postgres://•••@db/x",
		"postgres://gate:%s3cret@db/x":                 "postgres://•••@db/x",
		"https://s3cret@git.example.com/a/b":           "https://•••@git.example.com/a/b",
		"https://s3cret:x-oauth-basic@git.example.com": "https://•••@git.example.com",
		"HTTPS://ann:s3cret^@git.example.com/a":        "HTTPS://•••@git.example.com/a",
		"curl --proxy=http://ann:s3cret@proxy ./...":   "curl --proxy=http://•••@proxy ./...",
		"ssh://git@git.example.com/a/b":                "ssh://git@git.example.com/a/b",
		"git@git.example.com:a/b":                      "git@git.example.com:a/b",
		"https://git.example.com/a@v2":                 "https://git.example.com/a@v2",
		"./gatehouse.db":                               "./gatehouse.db",
	} {
		if got := masked(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

func TestNoFileIsAllDefaults(t *testing.T) {
	c, err := Parse("", nil, env())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Values() {
		if v.Line != 0 || v.Value == "" || len(v.Env) != 0 {
			t.Errorf("%+v", v)
		}
	}
}

// A key that sounds like a secret is one, or stands here because it is none.
func TestEveryKeyThatSoundsSecretIsHidden(t *testing.T) {
	none := []string{"tokens", "max_tokens", "key"}
	sounds := regexp.MustCompile(`(?i)secret|token|key|credential|password|^env$|headers`)
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice || at.Kind() == reflect.Map {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || seen[at] {
			return
		}
		seen[at] = true
		for f := range at.Fields() {
			name := f.Tag.Get("yaml")
			if sounds.MatchString(name) && !slices.Contains(none, name) && !hides(name) {
				t.Errorf("%s.%s is shown", at.Name(), name)
			}
			look(f.Type)
		}
	}
	look(reflect.TypeFor[File]())
}

// Whatever the engine, the server or the approval takes without being told has a default
// that is shown; the others mean nothing where they are not written.
func TestDefaultsAreKnown(t *testing.T) {
	unsaid := []string{"engine.budget.handoffs", "engine.budget.agents", "engine.budget.time", "engine.tiers", "engine.daily_usd", "engine.spawn.per_agent", "engine.queue_timeout", "approval.remind", "approval.careful", "approval.escalate",
		"approval.rules", "approval.handovers", "approval.actions"}
	c, err := Parse("", nil, env())
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]string{}
	for _, v := range c.Values() {
		defaults[v.Key] = v.Value
	}
	var look func(key string, at reflect.Type)
	look = func(key string, at reflect.Type) {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if at.Kind() == reflect.Struct {
			for f := range at.Fields() {
				look(under(key, f.Tag.Get("yaml")), f.Type)
			}
			return
		}
		if defaults[key] == "" && !slices.Contains(unsaid, key) {
			t.Errorf("%s has no default", key)
		}
	}
	look("server", reflect.TypeFor[Server]())
	look("engine", reflect.TypeFor[Engine]())
	look("approval", reflect.TypeFor[Approval]())
}
