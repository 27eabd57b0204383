package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/web/client"
)

// eventFacts is the data of an event. What is of another shape than it should be says nothing.
type eventFacts map[string]any

func (t eventFacts) text(key string) string {
	s, _ := t[key].(string)
	return brief(s, 80)
}

func (t eventFacts) number(key string) int {
	n, _ := t[key].(float64)
	return int(n)
}

func (t eventFacts) flag(key string) bool {
	yes, _ := t[key].(bool)
	return yes
}

// names are the texts of a list, or of one field of each of its items.
func (t eventFacts) names(key, field string) string {
	list, _ := t[key].([]any)
	var all []string
	for _, one := range list {
		if item, ok := one.(map[string]any); ok {
			one = item[field]
		}
		if name, ok := one.(string); ok {
			all = append(all, brief(name, 40))
		}
	}
	return strings.Join(all, ", ")
}

// summary is what an event says, in a few words. Types that are not here carry a sentence.
func summary(e client.Event) string {
	var data eventFacts
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	switch e.Type {
	case "task.created":
		return parts(data.text("agent"), data.text("title"))
	case "delegation.delegated":
		return parts("to "+data.text("to"), data.text("title"))
	case "delegation.refused":
		return data.text("to") + ": " + data.text("message")
	case "delegation.queued", "delegation.acknowledged", "delegation.waiting", "delegation.resumed", "delegation.announced", "task.paused", "task.resumed", "task.forked":
		return data.moves(e.Type)
	case "message.completed":
		return parts(data.text("text"), prefixed("calls ", data.names("calls", "name")), prefixed("stopped: ", data.text("stop")))
	case "tool.completed":
		if !data.flag("ok") {
			return parts(data.text("name")+" failed", data.text("text"))
		}
		return parts(data.text("name"), data.text("text"))
	case "usage.recorded":
		return data.used()
	case "context.written", "context.read", "context.deleted":
		return strings.TrimSuffix(data.text("namespace")+"/"+data.text("key"), "/")
	case "approval.requested", "approval.notified", "approval.decided", "approval.changes_requested", "approval.superseded", "approval.expired", "approval.reminded", "approval.escalated", "approval.refused",
		"approval.comment_replied", "approval.comment_resolved", "approval.comment_reopened":
		return data.asks(e.Type)
	case "patch.validated":
		return "the changed files are allowed"
	case "patch.landed":
		where := data.text("repository") + "/" + data.text("branch")
		if data.text("deliver") == "branch" {
			return parts("pushed "+commit(data.text("commit")), where)
		}
		return parts(commit(data.text("commit")), where)
	case "patch.reverted":
		return "its change was undone" + prefixed(" by ", commit(data.text("commit")))
	case "breaker.opened":
		return parts("hand-overs to "+data.text("agent")+" rest", data.text("reason"))
	case "breaker.closed":
		return "hand-overs to " + data.text("agent") + " go on"
	case "configuration.changed":
		return "another configuration is in force" + prefixed(": ", data.names("changes", "key"))
	}
	for _, key := range []string{"message", "text", "title", "why", "agent"} {
		if s := data.text(key); s != "" {
			return s
		}
	}
	return ""
}

// moves is what a task or a delegation does next.
func (t eventFacts) moves(kind string) string {
	agent := t.text("agent")
	switch kind {
	case "delegation.queued":
		if why := t.text("why"); why != "" {
			return parts(agent, why)
		}
		return parts(agent, "waits for a free worker")
	case "delegation.acknowledged":
		if t.number("attempt") > 1 {
			return parts(agent, "is worked on again")
		}
		return parts(agent, "starts")
	case "delegation.waiting":
		return parts(agent, "waits for "+counted(t.number("children"), "delegation")+" below")
	case "delegation.resumed":
		return parts(agent, "goes on"+prefixed(": the one below is ", strings.ReplaceAll(t.text("child_state"), "_", " ")))
	case "delegation.announced":
		return parts(agent, "is told that what it spawned has ended")
	case "task.paused":
		return parts(agent, "nothing new of it is begun")
	case "task.resumed":
		return parts(agent, "goes on")
	}
	if n := t.number("turn"); n > 0 {
		return fmt.Sprintf("after turn %d", n)
	}
	return "goes on as another task"
}

// asks is what becomes of a question to people.
func (t eventFacts) asks(kind string) string {
	place := t.text("path")
	if n := t.number("line"); n > 0 {
		place += fmt.Sprintf(":%d", n)
	}
	switch kind {
	case "approval.requested":
		if title := t.text("title"); title != "" {
			return title
		}
		return fmt.Sprintf("asks for a yes: +%d −%d, %s", t.number("added"), t.number("removed"), counted(t.number("files"), "file"))
	case "approval.notified":
		return "shown" + prefixed(" in ", t.text("channel"))
	case "approval.decided", "approval.changes_requested":
		return parts(cmp.Or(said(t.text("verdict")), "was decided")+strings.TrimSuffix(anew(t.flag("start_over")), ","), t.text("comment"))
	case "approval.superseded":
		return "a newer revision takes its place"
	case "approval.expired":
		return "nobody decided in time"
	case "approval.reminded":
		return "people are reminded" + prefixed("; it waits for ", t.names("missing", ""))
	case "approval.escalated":
		return "nobody has decided, so others are told, too" + prefixed(": ", t.names("to", ""))
	case "approval.refused":
		return "a verdict was not counted" + prefixed(": ", t.text("message"))
	case "approval.comment_replied":
		return parts("replies to the comment on "+place, t.text("text"))
	case "approval.comment_resolved":
		return "resolves the comment on " + place
	}
	return "opens the comment on " + place + " again"
}

// used is what a call of a model has cost, as far as that is known.
func (t eventFacts) used() string {
	price := "cost not reported"
	if usd, ok := t["usd"].(float64); ok {
		price = fmt.Sprintf("$%.4f", usd)
	}
	return parts(t.text("model"), tokens(int64(t.number("input_tokens")))+" tokens in", tokens(int64(t.number("output_tokens")))+" out", price)
}

// prefixed is s after its prefix, "" where there is no s.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
