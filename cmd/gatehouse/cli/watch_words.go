package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/record/event"
)

// tale is a text of an event on one line; it is foreign.
func tale(s string) string { return console.Brief(s, 80) }

// listed are texts of an event on one line.
func listed[T any](all []T, name func(T) string) string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = console.Brief(name(one), 40)
	}
	return strings.Join(names, ", ")
}

func same(s string) string { return s }

// summary is what an event says, in a few eventWords, where what is in its columns need not be
// said again. Types that are not here carry a sentence.
func summary(e event.Event) string {
	if len(e.Data) > 0 && (!json.Valid(e.Data) || e.Data[0] != '{') {
		return ""
	}
	if said, ok := aboutRequest(e); ok {
		return said
	}
	if said, ok := atWork(e); ok {
		return said
	}
	switch d := e.Payload().(type) {
	case event.TaskCreatedData:
		return console.Parts(tale(d.Agent), tale(d.Title))
	case event.DelegatedData:
		return console.Parts("to "+tale(d.To), tale(d.Title))
	case event.DelegationRefusedData:
		return tale(d.To) + ": " + tale(d.Message)
	case event.QueuedData:
		return console.Parts(tale(d.Agent), cmp.Or(tale(d.Why.V), "waits for a free worker"))
	case event.AcknowledgedData:
		return console.Parts(tale(d.Agent), tale(event.Sentence(e, eventWords)))
	case event.WaitingData:
		return console.Parts(tale(d.Agent), "waits for "+console.Counted(d.Children, "delegation")+" below")
	case event.ResumedData:
		return console.Parts(tale(d.Agent), tale(event.Sentence(e, eventWords)))
	case event.AnnouncedData:
		return console.Parts(tale(e.Agent()), "is told that what it spawned has ended")
	case event.PausedData:
		return console.Parts(tale(d.Agent), "nothing new of it is begun")
	case event.UnpausedData:
		return console.Parts(tale(d.Agent), "goes on")
	case event.ForkedData:
		if d.Turn > 0 {
			return fmt.Sprintf("after turn %d", d.Turn)
		}
		return "goes on as another task"
	case event.PatchLandedData:
		landed := console.Abbreviated(d.Commit)
		if d.Pushed() {
			landed = "pushed " + landed
		}
		return console.Parts(landed, tale(d.Repository)+"/"+tale(d.Branch))
	case event.PatchRevertedData:
		return "its change was undone" + prefixed(" by ", console.Abbreviated(d.Commit))
	case event.BreakerOpenedData:
		return console.Parts("hand-overs to "+tale(d.Agent)+" rest", tale(d.Reason))
	case event.BreakerClosedData:
		return "hand-overs to " + tale(d.Agent) + " go on"
	case event.ConfigurationChangedData:
		keys := listed(d.Changes, func(c event.ConfiguredChange) string { return c.Key })
		return "another configuration is in force" + prefixed(": ", keys)
	}
	return carriedBy(e)
}

// carriedBy is the sentence that an event carries, else what its type says.
func carriedBy(e event.Event) string {
	var d struct{ Message, Text, Title, Why, Agent string }
	event.Decode(e.Data, &d)
	for _, s := range []string{d.Message, d.Text, d.Title, d.Why, d.Agent} {
		if s = tale(s); s != "" {
			return s
		}
	}
	return tale(event.Sentence(e, eventWords))
}

// eventWords are how a terminal says what events tell.
var eventWords = event.Words{
	State: func(state string) string { return strings.ReplaceAll(state, "_", " ") },
	Verdict: func(verdict string, startOver bool) string {
		return said(verdict) + strings.TrimSuffix(anew(startOver), ",")
	},
	Steered: func(by string, _ bool) string { return "with files that steer programs, which " + by + " had changed" },
}

// aboutRequest is what becomes of a question to people; ok is false for another event.
func aboutRequest(e event.Event) (said string, ok bool) {
	switch d := e.Payload().(type) {
	case event.RequestedData:
		if title := tale(d.Title.V); title != "" {
			return title, true
		}
		return fmt.Sprintf("asks for a yes: +%d −%d, %s", d.Added.V, d.Removed.V, console.Counted(d.Files.V, "file")), true
	case event.DecidedData, event.ChangesRequestedData:
		v, startOver := event.VerdictOf(e)
		return console.Parts(tale(cmp.Or(eventWords.Verdict(v.Verdict, startOver), "was decided")), tale(v.Comment)), true
	case event.RemindedData:
		return "people are reminded" + prefixed("; it waits for ", listed(d.Missing, same)), true
	case event.EscalatedData:
		return "nobody has decided, so others are told, too" + prefixed(": ", listed(d.To, same)), true
	case event.VerdictRefusedData:
		return "a verdict was not counted" + prefixed(": ", tale(d.Message)), true
	case event.CommentRepliedData:
		return console.Parts("replies to the comment on "+tale(d.Place()), tale(d.Text)), true
	case event.NotifiedData, event.SupersededData, event.ExpiredData, event.CommentResolvedData, event.CommentReopenedData, event.PatchValidatedData:
		return tale(event.Sentence(e, eventWords)), true
	}
	return "", false
}

// atWork is what a model or an agent does at its work; ok is false for another event.
func atWork(e event.Event) (said string, ok bool) {
	switch d := e.Payload().(type) {
	case event.MessageCompletedData:
		calls := listed(d.Calls, func(c event.Call) string { return c.Name })
		return console.Parts(tale(d.Text), prefixed("calls ", calls), prefixed("stopped: ", tale(d.Stop))), true
	case event.ToolCompletedData:
		if !d.OK.V {
			return console.Parts(tale(d.Name)+" failed", tale(d.Text)), true
		}
		return console.Parts(tale(d.Name), tale(d.Text)), true
	case event.UsageRecordedData:
		return callCost(d), true
	case event.ContextWrittenData:
		return entry(d.Entry), true
	case event.ContextReadData:
		return entry(d.First()), true
	case event.ContextDeletedData:
		return entry(d.Entry), true
	}
	return "", false
}

func entry(e event.Entry) string {
	return strings.TrimSuffix(tale(e.Namespace)+"/"+tale(e.Key), "/")
}

// callCost is what a call of a model has cost, as far as that is known.
func callCost(d event.UsageRecordedData) string {
	price := "cost not reported"
	if d.USD != nil {
		price = fmt.Sprintf("$%.4f", *d.USD)
	}
	return console.Parts(tale(d.Model.V), console.Tokens(d.InputTokens)+" tokens in", console.Tokens(d.OutputTokens)+" out", price)
}

// prefixed is s after its prefix, "" where there is no s.
func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
