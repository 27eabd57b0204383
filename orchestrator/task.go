package orchestrator

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/each"
	"gatehouse/orchestrator/guard"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/retention"
	"gatehouse/orchestrator/sharedctx"
)

// Prefixes of ids; each is followed by a lower-case ULID.
const (
	TaskPrefix       = "tsk_"
	DelegationPrefix = "dlg_"
	RequestPrefix    = "apr_"
	DecisionPrefix   = "dec_"
	GrantPrefix      = "gnt_"
	UserPrefix       = "usr_"
	TokenPrefix      = "tok_"
	EventPrefix      = "evt_"
)

// NewID makes an id whose order is that of time.
func NewID(prefix string, at time.Time) string {
	return prefix + strings.ToLower(ulid.MustNew(ulid.Timestamp(at), rand.Reader).String())
}

// MaxText is the longest text of a task in bytes.
const MaxText = 256 << 10

// Task is what a person or trigger asked for: the root of a tree. Its row is the
// lock of everything in the tree.
type Task struct {
	ID          string
	RootID      string // the root delegation
	Agent       string
	Text        string
	Repository  string // "" when none
	Ref         string // branch or tag asked for, by its short name; "" for the repository's branch
	Key         string // the requester's idempotency key, "" when none
	Complexity  string
	Why         string // why the classifier chose Complexity; only on a new task, and in its first event
	RequesterID string // the person, usr_…; who asked, or owns what did
	Requester   string // that person's name
	Via         origin.Origin
	Chat        string         // the chat that it was sent from, "" where Via has none (P15)
	Thread      string         // the task that began the thread that this goes on with, "" for a first one
	RevertOf    string         // the request that this task undoes, "" when none
	Handoffs    int            // hand-overs made so far (H10)
	Budget      *budget.Limits // as asked for, nil when nobody did
	ForkOf      string         // the delegation that this was forked from, "" when none
	RemoteHops  int            // hand-overs between systems that led here
	Source      *agent.Source  // what it is about elsewhere, nil when nobody said (A8)
	Attachments []agent.Attachment
	PausedAt    *time.Time // nil: not paused
	LastN       int64      // number of the newest event
	LastHash    string     // its hash
	CreatedAt   time.Time
	EndedAt     *time.Time
	DroppedAt   *time.Time // when retention removed its texts, nil while they are here
}

// ByTrigger reports whether a webhook or a schedule made the task, and no person at that
// moment.
func (t *Task) ByTrigger() bool { return t.Via.Trigger() != "" }

// TriggerKey begins the keys of tasks that triggers make; the trigger's name, a colon and
// the delivery's id, or what its template made, follow.
const TriggerKey = "trigger:"

// ThreadID is the id of the thread that the task is in: that of its first task.
func (t *Task) ThreadID() string { return cmp.Or(t.Thread, t.ID) }

// Submission asks for a task.
type Submission struct {
	Agent      string
	Capability string // used when Agent is empty
	Text       string
	Repository string
	Ref        string
	Key        string
	Complexity string
	Via        origin.Origin
	Chat       string
	RequesterID,
	Requester string
	DryRun     bool
	Budget     *budget.Limits // only lowers what the settings and the tier allow
	RemoteHops int
	Source     *agent.Source
	Handoffs   bool // enables hand-overs where the settings want that said (H29)
	// Attachments are files that every delegation of the task is given.
	Attachments []agent.File
	// Follows is a task of the same person: this goes on with its thread. Agent, Repository and
	// Ref are those of the newest task there where they are left out.
	Follows string
}

// check validates what does not need the registry.
func (s Submission) check() error {
	switch {
	case strings.TrimSpace(s.Text) == "":
		return Errorf(CodeBadRequest, "The task has no text. Say what should be done.")
	case len(s.Text) > MaxText:
		return Errorf(CodeBadRequest, "The task's text has %d bytes; %d is the limit. Put long material into the repository or the shared context.", len(s.Text), MaxText)
	case s.Agent == "" && s.Capability == "":
		return Errorf(CodeBadRequest, "Neither agent nor capability was given. Name the agent that should start.")
	case len(s.Key) > 200:
		return Errorf(CodeBadRequest, "The key has %d bytes; 200 is the limit.", len(s.Key))
	case !slices.Contains([]string{"", budget.Simple, budget.Medium, budget.Complex, budget.Auto}, s.Complexity):
		return Errorf(CodeBadRequest, "There is no complexity %q. Use simple, medium, complex or auto.", s.Complexity)
	case s.Budget != nil:
		if err := s.Budget.Check(); err != nil {
			return Errorf(CodeBadRequest, "The budget was not taken: %w", err)
		}
	}
	if err := s.Source.Check(); err != nil {
		return Errorf(CodeBadRequest, "The source was not taken: %w.", err)
	}
	return nil
}

