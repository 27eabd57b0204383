package trigger

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/budget"
	"gatehouse/orchestrator/patch"
)

// Spec is a trigger as configured.
type Spec struct {
	Name       string
	Kind       Kind
	Agent      string
	Capability string // used when Agent is empty
	Repository string
	Ref        string
	Task       string // a template of the task's text
	When       string // a condition; "" is always
	Owner      string // the person in whose name tasks are made
	Key        string // a template of an idempotency key; "" is one task for each delivery
	Complexity string
	Budget     *budget.Limits
	Handoffs   bool // its tasks may hand on where that wants to be said

	// Of a webhook.
	Source   Source
	Secrets  []string // each of them is taken, so that they can be changed one by one
	Header   string   // of kind hmac: where the signature stands
	Encoding string   // of kind hmac: hex or base64
	Prefix   string   // of kind hmac: what stands before the signature
	// Window is how old a signed time may be, or, where nothing but the body is signed,
	// for how long the same body is the same delivery.
	Window time.Duration
	Rate   int // calls a minute that are taken; 0 is DefaultRate

	// Of a schedule.
	Cron    string
	Zone    *time.Location
	Overlap string // skip, queue or allow
	Missed  string // skip or run
}

// What a schedule does when its last task still lives, and with times that passed while
// nobody looked.
const (
	OverlapSkip  = "skip"
	OverlapQueue = "queue"
	OverlapAllow = "allow"
	MissedSkip   = "skip"
	MissedRun    = "run"
)

// Windows where nothing is configured. Five minutes are what Standard Webhooks advises;
// a day is longer than any source goes on sending a delivery again.
const (
	DefaultWindow = 5 * time.Minute
	DefaultBodies = 24 * time.Hour
)

// DefaultRate is how many signed calls a minute a webhook takes where nothing is
// configured: more than a busy project sends, and a bound for systems that call each other.
const DefaultRate = 120

// ShortSecret is the length below which a secret deserves a warning, in bytes.
const ShortSecret = 16

// Trigger is a Spec that can be used: everything in it has been compiled and checked. It
// may be used from many goroutines.
type Trigger struct {
	Spec
	when  *condition
	task  *text
	key   *text // nil: none
	times *times
}

// Problem is what is wrong with one field of a Spec. Line and Column count from 1 inside
// of the field's text; 0 is the whole field. Index is the place in a list, else -1.
type Problem struct {
	Field   string
	Index   int
	Line    int
	Column  int
	Message string
}

// Compile checks a Spec and makes it usable. Names of agents, repositories and people are
// looked at by those who know them.
func Compile(s Spec) (*Trigger, []Problem) {
	t := &Trigger{Spec: s}
	c := &compiler{t: t}
	switch s.Kind {
	case Webhook:
		c.webhook()
	case Schedule:
		c.schedule()
	default:
		c.bad("kind", "kind: %q is unknown. Write webhook or schedule.", s.Kind)
	}
	t.Ref = strings.TrimPrefix(t.Ref, "refs/heads/") // as in the section repositories
	if err := patch.CheckRef(t.Ref); err != nil {
		c.bad("ref", "ref: %v", err)
	}
	c.texts()
	return t, c.problems
}

type compiler struct {
	t        *Trigger
	problems []Problem
}

func (c *compiler) bad(field, format string, args ...any) {
	c.problems = append(c.problems, Problem{Field: field, Index: -1, Message: fmt.Sprintf(format, args...)})
}

// alien refuses fields that mean nothing here.
func (c *compiler) alien(why string, fields map[string]bool) {
	for _, field := range []string{"source", "secret", "header", "encoding", "prefix", "window", "rate", "cron", "timezone", "overlap", "missed"} {
		if fields[field] {
			c.bad(field, "%s has no %s. Take the line out.", why, field)
		}
	}
}

