package chat

import (
	"time"

	"gatehouse/orchestrator"
	"gatehouse/orchestrator/origin"
	"gatehouse/views"
	"gatehouse/views/diff"
)

// ChatPage is `/chat`: a person's own conversation, oldest first.
type ChatPage struct {
	views.Chrome
	PersonID  string // drafts and unsent messages belong to one person
	Tasks     []ChatTask
	Others    []ChatCard // what others asked and this person may decide here
	LogPath   string     // address at which the conversation asks for itself again
	OlderHref string     // older messages; empty at the first
	Later     bool       // there are newer ones than these
	Alone     bool       // one message that a link names
	Thread    string     // that is open; empty where all messages are shown
	Title     string     // of the thread
	Threads   []ThreadRow
	MoreHref  string // older threads; empty where these are all
	Send      views.SendForm
	MayWrite  bool
}

func (p ChatPage) skips() []views.SkipLink {
	if !p.MayWrite {
		return nil
	}
	return []views.SkipLink{{Href: "#chat-text", Text: "Skip to message"}}
}

// waiting counts what others asked and nobody has decided.
func (p ChatPage) waiting() int {
	n := 0
	for _, k := range p.Others {
		if k.State == "pending" {
			n++
		}
	}
	return n
}

// logOOB names what stands outside of the conversation and changes with it.
func (p ChatPage) logOOB() string {
	if !p.MayWrite {
		return ""
	}
	return "#chat-waiting:morph"
}

// heading is the thread's title, or that of the page.
func (p ChatPage) heading() string {
	if p.Title != "" {
		return p.Title
	}
	return "Chat"
}

// newest is where the newest messages of what is shown are.
func (p ChatPage) newest() string {
	if p.Thread != "" {
		return views.ThreadHref(p.Thread)
	}
	return views.ChatPath
}

// Within is an address in what is open.
func (p ChatPage) Within(query string) string {
	if p.Thread != "" {
		return p.newest() + "&" + query
	}
	return views.ChatPath + "?" + query
}

// placeholder says what a message here becomes.
func (p ChatPage) placeholder() string {
	if p.Thread != "" {
		return "Message in this thread"
	}
	return "Message, in a new thread"
}

// ThreadRow is a thread in the list beside the conversation.
type ThreadRow struct {
	ID    string
	Title string // foreign
	State string // of its newest task
	At    time.Time
	Count int
}

// ChatTask is one message with what came of it.
type ChatTask struct {
	ID         string
	Thread     string // that it is in
	Text       string
	Files      []views.Attached
	At         time.Time
	Agent      string // to whom it was sent
	Repository string
	State      string
	Since      time.Time
	EndedAt    time.Time
	Whose      string // who must act next; empty when ended
	LastN      int64  // cursor of the newest event that this shows
	Turns      []ChatTurn
	Hidden     int            // turns that are not shown; the tree has them
	Failure    *views.Failure // why there is no answer
}

// failureBy is who failed, where the line above does not say it already.
func (t ChatTask) failureBy() string {
	if n := len(t.Turns); n > 0 && t.Hidden == 0 && t.Turns[n-1].Agent == t.Failure.Where {
		return ""
	}
	return t.Failure.Where
}

// ChatTurn is what one agent did and said.
type ChatTurn struct {
	ID      string // of the delegation
	Agent   string
	At      time.Time // since when it works; zero before
	Until   time.Time // zero while it works
	State   string
	Steps   []ChatStep
	Before  int        // steps before those shown
	Changes []ChatStep // what people asked to be different
	Told    []ChatTold // what people said while it worked
	Hops    []ChatHop
	Says    string // foreign
	Cards   []ChatCard
}

// working says that the agent is at it now.
func (t ChatTurn) working() bool { return t.State == "running" || t.State == "checking" }

// stepWords counts the steps: `6 steps · 31 s`.
func (t ChatTurn) stepWords() string {
	words := views.Plural(len(t.Steps)+t.Before, "step", "steps")
	if !t.Until.IsZero() && !t.At.IsZero() {
		words += " · " + views.Duration(t.Until.Sub(t.At))
	}
	return words
}

