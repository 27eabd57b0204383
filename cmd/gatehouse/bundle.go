package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/record/proof"
	"gatehouse/orchestrator/store"
)

// AuditVerifyCmd verifies the database, or a bundle without any.
type AuditVerifyCmd struct {
	Bundle string `arg:"" optional:"" name:"bundle" help:"A file that audit export or an evidence page made; without one, the database is verified."`

	File string   `help:"The same file; - for standard input." placeholder:"BUNDLE"`
	Key  []string `help:"Only this key may have sealed, by its fingerprint; repeats. See audit key." sep:"," placeholder:"FINGERPRINT"`
}

// Run exits 1 and names the entry when something was edited, removed or moved.
func (c *AuditVerifyCmd) Run(ctx context.Context, sh *console.Shell) error {
	for _, k := range c.Key {
		if len(k) < 16 || len(k) > 64 || !isHex(k) {
			return console.Usage("--key %s: write a fingerprint, 16 to 64 hex digits, as audit key prints it.", console.Line(k))
		}
	}
	if c.File != "" && c.Bundle != "" {
		return console.Usage("There are two files, %s and %s. Verify one after the other.", console.Line(c.Bundle), console.Line(c.File))
	}
	if c.File += c.Bundle; c.File != "" {
		found, err := verifyFile(sh, c.File, c.Key)
		if err != nil {
			return err
		}
		return printBundle(sh, found)
	}
	return withStore(ctx, sh, func(s *store.Store) error {
		found, err := verifyStore(ctx, sh, s, c.Key)
		if err != nil {
			return err
		}
		return found.print(sh)
	})
}

