package patch

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"strings"

	"gatehouse/orchestrator/spelling"
)

// packageScripts reports whether a package.json makes a package manager run something else
// than before, or is too long, or too odd, to tell.
func (r *Mirror) packageScripts(ctx context.Context, f *File) (bool, error) {
	if spelling.Fold(path.Base(f.Path)) != "package.json" || f.Status == Deleted || f.NewMode == modeLink {
		return false, nil
	}
	before, err := r.packageRuns(ctx, f.OldBlob)
	if err != nil {
		return false, err
	}
	after, err := r.packageRuns(ctx, f.NewBlob)
	return !maps.Equal(before, after), err
}

// packageRuns is what of a package.json decides what runs. Keys are those that a package
// manager reads, letter by letter: encoding/json would take "Scripts" for "scripts" in a struct.
func (r *Mirror) packageRuns(ctx context.Context, id string) (map[string]string, error) {
	if id == "" {
		return nil, nil
	}
	content, err := r.Blob(ctx, id, largeBytes)
	if errors.Is(err, ErrCut) {
		return map[string]string{"": id}, nil // any change counts
	}
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(content, &all) != nil {
		return map[string]string{"": id}, nil // unreadable: any change counts
	}
	runs := map[string]string{}
	for _, key := range []string{"scripts", "gypfile"} {
		if text := string(all[key]); text != "" {
			runs[key] = text
		}
	}
	for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"} {
		var list map[string]string
		if text := all[key]; len(text) > 0 && json.Unmarshal(text, &list) != nil {
			runs[key] = string(text)
		}
		for name, version := range list {
			if fromElsewhere(version) {
				runs[key+" "+name] = version
			}
		}
	}
	return runs, nil
}

// fromElsewhere reports whether a dependency is no version of the registry's package of that name, but
// an address, a folder or another package, whose own scripts run when it is installed.
func fromElsewhere(version string) bool {
	return strings.ContainsAny(version, ":/") && !strings.HasPrefix(version, "workspace:") && !strings.HasPrefix(version, "catalog:")
}
