package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Backup writes a consistent copy of the whole database into a new file, also while
// servers run. Of SQLite it is a database that can be served as it is; of PostgreSQL an
// archive of pg_dump, which pg_restore reads. A copy that failed leaves no file.
func (s *Store) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already. Name a new file", path)
	}
	// The name says what it is until it is whole; the folder is the same, so that the last
	// step is a rename.
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".part")
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := s.copyTo(ctx, part)
	if err == nil {
		err = os.Chmod(part, 0o600) // it has everything that the database has
	}
	if err == nil {
		err = os.Link(part, path) // fails where a file has come meanwhile; a rename would replace it
	}
	if gone := os.Remove(part); err == nil {
		err = gone
	}
	return err
}

func (s *Store) copyTo(ctx context.Context, path string) error {
	if strings.HasPrefix(s.url, "sqlite:") {
		_, err := s.w.exec(ctx, "vacuum into ?", path)
		return s.explain(err)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	dump, err := exec.LookPath("pg_dump")
	if err != nil {
		return errors.New("pg_dump is not on the PATH. Install PostgreSQL's client programs, of the server's version or newer")
	}
	cmd := exec.CommandContext(ctx, dump, "--format=custom", "--no-password", "--file="+path)
	cmd.Env = os.Environ()
	if secret, ok := u.User.Password(); ok { // not in an argument, where everybody sees it
		cmd.Env = append(cmd.Env, "PGPASSWORD="+secret)
		u.User = url.User(u.User.Username())
	}
	u.RawQuery = libpqOnly(u.Query()).Encode()
	cmd.Args = append(cmd.Args, "--dbname="+u.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_dump: %s: %w", strings.TrimSpace(string(out)), err)
	}
	return nil
}

// libpqOnly keeps the parameters of an address that PostgreSQL's own programs know: lib/pq
// takes settings of the server as well, which they refuse.
func libpqOnly(q url.Values) url.Values {
	known := url.Values{}
	for _, key := range []string{"host", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "connect_timeout", "application_name"} {
		if v, ok := q[key]; ok {
			known[key] = v
		}
	}
	return known
}
