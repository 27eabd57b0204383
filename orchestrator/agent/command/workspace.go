package command

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/orchestrator/agent"
)

// maxTaskVariable is where a task is too long for GATEHOUSE_TASK; the kernel
// refuses variables over 128 kB, and some shells smaller ones.
const maxTaskVariable = 32 << 10

// workspace is the folders and files of one run.
type workspace struct {
	dir         string // where the program starts: the checkout, or an empty folder
	scratch     string
	bin         string // holds gatehouse
	tmp, home   string
	taskFile    string
	contextFile string
	// handoverFile is what was handed over with the work, "" where nothing was.
	handoverFile string
	resultFile   string // the program may write it
}

// newWorkspace makes the folders. Paths are resolved, because a sandbox mounts
// places, not names.
func newWorkspace(dir, scratch, self string) (*workspace, error) {
	scratch, err := filepath.EvalSymlinks(scratch)
	if err != nil {
		return nil, fmt.Errorf("scratch folder: %w", err)
	}
	ws := &workspace{
		scratch: scratch, bin: filepath.Join(scratch, "bin"), tmp: filepath.Join(scratch, "tmp"), home: filepath.Join(scratch, "home"),
		taskFile: filepath.Join(scratch, "task.txt"), contextFile: filepath.Join(scratch, "context.json"), resultFile: filepath.Join(scratch, "result.json"),
		dir: filepath.Join(scratch, "work"),
	}
	for _, d := range []string{ws.bin, ws.tmp, ws.home, ws.dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("make a run's folders: %w", err)
		}
	}
	if dir != "" {
		if ws.dir, err = filepath.EvalSymlinks(dir); err != nil {
			return nil, fmt.Errorf("checkout: %w", err)
		}
	}
	// A link, so that `go run`, whose binary has another name, works as well.
	link := filepath.Join(ws.bin, "gatehouse")
	_ = os.Remove(link) // from an attempt in the same folder
	if err := os.Symlink(self, link); err != nil {
		return nil, fmt.Errorf("put gatehouse on PATH: %w", err)
	}
	return ws, nil
}

// written are the folders of this run alone.
func (ws *workspace) written() []string {
	if within(ws.dir, ws.scratch) {
		return []string{ws.scratch}
	}
	return []string{ws.dir, ws.scratch}
}

// writeTask writes the task and the shared context into files.
func (ws *workspace) writeTask(job agent.Job) error {
	entries := job.Context
	if entries == nil {
		entries = []agent.ContextEntry{}
	}
	context, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("shared context: %w", err)
	}
	files := map[string][]byte{ws.taskFile: []byte(taskText(job)), ws.contextFile: context}
	if job.Handover != nil {
		ws.handoverFile = filepath.Join(ws.scratch, "handover.json")
		if files[ws.handoverFile], err = json.Marshal(job.Handover); err != nil {
			return fmt.Errorf("hand-over: %w", err)
		}
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("write the run's files: %w", err)
		}
	}
	return nil
}

// taskText is the task as a program reads it: what was handed over with it follows, then the
// failure of its own hand-over, the files that came along, and after "request changes" the comment, the remarks on lines
// and the previous diff. A program of protocol jsonl gets all but the remarks on its first line alone.
func taskText(job agent.Job) string {
	text := job.Text
	if job.Handover != nil && job.Agent.Protocol != "jsonl" {
		text += "\n\n# " + agent.HandoverHeading + "\n\n" + job.Handover.Told("The whole is in the file that GATEHOUSE_HANDOVER names.") + "\n"
	}
	if job.Fallback != nil && job.Agent.Protocol != "jsonl" {
		text += "\n\n# " + agent.FallbackHeading + "\n\n" + job.Fallback.Told() + "\n"
	}
	if job.Agent.Protocol != "jsonl" {
		if told := agent.AttachmentsTold(job.Attachments, "They are in the folder "+job.AttachmentsDir+", which GATEHOUSE_ATTACHMENTS names, to be read only."); told != "" {
			text += "\n\n" + told + "\n"
		}
	}
	if text += job.Recalled(); job.Feedback == nil {
		return text
	}
	return text + "\n\n" + job.Feedback.Remarks(true)
}

// giveAttachments tells a program where the files are that came with the task: an empty folder
// where none did, so that nobody reads "$GATEHOUSE_ATTACHMENTS"/* as /*.
func (ws *workspace) giveAttachments(env *environment, job agent.Job) error {
	dir := job.AttachmentsDir
	if dir == "" {
		dir = filepath.Join(ws.scratch, "attachments")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make a run's folders: %w", err)
		}
	}
	env.set("GATEHOUSE_ATTACHMENTS", dir)
	return nil
}

