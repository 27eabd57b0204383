package api

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/event"

	"github.com/labstack/echo/v4"
)

// Seal is the last line of a bundle: it covers every byte of the lines before it.
type Seal struct {
	Type      string    `json:"type"` // always "seal"
	Events    int       `json:"events"`
	SHA256    string    `json:"sha256"` // of all lines before, with their line feeds
	At        time.Time `json:"at"`
	Key       string    `json:"key"`       // Ed25519 public key, base64
	Signature string    `json:"signature"` // base64, over the text of SealText
}

// SealText is what the signature of a seal covers.
func (s Seal) SealText() []byte {
	return []byte("gatehouse seal v1\n" + strconv.Itoa(s.Events) + "\n" + s.SHA256 + "\n" + s.At.UTC().Format(time.RFC3339Nano) + "\n")
}

// bundle writes events as JSON lines and seals them.
type bundle struct {
	w      io.Writer
	hash   hash.Hash
	events int
}

func newBundle(w io.Writer) *bundle { return &bundle{w: w, hash: sha256.New()} }

func (b *bundle) add(e event.Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	b.hash.Write(line)
	b.events++
	_, err = b.w.Write(line)
	return err
}

func (b *bundle) seal(key ed25519.PrivateKey, at time.Time) error {
	s := Seal{Type: "seal", Events: b.events, SHA256: hex.EncodeToString(b.hash.Sum(nil)), At: at.UTC()}
	public, _ := key.Public().(ed25519.PublicKey) // a private key always has one
	s.Key = base64.StdEncoding.EncodeToString(public)
	s.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(key, s.SealText()))
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = b.w.Write(append(line, '\n'))
	return err
}

// canSeal says that a bundle can be made, before its first byte is sent.
func (a *API) canSeal() error {
	if len(a.Seal) != ed25519.PrivateKeySize {
		return orchestrator.Errorf(orchestrator.CodeUnavailable, "This server has no key to seal with. Look at the data folder, then start it again.")
	}
	return nil
}

// Export answers GET /audit/export?format=jsonl|csv. It streams in the order of the
// log; jsonl ends with a signed seal, csv with a line that counts.
func (a *API) Export(c echo.Context) error {
	f, err := a.auditFilterOf(c, "format")
	if err != nil {
		return err
	}
	format := c.QueryParam("format")
	switch format {
	case "", "jsonl":
		if err := a.canSeal(); err != nil {
			return err
		}
		start(c, "application/jsonl; charset=utf-8", "gatehouse-audit.jsonl")
		b := newBundle(c.Response())
		if err := a.scan(c, f, b.add); err != nil {
			return err
		}
		return b.seal(a.Seal, a.Now())
	case "csv":
		start(c, "text/csv; charset=utf-8", "gatehouse-audit.csv")
		return a.exportCSV(c, f)
	}
	return bad("There is no format %.40q. Use jsonl or csv.", format)
}

func start(c echo.Context, kind, name string) {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, kind)
	h.Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	c.Response().WriteHeader(http.StatusOK)
}

// scan gives every event that the filter takes, up to the newest one.
func (a *API) scan(c echo.Context, f auditFilter, each func(event.Event) error) error {
	for after := int64(0); ; {
		batch, err := a.Reader.Ordered(c.Request().Context(), after, 500)
		if err != nil {
			return err
		}
		for _, p := range batch {
			after = p.Pos
			if !f.takes(p.Event) {
				continue
			}
			p.At = p.At.UTC()
			if err := each(p.Event); err != nil {
				return err
			}
		}
		if len(batch) < 500 {
			return nil
		}
		extend(c) // a long export outlives the usual time for one answer
	}
}

func extend(c echo.Context) {
	// Without support for deadlines there is none to prolong.
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(5 * time.Minute))
}

func (a *API) exportCSV(c echo.Context, f auditFilter) error {
	w := csv.NewWriter(c.Response())
	err := w.Write([]string{"at", "task_id", "n", "id", "type", "delegation_id", "actor", "data", "hash"})
	if err != nil {
		return err
	}
	rows := 0
	err = a.scan(c, f, func(e event.Event) error {
		rows++
		return w.Write([]string{e.At.Format(time.RFC3339Nano), e.TaskID, strconv.FormatInt(e.N, 10), e.ID,
			string(e.Type), e.DelegationID, Cell(e.Actor), Cell(string(e.Data)), e.Hash})
	})
	if err != nil {
		return err
	}
	if err := w.Write([]string{"# rows: " + strconv.Itoa(rows), "", "", "", "", "", "", "", ""}); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// Cell keeps a spreadsheet from taking foreign text for a formula.
func Cell(s string) string {
	if trimmed := strings.TrimLeft(s, " \t\r\n"); trimmed != "" && strings.ContainsRune("=+-@|%", rune(trimmed[0])) {
		return "'" + s
	}
	if strings.HasPrefix(s, "\t") || strings.HasPrefix(s, "\r") {
		return "'" + s
	}
	return s
}
