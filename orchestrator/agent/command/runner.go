package command

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
)

// grace lies between SIGTERM and SIGKILL when a run is stopped; all of it is gone
// within two seconds.
const grace = time.Second

// Options say how programs are run on this node.
type Options struct {
	// Self is the gatehouse binary. It is run as the supervisor, with the argument
	// SuperviseCommand, and programs find it on PATH under the name gatehouse.
	Self string
	// Environ is the server's environment; nil means os.Environ().
	Environ []string
	// KeepEnv names the variables that programs get from it, with * for any ending;
	// nil means a list that suits the usual tools. Whatever looks like a secret by
	// its name, and GATEHOUSE_*, is never kept.
	KeepEnv []string
	// Sandbox is "auto" (also when empty) or "off".
	Sandbox string
	// Hide are the files and folders that no program may see: the database, the
	// data folder, the configuration. A checkout inside of them is seen.
	Hide []string
	// Caches is the folder in which each agent, and the checks of what it wrote, have caches
	// of their own; "" gives every run new ones. It may lie in a hidden folder.
	Caches string
	// Secrets are further files that no program may see, asked for before each run: a
	// reload may name others. nil is none.
	Secrets func() []string
	// Limits are those of programs that are no agent's: a repository's checks. nil is none.
	Limits func() agent.Limits
	Logger *slog.Logger
	Now    func() time.Time
}

// Traits are those of this kind.
var Traits = agent.Traits{Files: true, Hears: func(s agent.Spec) bool { return s.Protocol != "" }}

// Runner runs agents of kind command. It is safe for concurrent use, starts
// nothing of its own, and needs no closing.
type Runner struct {
	self    string
	environ []string
	keep    []string
	off     bool
	hide    []string
	caches  string // "" or absolute
	secrets func() []string
	limits  func() agent.Limits
	log     *slog.Logger
	now     func() time.Time

	probing sync.Mutex
	sandbox string // what works here, "" until probed
	bwrap   string
	modules *string // see moduleSource; nil until looked for

	cachesUsed sync.Mutex
	used       map[string]int // programs that use the caches of that name, see using
}

func New(opts Options) *Runner {
	r := &Runner{
		self: absolute(opts.Self), environ: opts.Environ, keep: opts.KeepEnv, off: opts.Sandbox == "off",
		limits: opts.Limits, secrets: opts.Secrets, log: opts.Logger, now: opts.Now,
	}
	for _, path := range opts.Hide {
		r.hide = append(r.hide, absolute(path))
	}
	if opts.Caches != "" {
		r.caches = absolute(opts.Caches)
	}
	if r.environ == nil {
		r.environ = os.Environ()
	}
	if r.keep == nil {
		r.keep = defaultKeep
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.secrets == nil {
		r.secrets = func() []string { return nil }
	}
	if r.limits == nil {
		r.limits = func() agent.Limits { return agent.Limits{} }
	}
	return r
}

// absolute resolves a path against the server's working folder. Without one, all
// that is left is the path as it was given.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (*Runner) Traits() agent.Traits { return Traits }

// Run runs the agent's program once. It returns a *agent.Failure when the program
// failed, broke the protocol or a limit; the cause of ctx when that ended; and any
// other error when the run could not be made. Nothing of the program is left then.
func (r *Runner) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	defer r.using(agentCaches(job.Agent.Name))()
	p, err := r.prepare(ctx, job)
	if err != nil {
		return agent.Outcome{}, err
	}
	if err := r.confineFor(ctx, job.Agent, host, &p.order, p.confinement); err != nil {
		return agent.Outcome{}, err
	}
	result, err := r.converse(ctx, job, host, p)
	if err != nil {
		return agent.Outcome{}, err
	}
	return agent.Outcome{Result: &result}, nil
}

// prepared is a run that can be started.
type prepared struct {
	order       order
	confinement confinement
	program     string // as the configuration names it
	mark        string
	secrets     []string // never shown
	resultFile  string
}