// attach checks the files of a submission and says how the task has them.
func (s Submission) attach() ([]agent.Attachment, error) {
	all, f := agent.Attach(s.Attachments)
	if f != nil {
		return nil, f
	}
	for _, a := range all {
		if mask.Text(a.Name) != a.Name {
			return nil, agent.Fail(agent.CodeAttachment, "The name of a file looks like a secret. Rename the file.")
		}
	}
	return all, nil
}

// keep stores the contents of t's attachments in its transaction, before also.
func (s Submission) keep(ctx context.Context, t *Task, also func(Tx) error) func(Tx) error {
	if len(s.Attachments) == 0 {
		return also
	}
	return func(tx Tx) error {
		for i, a := range t.Attachments {
			if err := tx.PutBlob(ctx, AttachmentBlob(t.ID, a.SHA256), "attachment", s.Attachments[i].Data); err != nil {
				return err
			}
		}
		if also == nil {
			return nil
		}
		return also(tx)
	}
}

// handOnAttachments gives the files of one task to another that is made of it, as far as their
// contents are there still.
func (e *Engine) handOnAttachments(ctx context.Context, from, to *Task) (Submission, error) {
	var s Submission
	for _, a := range from.Attachments {
		data, err := e.Store.Blob(ctx, AttachmentBlob(from.ID, a.SHA256))
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return s, err
		}
		to.Attachments = append(to.Attachments, a)
		s.Attachments = append(s.Attachments, agent.File{Name: a.Name, Data: data})
	}
	return s, nil
}

// earlierFiles gives s the attachments of the thread, which its last task has, as far as they
// fit beside its own.
func (e *Engine) earlierFiles(ctx context.Context, last *Task, s *Submission) error {
	was, err := e.handOnAttachments(ctx, last, new(Task))
	for _, f := range was.Attachments {
		if slices.ContainsFunc(s.Attachments, func(o agent.File) bool { return o.Name == f.Name }) {
			continue
		}
		more := Submission{Attachments: append(slices.Clip(s.Attachments), f)}
		if _, tooMuch := more.attach(); tooMuch == nil {
			s.Attachments = more.Attachments
		}
	}
	return err
}

// AttachmentBlob names the content of an attachment in the store. Each task has its own, so
// that retention removes it with the task.
func AttachmentBlob(taskID, sha string) string { return "attachment:" + taskID + ":" + sha }

// AttachmentURL is where callers get the content of an attachment, from the server's address on.
func (t *Task) AttachmentURL(name string) string {
	return "/api/v1/delegations/" + t.RootID + "/attachments/" + url.PathEscape(name)
}

// NamedAttachment finds an attachment by its name.
func (t *Task) NamedAttachment(name string) (agent.Attachment, error) {
	for _, a := range t.Attachments {
		if a.Name == name {
			return a, nil
		}
	}
	return agent.Attachment{}, Errorf(CodeNotFound, "The task has no attachment %.60q. Its page lists what it has.", name)
}

// Attachment is the content of a file that came with a task.
func (e *Engine) Attachment(ctx context.Context, t Task, a agent.Attachment) ([]byte, error) {
	data, err := e.Store.Blob(ctx, AttachmentBlob(t.ID, a.SHA256))
	if errors.Is(err, ErrNotFound) {
		return nil, Errorf(CodeNotFound, "The content of %q is gone: retention removed it.", a.Name)
	}
	return data, err
}

// Title is the first line of a task's text, cut to 80 characters, for lists,
// branches and merge messages.
func Title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(mask.Text(text)), "\n")
	r := []rune(strings.TrimSpace(line))
	if len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return string(r)
}

type Repository = patch.Repository

// Settings are the engine's figures, from the section engine of gatehouse.yaml.
type Settings struct {
	Workers     int
	Lease       time.Duration
	MaxAttempts int
	MaxDepth    int
	MaxHandoffs int
	OptIn       bool   // a task works in independent mode unless it enables hand-overs (H29)
	Cycle       string // strict or bounded
	Capacity    string // queue or refuse
	CheckTime   time.Duration

	Budget     budget.Limits            // of a task
	Tiers      map[string]budget.Limits // by complexity (H19–H21)
	Classify   bool                     // a task without complexity is classified (H24)
	Breaker    BreakerSettings
	Spawn      SpawnSettings
	Asks       AskSettings
	AckTimeout time.Duration // of a remote agent (A34)
	MaxRemote  int           // hand-overs between systems
	KillAfter  time.Duration // how long a run that was told to end may take (P53)
	// QueueTimeout fails what nobody took up in time, with no_ack (A34); 0: nothing is.
	QueueTimeout time.Duration
	Inbox        int     // queued work of one agent that counts as full (A35): shown, nothing is refused
	RecordEnds   bool    // each delegation's end is written to the shared context (O23)
	DailyUSD     float64 // what a day should cost: the overview says how much is used, and nothing is stopped; 0: not said
}

