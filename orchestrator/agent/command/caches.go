package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/each"
)

// cacheFolders are the variables that lead tools to their caches, and the folder of each
// below the caches of an agent. Tools of most languages follow XDG_CACHE_HOME.
var cacheFolders = map[string]string{
	"XDG_CACHE_HOME": "xdg", "npm_config_cache": "npm", "GOCACHE": "go-build", "GOMODCACHE": "go-mod",
}

// agentCaches names the caches of an agent, below Options.Caches. Nobody else writes them.
func agentCaches(name string) string {
	if name == "" {
		return ""
	}
	return filepath.Join("agents", cacheName([]string{name}))
}

// checkCaches names the caches of the checks of what these agents wrote. A check runs what
// they wrote, so that their checks share caches with no other agent's, and with no run.
func checkCaches(authors []string) string {
	if len(authors) == 0 {
		return ""
	}
	return filepath.Join("checks", cacheName(authors))
}

// cacheName is a folder's name for agents, the same in any order: their names as far as
// every file system takes them, and a hash that tells them apart.
func cacheName(agents []string) string {
	keys := make([]string, 0, len(agents))
	for _, a := range agents {
		keys = append(keys, agent.Key(a))
	}
	slices.Sort(keys)
	all := strings.Join(slices.Compact(keys), "+")
	sum := sha256.Sum256([]byte(all))
	plain := plainName(all)
	return plain[:min(len(plain), plainBytes)] + "-" + hex.EncodeToString(sum[:8])
}

// plainBytes is how much of the agents' names is in a folder's name.
const plainBytes = 64

