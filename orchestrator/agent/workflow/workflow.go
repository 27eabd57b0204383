package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/orchestrator/agent"
)

// MaxSteps is how many steps, skipped ones and jumps included, one workflow may take
// before it is ended: the last guard, behind the limit of every goto.
const MaxSteps = 1000

// Options are the settings of the kind; the zero value has the defaults.
type Options struct {
	MaxSteps int // 0 means MaxSteps
}

// Traits are those of this kind.
var Traits = agent.Traits{Planned: true, Texts: true}

// Runner runs agents of kind workflow. It has no state and no goroutines.
type Runner struct{ maxSteps int }

// New returns the kind's runner.
func New(opts Options) *Runner {
	if opts.MaxSteps < 1 {
		opts.MaxSteps = MaxSteps
	}
	return &Runner{maxSteps: opts.MaxSteps}
}

func (*Runner) Traits() agent.Traits { return Traits }

// Run takes the plan as far as the children that exist allow. It parks with the next
// hops or ends with the last step's answer; it never waits.
func (r *Runner) Run(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return agent.Outcome{}, err
	}
	m, err := resume(job)
	if err != nil {
		return agent.Outcome{}, err
	}
	p := newPlay(job, m)
	out, failure := p.play(r.maxSteps)
	for _, line := range p.news {
		if err := host.Progress(ctx, line); err != nil {
			return agent.Outcome{}, fmt.Errorf("show progress: %w", err)
		}
	}
	if failure != nil {
		return agent.Outcome{}, failure
	}
	if out.Park != nil {
		if out.Park.Memo, err = json.Marshal(m); err != nil {
			return agent.Outcome{}, fmt.Errorf("write the memo: %w", err)
		}
	}
	return out, nil
}

// memo is what every Park stores.
type memo struct {
	Round    int          `json:"round"`              // 1, and one more per "request changes"
	Feedback string       `json:"feedback,omitempty"` // hash of the feedback that began the round
	Task     string       `json:"task"`               // the workflow's own, with that feedback
	Steps    []agent.Step `json:"steps"`              // the plan that the round began with
}

// resume finds out which round this is. A round begins with the first run and with
// every feedback that the memo has not seen; it takes the plan that is configured
// then, and its refs do not meet those of the rounds before.
func resume(job agent.Job) (memo, error) {
	feedback, err := digest(job.Feedback)
	if err != nil {
		return memo{}, err
	}
	var m memo
	if len(job.Memo) > 0 {
		if err := json.Unmarshal(job.Memo, &m); err != nil {
			return memo{}, fmt.Errorf("read the memo of workflow %s: %w", job.Agent.Name, err)
		}
	}
	if m.Round > 0 && (feedback == "" || m.Feedback == feedback) {
		return m, nil
	}
	round := m.Round
	if feedback != "" {
		for _, c := range job.Children {
			round = max(round, roundOf(c.Ref))
		}
	}
	return memo{Round: round + 1, Feedback: feedback, Task: taskOf(job), Steps: job.Agent.Steps}, nil
}

func digest(f *agent.Feedback) (string, error) {
	if f == nil {
		return "", nil
	}
	b, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("hash the feedback: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// ref names the n-th run of a step: "score#2", in a group "p/a#1", and from the
// second round on "2:score#1". Ids contain none of the three signs.
func ref(round int, group, id string, n int) string {
	s := id + "#" + strconv.Itoa(n)
	if group != "" {
		s = group + "/" + s
	}
	if round > 1 {
		s = strconv.Itoa(round) + ":" + s
	}
	return s
}

func roundOf(ref string) int {
	before, _, ok := strings.Cut(ref, ":")
	if n, err := strconv.Atoi(before); ok && err == nil {
		return n
	}
	return 1
}

// taskOf is the workflow's task; what a person asked to be changed follows it.
func taskOf(job agent.Job) string {
	f := job.Feedback
	if f == nil {
		return job.Text
	}
	var b strings.Builder
	b.WriteString(job.Text + "\n\nChanges were requested.\n")
	if f.Comment != "" {
		b.WriteString("\n" + f.Comment + "\n")
	}
	if before := f.Before(); before != "" {
		b.WriteString("\n" + before)
	}
	for _, c := range f.Comments {
		fmt.Fprintf(&b, "\n%s", c)
	}
	if f.Note != "" {
		b.WriteString("\n" + f.Note)
	}
	if f.Diff != "" {
		b.WriteString("\n\nThe previous change:\n\n" + f.Diff)
	}
	return strings.TrimRight(b.String(), "\n")
}
