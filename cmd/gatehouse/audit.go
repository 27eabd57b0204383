package main

import (
	"context"
	"errors"
	"io"
	"os"

	"gatehouse/orchestrator/store"
)

// AuditCmd is about the history.
type AuditCmd struct {
	Verify AuditVerifyCmd `cmd:"" help:"Follow every hash of the history and name what does not fit."`
	Export AuditExportCmd `cmd:"" help:"Print the history."`
}

// AuditExportCmd prints the history.
type AuditExportCmd struct {
	From   string `help:"From this time or day (UTC) on." placeholder:"2026-07-01"`
	To     string `help:"Before this time or day (UTC)." placeholder:"2026-10-01"`
	Format string `help:"jsonl (sealed, can be verified) or csv." enum:"jsonl,csv" default:"jsonl" placeholder:"jsonl"`
}

// Run streams the history to stdout.
func (c *AuditExportCmd) Run(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	if sh.JSON && c.Format == "csv" {
		return usage("--json and --format csv exclude each other. Leave one out.")
	}
	return api.Export(ctx, c.Format, c.From, c.To, rawOut(sh))
}

// rawOut is stdout without the plain signs of ui.md: an export is exact.
func rawOut(sh *shell) io.Writer {
	if w, ok := sh.out.(asciiWriter); ok {
		return w.to
	}
	return sh.out
}

// AuditVerifyCmd verifies the database, or a bundle without any.
type AuditVerifyCmd struct {
	File string `help:"A bundle that audit export made; - for standard input." placeholder:"BUNDLE"`
}

// audited is what a verification found.
type audited struct {
	OK       bool     `json:"ok"`
	Tasks    int      `json:"tasks"`
	Events   int      `json:"events,omitempty"` // of a bundle
	Seals    int      `json:"seals"`
	Key      string   `json:"key,omitempty"` // that signed a bundle: the first 16 hex digits of its SHA-256
	Problems []broken `json:"problems"`
}

// broken is one thing that does not fit.
type broken struct {
	ID      string `json:"id"`
	TaskID  string `json:"task_id"`
	Message string `json:"message"`
}

// Run exits 1 and names the entry when something was edited, removed or moved.
func (c *AuditVerifyCmd) Run(ctx context.Context, sh *shell) error {
	var found audited
	var err error
	if c.File != "" {
		found, err = verifyFile(sh, c.File)
	} else {
		err = withStore(ctx, sh, func(s *store.Store) error {
			found, err = verifyStore(ctx, s)
			return err
		})
	}
	if err != nil {
		return err
	}
	return found.print(sh)
}

func (a audited) print(sh *shell) error {
	a.OK = len(a.Problems) == 0
	if sh.JSON {
		if a.Problems == nil {
			a.Problems = []broken{}
		}
		if err := sh.document(a); err != nil {
			return err
		}
	} else {
		for _, p := range a.Problems {
			if err := sh.say("✕ %s", line(p.Message)); err != nil {
				return err
			}
		}
	}
	switch {
	case !a.OK:
		return fail(exitFailed, "The history does not verify: %s.", counted(len(a.Problems), "problem"))
	case sh.JSON:
		return nil
	case a.Events > 0:
		return sh.say("✓ %s of %s verified, sealed by the key %s.", counted(a.Events, "event"), counted(a.Tasks, "task"), a.Key)
	}
	return sh.say("✓ The history of %s verified, %s.", counted(a.Tasks, "task"), counted(a.Seals, "seal"))
}

// verifyStore follows the hashes in the database.
func verifyStore(ctx context.Context, s *store.Store) (audited, error) {
	var a audited
	var err error
	a.Tasks, err = s.VerifyAll(ctx, func(taskID string, why error) {
		a.Problems = append(a.Problems, broken{ID: firstBroken(ctx, s, taskID), TaskID: taskID, Message: why.Error()})
	})
	if err != nil {
		return a, err
	}
	// The keys are the server's; here the seals only have to cover what they sealed.
	a.Seals, err = s.VerifySeals(ctx, func([]byte, []byte, string) error { return nil })
	if err != nil && ctx.Err() == nil {
		a.Problems = append(a.Problems, broken{Message: err.Error()})
		err = nil
	}
	return a, err
}

// firstBroken is the id of the first event of a task that does not fit, "" where what
// is wrong is that one is missing.
func firstBroken(ctx context.Context, s *store.Store, taskID string) string {
	hash := ""
	for after := int64(0); ; {
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
}

// verifyFile reads a bundle.
func verifyFile(sh *shell, name string) (audited, error) {
	in := io.Reader(sh.in)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return audited{}, usage("The bundle %s cannot be read: %s.", line(name), line(errors.Unwrap(err).Error()))
		}
		defer f.Close()
		in = f
	}
	return verifyBundle(in)
}
