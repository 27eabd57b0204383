package handlers

import (
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/orchestrator/event"
	"gatehouse/views"
)

// eventFacts is what pages read of an event's data. Fields of another shape stay empty.
type eventFacts struct {
	Agent, From, To, Child, ChildState, Text, Title, Code, Path, Message, Verdict, Comment, State, Why, Commit, Branch, Via, ApprovalID, Channel string
	Guards, Files, Groups, Missing                                                                                                               []string
	Count, Children, Added, Removed, Attempt                                                                                                     int
}

func factsOf(e event.Event) eventFacts {
	var raw map[string]json.RawMessage
	if json.Unmarshal(e.Data, &raw) != nil {
		return eventFacts{}
	}
	var f eventFacts
	for key, into := range map[string]any{"agent": &f.Agent, "from": &f.From, "to": &f.To, "child": &f.Child, "child_state": &f.ChildState,
		"text": &f.Text, "title": &f.Title, "code": &f.Code, "path": &f.Path, "message": &f.Message, "verdict": &f.Verdict,
		"comment": &f.Comment, "state": &f.State, "why": &f.Why, "commit": &f.Commit, "branch": &f.Branch, "via": &f.Via, "approval_id": &f.ApprovalID, "channel": &f.Channel, "missing": &f.Missing,
		"guards": &f.Guards, "children": &f.Children, "added": &f.Added, "removed": &f.Removed, "attempt": &f.Attempt} {
		if v, ok := raw[key]; ok {
			// One field that is of another shape says nothing; the others still do.
			_ = json.Unmarshal(v, into)
		}
	}
	if v, ok := raw["to"]; ok && f.To == "" { // an agent, or groups
		_ = json.Unmarshal(v, &f.Groups)
	}
	if v, ok := raw["files"]; ok && json.Unmarshal(v, &f.Files) != nil { // some events list files, some count them
		_ = json.Unmarshal(v, &f.Count)
	}
	return f
}

// doer is who stands beside an event: the person or rule that acted, else the agent.
func doer(e event.Event, agent string) string {
	switch e.Type {
	case event.TaskCreated, event.Decided, event.Cancelled, event.ChangesRequested:
		return e.Actor
	}
	return agent
}

// eventLine is one line of what an event says, beside its type and who did it.
func eventLine(e event.Event) string {
	f := factsOf(e)
	switch e.Type {
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
		return "to " + f.To + prefixed(": ", f.Title)
	case event.DelegationRefused:
		return "to " + f.To + prefixed(": ", f.Message)
	case event.PatchValidated:
		return "the changed files are allowed"
	case event.Requested:
		return fmt.Sprintf("asks for a yes: %d files, +%d −%d%s", f.Count, f.Added, f.Removed, prefixed(", for ", f.Branch))
	case event.Decided:
		return first(f.Message, f.Text, views.VerdictWord(f.Verdict)+prefixed(": ", f.Comment))
	case event.Notified:
		return prefixed("shown in ", f.Channel)
	case event.Reminded:
		return "people are reminded" + prefixed("; it waits for ", strings.Join(f.Missing, ", "))
	case event.Escalated:
		return "nobody has decided, so these are told, too: " + strings.Join(f.Groups, ", ")
	case event.PatchLanded:
		return fmt.Sprintf("landed %.7s%s", f.Commit, prefixed(" on ", f.Branch))
	}
	return first(f.Message, f.Text, f.Title, f.Why, prefixed("to ", f.To), f.State)
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
