package webhook

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestConfigurationIsToldWhatIsWrongWithATarget(t *testing.T) {
	good := Target{Name: "ops", URL: "https://example.com/hook", Format: Standard, Secret: testSecret}
	for name, tc := range map[string]struct {
		change func(*Target)
		want   string // in the error; "" when fine
	}{
		"as it should be":      {func(*Target) {}, ""},
		"standard is usual":    {func(t *Target) { t.Format = "" }, ""},
		"slack":                {func(t *Target) { t.Format, t.Secret = Slack, "" }, ""},
		"plain http":           {func(t *Target) { t.URL = "http://example.com" }, ""},
		"own machine":          {func(t *Target) { t.URL, t.AllowPrivate = "http://localhost:9000/x", true }, ""},
		"own network":          {func(t *Target) { t.URL, t.AllowPrivate = "http://10.1.2.3/x", true }, ""},
		"no name":              {func(t *Target) { t.Name = "" }, "cannot be the name"},
		"a loud name":          {func(t *Target) { t.Name = "Ops team" }, "cannot be the name"},
		"no url":               {func(t *Target) { t.URL = "" }, "it has no url"},
		"no scheme":            {func(t *Target) { t.URL = "example.com/hushhush" }, "must begin with https://"},
		"another scheme":       {func(t *Target) { t.URL = "ftp://example.com/hushhush" }, "must begin with https://"},
		"no host":              {func(t *Target) { t.URL = "https:///hushhush" }, "names no host"},
		"opaque":               {func(t *Target) { t.URL = "https:hushhush" }, "names no host"},
		"nonsense":             {func(t *Target) { t.URL = "https://exa mple.com/hushhush" }, "is no address"},
		"a login":              {func(t *Target) { t.URL = "https://me:hushhush@example.com" }, "user name or password"},
		"a fragment":           {func(t *Target) { t.URL = "https://example.com/#hushhush" }, "after #"},
		"an interface":         {func(t *Target) { t.URL = "http://[fe80::1%25eth0]/hushhush" }, "network interface"},
		"this machine":         {func(t *Target) { t.URL = "http://localhost/hushhush" }, "allow_private: true"},
		"this machine, dotted": {func(t *Target) { t.URL = "http://x.LOCALHOST./hushhush" }, "allow_private: true"},
		"private":              {func(t *Target) { t.URL = "http://192.168.1.1/hushhush" }, "allow_private: true"},
		"metadata":             {func(t *Target) { t.URL, t.AllowPrivate = "http://169.254.169.254/hushhush", true }, "no address that a webhook may have"},
		"another format":       {func(t *Target) { t.Format = "teams" }, "Write slack or standard"},
		"slack with a secret":  {func(t *Target) { t.Format = Slack }, "not signed"},
		"no secret":            {func(t *Target) { t.Secret = "" }, "openssl rand"},
		"not whsec_":           {func(t *Target) { t.Secret = "hushhush" }, "begin with whsec_"},
		"not base64":           {func(t *Target) { t.Secret = "whsec_hushhush!" }, "not base64"},
		"short":                {func(t *Target) { t.Secret = "whsec_aHVzaGh1c2g=" }, "has 8 bytes"},
		"long":                 {func(t *Target) { t.Secret = secretPrefix + base64.StdEncoding.EncodeToString(make([]byte, 65)) }, "has 65 bytes"},
	} {
		target := good
		tc.change(&target)
		err := target.Check()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hushhush") || strings.Contains(err.Error(), "aHVzaGh1c2g")) {
			t.Errorf("%s: the error repeats what is secret: %v", name, err)
		}
		if _, err := New(Options{Targets: []Target{target}, PublicURL: "http://localhost:8080"}); (err == nil) != (tc.want == "") {
			t.Errorf("%s: New: %v", name, err)
		}
	}
}

func TestNewWantsNamesApartAndAnAddressForLinks(t *testing.T) {
	a := Target{Name: "ops", URL: "https://example.com/hook", Secret: testSecret}
	if _, err := New(Options{Targets: []Target{a, a}, PublicURL: "http://localhost"}); err == nil || !strings.Contains(err.Error(), "two webhooks") {
		t.Errorf("the same name twice: %v", err)
	}
	for _, public := range []string{"", "gatehouse.example.com", "ftp://x", "https://u:p@x", "https://"} {
		if _, err := New(Options{PublicURL: public}); err == nil || !strings.Contains(err.Error(), "server.public_url") {
			t.Errorf("public URL %q: %v", public, err)
		}
	}
}
