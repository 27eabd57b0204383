package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"strings"
	"time"
)

// Selected is the scope of a seal over rows that a line of filters chose. Rows are no
// events: nothing chains them, so whether some are left out cannot be proven.
const Selected = "selection"

const selectionVersion = streamed

// Selection is the last line of an export of rows: it covers every byte of the lines
// before it, which are the rows and one line that counts them.
type Selection struct {
	Type    string    `json:"type"` // always "seal"
	Version int       `json:"version"`
	Scope   string    `json:"scope"` // always Selected
	List    string    `json:"list"`
	Filter  string    `json:"filter"` // the line, with what could not be seen made visible
	Zone    string    `json:"zone"`   // whose days the line means
	By      string    `json:"by"`     // who exported
	Rows    int       `json:"rows"`
	SHA256  string    `json:"sha256"`     // of all lines before, with their line feeds
	Each    int       `json:"lines_each"` // how many lines one of Lines covers
	Lines   string    `json:"lines"`      // sums of the lines, to name the first that was changed
	At      time.Time `json:"at"`
	Key     string    `json:"key"` // Ed25519 public key, base64

	Signature string `json:"signature"` // base64, over Text
}

// Text is what the signature covers: the whole seal without it.
func (s Selection) Text() []byte {
	s.Signature = ""
	line, err := json.Marshal(s)
	if err != nil { // a time outside of RFC 3339: nothing is signed like this
		return nil
	}
	return append([]byte("gatehouse selection v3\n"), line...)
}

// SelectionWriter writes an export of rows. Its memory does not grow with their number.
type SelectionWriter struct {
	w     io.Writer
	about Selection
	sum   hash.Hash
	sums  lineSums
}

// NewSelectionWriter begins one; about says List, Filter, Zone and By.
func NewSelectionWriter(w io.Writer, about Selection) *SelectionWriter {
	return &SelectionWriter{w: w, about: about, sum: sha256.New()}
}

// Row writes a row, which is a line without its line feed.
func (s *SelectionWriter) Row(line string) error {
	s.about.Rows++
	return s.Note(line)
}

// Note writes a line that is no row.
func (s *SelectionWriter) Note(line string) error {
	s.sums.add([]byte(line))
	line += "\n"
	_, _ = io.WriteString(s.sum, line) // a hash never fails
	_, err := io.WriteString(s.w, line)
	return err
}

// Seal ends the export.
func (s *SelectionWriter) Seal(key ed25519.PrivateKey, at time.Time) error {
	out := s.about
	out.Type, out.Version, out.Scope, out.At = "seal", selectionVersion, Selected, at.UTC()
	for _, text := range []*string{&out.List, &out.Filter, &out.Zone, &out.By} {
		*text = strings.ToValidUTF8(*text, "\uFFFD") // what JSON would change is not signed
	}
	out.SHA256, out.Each, out.Lines = hex.EncodeToString(s.sum.Sum(nil)), 1<<s.sums.level, s.sums.text()
	public, _ := key.Public().(ed25519.PublicKey) // a private key always has one
	out.Key = base64.StdEncoding.EncodeToString(public)
	out.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, out.Text()))
	line, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = s.w.Write(append(line, '\n'))
	return err
}

// selection checks the last line of an export of rows against all before it. That its
// lines are no events, which was noted while they were read, says nothing then.
func (b *reader) selection(text []byte) {
	b.found.Problems, b.found.More, b.found.Dropped = b.file, 0, 0
	b.tasks = nil
	var s Selection
	if err := json.Unmarshal(text, &s); err != nil {
		b.problem(0, "", "", "the signature of the seal is wrong: the seal was changed")
		return
	}
	b.found.Version, b.found.Scope, b.found.At = s.Version, s.Scope, s.At
	b.found.List, b.found.Filter, b.found.Zone, b.found.By, b.found.Rows = s.List, s.Filter, s.Zone, s.By, s.Rows
	again, err := json.Marshal(s)
	if !b.signed(s.Key, s.Signature, s.Text(), err == nil && bytes.Equal(again, text)) {
		return
	}
	if s.SHA256 == hex.EncodeToString(b.sum.Sum(nil)) && s.Rows+1 == b.sums.lines {
		return
	}
	sealed, ok := sumsOf(s.Lines)
	if !ok || s.Rows < 0 || !isEach(s.Each) {
		b.problem(0, "", "", "the export is not what was sealed: a line was changed")
		return
	}
	line, what := b.sums.firstChanged(sealed, s.Each, s.Rows+1)
	b.problem(line, "", "", "%s: the export is not what the server sealed", what)
}
