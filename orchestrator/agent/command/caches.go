package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
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
