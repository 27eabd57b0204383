package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/bot"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm"
	"gatehouse/orchestrator/agent/llm/model/providers"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/trigger"

	"go.yaml.in/yaml/v3"
)

// Config is what the program starts with.
type Config struct {
	Path      string // the file, "" when there is none
	Listen    string
	PublicURL string
	Location  *time.Location
	Database  string // sqlite:/abs/path or postgres://…
	Data      string // absolute
	Engine    orchestrator.Config
	// CheckLimits are those of programs that are no agent's: engine.agent_defaults.
	CheckLimits agent.Limits
	FourEyes    bool
	Expires     time.Duration
	Policy      *policy.Policy
	Handovers   *policy.HandoverPolicy
	Actions     *policy.ActionPolicy
	Groups      map[string][]string
	Approvers   map[string][]string // groups by repository
	Remind      []time.Duration     // before the deadline, longest first
	Escalate    []approval.Step
	Bots        map[origin.Channel]bot.Section // those that are served, checked
	Webhooks    []Webhook
	Providers   []providers.Provider // those that can be asked, by name
	LLM         llm.Settings
	Triggers    []*trigger.Trigger
	Warnings    []string // what works but deserves a look
	SecretFiles []string // absolute, that ${file:…} names; no agent may see them
	File        File     // as written, for pages and later sections
	doc         *document
}

// Default is the name of the file in the current folder.
const Default = "gatehouse.yaml"

// Load reads the file at path, or Default when path is "" and it exists. Mistakes
// are Problems; other errors say that the file cannot be read.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	return load(path, sources{env: env, needed: everything})
}

// load reads the file at path with what its texts take from elsewhere.
func load(path string, from sources) (*Config, error) {
	explicit := path != ""
	if !explicit {
		path = Default
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return parseFrom("", nil, from)
	}
	if err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w. Name another file with --config", err)
	}
	return parseFrom(path, text, from)
}

// Parse reads the text of a file. Name is how it is called in messages; relative
// paths resolve against its folder.
func Parse(name string, text []byte, env func(string) (string, bool)) (*Config, error) {
	return parseFrom(name, text, sources{env: env, needed: everything})
}

func parseFrom(name string, text []byte, from sources) (*Config, error) {
	shown := cmp.Or(name, Default)
	doc, f, err := parse(shown, text, from)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(shown))
	if err != nil {
		return nil, err
	}
	b := &builder{doc: doc, file: f, folder: folder}
	c := b.build()
	c.Path = name
	if len(b.problems) > 0 {
		slices.SortStableFunc(b.problems, func(p, q *Problem) int {
			return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
		})
		return nil, b.problems
	}
	return c, nil
}

// builder makes values of the file and gathers what is wrong with it.
type builder struct {
	doc      *document
	file     File
	folder   string
	problems Problems
	warnings []string
}

// bad notes a mistake at a path of the file.
func (b *builder) bad(path []any, format string, args ...any) {
	n := b.doc.find(path...)
	b.note(n, b.doc.at(n, fmt.Sprintf(format, args...)))
}

// note keeps a mistake, unless it may only seem one because a text there is not known here.
func (b *builder) note(n *yaml.Node, p *Problem) {
	if !b.doc.unknown(n) {
		b.problems = append(b.problems, p)
	}
}

func at(path ...any) []any { return path }

func (b *builder) build() *Config {
	b.complete(reflect.ValueOf(&b.file), nil)
	f := b.file
	c := &Config{doc: b.doc, File: f, Groups: f.Groups, FourEyes: *f.Approval.FourEyes}
	b.server(c)
	c.Database = b.database()
	c.Data = b.path(cmp.Or(f.Data, "./data"))
	c.Engine.Settings = b.settings()
	c.CheckLimits = b.agentDefaults()
	b.globs()
	c.Engine.Repositories = b.repositories()
	c.Engine.Agents = b.agents()
	c.Engine.Lifespans = b.lifespans()
	c.Engine.Retention = b.retention()
	c.Expires = span(f.Approval.Expires)
	c.Policy, c.Handovers, c.Actions = b.policy(), b.handovers(), b.actions()
	c.Remind, c.Escalate, c.Approvers = b.remind(), b.escalate(), b.approvers()
	c.Bots, c.Webhooks = b.bots(), b.webhooks()
	c.Providers = b.providers()
	c.LLM = b.llm()
	c.LLM.Hooks = b.hooks(c.Engine.Agents)
	c.Triggers = b.triggers(c.Engine.Agents, c.Location)
	c.Warnings, c.SecretFiles = append(b.warnings, b.doc.loose...), b.doc.files
	return c
}