// ChatTold is what a person said to an agent at work.
type ChatTold struct {
	From string
	ChatStep
}

// ChatStep is one line of an agent's work.
type ChatStep struct {
	Text string // foreign
	At   time.Time
}

// ChatHop is a hand-over, or one that a guard refused.
type ChatHop struct {
	To      string
	ID      string // of the child; empty when refused
	Refused string // why, as a sentence
}

// ChatCard is a request between the messages.
type ChatCard struct {
	views.ApprovalRow
	TaskID      string
	Digest      string
	Revision    int
	By          string          // who asked; for the cards of others
	Says        string          // what the agent says; for the cards of others
	Asks        string          // of what is no change of files: all that is asked, or its beginning; foreign
	Call        bool            // it asks about a call of a tool
	Scope       string          // what a yes for the rest of the task covers; empty where there is none
	ForTask     bool            // it was approved for the rest of the task
	RevokedBy   string          // who ended that; empty while it holds
	Choices     []string        // of a question; foreign
	CanAnswer   bool            // it is a question that the reader may answer
	Changed     []diff.DiffFile // the files of a change; their lines, too, where it is shown whole
	Whole       bool            // all of the change is on the card
	Unlisted    int             // files beyond those
	TooFew      string
	CanApprove  bool
	CanReject   bool
	Renews      string         // the branch that changed so that a yes would land nothing: the next revision is offered
	Missed      string         // that the reader's newest yes landed nothing, and why
	WhyNot      string         // why Approve is absent, for somebody who may decide
	Refused     string         // why the verdict just given was not counted
	Comment     string         // as it was typed then
	Verb        string         // what DecidedBy did: approved, rejected …; empty when nobody did
	Channel     origin.Channel // where
	Reason      string         // the comment; foreign
	DecidedAt   time.Time      // zero before
	LandProblem string         // why the landing waits
}

// doneWords is the one line that a decided card becomes: who did what, and where.
func (k ChatCard) doneWords() string {
	if k.Verb == "" {
		return views.StateWord(k.State)
	}
	who := k.DecidedBy
	if rule, ok := orchestrator.ByRule(who); ok {
		who = "Rule " + rule
	}
	words := who + " " + k.Verb
	if where := k.Channel.Words(); where != "" {
		words += " " + where
	}
	return words
}

// commentLabel is what the text beside the verdict is for.
func (k ChatCard) commentLabel() string {
	switch {
	case k.CanAnswer && len(k.Choices) > 0:
		return "Answer in your own words; what is here also goes with a choice"
	case k.CanAnswer:
		return "Your answer"
	case k.About != "":
		return "Reason"
	}
	return "Reason, or what to change"
}

// afterWords says what became of the decision; nothing where that was all.
func (k ChatCard) afterWords() string {
	switch {
	case k.AskedBy != "" && k.State == "approved":
		return k.Agent + " was asked to work"
	case k.AskedBy != "" && k.State == "rejected":
		return k.Agent + " was not asked to work"
	case k.Call && k.RevokedBy != "" && k.State == "approved":
		return "the call may be made; " + k.RevokedBy + " has revoked the rest, so those like it are asked again"
	case k.Call && k.ForTask && k.State == "approved":
		return "the call may be made, and those like it for the rest of the task"
	case k.Call && k.State == "approved":
		return "the call may be made, once"
	case k.Call:
		return "the call was not made"
	case k.About != "" && k.AskedBy == "":
		return ""
	case k.Commit != "" && k.State == "reverted":
		return "landed " + views.First(k.Commit, 7) + ", reverted since"
	case k.Commit != "" && k.Delivery.Pushes():
		return k.Delivery.Done() + " as " + views.First(k.Commit, 7)
	case k.Commit != "":
		return "landed " + views.First(k.Commit, 7)
	case k.State == "approved" && k.Missed != "":
		return "nothing landed"
	case k.State == "approved":
		return "landing"
	case k.State == "rejected":
		return "nothing landed"
	case k.State == "changes_requested":
		return k.Agent + " works on it again"
	case k.Verb != "":
		return views.StateWord(k.State)
	}
	return ""
}
