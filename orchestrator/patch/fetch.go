package patch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// askpass answers git's two questions from the environment, so that the
// credential is never in an argument, a file or a log.
const askpass = `#!/bin/sh
case "$1" in
[Uu]sername*) printf '%s\n' "$GATEHOUSE_ASKPASS_USER" ;;
*) printf '%s\n' "$GATEHOUSE_ASKPASS_SECRET" ;;
esac
`

// furnish makes the folder that all mirrors share: an empty HOME, a place for
// scratch files, the askpass program, and the template with our attributes.
func (m *Mirrors) furnish() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ready {
		return nil
	}
	for _, d := range []string{"home", "tmp", "template/info"} {
		if err := os.MkdirAll(filepath.Join(m.dir, d), 0o700); err != nil {
			return fmt.Errorf("make the mirrors' folder: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.dir, "template", "info", "attributes"), []byte(attributes), 0o600); err != nil {
		return fmt.Errorf("write attributes: %w", err)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "askpass"), []byte(askpass), 0o700); err != nil {
		return fmt.Errorf("write askpass: %w", err)
	}
	m.ready = true
	return nil
}

// GitVersion returns what `git version` prints, such as "2.39.5".
func (m *Mirrors) GitVersion(ctx context.Context) (string, error) {
	if err := m.furnish(); err != nil {
		return "", err
	}
	r := &Mirror{dir: filepath.Join(m.dir, "none"), home: m, st: &state{}}
	out, err := r.text(ctx, "version")
	return strings.TrimPrefix(out, "git version "), err
}

// tagPrefix is where the mirror keeps the source's tags: apart from its branches, and
// where git never looks for a short name.
const tagPrefix = "refs/source-tags/"

// Fetch brings the mirror up to the source's branches and tags; it makes the mirror when
// there is none. When nothing moved since the last call it costs one look at
// the source. Errors about the source are *SourceError.
func (r *Mirror) Fetch(ctx context.Context) error {
	r.st.fetch.Lock()
	defer r.st.fetch.Unlock()
	if err := r.home.furnish(); err != nil {
		return err
	}
	if err := r.writeConfig(); err != nil {
		return err
	}
	listing, err := r.look(ctx)
	if err != nil {
		return err
	}
	refs, head := parseListing(listing)
	switch {
	case len(refs) == 0:
		return r.source(SourceEmpty, nil, "%s (%s) has no commit yet. Make a first commit there.", r.repo.Name, r.repo.Redacted())
	case r.repo.Branch != "" && refs[r.repo.Branch] == "":
		return r.noBranch(r.repo.Branch)
	case r.repo.Branch == "" && refs[head] == "":
		return r.source(SourceNoBranch, nil, "%s (%s) does not say which branch is its main one. Set `branch`.", r.repo.Name, r.repo.Redacted())
	}
	if was := r.st.get(); was.exists && was.refs == listing && r.onDisk() {
		return nil
	}
	format := "sha1"
	for _, id := range refs {
		if len(id) == 64 {
			format = "sha256"
		}
		break
	}
	if err := r.create(ctx, format); err != nil {
		return err
	}
	_, err = r.git(ctx, command{remote: true, args: []string{"fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head",
		"--end-of-options", r.repo.Source, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:" + tagPrefix + "*"}})
	if err != nil {
		return r.sourceFailure(err)
	}
	r.st.set(seen{exists: true, refs: listing, head: head, format: format})
	return nil
}

// look lists the source's branches and tags and where its HEAD points.
func (r *Mirror) look(ctx context.Context) (string, error) {
	if r.repo.Source == "" || strings.HasPrefix(r.repo.Source, "-") {
		return "", r.source(SourceMissing, nil, "%s has no path or URL that git can read: %q.", r.repo.Name, r.repo.Source)
	}
	if r.repo.Local() {
		info, err := os.Stat(r.repo.Source)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return "", r.source(SourceMissing, err, "%s: there is no folder %s. Check `path`.", r.repo.Name, r.repo.Source)
		case err != nil:
			return "", r.source(SourceUnreachable, err, "%s: the folder %s cannot be read: %v.", r.repo.Name, r.repo.Source, errors.Unwrap(err))
		case !info.IsDir():
			return "", r.source(SourceNotRepository, nil, "%s: %s is a file, not a git repository. Check `path`.", r.repo.Name, r.repo.Source)
		}
	}
	out, err := r.git(ctx, command{remote: true, gitDir: "-", args: []string{"ls-remote", "--symref", "--quiet",
		"--end-of-options", r.repo.Source, "HEAD", "refs/heads/*", "refs/tags/*"}})
	if err != nil {
		return "", r.sourceFailure(err)
	}
	return string(out), nil
}

// parseListing reads ls-remote: branches by short name, and HEAD's branch.
func parseListing(listing string) (refs map[string]string, head string) {
	refs = map[string]string{}
	for line := range strings.Lines(listing) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			continue
		}
		if target, ok := strings.CutPrefix(id, "ref: refs/heads/"); ok {
			if name == "HEAD" {
				head = target
			}
			continue
		}
		if short, ok := strings.CutPrefix(name, "refs/heads/"); ok {
			refs[short] = id
		}
	}
	return refs, head
}

