package handlers

import (
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/approval"
	"gatehouse/orchestrator/event"
	"gatehouse/orchestrator/patch"
	"gatehouse/views"
)

// eventFacts is what pages read of an event's data. Fields of another shape stay empty.
type eventFacts struct {
	Agent, From, To, Child, ChildState, Text, Title, Code, Path, Message, Verdict, Comment, State, Why, Commit, Branch, Deliver, Via, ApprovalID, Channel, Reason string
	Guards, Files, Groups, Missing                                                                                                                                []string
	Steering                                                                                                                                                      []string
	Trusted                                                                                                                                                       bool
	Count, Children, Added, Removed, Attempt, Line                                                                                                                int

	// Of models, tools and the shared context.
	Model, Name, Stop, Namespace, Key, FromTask string
	OK                                          bool
	Turn                                        int
	InputTokens, OutputTokens                   int64
	USD                                         *float64
	Lost, StartOver                             bool
	Told                                        []string // children whose end was announced
	Calls                                       []struct {
		Name string `json:"name"`
	}
}

func factsOf(e event.Event) eventFacts {
	var raw map[string]json.RawMessage
	if json.Unmarshal(e.Data, &raw) != nil {
		return eventFacts{}
	}
	var f eventFacts
	for key, into := range map[string]any{"agent": &f.Agent, "from": &f.From, "to": &f.To, "child": &f.Child, "child_state": &f.ChildState,
		"text": &f.Text, "title": &f.Title, "code": &f.Code, "path": &f.Path, "message": &f.Message, "verdict": &f.Verdict,
		"comment": &f.Comment, "state": &f.State, "why": &f.Why, "commit": &f.Commit, "branch": &f.Branch, "deliver": &f.Deliver, "via": &f.Via, "approval_id": &f.ApprovalID, "channel": &f.Channel, "missing": &f.Missing, "reason": &f.Reason,
		"guards": &f.Guards, "steering": &f.Steering, "trust_checkout": &f.Trusted, "children": &f.Children, "added": &f.Added, "removed": &f.Removed, "attempt": &f.Attempt, "line": &f.Line,
		"model": &f.Model, "from_task": &f.FromTask, "name": &f.Name, "stop": &f.Stop, "namespace": &f.Namespace, "key": &f.Key, "ok": &f.OK, "turn": &f.Turn,
		"input_tokens": &f.InputTokens, "output_tokens": &f.OutputTokens, "usd": &f.USD, "lost": &f.Lost, "start_over": &f.StartOver, "calls": &f.Calls} {
		if v, ok := raw[key]; ok {
			// One field that is of another shape says nothing; the others still do.
			_ = json.Unmarshal(v, into)
		}
	}
	if v, ok := raw["to"]; ok && f.To == "" { // an agent, or groups
		_ = json.Unmarshal(v, &f.Groups)
	}
	if v, ok := raw["children"]; ok && f.Children == 0 { // some events list them, some count them
		_ = json.Unmarshal(v, &f.Told)
	}
	if v, ok := raw["files"]; ok && json.Unmarshal(v, &f.Files) != nil { // some events list files, some count them
		_ = json.Unmarshal(v, &f.Count)
	}
	return f
}

// doer is who stands beside an event: the person or rule that acted, else the agent.
func doer(e event.Event, agent string) string {
	switch e.Type {
	case event.TaskCreated, event.Decided, event.Cancelled, event.ChangesRequested, event.Paused, event.Unpaused, event.Forked, event.VerdictRefused:
		return e.Actor
	}
	return agent
}

