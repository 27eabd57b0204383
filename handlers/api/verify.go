package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"gatehouse/orchestrator/record/proof"

	"github.com/labstack/echo/v4"
)

// proofHeads is how many heads of tasks a bundle carries at most beside its events. One
// takes about 110 bytes.
const proofHeads = 20_000

// sealed ends a bundle with what proves it.
func (a *API) sealed(c echo.Context, b *proof.Writer) error {
	a.extend(c)
	proofs, err := a.Proof.Proofs(c.Request().Context(), b.Tasks(), proofHeads)
	if err != nil {
		return err
	}
	return b.Seal(a.Seal, a.Now(), proofs)
}

// verification is the answer of GET /audit/verify.
type verification struct {
	OK       bool           `json:"ok"`
	Tasks    int            `json:"tasks"` // that were checked, the stream "system" among them
	Seals    int            `json:"seals"`
	Position int64          `json:"position"` // of the log, when it began
	At       time.Time      `json:"at"`
	TookMS   int64          `json:"took_ms"`
	Problems []proof.Broken `json:"problems"` // the sentence names the event
}

func verificationOf(v proof.Verification) verification {
	return verification{OK: v.OK(), Tasks: v.Tasks, Seals: v.Seals, Position: v.Pos, At: v.At.UTC(), TookMS: v.Took.Milliseconds(), Problems: v.Problems}
}

// Verify answers GET /audit/verify: it follows every task's chain of hashes from the
// first event to the task's own head, and every checkpoint, so an edit, a removal, an
// exchange and a cut end are all found. Who accepts application/jsonl is told how far it
// is, a line each time; the last line is the answer. When the client goes away it stops.
func (a *API) Verify(c echo.Context) error {
	if err := only(c.QueryParams()); err != nil {
		return err
	}
	lines := strings.Contains(c.Request().Header.Get(echo.HeaderAccept), "application/jsonl")
	v, err := a.Proof.Verify(c.Request().Context(), caller(c).User.Name, a.teller(c, lines))
	if err != nil {
		return err
	}
	if lines {
		return json.NewEncoder(c.Response()).Encode(verificationOf(v))
	}
	return c.JSON(http.StatusOK, verificationOf(v))
}

// tellEvery is how often a client is told at most how far a verification is.
const tellEvery = 100 * time.Millisecond

// teller keeps an answer open while a verification runs. The first word begins the answer,
// so that a refusal before it keeps its status.
func (a *API) teller(c echo.Context, lines bool) func(proof.Progress) {
	var told time.Time
	return func(p proof.Progress) {
		first := told.IsZero()
		if !first && a.Now().Sub(told) < tellEvery {
			return
		}
		told = a.Now()
		a.extend(c)
		if !lines {
			return
		}
		if first {
			h := c.Response().Header()
			h.Set(echo.HeaderContentType, "application/jsonl; charset=utf-8")
			h.Set("X-Accel-Buffering", "no")
			c.Response().WriteHeader(http.StatusOK)
		}
		if json.NewEncoder(c.Response()).Encode(p) == nil { // a client that is gone ends the context, too
			c.Response().Flush()
		}
	}
}

// sealing is the answer of GET /audit/seal.
type sealing struct {
	SealedUpTo *time.Time    `json:"sealed_up_to"` // null: nothing is sealed yet
	Position   int64         `json:"position"`     // of the log, up to which it is
	KeyID      string        `json:"key_id"`
	Keys       []sealKey     `json:"keys"`
	Verified   *verification `json:"verified"` // the last time; null: never
	VerifiedBy string        `json:"verified_by,omitempty"`
}

type sealKey struct {
	ID   string    `json:"id"` // the first 16 hex digits of its SHA-256
	Key  []byte    `json:"key"`
	Node string    `json:"node"`
	At   time.Time `json:"at"`
}

// Sealing answers GET /audit/seal: how far the history is sealed, by which keys, and when
// all of it was last verified.
func (a *API) Sealing(c echo.Context) error {
	if err := only(c.QueryParams()); err != nil {
		return err
	}
	ctx := c.Request().Context()
	last, err := a.Proof.SealedUpTo(ctx)
	if err != nil {
		return err
	}
	keys, err := a.Proof.SealKeys(ctx)
	if err != nil {
		return err
	}
	out := sealing{Position: last.Pos, KeyID: last.KeyID, Keys: []sealKey{}}
	if at := last.At.UTC(); last.Pos > 0 {
		out.SealedUpTo = &at
	}
	for _, k := range keys {
		out.Keys = append(out.Keys, sealKey{k.ID, k.Public, k.Node, k.At.UTC()})
	}
	v, ok, err := a.Proof.LastVerified(ctx)
	if err != nil {
		return err
	}
	if ok {
		shape := verificationOf(v)
		out.Verified, out.VerifiedBy = &shape, v.Who
	}
	return c.JSON(http.StatusOK, out)
}
