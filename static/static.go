// Package static holds the files that the browser loads: our style and script, icons,
// and the one vendored library with its licence and checksum. It imports nothing of ours.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed *.css *.js *.svg vendor
var files embed.FS

// Prefix is where Handler is mounted.
const Prefix = "/static/"

// asset is one file with the hash that its address carries.
type asset struct {
	body []byte
	gzip []byte // body compressed, nil where that saves nothing
	hash string // first 12 hexadecimal digits of the sha256
	mime string
}

// assets reads every file once; the set never changes while the program runs.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	// Reading an embedded tree cannot fail; a missing file shows in the tests.
	_ = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		kind := mime.TypeByExtension(path.Ext(name))
		switch path.Ext(name) { // what the machine's own table says differs
		case ".css":
			kind = "text/css; charset=utf-8"
		case ".js":
			kind = "text/javascript; charset=utf-8"
		case ".svg":
			kind = "image/svg+xml"
		case "":
			kind = "text/plain; charset=utf-8"
		}
		if kind == "" {
			kind = "text/plain; charset=utf-8"
		}
		all[name] = asset{body: body, gzip: squeeze(body), hash: hex.EncodeToString(sum[:])[:12], mime: kind}
		return nil
	})
	return all
})

// squeeze compresses once what is sent often; nil where that saves less than a tenth.
func squeeze(body []byte) []byte {
	var b bytes.Buffer
	// Writing to memory at a level that exists cannot fail.
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(body)
	_ = w.Close()
	if b.Len() > len(body)*9/10 {
		return nil
	}
	return b.Bytes()
}

// AcceptsGzip reports whether a client takes gzip, by its Accept-Encoding.
func AcceptsGzip(h http.Header) bool {
	for _, line := range h.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				weight = strings.ReplaceAll(weight, " ", "")
				return !strings.HasPrefix(weight, "q=0") || strings.Trim(weight, "q=0.") != ""
			}
		}
	}
	return false
}

// URL is the address of a file, with its hash, so that it can be cached for ever.
// An unknown name gives an address that answers 404.
func URL(name string) string {
	a, ok := assets()[name]
	if !ok {
		return Prefix + name
	}
	return Prefix + name + "?v=" + a.hash
}

// File is the content of one file, for tests that read the stylesheet.
func File(name string) ([]byte, bool) {
	a, ok := assets()[name]
	return a.body, ok
}

// Handler serves the files under Prefix. With the right hash the browser may keep a
// file for a year; without, it asks each time whether it changed.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Only GET is answered here.", http.StatusMethodNotAllowed)
			return
		}
		a, ok := assets()[strings.TrimPrefix(r.URL.Path, Prefix)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.mime)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("ETag", `W/"`+a.hash+`"`) // weak: the same file, compressed or not
		if r.URL.Query().Get("v") == a.hash {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			h.Set("Cache-Control", "no-cache")
		}
		if strings.Contains(r.Header.Get("If-None-Match"), `"`+a.hash+`"`) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := a.body
		if a.gzip != nil {
			h.Set("Vary", "Accept-Encoding")
			if AcceptsGzip(r.Header) {
				body = a.gzip
				h.Set("Content-Encoding", "gzip")
			}
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(body) // the client went away: nothing to do
	})
}
