package patch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Plant makes a repository in dir, which must not exist, with one commit of the
// files on the branch main.
func (m *Mirrors) Plant(ctx context.Context, dir string, files map[string][]byte, message string) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
	}
	if err := m.furnish(); err != nil {
		return err
	}
	r := m.Open(Repository{Name: filepath.Base(dir), Source: dir})
	if err := r.writeConfig(); err != nil {
		return err
	}
	own := filepath.Join(dir, ".git")
	who := []string{"GIT_WORK_TREE=" + dir, "GIT_AUTHOR_NAME=" + m.opts.Name, "GIT_AUTHOR_EMAIL=" + m.opts.Email,
		"GIT_COMMITTER_NAME=" + m.opts.Name, "GIT_COMMITTER_EMAIL=" + m.opts.Email}
	for _, c := range []command{
		{gitDir: "-", args: []string{"init", "--quiet", "--initial-branch=main", "--", dir}},
		{gitDir: own, dir: dir, env: who, args: []string{"add", "--all"}},
		{gitDir: own, dir: dir, env: who, args: []string{"commit", "--quiet", "--no-verify", "-m", message}},
	} {
		if _, err := r.git(ctx, c); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
	}
	return nil
}

// Clone makes dir, which must not exist or be empty, a repository of its own with
// the history and files of the mirror's branch. The source is only read.
func (r *Mirror) Clone(ctx context.Context, dir string) (Base, error) {
	if err := r.Fetch(ctx); err != nil {
		return Base{}, err
	}
	head, err := r.Branch(ctx, "")
	if err != nil {
		return Base{}, err
	}
	return head, r.Checkout(ctx, head.Commit, head.Tree, dir)
}
