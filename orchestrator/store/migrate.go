package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pressly/goose/v3"
)

// migrateTries and migratePause bound the wait for another program that migrates the
// same SQLite file; PostgreSQL has a lock for that.
const (
	migrateTries = 20
	migratePause = 50 * time.Millisecond
	migrateBusy  = 10 * time.Second // that the file may be locked by one that does
)

// NewerError says that the database was migrated by a newer program.
type NewerError struct{ Have, Know int64 }

// Error says what to do.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the database has version %d and this program knows versions up to %d: run the newer gatehouse that migrated it, or go back to a backup from before", e.Have, e.Know)
}

// Migrate brings the database to this program's version. Several may do it at once.
func (s *Store) Migrate(ctx context.Context) error {
	if s.dialect.alone != nil {
		return s.explain(s.dialect.alone(ctx, s, func() error { return s.up(ctx) }))
	}
	began := time.Now()
	for try := 1; ; try++ {
		err := s.up(ctx)
		// Another program may have made the same table a moment ago, or be at it: look again.
		again := s.dialect.advice(err) == "" || busySQLite(err) && time.Since(began) < migrateBusy
		if err == nil || try == migrateTries || errors.As(err, new(*NewerError)) || !again || ctx.Err() != nil {
			return s.explain(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migratePause + rand.N(migratePause)):
		}
	}
}

// Version returns the database's version and the newest that this program knows.
func (s *Store) Version(ctx context.Context) (have, know int64, err error) {
	p, err := s.provider()
	if err != nil {
		return 0, 0, err
	}
	have, know, err = p.GetVersions(ctx)
	return have, know, s.explain(err)
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := s.dialect.migrations()
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	p, err := goose.NewProvider(s.dialect.goose, s.w.db.DB, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

func (s *Store) up(ctx context.Context) error {
	p, err := s.provider()
	if err != nil {
		return err
	}
	have, know, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the database's version: %w", err)
	}
	if have > know {
		return &NewerError{Have: have, Know: know}
	}
	if have == know {
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database from version %d to %d: %w", have, know, err)
	}
	s.log.Info("database migrated", "from", have, "to", know)
	return nil
}