// prepare lays out the run's files and says how it is started.
func (r *Runner) prepare(ctx context.Context, job agent.Job) (*prepared, error) {
	if len(job.Agent.Command) == 0 {
		return nil, agent.Fail(agent.CodeStart, "%s has no `command`, so there is nothing to run. Write one in gatehouse.yaml.", job.Agent.Name)
	}
	if job.ScratchDir == "" {
		return nil, errors.New("a command needs a scratch folder")
	}
	ws, err := newWorkspace(job.Dir, job.ScratchDir, r.self)
	if err != nil {
		return nil, err
	}
	if err := ws.writeTask(job); err != nil {
		return nil, err
	}
	env := r.environment(ws, job.Agent.Env)
	if err := giveConfig(ws, env, job.Agent); err != nil {
		return nil, err
	}
	mark := rand.Text()
	for name, value := range map[string]string{
		"GATEHOUSE_RUN": mark, "GATEHOUSE_TASK_FILE": ws.taskFile, "GATEHOUSE_CONTEXT": ws.contextFile,
		"GATEHOUSE_CHANNEL": job.Channel, "GATEHOUSE_CHAT": job.Chat,
		"GATEHOUSE_SOURCE":  sourceJSON(job.Source),
		"GATEHOUSE_TASK_ID": job.TaskID, "GATEHOUSE_DELEGATION_ID": job.DelegationID,
		"GATEHOUSE_URL": job.URL, "GATEHOUSE_TOKEN": job.Token,
	} {
		env.set(name, value)
	}
	if ws.handoverFile != "" {
		env.set("GATEHOUSE_HANDOVER", ws.handoverFile)
	}
	if err := ws.giveAttachments(env, job); err != nil {
		return nil, err
	}
	env.set("GATEHOUSE_REVISION", strconv.Itoa(max(job.Revision, 1)))
	if job.Agent.Protocol != "jsonl" {
		env.set("GATEHOUSE_RESULT", ws.resultFile)
	}
	if text := taskText(job); len(text) < maxTaskVariable {
		env.set("GATEHOUSE_TASK", text)
	}
	program, err := resolve(job.Agent.Command[0], ws.dir, env.get("PATH"))
	if err != nil {
		return nil, err
	}
	c, err := r.confinement(ctx, ws, env, job.Agent, agentCaches(job.Agent.Name))
	if err != nil {
		return nil, err
	}
	c.seen, c.readable = append(c.seen, program), attachmentsOf(job)
	return &prepared{
		order: order{
			Program: program, Args: job.Agent.Command, Dir: ws.dir, Env: env.list(), Grace: grace, Limits: job.Agent.Limits, Written: ws.written(),
		},
		confinement: c, program: filepath.Base(job.Agent.Command[0]), mark: "GATEHOUSE_RUN=" + mark,
		secrets: secretsOf(job), resultFile: ws.resultFile,
	}, nil
}

// environment is what a program gets: the allow-list, the agent's own variables,
// and the places of this run.
func (r *Runner) environment(ws *workspace, own map[string]string) *environment {
	env := keepFrom(r.environ, r.keep)
	names := slices.Sorted(maps.Keys(own))
	for _, name := range names {
		env.set(name, own[name])
	}
	env.setDefault("HOME", ws.home)
	env.setDefault("PATH", "/usr/local/bin:/usr/bin:/bin")
	env.set("PATH", ws.bin+":"+env.get("PATH"))
	env.set("TMPDIR", ws.tmp)
	env.set("PWD", ws.dir)
	return env
}

// confinement says what a program may see and write, and gives it the caches that are
// whose, see giveCaches.
func (r *Runner) confinement(ctx context.Context, ws *workspace, env *environment, spec agent.Spec, whose string) (confinement, error) {
	home := env.get("HOME")
	caches, err := r.giveCaches(ctx, ws, env, spec.Env, whose)
	if err != nil {
		return confinement{}, err
	}
	writable := append(caches, ws.scratch)
	if len(spec.Command) > 0 {
		writable = append(writable, stateOf(spec.Command[0], home)...)
	}
	for _, dir := range spec.Writable {
		if _, err := os.Stat(dir); err != nil || !filepath.IsAbs(dir) {
			return confinement{}, agent.Fail(agent.CodeStart,
				"%s may write %s, which is not there, so it was not started. Make the folder, or take it out of `writable`.", spec.Name, dir)
		}
		writable = append(writable, dir)
	}
	seen := append([]string{r.self, home}, spec.Command...)
	for _, value := range spec.Env {
		seen = append(seen, value)
	}
	seen = append(append(seen, filepath.SplitList(env.get("PATH"))...), env.get("GOPROXY"))
	return confinement{who: spec.Name, dir: ws.dir, tmp: ws.tmp, writable: real(writable), hide: r.hidden(home), seen: append(seen, real(seen)...)}, nil
}
