package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Checkout makes dir, which must not exist or be empty, a working copy for one
// run: a repository of its own with the history of commit, no remote, and the
// files of tree. Where tree is not the commit's own ("" is), the difference
// stands there as changes that are not committed.
//
// History comes through git's own transport, never by shared or linked object
// files, so nothing that the run does to its repository reaches the mirror.
func (r *Mirror) Checkout(ctx context.Context, commit, tree, dir string) error {
	if err := checkIDs(commit); err != nil {
		return err
	}
	if err := r.ensure(ctx); err != nil {
		return err
	}
	own, err := r.text(ctx, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
	if err != nil {
		return fmt.Errorf("check out %s: %w: %w", commit, ErrMissing, err)
	}
	if tree == "" {
		tree = own
	}
	if err := checkIDs(tree); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("check out into %s: %w", dir, err)
	} else if len(entries) > 0 {
		return fmt.Errorf("check out into %s: the folder is not empty", dir)
	}
	if err := r.clone(ctx, commit, dir); err != nil {
		return err
	}
	return r.fill(ctx, commit, own, tree, dir)
}

// clone makes the repository with the history of commit on a branch of the
// target's name.
func (r *Mirror) clone(ctx context.Context, commit, dir string) error {
	branch := r.target()
	if branch == "" {
		branch = "main"
	}
	_, err := r.git(ctx, command{gitDir: "-", args: []string{"init", "--quiet", "--object-format=" + r.format(),
		"--template=" + filepath.Join(r.home.dir, "template"), "--initial-branch=" + branch, "--", dir}})
	if err != nil {
		return fmt.Errorf("make the checkout: %w", err)
	}
	own := filepath.Join(dir, ".git")
	_, err = r.git(ctx, command{gitDir: own, args: []string{"-c", "core.fsync=none", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok",
		"--", r.dir, commit + ":refs/heads/" + branch}})
	if err != nil {
		return fmt.Errorf("make the checkout: %w", err)
	}
	config, err := os.OpenFile(filepath.Join(own, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("make the checkout: %w", err)
	}
	// An agent that commits by itself needs some identity; the server makes its own commits.
	_, err = config.WriteString("[user]\n\tname = Gatehouse agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n[core]\n\tautocrlf = false\n")
	return errors.Join(err, config.Close())
}

// fill writes the files of tree, with objects and attributes of the mirror, and
// leaves the index at commit.
func (r *Mirror) fill(ctx context.Context, commit, own, tree, dir string) error {
	file := filepath.Join(dir, ".git", "index")
	work := []string{"GIT_WORK_TREE=" + dir, "GIT_INDEX_FILE=" + file}
	if _, err := r.git(ctx, command{dir: dir, env: work, args: []string{"read-tree", "--reset", "-u", tree}}); err != nil {
		return fmt.Errorf("write the files of the checkout: %w", r.missing(err))
	}
	if tree == own {
		return nil
	}
	// -m keeps what the index knows of files that are the same in both trees.
	if _, err := r.git(ctx, command{dir: dir, env: work, args: []string{"read-tree", "-m", commit}}); err != nil {
		return fmt.Errorf("set the index of the checkout: %w", err)
	}
	return nil
}

// format is the repository's object format.
func (r *Mirror) format() string {
	if f := r.st.get().format; f != "" {
		return f
	}
	return "sha1"
}
