package command

import (
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
)

// defaultKeep are the variables of the server that a program also gets. A trailing
// star stands for any ending.
var defaultKeep = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "NO_COLOR", "TZ", "TMPDIR",
	"LANG", "LANGUAGE", "LC_*",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOBIN", "GOPROXY", "GONOPROXY", "GOPRIVATE", "GOINSECURE",
	"GOFLAGS", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOENV", "GOTELEMETRY", "CGO_ENABLED", "CC", "CXX", "PKG_CONFIG_PATH",
	"NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "RUSTUP_HOME", "CARGO_HOME", "JAVA_HOME",
}

// environment is a set of variables in the order in which they were first set.
type environment struct {
	names  []string
	values map[string]string
}

// keepFrom takes from the server's environment what the allow-list names.
func keepFrom(server, keep []string) *environment {
	e := &environment{values: map[string]string{}}
	for _, pair := range server {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || agent.LooksSecret(name) {
			continue
		}
		kept := slices.ContainsFunc(keep, func(k string) bool {
			prefix, open := strings.CutSuffix(k, "*")
			return k == name || (open && strings.HasPrefix(name, prefix))
		})
		if kept {
			e.set(name, value)
		}
	}
	return e
}

func (e *environment) get(name string) string { return e.values[name] }

// set stores a value without the NUL bytes that no environment can carry.
func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = strings.ReplaceAll(value, "\x00", "\uFFFD")
}

// setDefault sets a value where there is none.
func (e *environment) setDefault(name, value string) {
	if e.values[name] == "" {
		e.set(name, value)
	}
}

func (e *environment) list() []string {
	pairs := make([]string, 0, len(e.names))
	for _, n := range e.names {
		pairs = append(pairs, n+"="+e.values[n])
	}
	return pairs
}
