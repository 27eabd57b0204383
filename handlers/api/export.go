package api

import (
	"cmp"
	"crypto/ed25519"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/proof"

	"github.com/labstack/echo/v4"
)

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
	if asksLine(c) {
		return a.exportList(c)
	}
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
		if err := a.recordOrdered(c, "jsonl"); err != nil {
			return err
		}
		start(c, "application/jsonl; charset=utf-8", "gatehouse-audit.jsonl")
		b := proof.NewWriter(c.Response(), proof.Filtered)
		var first, last int64 // positions
		err := a.scan(c, f, func(pos int64, e event.Event) error {
			if last = pos; first == 0 {
				first = pos
			}
			return b.Add(e)
		})
		if err == nil && b.Many() {
			// A filter may take few events of very many: what proves them is not to be more.
			err = a.Proof.EachProof(c.Request().Context(), first, last, max(proofHeads, b.Events()), func(p proof.Proof) error {
				a.extend(c)
				return b.Checkpoint(p)
			})
		}
		if err != nil {
			return err
		}
		return a.sealed(c, b)
	case "csv":
		if err := a.recordOrdered(c, format); err != nil {
			return err
		}
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
func (a *API) scan(c echo.Context, f auditFilter, each func(pos int64, e event.Event) error) error {
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
			if err := each(p.Pos, p.Event); err != nil {
				return err
			}
		}
		if len(batch) < 500 {
			return nil
		}
		a.extend(c) // a long export outlives the usual time for one answer
	}
}

// partTime is how long the reader of an export may take for each part of it: the events or
// rows that are read at once.
const partTime = 5 * time.Minute

// extend gives the reader of a long answer time for its next part.
func (a *API) extend(c echo.Context) {
	// Without support for deadlines there is none to prolong.
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(cmp.Or(a.Patience, partTime)))
}

func (a *API) exportCSV(c echo.Context, f auditFilter) error {
	w := csv.NewWriter(c.Response())
	err := w.Write([]string{"at", "task_id", "n", "id", "type", "delegation_id", "actor", "data", "hash"})
	if err != nil {
		return err
	}
	rows := 0
	err = a.scan(c, f, func(_ int64, e event.Event) error {
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

// Cell keeps a spreadsheet from taking foreign text for a formula, and shows what could
// not be seen in it.
func Cell(s string) string {
	s = shown(s)
	if trimmed := strings.TrimLeft(s, " \t\r\n"); trimmed != "" && strings.ContainsRune("=+-@|%", rune(trimmed[0])) {
		return "'" + s
	}
	if strings.HasPrefix(s, "\t") || strings.HasPrefix(s, "\r") {
		return "'" + s
	}
	return s
}

// shown is text with nothing hidden in it; its lines stay.
func shown(s string) string {
	return strings.Join(each.Of(strings.Split(s, "\n"), patch.Shown), "\n")
}