// eventLine is one line of what an event says, beside its type and who did it.
func eventLine(e event.Event) string {
	f := factsOf(e)
	switch e.Type {
	case event.ConfigurationChanged:
		return configLine(e)
	case event.Queued:
		return first(f.Why, prefixed("from ", f.From), "waits for a free worker")
	case event.Acknowledged:
		if f.Attempt > 1 {
			return "is worked on again"
		}
		return "starts"
	case event.Waiting:
		if f.Children == 1 {
			return "waits for 1 delegation below"
		}
		return fmt.Sprintf("waits for %d delegations below", f.Children)
	case event.Resumed:
		if f.ChildState != "" {
			return "goes on: the one below is " + views.StateWord(f.ChildState)
		}
	case event.Delegated:
		return "to " + f.To + prefixed(": ", f.Title) + prefixed("; ", f.steered(e.Actor))
	case event.DelegationRefused:
		return "to " + f.To + prefixed(": ", f.Message)
	case event.PatchValidated:
		return "the changed files are allowed"
	case event.Requested:
		return fmt.Sprintf("asks for a yes: %s, +%d −%d%s", filesOf(f.Count), f.Added, f.Removed, prefixed(", for ", f.Branch))
	case event.Decided, event.ChangesRequested:
		return first(f.Message, f.Text, views.VerdictWord(f.Verdict)+approval.Decision{StartOver: f.StartOver}.Anew()+prefixed(": ", f.Comment))
	case event.Notified:
		return prefixed("shown in ", f.Channel)
	case event.Reminded:
		return "people are reminded" + prefixed("; it waits for ", strings.Join(f.Missing, ", "))
	case event.Escalated:
		return "nobody has decided, so these are told, too: " + strings.Join(f.Groups, ", ")
	case event.VerdictRefused:
		return "gave a verdict that was not counted" + prefixed(": ", f.Message)
	case event.CommentReplied:
		return "replies to the comment on " + f.place() + prefixed(": ", f.Text)
	case event.CommentResolved:
		return "resolves the comment on " + f.place()
	case event.CommentReopened:
		return "opens the comment on " + f.place() + " again"
	case event.PatchLanded:
		if f.Deliver == patch.DeliverBranch {
			return fmt.Sprintf("pushed %.7s%s", f.Commit, prefixed(" to ", f.Branch))
		}
		return fmt.Sprintf("landed %.7s%s", f.Commit, prefixed(" on ", f.Branch))
	case event.Expired, event.Superseded, event.PatchReverted, event.BreakerOpened, event.BreakerClosed:
		return turnLine(e, f)
	case event.MessageCompleted, event.ToolCompleted, event.Announced:
		return modelLine(e, f)
	case event.UsageRecorded:
		return usageLine(f)
	case event.Paused:
		return "pauses the task: models stop after the turn that they are at" + prefixed(". ", first(f.Why, f.Message))
	case event.Unpaused:
		return "lets the task go on" + prefixed(": ", first(f.Why, f.Message))
	case event.Forked:
		if f.FromTask != "" {
			return "goes on from another task" + turnWords(f.Turn)
		}
		return "makes another task from here" + turnWords(f.Turn)
	case event.ContextWritten:
		return "writes " + f.Namespace + "/" + f.Key
	case event.ContextRead:
		return "reads " + f.Namespace + prefixed("/", f.Key)
	case event.ContextDeleted:
		return "deletes " + f.Namespace + prefixed("/", f.Key)
	}
	return first(f.Message, f.Text, f.Title, f.Why, prefixed("to ", f.To), f.State)
}

// maxSteeringNamed is how many files that steer programs a line names.
const maxSteeringNamed = 3

// steered says what became of the files that steer programs and that the caller had
// changed, "" where it had changed none.
func (f eventFacts) steered(from string) string {
	if len(f.Steering) == 0 {
		return ""
	}
	names := strings.Join(f.Steering[:min(len(f.Steering), maxSteeringNamed)], ", ")
	if more := len(f.Steering) - maxSteeringNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return views.SteeredWords(from, "the branch", f.Trusted) + ": " + names
}

// place is what a line comment is about.
func (f eventFacts) place() string {
	if f.Line == 0 {
		return first(f.Path, "a file")
	}
	return fmt.Sprintf("%s:%d", f.Path, f.Line)
}

// prefixed is s after its prefix, or nothing where there is no s.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// first is the first of the texts that says something.
func first(texts ...string) string {
	for _, s := range texts {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// turnLine is one line of what came about without anybody's words.
func turnLine(e event.Event, f eventFacts) string {
	switch e.Type {
	case event.Expired:
		return "nobody decided in time"
	case event.Superseded:
		return "a newer revision takes its place"
	case event.PatchReverted:
		return "its change was undone" + prefixed(" by ", fmt.Sprintf("%.7s", f.Commit))
	case event.BreakerOpened:
		return "hand-overs to " + f.Agent + " rest" + prefixed(": ", oneOf(f.Reason))
	}
	return "hand-overs to " + f.Agent + " go on"
}

// modelLine is one line of what a model said, of a tool's answer, or of what it was told.
func modelLine(e event.Event, f eventFacts) string {
	switch e.Type {
	case event.MessageCompleted:
		var names []string
		for _, c := range f.Calls {
			names = append(names, c.Name)
		}
		calls := prefixed("calls ", strings.Join(names, ", "))
		if text := oneOf(f.Text); text != "" {
			return text + prefixed(" · ", calls)
		}
		return first(calls, prefixed("stopped: ", f.Stop), "said nothing")
	case event.ToolCompleted:
		if f.OK {
			return f.Name + prefixed(": ", oneOf(f.Text))
		}
		return f.Name + " failed" + prefixed(": ", oneOf(f.Text))
	}
	if len(f.Told) == 1 {
		return "is told that a delegation that it spawned has ended"
	}
	return fmt.Sprintf("is told that %d delegations that it spawned have ended", max(len(f.Told), f.Children))
}

// oneOf is the first line of a text that says something.
func oneOf(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// usageLine says what was used; an unknown price is said, too.
func usageLine(f eventFacts) string {
	price := "price not known"
	if f.USD != nil {
		price = fmt.Sprintf("$%.4f", *f.USD)
	}
	used := fmt.Sprintf("%d tokens in, %d out, %s", f.InputTokens, f.OutputTokens, price) + prefixed(", ", f.Model)
	if f.Lost {
		used += ": a call whose answer nobody heard counts as it was reserved"
	}
	return used
}

func turnWords(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", after turn %d", n)
}