// path resolves a path of the file.
func (b *builder) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(b.folder, p)
}

// duration reads a length of time; "" is the fallback.
func (b *builder) duration(path []any, text string, fallback time.Duration) time.Duration {
	if text == "" {
		return fallback
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		b.bad(path, "%q is no length of time. Write a number with a unit, such as 30s, 15m or 72h.", text)
		return fallback
	}
	return d
}

// database makes the file of SQLite absolute.
func (b *builder) database() string {
	db := cmp.Or(b.file.Database, "sqlite:./gatehouse.db")
	switch {
	case strings.HasPrefix(db, "sqlite:"):
		file := strings.TrimPrefix(strings.TrimPrefix(db, "sqlite://"), "sqlite:")
		if file == "" {
			b.bad(at("database"), "the database has no file. Write sqlite:./gatehouse.db.")
		}
		return "sqlite:" + b.path(file)
	case strings.HasPrefix(db, "postgres://"), strings.HasPrefix(db, "postgresql://"):
		return db
	}
	b.bad(at("database"), "the database must begin with sqlite: or postgres://. Write sqlite:./gatehouse.db or postgres://user:password@host/name.")
	return ""
}

// repositories makes the engine's repositories.
func (b *builder) repositories() map[string]orchestrator.Repository {
	all := make(map[string]orchestrator.Repository, len(b.file.Repositories))
	for name, r := range b.file.Repositories {
		where := at("repositories", name)
		if err := agent.CheckName(name); err != nil {
			b.bad(where, "repository name %q: use letters, digits, - _ and ., starting with a letter or digit.", name)
		}
		if r.Path == "" {
			b.bad(where, "repository %s has no path. Write path: with a folder or a URL.", name)
			continue
		}
		source := r.Path
		if !strings.Contains(source, "://") && !scpLike(source) {
			source = b.path(source)
		}
		if r.Deliver != "merge" && r.Deliver != "branch" {
			b.bad(append(where, "deliver"), "deliver: %q is unknown. Write merge or branch.", r.Deliver)
		}
		if err := patch.CheckRef(strings.TrimPrefix(r.Branch, "refs/heads/")); err != nil {
			b.bad(append(where, "branch"), "branch: %v", err)
		}
		all[name] = orchestrator.Repository{Name: name, Source: source, Branch: r.Branch, Deliver: r.Deliver,
			Checks: r.Checks, Protect: r.Protect, Credential: r.Credential, Committer: b.committer(append(where, "commit"), r.Commit)}
	}
	return all
}

// committer is who commits what lands; git takes no angle brackets and no line ends.
func (b *builder) committer(where []any, c *Commit) patch.Identity {
	if c == nil {
		return patch.Identity{}
	}
	for key, value := range map[string]string{"name": c.Name, "email": c.Email} {
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == '<' || r == '>' || r == 0x7f }) {
			b.bad(append(slices.Clone(where), key), "commit.%s: %q cannot stand in a commit. Leave out < and > and line ends.", key, value)
		}
	}
	return patch.Identity{Name: strings.TrimSpace(c.Name), Email: strings.TrimSpace(c.Email)}
}

// scpLike reports whether git would read s as host:path.
func scpLike(s string) bool {
	host, _, ok := strings.Cut(s, ":")
	return ok && !strings.ContainsAny(host, "/\\") && strings.Contains(host, "@")
}