// attachmentsOf is the folder with these files, which a program may read and not write.
func attachmentsOf(job agent.Job) []string { return real([]string{job.AttachmentsDir}) }

// secretsOf returns the values that must not show up in any text of the run: its
// token, and those of the agent's variables that look secret by their names.
func secretsOf(job agent.Job) []string {
	var secrets []string
	if len(job.Token) >= 8 { // a shorter one would blot out words
		secrets = append(secrets, job.Token)
	}
	add := func(values map[string]string) {
		for name, value := range values {
			if len(value) >= 8 && (agent.LooksSecret(name) || strings.EqualFold(name, "Authorization")) {
				secrets = append(secrets, value)
			}
		}
	}
	add(job.Agent.Env)
	for _, m := range job.Agent.MCP {
		add(m.Env)
		add(m.Headers)
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// resolve finds a program: a path with a slash starts at the working folder, a
// name is looked up on the PATH that the program itself gets.
func resolve(name, dir, path string) (string, error) {
	candidates := []string{name}
	switch {
	case filepath.IsAbs(name):
	case strings.Contains(name, "/"):
		candidates[0] = filepath.Join(dir, name)
	default:
		candidates = candidates[:0]
		for _, d := range filepath.SplitList(path) {
			if filepath.IsAbs(d) { // a relative entry would let the repository choose the program
				candidates = append(candidates, filepath.Join(d, name))
			}
		}
	}
	for _, c := range candidates {
		if _, err := exec.LookPath(c); err == nil {
			return c, nil
		}
	}
	if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		if _, err := os.Stat(candidates[0]); err == nil {
			return "", agent.Fail(agent.CodeStart, "%s is not executable in the checkout, so it was not started. Run chmod +x and commit it.", name)
		}
		return "", agent.Fail(agent.CodeStart, "%s is not in the checkout, so it was not started. Commit it to the repository, or change the agent's `command`.", name)
	}
	return "", agent.Fail(agent.CodeStart, "%s was not found, so it was not started. Install it, or write its full path in the agent's `command`.", name)
}

// sourceJSON is what the task is about elsewhere, as a program reads it from
// GATEHOUSE_SOURCE; "" where nobody said.
func sourceJSON(s *agent.Source) string {
	if s == nil {
		return ""
	}
	text, _ := json.Marshal(s) // cannot fail: it is made of strings
	return string(text)
}

// defaultKeep are the variables of the server that a program also gets. A trailing
// star stands for any ending.
var defaultKeep = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "NO_COLOR", "TZ", "TMPDIR",
	"LANG", "LANGUAGE", "LC_*",
	"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
	"GOROOT", "GOPATH", "GOCACHE", "GOMODCACHE", "GOBIN", "GOPROXY", "GONOPROXY", "GOPRIVATE", "GOINSECURE",
	"GOFLAGS", "GOTOOLCHAIN", "GOSUMDB", "GONOSUMDB", "GOENV", "GOTELEMETRY", "CGO_ENABLED", "CC", "CXX", "PKG_CONFIG_PATH",
	"NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "RUSTUP_HOME", "CARGO_HOME", "JAVA_HOME",
}

// environment is a set of variables in the order in which they were first set.
type environment struct {
	names  []string
	values map[string]string
}

// keepFrom takes from the server's environment what the allow-list names.
func keepFrom(server, keep []string) *environment {
	e := &environment{values: map[string]string{}}
	for _, pair := range server {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || agent.LooksSecret(name) {
			continue
		}
		kept := slices.ContainsFunc(keep, func(k string) bool {
			prefix, open := strings.CutSuffix(k, "*")
			return k == name || (open && strings.HasPrefix(name, prefix))
		})
		if kept {
			e.set(name, value)
		}
	}
	return e
}

func (e *environment) get(name string) string { return e.values[name] }

// set stores a value without the NUL bytes that no environment can carry.
func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = strings.ReplaceAll(value, "\x00", "\uFFFD")
}

// setDefault sets a value where there is none.
func (e *environment) setDefault(name, value string) {
	if e.values[name] == "" {
		e.set(name, value)
	}
}

func (e *environment) list() []string {
	pairs := make([]string, 0, len(e.names))
	for _, n := range e.names {
		pairs = append(pairs, n+"="+e.values[n])
	}
	return pairs
}
