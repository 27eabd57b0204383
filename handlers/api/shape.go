package api

import (
	"encoding/json"
	"slices"
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/mask"
)

// Delegation is the published shape of a delegation.
type Delegation struct {
	ID         string             `json:"id"`
	TaskID     string             `json:"task_id"`
	ParentID   *string            `json:"parent_id"` // null at the root
	From       string             `json:"from"`      // "" at the root
	To         string             `json:"to"`
	Text       string             `json:"text"`
	State      orchestrator.State `json:"state"`
	Depth      int                `json:"depth"`
	Chain      chain.Chain        `json:"chain"`
	Result     *Result            `json:"result"`
	Error      *agent.Failure     `json:"error"`
	Usage      agent.Usage        `json:"usage"`
	ApprovalID *string            `json:"approval_id"`
	CreatedAt  time.Time          `json:"created_at"`
	StartedAt  *time.Time         `json:"started_at"`
	EndedAt    *time.Time         `json:"ended_at"`

	// Beyond the contract.
	Since      time.Time `json:"since"` // when the state was entered
	Repository string    `json:"repository"`
	Branch     string    `json:"branch"` // what it works on, and where its change would land
	Tag        string    `json:"tag"`    // or what it reads: nothing lands on a tag
	Requester  string    `json:"requester"`
	Attempt    int       `json:"attempt"`
	Sandbox    string    `json:"sandbox"`
	Budget     *Budget   `json:"budget"`
	Problem    string    `json:"problem,omitempty"` // why a landing waits
	// Discarded says that changes of an agent that only analyses, and of those below it, were
	// thrown away.
	Discarded string `json:"discarded,omitempty"`
	// Message is what is said to whoever asked for something that is happening already.
	Message string `json:"message,omitempty"`
	// WaitsFor are the people who could say yes, for those who may read no requests.
	WaitsFor []string `json:"waits_for,omitempty"`
	// PausedAt is when people paused the task, in the answer for one delegation.
	PausedAt *time.Time `json:"paused_at,omitempty"`
	// Handover is the command object that came with the work.
	Handover *agent.Handover `json:"handover,omitempty"`
}

// Result is the published shape of an answer.
type Result struct {
	Text      string           `json:"text"`
	Data      json.RawMessage  `json:"data"`
	Artifacts []agent.Artifact `json:"artifacts"`
	Commit    string           `json:"commit,omitempty"`
	Pushed    string           `json:"pushed,omitempty"`   // the branch of Commit, where it was pushed and not landed
	Declined  []string         `json:"declined,omitempty"` // changed files that people left out of Commit
}

func shapeOf(d orchestrator.Delegation) Delegation {
	s := Delegation{
		ID: d.ID, TaskID: d.TaskID, ParentID: orNull(d.ParentID), From: d.From, To: d.To, Text: mask.Text(d.Text), State: d.State,
		Depth: d.Depth, Chain: maskedChain(d.Chain), Error: d.Error, Usage: d.Usage, ApprovalID: orNull(d.ApprovalID),
		CreatedAt: d.CreatedAt.UTC(), StartedAt: utc(d.StartedAt), EndedAt: utc(d.EndedAt), Since: d.Since.UTC(),
		Repository: d.Repository, Branch: d.Work.Branch, Tag: d.Work.Tag, Requester: d.Requester, Attempt: d.Attempt, Sandbox: d.Work.Sandbox, Problem: d.Work.Problem,
		Discarded: d.Work.Discarded,
		Budget:    budgetOf(d.Work.Budget), Handover: d.Work.Handover,
	}
	if d.Result != nil {
		s.Result = &Result{Text: d.Result.Text, Data: d.Result.Data, Artifacts: d.Result.Artifacts, Commit: d.Result.Commit, Pushed: d.Result.Pushed, Declined: d.Result.Declined}
		for i, a := range s.Result.Artifacts {
			if a.URL == "" { // of before it was stored with the result
				s.Result.Artifacts = slices.Clone(s.Result.Artifacts)
				s.Result.Artifacts[i].URL = orchestrator.ArtifactURL(d.ID, a.Name)
			}
		}
		if s.Result.Artifacts == nil {
			s.Result.Artifacts = []agent.Artifact{}
		}
	}
	return s
}

// maskedChain is a chain whose texts have no secrets. What a person or an agent sent is
// stored as it was sent, since an agent is given that; who looks on reads it masked.
func maskedChain(c chain.Chain) chain.Chain {
	steps := c.Steps()
	for i := range steps {
		steps[i].Task = mask.Text(steps[i].Task)
	}
	return chain.Of(c.MaxDepth(), steps...)
}

func shapesOf(all []orchestrator.Delegation) []Delegation {
	shapes := make([]Delegation, len(all))
	for i, d := range all {
		shapes[i] = shapeOf(d)
	}
	return shapes
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// known is a time that may not be known; null then.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return utc(&t)
}