// BreakerSettings say when an agent rests (H11, H14).
type BreakerSettings struct {
	Failures int // in a row; 0 switches the breaker off
	Cooldown time.Duration
}

// SpawnSettings bound children that nobody waits for (P44, P45, X6b).
type SpawnSettings struct {
	Children int           // live ones of one parent
	PerAgent int           // live ones of one agent over all its runs; 0: no limit of its own
	Timeout  time.Duration // of running, of one child
	Remember time.Duration // how long after its end a child answers for the same spawn (P50)
}

// Config is what the engine knows of the outside: it is replaced as a whole when
// the configuration is loaded again.
type Config struct {
	Settings     Settings
	Agents       *agent.Registry
	Repositories map[string]Repository
	Lifespans    sharedctx.Lifespans // of the shared context, where a write names none
	Retention    retention.Rules
}

// repository returns the repository of that name.
func (c *Config) repository(name string) (Repository, error) {
	r, ok := c.Repositories[name]
	if !ok {
		return Repository{}, fmt.Errorf("no repository %q is configured", name)
	}
	return r, nil
}

// find returns the agent of that name, or the first one with the capability (P13).
func (c *Config) find(name, capability string) (agent.Spec, error) {
	if name != "" {
		if spec, ok := c.Agents.Get(name); ok {
			return spec, nil
		}
		_, v := guard.Check(guard.Hop{ToName: name, Agents: c.names()})
		return agent.Spec{}, &Error{Code: v.Code, Message: v.Message}
	}
	if able := c.Agents.ByCapability(capability); len(able) > 0 {
		return able[0], nil
	}
	return agent.Spec{}, Errorf(guard.CodeUnknown, "No agent has the capability %q. Name an agent, or add the capability to one.", capability)
}

// names lists the agents, for "did you mean".
func (c *Config) names() []string {
	return each.Of(c.Agents.All(), func(s agent.Spec) string { return s.Name })
}

// workplace is the repository of a task: the agent's own, else the one that was asked
// for. A task for another repository than the agent's is refused: whoever picked one
// would read of a change somewhere else.
func (c *Config) workplace(spec agent.Spec, asked string) (string, error) {
	if _, err := c.bind(asked); err != nil {
		return "", err
	}
	if asked != "" && spec.Repository != "" && asked != spec.Repository {
		return "", Errorf(CodeBadRequest, "%s works in %s, and this task is for %s. Leave the repository out, or send the task to an agent that works in %s.", spec.Name, spec.Repository, asked, asked)
	}
	return c.bind(spec.Repository, asked)
}

// bind decides on which repository a delegation works: the agent's binds, else the
// task's, else the caller's. "" is none.
func (c *Config) bind(choices ...string) (string, error) {
	i := slices.IndexFunc(choices, func(s string) bool { return s != "" })
	if i < 0 {
		return "", nil
	}
	if _, err := c.repository(choices[i]); err != nil {
		return "", Errorf(CodeNotFound, "There is no repository %.80q. Known repositories: %s.", choices[i],
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(c.Repositories)), ", "), "none"))
	}
	return choices[i], nil
}

// limits are those of a new task: the least of the settings', the tier's, the agent's own
// and what was asked for. Without a complexity no tier applies.
func (c *Config) limits(s Submission, spec agent.Spec) (budget.Limits, budget.Class) {
	class := budget.Class{Tier: s.Complexity}
	if s.Complexity == budget.Auto || s.Complexity == "" && c.Settings.Classify && s.Text != "" {
		class = budget.Classify(s.Text)
	}
	all := []*budget.Limits{&c.Settings.Budget, spec.Budget, s.Budget}
	if tier, ok := c.Settings.Tiers[class.Tier]; ok {
		all = append(all, &tier)
	}
	return budget.Least(all...), class
}

// opened is the account of a task's first delegation.
func opened(l budget.Limits, spec agent.Spec) *budget.Account {
	return &budget.Account{Limits: l, Team: []string{agent.Key(spec.Name)}}
}

// budgetAnew is the account of a task that runs again: a person asked for it, so it has
// its whole budget, as the settings are now.
func (e *Engine) budgetAnew(t *Task) *budget.Account {
	c := e.Config()
	spec, _ := c.Agents.Get(t.Agent)
	limits, _ := c.limits(Submission{Complexity: t.Complexity, Budget: t.Budget}, spec)
	return opened(limits, agent.Spec{Name: t.Agent})
}

func newChain(c *Config) chain.Chain { return chain.New(c.Settings.MaxDepth) }

// RuleActor begins the name under which a rule decides, in events and as a decision's user.
const RuleActor = "rule:"

// ByRule is the rule's own name in the name of who decided; false for a person.
func ByRule(actor string) (rule string, ok bool) { return strings.CutPrefix(actor, RuleActor) }