// plainName is names as every file system takes them.
func plainName(names string) string {
	return strings.Map(func(r rune) rune {
		if r == '+' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, names)
}

// giveCaches leads a program to caches that only whose writes, "" for such as end with the
// run, and returns what of them it may write. Variables that the agent has under `env` stay.
func (r *Runner) giveCaches(ctx context.Context, ws *workspace, env *environment, own map[string]string, whose string) (writable []string, err error) {
	root := filepath.Join(ws.scratch, "caches")
	if r.caches != "" && whose != "" {
		root = filepath.Join(r.caches, whose)
	}
	for name, folder := range cacheFolders {
		dir := own[name]
		if dir == "" {
			dir = filepath.Join(root, folder)
			env.set(name, dir)
		} else if name != "GOCACHE" && name != "GOMODCACHE" {
			continue // `writable` says whether it is
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make a cache: %w", err)
		}
		writable = append(writable, dir)
	}
	if from := r.moduleSource(ctx); from != "" && own["GOPROXY"] == "" && own["GOMODCACHE"] == "" {
		env.set("GOPROXY", from)
	}
	return writable, nil
}

// moduleSource is GOPROXY with the modules that the server's user has downloaded in front.
// From there the go command takes archives and holds them against go.sum, as it does with
// what comes over the network, and a confined program cannot write them. "" where there are none.
func (r *Runner) moduleSource(ctx context.Context) string {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.modules != nil {
		return *r.modules
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOMODCACHE")
	cmd.Dir, cmd.Env = "/", r.environ
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "" // asked again by the next
	}
	found := ""
	var had struct{ GOPROXY, GOMODCACHE string }
	if err == nil && json.Unmarshal(out, &had) == nil {
		dir := filepath.Join(had.GOMODCACHE, "cache", "download")
		if st, err := os.Stat(dir); err == nil && st.IsDir() && !strings.ContainsAny(dir, ",|") && had.GOPROXY != "" {
			found = (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String() + "," + had.GOPROXY
		}
	}
	r.modules = &found
	return found
}

var (
	// cacheFolder is what cacheName makes. Nothing else below the caches is ever removed.
	cacheFolder = regexp.MustCompile(`^[a-z0-9_+-]*-[0-9a-f]{16}$`)
	// gone is what a folder is called while it is removed, so that nobody is given half of it.
	gone = ".gone-"
)

// using marks the caches that are whose as in use until done is called.
func (r *Runner) using(whose string) (done func()) {
	r.cachesUsed.Lock()
	defer r.cachesUsed.Unlock()
	if r.used == nil {
		r.used = map[string]int{}
	}
	r.used[whose]++
	return func() {
		r.cachesUsed.Lock()
		defer r.cachesUsed.Unlock()
		if r.used[whose]--; r.used[whose] == 0 {
			delete(r.used, whose)
		}
	}
}

// SweepCaches removes the caches that belong to none of these agents, and those of checks of
// what others had a hand in, and says how many. What a program uses stays until the next time.
// It removes below Options.Caches only, and follows no link.
func (r *Runner) SweepCaches(ctx context.Context, agents []string) (removed int, err error) {
	if r.caches == "" {
		return 0, nil
	}
	root, err := os.OpenRoot(r.caches)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open the caches: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written through it
	var failed error
	for kind, owned := range map[string]func(string) bool{"agents": ownCaches(agents), "checks": ownChecks(agents)} {
		folders, err := r.setAside(root, kind, owned)
		failed = errors.Join(failed, err)
		for _, dir := range folders {
			if ctx.Err() != nil {
				return removed, context.Cause(ctx)
			}
			if err := removeAll(root, dir); err != nil {
				failed = errors.Join(failed, fmt.Errorf("remove the caches %s: %w", dir, err))
				continue
			}
			removed++
		}
	}
	return removed, failed
}

// setAside renames the folders of a kind that nobody owns or uses, and returns them with
// those that an earlier sweep did not get to the end of.
func (r *Runner) setAside(root *os.Root, kind string, owned func(string) bool) ([]string, error) {
	if st, err := root.Lstat(kind); err != nil || !st.IsDir() {
		return nil, nil // nothing was cached yet, or it is none of ours
	}
	entries, err := fs.ReadDir(root.FS(), kind)
	if err != nil {
		return nil, fmt.Errorf("read the caches: %w", err)
	}
	r.cachesUsed.Lock()
	defer r.cachesUsed.Unlock()
	var aside []string
	var failed error
	for _, e := range entries {
		name, left := strings.CutPrefix(e.Name(), gone)
		if !e.IsDir() || !cacheFolder.MatchString(name) {
			continue
		}
		dir := filepath.Join(kind, gone+name)
		if !left {
			from := filepath.Join(kind, name)
			if owned(name) || r.used[from] > 0 || slices.Contains(aside, dir) { // the last: next time
				continue
			}
			if err := root.Rename(from, dir); err != nil {
				failed = errors.Join(failed, fmt.Errorf("set the caches %s aside: %w", name, err))
				continue
			}
		}
		aside = append(aside, dir)
	}
	return aside, failed
}

// removeAll removes a folder, also where folders in it are read only, as those of Go's
// modules are.
func removeAll(root *os.Root, dir string) error {
	err := fs.WalkDir(root.FS(), dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return root.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return errors.Join(err, root.RemoveAll(dir))
}

// ownCaches tells the folders of these agents.
func ownCaches(agents []string) func(folder string) bool {
	own := map[string]bool{}
	for _, name := range agents {
		own[cacheName([]string{name})] = true
	}
	return func(folder string) bool { return own[folder] }
}

// ownChecks tells the folders of checks of which, as far as their names say, all authors are
// among these agents: a name that was cut is taken for the agent that it begins like.
func ownChecks(agents []string) func(folder string) bool {
	own := each.Of(agents, func(name string) string { return plainName(agent.Key(name)) })
	return func(folder string) bool {
		names := folder[:len(folder)-len("-0123456789abcdef")]
		cut := len(names) == plainBytes
		authors := strings.Split(names, "+")
		for i, author := range authors {
			last := cut && i == len(authors)-1
			if !slices.ContainsFunc(own, func(o string) bool { return o == author || last && strings.HasPrefix(o, author) }) {
				return false
			}
		}
		return true
	}
}
