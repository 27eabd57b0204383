package static

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// What is vendored is the published file, unchanged, and its licence is beside it.
func TestVendoredFilesAreTheOnesWeChecked(t *testing.T) {
	sums, ok := File("vendor/SHA256SUMS")
	if !ok {
		t.Fatal("vendor/SHA256SUMS is missing")
	}
	listed := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(sums)); s.Scan(); {
		sum, name, _ := strings.Cut(s.Text(), "  ")
		listed["vendor/"+name] = sum
	}
	readme, _ := File("vendor/README.md")
	for name := range assets() {
		if !strings.HasPrefix(name, "vendor/") || strings.HasSuffix(name, "SHA256SUMS") || strings.HasSuffix(name, "README.md") {
			continue
		}
		body, _ := File(name)
		sum := sha256.Sum256(body)
		if got := hex.EncodeToString(sum[:]); listed[name] != got {
			t.Errorf("%s has sha256 %s, SHA256SUMS says %q", name, got, listed[name])
		}
		if strings.HasSuffix(name, ".js") && !strings.Contains(string(readme), listed[name]) {
			t.Errorf("vendor/README.md does not name %s with its checksum", name)
		}
	}
	if len(listed) == 0 {
		t.Error("nothing is listed")
	}
}

func TestFilesCanBeKeptForEverUnderTheirHash(t *testing.T) {
	get := func(method, url, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, url, nil)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, r)
		return w
	}
	w := get(http.MethodGet, URL("app.css"), "")
	if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("with its hash: %d %v", w.Code, w.Header())
	}
	if c := get(http.MethodGet, "/static/app.css?v=old", "").Header().Get("Cache-Control"); c != "no-cache" {
		t.Errorf("an old address may be kept: %q", c)
	}
	if code := get(http.MethodGet, URL("app.css"), w.Header().Get("ETag")).Code; code != http.StatusNotModified {
		t.Errorf("unchanged file answers %d", code)
	}
	for _, missing := range []string{"/static/", "/static/../static.go", "/static/static.go", "/static/none.css"} {
		if code := get(http.MethodGet, missing, "").Code; code != http.StatusNotFound {
			t.Errorf("%s answers %d", missing, code)
		}
	}
	if code := get(http.MethodPost, URL("app.css"), "").Code; code != http.StatusMethodNotAllowed {
		t.Errorf("POST answers %d", code)
	}
}

func TestTextIsSentCompressedToThoseWhoTakeIt(t *testing.T) {
	plain, _ := File("app.css")
	for accept, compressed := range map[string]bool{"": false, "gzip": true, "br, gzip;q=0.8": true, "GZIP": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzipped": false, "deflate": false} {
		r := httptest.NewRequest(http.MethodGet, URL("app.css"), nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		Handler().ServeHTTP(w, r)
		body, encoding := w.Body.Bytes(), w.Header().Get("Content-Encoding")
		if (encoding == "gzip") != compressed {
			t.Errorf("Accept-Encoding %q: sent as %q", accept, encoding)
		}
		if compressed {
			if len(body) > len(plain)/2 {
				t.Errorf("compressed it has %d of %d bytes", len(body), len(plain))
			}
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, plain) {
			t.Errorf("Accept-Encoding %q: another text came", accept)
		}
		if w.Header().Get("Vary") != "Accept-Encoding" {
			t.Error("a cache may give the compressed file to those who do not take it")
		}
	}
}

// Our own scripts keep to what the pages' policy allows, and decide nothing by themselves.
func TestScriptsObeyTheContentPolicy(t *testing.T) {
	forbidden := regexp.MustCompile(`\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\.style\b|https?://`)
	for name, a := range assets() {
		if strings.HasSuffix(name, ".js") && !strings.HasPrefix(name, "vendor/") {
			if m := forbidden.FindString(string(a.body)); m != "" {
				t.Errorf("%s uses %q", name, m)
			}
		}
		if strings.HasSuffix(name, ".css") && strings.Contains(string(a.body), "url(") {
			t.Errorf("%s loads something", name)
		}
	}
}