func (c *compiler) webhook() {
	t := c.t
	c.alien("A webhook", map[string]bool{"cron": t.Cron != "", "timezone": t.Zone != nil, "overlap": t.Overlap != "", "missed": t.Missed != ""})
	switch t.Source {
	case GitHub, GitLab, Standard:
		c.alien("A webhook of "+string(t.Source), map[string]bool{"header": t.Header != "", "encoding": t.Encoding != "", "prefix": t.Prefix != ""})
	case HMAC:
		t.Encoding = cmp.Or(t.Encoding, "hex")
		if t.Encoding != "hex" && t.Encoding != "base64" {
			c.bad("encoding", "encoding: %q is unknown. Write hex or base64.", t.Encoding)
		}
		if t.Header != "" && !isToken(t.Header) {
			c.bad("header", "%q is no name of a header. Write one such as %s.", t.Header, DefaultHeader)
		}
	case "":
		c.bad("source", "The webhook does not say who sends it. Write source: github, gitlab, standard or hmac.")
	default:
		c.bad("source", "source: %q is unknown. Write github, gitlab, standard or hmac.", t.Source)
	}
	if t.Rate < 0 {
		c.bad("rate", "rate: must be 1 or more: how many calls a minute are taken. Take the line out for %d.", DefaultRate)
	}
	t.Rate = cmp.Or(max(t.Rate, 0), DefaultRate)
	if t.Window == 0 {
		t.Window = DefaultBodies
		if t.Source == Standard || t.Source == GitLab && t.signs() {
			t.Window = DefaultWindow
		}
	}
	c.secrets()
}

func (c *compiler) secrets() {
	if len(c.t.Secrets) == 0 {
		c.bad("secret", "The webhook has no secret, so anybody could start tasks with it. Write secret: \"${NAME}\" with the secret in the environment.")
	}
	for i, s := range c.t.Secrets {
		key, err := keyOf(s)
		switch {
		case strings.TrimSpace(s) == "":
			c.problems = append(c.problems, Problem{Field: "secret", Index: i, Message: "A secret is empty. Give it a value of 16 characters or more, or take it out."})
		case err != nil && (c.t.Source == Standard || c.t.Source == GitLab):
			c.problems = append(c.problems, Problem{Field: "secret", Index: i, Message: "What stands behind whsec_ is not base64. Copy the secret again as a whole."})
		case err == nil && len(key) == 0:
			c.problems = append(c.problems, Problem{Field: "secret", Index: i, Message: "Nothing stands behind whsec_. Copy the secret again as a whole."})
		}
	}
}

// keyOf is the key that a secret stands for.
func keyOf(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, standardSecret)
	if !ok {
		return []byte(secret), nil
	}
	return base64.StdEncoding.DecodeString(text)
}

// Weak reports whether one of the secrets is short enough to be guessed.
func (s Spec) Weak() bool {
	return slices.ContainsFunc(s.Secrets, func(secret string) bool {
		key, err := keyOf(secret)
		return err == nil && len(key) < ShortSecret
	})
}

func (c *compiler) schedule() {
	t := c.t
	c.alien("A schedule", map[string]bool{"source": t.Source != "", "secret": len(t.Secrets) > 0, "header": t.Header != "", "encoding": t.Encoding != "",
		"prefix": t.Prefix != "", "window": t.Window != 0, "rate": t.Rate != 0})
	t.Zone = cmp.Or(t.Zone, time.UTC)
	for _, one := range []struct {
		field string
		value *string
		words []string
	}{{"overlap", &t.Overlap, []string{OverlapSkip, OverlapQueue, OverlapAllow}}, {"missed", &t.Missed, []string{MissedSkip, MissedRun}}} {
		if *one.value == "" {
			*one.value = one.words[0]
		}
		if !contains(one.words, *one.value) {
			c.bad(one.field, "%s: %q is unknown. Write %s.", one.field, *one.value, strings.Join(one.words, " or "))
		}
	}
	var wrong string
	if t.times, wrong = parseTimes(t.Cron, t.Zone); wrong != "" {
		c.bad("cron", "%s", wrong)
	}
}

// texts compiles the condition and the templates.
func (c *compiler) texts() {
	t := c.t
	var problem *Problem
	if t.when, problem = compileWhen(t.When); problem != nil {
		c.problems = append(c.problems, *problem)
	}
	if strings.TrimSpace(t.Task) == "" {
		c.bad("task", "The trigger has no task. Write task: with the text that the agent gets.")
		return
	}
	if t.task, problem = parseText("task", t.Task, true); problem != nil {
		c.problems = append(c.problems, *problem)
	}
	if t.Key == "" {
		return
	}
	if t.key, problem = parseText("key", t.Key, false); problem != nil {
		c.problems = append(c.problems, *problem)
	}
}

func contains(words []string, word string) bool {
	return slices.Contains(words, word)
}

// isToken reports whether s can be the name of a header (RFC 9110).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