// create makes the bare mirror beside its final name and renames it, so that a
// crash leaves no half mirror.
func (r *Mirror) create(ctx context.Context, format string) error {
	if _, err := os.Stat(filepath.Join(r.dir, "HEAD")); err == nil {
		return nil
	}
	dir, done, err := r.scratch()
	if err != nil {
		return err
	}
	defer done()
	fresh := filepath.Join(dir, "mirror.git")
	_, err = r.git(ctx, command{gitDir: "-", args: []string{"init", "--quiet", "--bare", "--object-format=" + format,
		"--template=" + filepath.Join(r.home.dir, "template"), "--", fresh}})
	if err != nil {
		return fmt.Errorf("make the mirror of %s: %w", r.repo.Name, err)
	}
	if err := os.Rename(fresh, r.dir); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make the mirror of %s: %w", r.repo.Name, err)
	}
	return nil
}

// writeConfig writes the only configuration file that git reads besides the
// repository's own. A source may belong to another user than the server: the
// operator named it, so it is declared safe.
func (r *Mirror) writeConfig() error {
	var b strings.Builder
	b.WriteString("[uploadpack]\n\tallowAnySHA1InWant = true\n[init]\n\tdefaultBranch = main\n[safe]\n")
	dirs := []string{r.dir}
	if r.repo.Local() {
		dirs = append(dirs, r.repo.Source, filepath.Join(r.repo.Source, ".git"))
		if real, err := filepath.EvalSymlinks(r.repo.Source); err == nil && real != r.repo.Source {
			dirs = append(dirs, real, filepath.Join(real, ".git"))
		}
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)
	for _, d := range dirs {
		fmt.Fprintf(&b, "\tdirectory = \"%s\"\n", quote.Replace(d))
	}
	name := r.dir + ".config"
	if old, err := os.ReadFile(name); err == nil && string(old) == b.String() {
		return nil
	}
	if err := os.WriteFile(name+".new", []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write git's settings: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write git's settings: %w", err)
	}
	return nil
}

func (r *Mirror) source(code string, cause error, format string, args ...any) *SourceError {
	return &SourceError{Code: code, Repository: r.repo.Name, Message: fmt.Sprintf(format, args...), Err: cause}
}

func (r *Mirror) noBranch(branch string) *SourceError {
	return r.source(SourceNoBranch, nil, "%s has no branch %s. Check `branch`, or make it there.", r.repo.Name, Shown(branch))
}

// sourceFailure sorts what git says when it talks to the source.
func (r *Mirror) sourceFailure(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("read %s: %w", r.repo.Name, err)
	}
	said := strings.ToLower(stderrOf(err))
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	switch {
	case has("authentication failed", "could not read username", "could not read password", "permission denied (",
		"returned error: 401", "returned error: 403", "terminal prompts disabled", "host key verification failed"):
		return r.source(SourceAuth, err, "%s (%s) did not accept the credential. Check `credential` and its rights.", r.repo.Name, r.repo.Redacted())
	case has("does not appear to be a git repository", "not a git repository", "repository not found", "invalid gitfile"):
		return r.source(SourceNotRepository, err, "%s: %s is not a git repository. Check `path`, or run git init there.", r.repo.Name, r.repo.Redacted())
	}
	return r.source(SourceUnreachable, err, "%s (%s) cannot be read just now: %v.", r.repo.Name, r.repo.Redacted(), err)
}

// target is where landings go, "" where only the source could tell.
func (r *Mirror) target() string {
	if r.repo.Branch != "" {
		return strings.TrimPrefix(r.repo.Branch, "refs/heads/")
	}
	return r.st.get().head
}

// ensure makes sure that there is a mirror. One that an earlier process left is
// used as it is: what it holds can be shown while the source is away.
func (r *Mirror) ensure(ctx context.Context) error {
	if r.st.get().exists {
		return nil
	}
	if !r.onDisk() {
		return r.Fetch(ctx)
	}
	r.st.fetch.Lock()
	defer r.st.fetch.Unlock()
	if r.st.get().exists {
		return nil
	}
	if err := r.home.furnish(); err != nil {
		return err
	}
	if err := r.writeConfig(); err != nil {
		return err
	}
	format, err := r.text(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return fmt.Errorf("open the mirror of %s: %w", r.repo.Name, err)
	}
	r.st.set(seen{exists: true, format: format})
	return nil
}

// onDisk reports whether the mirror exists and has been fetched into.
func (r *Mirror) onDisk() bool {
	return slices.ContainsFunc([]string{"packed-refs", "refs/remotes/origin"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(r.dir, name))
		return err == nil
	})
}
