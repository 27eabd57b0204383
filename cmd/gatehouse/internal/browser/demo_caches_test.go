package browser

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// humanize is a real module without dependencies, which the tests have anyway.
const humanize = "github.com/dustin/go-humanize"

// warm gives the team of a demo in a folder what the go command compiled of its library for these tests already. With
// empty caches coder, reviewer and the checks would each compile it: a minute of processor time. What a run needs beside
// it, such as its own packages, they make themselves; where a cache is laid out otherwise they make all of it.
func warm(ctx context.Context, folder string) error {
	where, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", humanize).Output()
	if err != nil {
		return fmt.Errorf("find %s: %w", humanize, err)
	}
	sample, err := planted(folder)
	if err != nil {
		return err
	}
	defer os.RemoveAll(sample) //nolint:errcheck // below the folder, which goes
	from, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("find the build cache: %w", err)
	}
	for _, module := range []string{sample, strings.TrimSpace(string(where))} {
		entries, err := compiled(ctx, module, strings.TrimSpace(string(from)))
		if err != nil {
			return err
		}
		for _, whose := range []string{"agents/coder", "agents/reviewer", "checks/coder"} {
			sum := sha256.Sum256([]byte(filepath.Base(whose)))
			to := filepath.Join(folder, "data", "caches", whose+"-"+hex.EncodeToString(sum[:8]), "go-build")
			if err := copyEntries(entries, strings.TrimSpace(string(from)), to); err != nil {
				return err
			}
		}
	}
	return nil
}

// planted writes the sample that the demo works on into a folder.
func planted(folder string) (string, error) {
	sample, err := txtar.ParseFile(filepath.Join("..", "sample", "sample.txtar"))
	if err != nil {
		return "", err
	}
	root := filepath.Join(folder, "sample")
	for _, f := range sample.Files {
		path := filepath.Join(root, f.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, f.Data, 0o600)); err != nil {
			return "", err
		}
	}
	return root, nil
}

// compiled lists the files of a build cache that a module's packages and tests, and what they import, are in. The first
// half of a package's build id begins the name of the file that says which file has the package.
func compiled(ctx context.Context, module, cache string) ([]string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-export", "-json=BuildID,Export", "./...")
	list.Dir = module
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list what %s needs: %w", module, err)
	}
	var files []string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ BuildID, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return files, nil
		} else if err != nil {
			return nil, err
		}
		action, _, _ := strings.Cut(p.BuildID, "/")
		id, err := base64.RawURLEncoding.DecodeString(action)
		if err != nil || len(id) == 0 {
			continue // such as unsafe, which is no package of its own
		}
		name := hex.EncodeToString(id)
		found, err := filepath.Glob(filepath.Join(cache, name[:2], name+"*-a"))
		if err != nil {
			return nil, err
		}
		if len(found) == 1 {
			files = append(files, found[0], p.Export)
		}
	}
}

// copyEntries copies files below a cache to the same places below another; links would let agents write to the first.
func copyEntries(files []string, from, to string) error {
	for _, file := range files {
		place, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		path := filepath.Join(to, place)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
