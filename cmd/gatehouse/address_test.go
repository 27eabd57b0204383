package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"gatehouse/cmd/gatehouse/internal/console"
)

// TestAnAddressIsBelievedWhileItsServerLives: not after its end, not when the server was
// killed and left the file, and not when something else, or nothing, answers there.
func TestAnAddressIsBelievedWhileItsServerLives(t *testing.T) {
	healthy := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" || !healthy {
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	data := t.TempDir()
	look := func(when, want string) {
		t.Helper()
		got, site := announced(t.Context(), data)
		if got != want || (site != "") != (want != "") {
			t.Errorf("%s: %q and %q, want %q", when, got, site, want)
		}
	}
	look("before the first start", "")

	withdraw, err := announce(data, srv.URL, "http://gate.example")
	if err != nil {
		t.Fatal(err)
	}
	look("while it serves", srv.URL)
	healthy = false
	look("when something else answers", "")
	healthy = true
	if err := withdraw(); err != nil {
		t.Fatal(err)
	}
	look("after its end", "")

	path := filepath.Join(data, addressFile)
	if err := os.WriteFile(path, []byte(srv.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	look("after a kill", "")
	if withdraw, err = announce(data, "http://127.0.0.1:1", "http://localhost:1"); err != nil {
		t.Fatal(err)
	}
	look("when nobody answers", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := withdraw(); err != nil {
		t.Errorf("a file that somebody removed: %v", err)
	}
}

func TestHowAListenerIsReached(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9000": "http://127.0.0.1:9000", ":9000": "http://127.0.0.1:9000", "0.0.0.0:9000": "http://127.0.0.1:9000",
		"[::]:9000": "http://127.0.0.1:9000", "[::1]:9000": "http://[::1]:9000", "gate.example.com:80": "http://gate.example.com:80",
		"127.0.0.1:0": defaultURL, "": defaultURL,
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%q is reached at %s, want %s", listen, got, want)
		}
	}
}

// A token goes to this machine only, when nobody named the file: that of a clone may be
// anybody's.
func TestAFileThatNobodyNamedLeadsNowhereElse(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://[::1]:9000": true, "http://localhost:1": true,
		"http://192.0.2.7:8080": false, "https://gate.example.com": false, "http://localhost.evil.example": false, "": false,
	} {
		if got := local(address); got != want {
			t.Errorf("%q is local: %v", address, got)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("gatehouse.yaml", []byte("server: {listen: \"192.0.2.7:8080\", public_url: \"https://evil.example\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh := &console.Shell{Env: os.LookupEnv, Errs: os.Stderr}
	if got := serverOf(t.Context(), sh); got != defaultURL {
		t.Errorf("the file of the current folder leads to %s", got)
	}
	sh = &console.Shell{Env: os.LookupEnv, Errs: os.Stderr, Globals: console.Globals{Config: "gatehouse.yaml"}}
	if got := serverOf(t.Context(), sh); got != "http://192.0.2.7:8080" {
		t.Errorf("a file that was named leads to %s", got)
	}
}