func isHex(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// AuditKeyCmd prints what --key of audit verify takes.
type AuditKeyCmd struct{}

// Run prints a line for each key.
func (c *AuditKeyCmd) Run(ctx context.Context, sh *console.Shell) error {
	return withStore(ctx, sh, func(s *store.Store) error {
		keys, err := s.SealKeys(ctx)
		if err != nil {
			return err
		}
		document := map[string]any{"items": append([]proof.Key{}, keys...)}
		return console.List(sh, document, keys,
			"No key has sealed anything yet. The server makes its own at its first start.", func(k proof.Key) []string {
				return []string{k.ID, console.Line(k.Node), "since " + k.At.Format("2006-01-02 15:04:05 UTC")}
			})
	})
}

// audited is what a verification of the database found.
type audited struct {
	OK       bool     `json:"ok"`
	Tasks    int      `json:"tasks"`
	Seals    int      `json:"seals"`
	Problems []broken `json:"problems"`
}

// broken is one thing that does not fit.
type broken struct {
	ID      string `json:"id"`
	TaskID  string `json:"task_id"`
	Message string `json:"message"`
}

func (a audited) print(sh *console.Shell) error {
	a.OK, a.Problems = len(a.Problems) == 0, append([]broken{}, a.Problems...)
	wrong := each.Of(a.Problems, func(p broken) string { return p.Message })
	if err := verified(sh, a, wrong, 0); err != nil || sh.JSON {
		return err
	}
	return sh.Say("✓ The history of %s verified, %s.", console.Counted(a.Tasks, "task"), console.Counted(a.Seals, "seal"))
}

// verified says what is wrong, as lines or as the document, and that it is; more problems may be too many to be told.
func verified(sh *console.Shell, document any, wrong []string, more int) error {
	if sh.JSON {
		if err := sh.Document(document); err != nil {
			return err
		}
	}
	for _, sentence := range wrong {
		if sh.JSON {
			break
		}
		if err := sh.Say("✕ %s", console.Line(sentence)); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return console.Fail(console.ExitFailed, "The history does not verify: %s.", console.Counted(len(wrong)+more, "problem"))
	}
	return nil
}

// printBundle says what is in a bundle, and what is wrong with it.
func printBundle(sh *console.Shell, r proof.Report) error {
	r.Problems = append([]proof.Problem{}, r.Problems...)
	document := struct {
		OK bool `json:"ok"`
		proof.Report
	}{r.OK(), r}
	wrong := each.Of(r.Problems, func(p proof.Problem) string { return p.Message })
	if err := verified(sh, document, wrong, r.More); err != nil || sh.JSON {
		return err
	}
	if r.Scope == proof.Selected {
		return printSelection(sh, r)
	}
	if err := sh.Say("✓ %s of %s verified, sealed by the key %s on %s.", console.Counted(r.Events, "event"), console.Counted(r.Tasks, "task"), r.Key, r.At.UTC().Format("2006-01-02 15:04:05 UTC")); err != nil {
		return err
	}
	if r.Dropped > 0 {
		sh.Hint("The data of %s was dropped by retention; their hashes are here and fit.", console.Counted(r.Dropped, "event"))
	}
	if r.Covered > 0 {
		sh.Hint("%s: a checkpoint that the server signed before the export knows the newest event.", console.Counted(r.Covered, "task"))
	}
	if r.Scope == proof.Filtered {
		sh.Hint("An export may be a part of the log: what its filter left out is not missed here. The bundle of an evidence page has all events of its tasks.")
	}
	return nil
}

// printSelection says what a sound export of rows is, and what it cannot be.
func printSelection(sh *console.Shell, r proof.Report) error {
	if err := sh.Say("✓ This is what the server exported: %s of %s, by %s on %s, sealed by the key %s.", console.Counted(r.Rows, "row"), console.Line(r.List), console.Line(r.By), r.At.UTC().Format("2006-01-02 15:04:05 UTC"), r.Key); err != nil {
		return err
	}
	filter := "no filter"
	if r.Filter != "" {
		filter = "the filter " + console.Line(r.Filter) + " (days of " + console.Line(r.Zone) + ")"
	}
	sh.Hint("It is a selection, by %s: whether it is complete cannot be proven from it. The bundle of an evidence page has all events of its tasks.", filter)
	return nil
}

// verifyHint is how often a command says how far a verification is.
const verifyHint = 5 * time.Second

// verifyStore follows the hashes in the database, and records that it did.
func verifyStore(ctx context.Context, sh *console.Shell, s *store.Store, keys []string) (audited, error) {
	var a audited
	told := time.Now()
	v, err := s.Verify(ctx, cliActor, func(p proof.Progress) {
		if time.Since(told) >= verifyHint {
			told = time.Now()
			sh.Hint("%d of %s, %d events, %s", p.Tasks, console.Counted(p.Of, "task"), p.Events, console.Counted(p.Seals, "seal"))
		}
	})
	if err != nil {
		return a, err
	}
	a.Tasks, a.Seals = v.Tasks, v.Seals
	for _, p := range v.Problems {
		a.Problems = append(a.Problems, broken{ID: firstBroken(ctx, s, p.TaskID), TaskID: p.TaskID, Message: p.Message})
	}
	if len(keys) == 0 {
		return a, nil
	}
	signers, err := s.CheckpointKeys(ctx)
	if err != nil {
		return a, err
	}
	for _, id := range signers {
		if !namesKey(keys, id) {
			a.Problems = append(a.Problems, broken{Message: "checkpoints were signed by the key " + id + ", which is none of those that were named"})
		}
	}
	return a, nil
}

// namesKey reports whether one of the fingerprints is that of the key; checkpoints name
// theirs by its first 16 digits.
func namesKey(fingerprints []string, id string) bool {
	return slices.ContainsFunc(fingerprints, func(f string) bool { return strings.EqualFold(f[:16], id) })
}

// firstBroken is the id of the first event of a task that does not fit, "" where what
// is wrong is that one is missing.
func firstBroken(ctx context.Context, s *store.Store, taskID string) string {
	hash := ""
	for after := int64(0); taskID != ""; {
		events, err := s.Events(ctx, taskID, after, 500)
		if err != nil || len(events) == 0 {
			return ""
		}
		for _, e := range events {
			if e.N != after+1 || e.Verify(hash) != nil {
				return e.ID
			}
			after, hash = e.N, e.Hash
		}
	}
	return ""
}

// verifyFile reads a bundle.
func verifyFile(sh *console.Shell, name string, keys []string) (proof.Report, error) {
	in := io.Reader(sh.In)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return proof.Report{}, console.Usage("The bundle %s cannot be read: %s.", console.Line(name), console.Line(errors.Unwrap(err).Error()))
		}
		defer f.Close()
		in = f
	}
	found, err := proof.Verify(in, proof.Options{Keys: keys})
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return found, console.Usage("The bundle %s cannot be read: %s.", console.Line(name), console.Line(path.Err.Error()))
	}
	return found, err
}
