package review

import (
	"strings"

	"gatehouse/approval"
	"gatehouse/views"
	"gatehouse/views/diff"
)

// CallAsk is the question of a request that asks whether a call of a tool may be made.
type CallAsk struct {
	Agent   string
	Tool    string // foreign
	Server  string // that has the tool, "" for the agent's own; foreign
	Hints   []string
	Shown   string         // the whole input; foreign
	Scope   string         // what a yes for the rest of the task covers; "" where there is none
	Editor  string         // the input as JSON, as the editor has it
	NoEdit  string         // why the input cannot be edited on this page, where something is in the way
	Against int            // the revision that Changes begin from; 0 without any
	Changes *diff.DiffFile // from one revision of the input to the one that is shown
}

// QuestionAsk is what an agent asks people.
type QuestionAsk struct {
	Agent     string
	Text      string // foreign
	Choices   []string
	Asker     string // who sent the task, and may answer
	CanReject bool   // the reader may also say that there is no answer
}

// hints is one sentence of what is known of the tool.
func (a CallAsk) hints() string {
	who := "The tool"
	if a.Server != "" {
		who = "Its server"
	}
	if len(a.Hints) == 0 {
		if a.Server == "" {
			return ""
		}
		return "Its server does not say what the tool does."
	}
	return who + " says: " + strings.Join(a.Hints, ", ") + ". Nobody has checked that."
}

// ofPatch reports whether the page is of a change of files.
func (p ReviewPage) ofPatch() bool { return p.Ask == nil && p.Call == nil && p.Question == nil }

// flows reports whether the bar is a part of the page, because it is too large to stand over it.
func (p ReviewPage) flows() bool {
	return p.Question != nil || p.Call != nil && p.editing()
}

// forTask reports whether every yes to the shown revision is for the rest of the task.
func (p ReviewPage) forTask() bool {
	any := false
	for _, d := range p.Decisions {
		if d.Verdict != approval.Approve || d.Revision != p.Revision {
			continue
		}
		if any = true; !d.ForTask {
			return false
		}
	}
	return any
}

// called is what becomes of a call, for the line below its outcome.
func (p ReviewPage) called(o *Outcome, who string) string {
	const not = "The call was not made."
	switch o.State {
	case "rejected":
		return who + " rejected this · the call was not made"
	case "expired":
		return "It expired, not approved. " + not
	case "cancelled":
		return p.Call.Agent + " does not wait for this any more. " + not
	case "failed":
		return "The task failed before a decision. " + not
	}
	if who += " approved"; o.Channel != "" {
		who += " " + o.Channel.Words()
	}
	if p.forTask() {
		return who + " · " + p.Call.Agent + " may make the call, and those like it for the rest of the task"
	}
	return who + " · " + p.Call.Agent + " may make the call, once"
}

// answered is what becomes of a question, for the line below its outcome.
func (a QuestionAsk) answered(o *Outcome, who string) string {
	switch o.State {
	case "rejected":
		return who + " gave no answer · " + a.Agent + " was told so"
	case "expired":
		return "Nobody answered in time. " + a.Agent + " was told so."
	case "cancelled", "failed":
		return a.Agent + " does not wait for an answer any more."
	}
	if who += " answered"; o.Channel != "" {
		who += " " + o.Channel.Words()
	}
	return who
}

// asks is the line under the title: who asks for what.
func (p ReviewPage) asks() string {
	switch {
	case p.Call != nil && p.Call.Server != "":
		return p.Call.Agent + " wants to call " + p.Call.Tool + " of the MCP server " + p.Call.Server
	case p.Call != nil:
		return p.Call.Agent + " wants to call " + p.Call.Tool
	case p.Question != nil:
		return p.Question.Agent + " asks a question and waits for the answer"
	}
	return ""
}

// whoAnswers says who may.
func (p ReviewPage) whoAnswers() string {
	asked := "an approver"
	if len(p.Rule.From) > 0 {
		asked = "somebody of " + views.AndMore(p.Rule.From, 4)
	}
	if p.Question.Asker == "" {
		return "one answer of " + asked + " ends it"
	}
	return "one answer of " + asked + ", or of " + p.Question.Asker + " who sent the task, ends it"
}

// editorRows is how high the editor of an input is.
func (p ReviewPage) editorRows() int {
	return min(max(strings.Count(p.Call.Editor, "\n")+2, 6), 30)
}

// upper is the list that the page belongs to. Who may answer a question and read no other
// request comes from their tasks.
func (p ReviewPage) upper() views.Crumb {
	if p.Question != nil && !p.Reads("approvals:read") {
		return views.Crumb{Text: "Delegations", Href: "/delegations"}
	}
	return views.Crumb{Text: "Approvals", Href: "/approvals"}
}
