package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/badge"
)

// The kinds of messages about tasks, and what stands for all of a subject, as a target's
// events name them. A task whose change was rejected or expired has failed
// for whoever waits for it; its state says which.
const (
	TaskCompleted = "task.completed"
	TaskFailed    = "task.failed"
	TaskCancelled = "task.cancelled"
	AllTasks      = "task.*"
	AllRequests   = "approval.*"
)

// hearsRequests reports whether a target is told of requests: also where it names no events.
func (t Target) hearsRequests() bool {
	return len(t.Events) == 0 || slices.Contains(t.Events, AllRequests)
}

// hears reports whether a target is told of a kind of end.
func (t Target) hears(kind string) bool {
	return slices.Contains(t.Events, AllTasks) || slices.Contains(t.Events, kind)
}

// checkEvents says which of the events there is not.
func (t Target) checkEvents() error {
	known := []string{AllRequests, AllTasks, TaskCompleted, TaskFailed, TaskCancelled}
	for _, e := range t.Events {
		if !slices.Contains(known, e) {
			return fmt.Errorf("there is no event %.80q. Write some of %s", e, strings.Join(known, ", "))
		}
	}
	return nil
}

// Told implements approval.Teller: the targets that hear of the ends of tasks.
func (c *Channel) Told() []string {
	var names []string
	for _, t := range c.targets {
		if slices.ContainsFunc([]string{TaskCompleted, TaskFailed, TaskCancelled}, t.hears) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Report implements approval.Reporter: one message for each end of a task. The external id is
// that of the message.
func (c *Channel) Report(ctx context.Context, r approval.Report, p approval.Progress) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	v := c.receivers[r.Address]
	if v == nil {
		return "", approval.Gone(fmt.Errorf("there is no webhook %q in the configuration any more", r.Address))
	}
	n := endOf(p)
	if !v.target.hears(n.kind) {
		return r.ExternalID, nil
	}
	format := standardTask
	if v.key == nil {
		format = slackTask
	}
	body, err := format(n, p, c.public)
	if err != nil {
		return "", err
	}
	if err := v.post(ctx, message{id: n.id, body: body}); err != nil {
		return "", err
	}
	c.log.Debug("a webhook was told of a task", "webhook", v.name, "task", p.Task.ID, "type", n.kind, "message", n.id)
	return n.id, nil
}

// endOf says what is new about a task that has ended. Its id is made of which end that was,
// so every attempt has the same one, and the end of a further run another.
func endOf(p approval.Progress) news {
	n := news{kind: TaskFailed, at: *p.Task.EndedAt}
	switch p.Root.State {
	case orchestrator.Completed:
		n.kind = TaskCompleted
	case orchestrator.Cancelled:
		n.kind = TaskCancelled
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", p.Task.ID, p.Root.State, p.Task.EndedAt.UnixMicro()))
	n.id = "msg_" + hex.EncodeToString(sum[:16])
	return n
}

// taskShape has the names of the API where the values are the same.
type taskShape struct {
	ID           string             `json:"id"`
	URL          string             `json:"url"` // its page, with all of the answer
	DelegationID string             `json:"delegation_id"`
	State        orchestrator.State `json:"state"` // completed failed rejected expired cancelled
	Code         string             `json:"code"`  // why it did not complete, else ""
	Next         string             `json:"next"`  // a sentence: what to do where it did not complete, else ""
	Title        string             `json:"title"`
	Agent        string             `json:"agent"`
	Requester    string             `json:"requester"`
	Via          string             `json:"via"`
	Repository   string             `json:"repository"`
	Commit       string             `json:"commit"`   // that landed or was pushed, else ""
	Branch       string             `json:"branch"`   // that was pushed, else ""
	Requests     []askedShape       `json:"requests"` // at most 20, newest first
	Usage        usageShape         `json:"usage"`
	CreatedAt    time.Time          `json:"created_at"`
	EndedAt      time.Time          `json:"ended_at"`
}

type askedShape struct {
	ID    string         `json:"id"`
	URL   string         `json:"url"`
	State approval.State `json:"state"`
}

type usageShape struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	USD          *float64 `json:"usd"`
}

// standardTask makes the body of a Standard Webhook about a task. Like that about a request
// it holds nothing that an agent or its checks said: who wants that asks the API.
func standardTask(n news, p approval.Progress, public string) ([]byte, error) {
	t, d := p.Task, p.Root
	short := func(s string) string { return clip(s, maxText) }
	s := taskShape{ID: t.ID, URL: taskLink(public, p), DelegationID: d.ID, State: d.State, Next: next(p),
		Title: clip(orchestrator.Title(t.Text), maxTitle), Agent: short(t.Agent), Requester: short(t.Requester),
		Via: short(t.Via.String()), Repository: short(t.Repository),
		Requests: []askedShape{}, Usage: usageShape{d.Usage.InputTokens, d.Usage.OutputTokens, d.Usage.USD},
		CreatedAt: t.CreatedAt.UTC(), EndedAt: t.EndedAt.UTC()}
	if d.Error != nil {
		s.Code = short(d.Error.Code)
	}
	if d.Result != nil {
		s.Commit, s.Branch = d.Result.Commit, short(d.Result.Pushed)
	}
	for _, r := range p.Requests {
		s.Requests = append(s.Requests, askedShape{r.ID, public + "/approvals/" + url.PathEscape(r.ID), r.State})
	}
	body, err := json.Marshal(envelope{Type: n.kind, Timestamp: n.at.UTC(), Data: payload{Task: &s}})
	if err != nil {
		return nil, fmt.Errorf("writing the message about %s: %w", t.ID, err)
	}
	return body, nil
}

// slackTask makes a message for Slack about a task.
func slackTask(_ news, p approval.Progress, public string) ([]byte, error) {
	word := badge.Of(p.Root.State).Word
	said := strings.ToUpper(word[:1]) + word[1:] + " · " + foreign(p.Task.Agent, slackText)
	head := []string{"*" + as(p.Root.State, said) + "*", "> " + foreign(orchestrator.Title(p.Task.Text), slackTitle)}
	var lines []string
	if p.Task.Requester != "" {
		lines = append(lines, "sent by "+foreign(p.Task.Requester, slackText))
	}
	if res := p.Root.Result; res != nil && res.Commit != "" {
		lines = append(lines, "commit "+foreign(res.Commit[:min(len(res.Commit), 7)], 7))
	}
	if e := p.Root.Error; e != nil {
		lines = append(lines, "why: "+foreign(e.Code, slackText))
	}
	if said := next(p); said != "" {
		lines = append(lines, foreign(said, slackComment))
	}
	open := "<" + markup(taskLink(public, p)) + "|Open the task>"
	m := slackMessage{Text: strings.Join(append(slices.Clone(head), open), "\n"), Parse: "none",
		Blocks: []slackBlock{section(head)}}
	if len(lines) > 0 {
		m.Blocks = append(m.Blocks, section(lines))
	}
	m.Blocks = append(m.Blocks, section([]string{open}))
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing the message about %s: %w", p.Task.ID, err)
	}
	return body, nil
}

func taskLink(public string, p approval.Progress) string {
	return public + "/delegations/" + url.PathEscape(p.Task.ID)
}

// next is what to do about a task that did not complete.
func next(p approval.Progress) string {
	if p.Root.State == orchestrator.Completed {
		return ""
	}
	return "Its page says why. To run it again: gatehouse retry " + p.Task.ID
}
