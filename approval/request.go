package approval

import (
	"context"
	"encoding/json"
	"time"

	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/chain"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
)

// State is where a request stands.
type State string

// Pending waits for people and Approved for the landing; the others have ended,
// but ChangesRequested and Stale may be followed by a further revision.
const (
	Pending          State = "pending"
	Approved         State = "approved"
	Rejected         State = "rejected"
	ChangesRequested State = "changes_requested"
	Expired          State = "expired"
	Superseded       State = "superseded"
	Stale            State = "stale"
	Landed           State = "landed"
	Reverted         State = "reverted"
	Failed           State = "failed"
	Cancelled        State = "cancelled"
	Answered         State = "answered" // of a question
)

// Kind says what a request asks.
type Kind string

// The kinds of requests.
const (
	Patch    Kind = "patch"    // may this patch land?
	Handover Kind = "handover" // may this work be handed on? (H18)
	Action   Kind = "action"   // may this call of a tool be made?
	Question Kind = "question" // what an agent asks people
)

// Request is the question "may this patch land?", "may this hand-over happen?", "may this call be
// made?", or what an agent asks. Its id stays the same over all
// revisions; the fields of Revision are those of the current one.
type Request struct {
	ID           string
	TaskID       string
	DelegationID string
	Kind         Kind
	Handover     *orchestrator.HandoverQuestion // of a hand-over, else nil
	Action       *agent.Action                  // of a call, as its agent wanted to make it; else nil
	Question     *agent.Question                // that an agent asks, else nil
	State        State
	Version      int64  // rises with every change; cards converge to it
	Agent        string // whose patch it is, or who the work would be handed to
	Title        string // first line of the task's text
	Repository   string
	RequesterID  string
	Requester    string
	Via          origin.Origin
	Chain        chain.Names // from the root to Agent
	Mode         string      // any, web, chat or telegram: where a yes may be given; the page always may
	Lineage      []Party     // whom four eyes keep from approving: who asked, who owns an agent
	Rule         policy.Rule
	Landed       string // commit of the landing, "" before
	RevertOf     string
	RevertedBy   string
	ExpiresAt    *time.Time
	CreatedAt    time.Time
	DecidedAt    *time.Time
	NextAt       *time.Time // when the next reminder or escalation is due; nil: none
	Reminded     int        // reminders sent for this revision
	Escalated    int        // steps of escalation taken for this revision
	Revision     Revision
	Decisions    []Decision // of all revisions, oldest first
	Readers      []Reader   // who read Revision and gave no verdict on it; only where WithReaders was asked
	Cards        []Card
	Grant        *Grant // what the yes to a call allows for the rest of its task, else nil
}

// Delivery is what a yes does with the revision.
func (v Revision) Delivery() patch.Delivery {
	return patch.Delivery{Mode: v.Deliver, Target: v.Base.Branch, Branch: v.Branch}
}

// How a revision was made that the agent did not make.
const (
	MadeByFiles = "files" // a person approved some files only
	MadeByEdit  = "edit"  // a person edited it
)

// Revision is one proposed tree of a request. Every revision is kept.
type Revision struct {
	N        int
	State    State // Pending while current and open; else how it ended
	Digest   string
	Deliver  string
	Base     patch.Base // Base.Branch is the target
	Tree     string
	Branch   string // the agent's
	Commit   string
	Bundle   string // blob with the objects
	Previous string // tree of the revision before, "" at the first
	Text     string // what the agent said
	Files    []patch.File
	Added    int
	Removed  int
	Warnings []patch.Warning
	Notes    []patch.Note
	Checks   []orchestrator.Check
	Sandbox  string
	// Authors are the agents that worked on the tree, the request's own first, with what
	// each was confined by; nil for revisions of before that was kept. See agents.
	Authors  []orchestrator.Author
	Made     string       // "" by the agent, else MadeByFiles or MadeByEdit
	MadeFrom int          // the revision that it was made from, 0 for the agent's
	Editor   *Party       // who made it by editing; may not approve it
	Declined []string     // paths of MadeFrom that were left out
	Shadow   *policy.Rule // what the rules on trial would have said; nil without any
	// Overtaken says that the branch changed so that a yes lands nothing; nil: nobody knows of that.
	Overtaken *patch.Overtaken
	// Input is what the call would be made with, as this revision has it; nil for others.
	Input json.RawMessage
	At    time.Time
}

// Verdict is what a person says.
type Verdict string

// The verdicts of the contract.
const (
	Approve        Verdict = "approve"
	Reject         Verdict = "reject"
	RequestChanges Verdict = "request_changes"
	Edit           Verdict = "edit"
	Withdraw       Verdict = "withdraw"
	Respond        Verdict = "answer" // to a question; Comment is the answer
)

// Decision is one person's, or one rule's, verdict on one revision.
type Decision struct {
	ID       string         `json:"id"`
	Revision int            `json:"revision"`
	UserID   string         `json:"-"`
	User     string         `json:"user"`    // name, or "rule:NAME"
	Channel  origin.Channel `json:"channel"` // web, chat, telegram, cli, api
	Verdict  Verdict        `json:"verdict"`
	Comment  string         `json:"comment"`
	Digest   string         `json:"digest"`
	// ForID and For are the absent person whose seat was used, "" for one's own.
	ForID string   `json:"-"`
	For   string   `json:"for,omitempty"`
	Files []string `json:"files,omitempty"` // with approve: only these
	// StartOver: with request_changes, the agent begins from the base.
	StartOver bool `json:"start_over,omitempty"`
	// ForTask: with approve of a call, for the rest of the task.
	ForTask  bool                `json:"for_task,omitempty"`
	Comments []agent.LineComment `json:"comments,omitempty"` // on lines
	At       time.Time           `json:"at"`
	Seen     Seen                `json:"seen"`
}

// RuleActor is the prefix of the name under which a rule decides; [Decision.ByRule] reads it.
const RuleActor = orchestrator.RuleActor

// ByRule is the name of the rule that decided; false for a person.
func (d Decision) ByRule() (rule string, ok bool) { return orchestrator.ByRule(d.User) }

// OfRule reports whether a rule decided, and no person.
func (d Decision) OfRule() bool {
	_, ok := d.ByRule()
	return ok
}

// Anew is the end of a sentence that says what somebody asked for: "" where the agent goes
// on from what it has made.
func (d Decision) Anew() string {
	if !d.StartOver {
		return ""
	}
	return ", starting over"
}

// Seen is what a decider had before them.
type Seen struct {
	Surface        string   `json:"surface"`
	Files          int      `json:"files"`
	FilesViewed    int      `json:"files_viewed"`
	FilesOpened    int      `json:"files_opened"` // on the page: to their end, or marked as viewed
	WarningsTicked []string `json:"warnings_ticked"`
	// Read is what was before them in every place; nil in verdicts of before that was kept.
	Read []Read `json:"read"`
	// OpenedAt is when the server drew the page that the verdict was given on; nil where there was none.
	OpenedAt *time.Time `json:"opened_at,omitempty"`
}

// Card is one request as shown in one place of one channel.
type Card struct {
	RequestID  string
	Channel    origin.Channel // inbox, chat, telegram …
	Address    string         // where in the channel: a chat id, or ""
	ExternalID string         // the channel's name for the message, once sent
	Shown      int64          // the request's Version that the card shows, 0 before
	DueAt      time.Time
	Attempts   int
	Error      string     // of the last attempt, "" when fine
	Dead       bool       // given up; a person may try again
	SentAt     *time.Time // first delivery; nil before
	Digest     string     // id of the digest that it is a line of, "" for a message of its own
}

// CloseRequest ends the newest request of a delegation with it and makes its cards due. Of one
// that landed it remembers which contents people approved where. No request, or one that has
// ended, is no error. It is what orchestrator.Tx does under this name.
func CloseRequest(ctx context.Context, tx Tx, delegationID string, end orchestrator.RequestEnd, commit string) error {
	r, err := tx.NewestRequest(ctx, delegationID)
	if err != nil || r == nil || !r.close(State(end), commit) {
		return err
	}
	if r.State == Landed {
		if err := tx.KeepApproved(ctx, r.Repository, r.Vouched()); err != nil {
			return err
		}
	}
	return tx.SaveRequest(ctx, r)
}

// Closes reports whether the end of its delegation ends r. The yes to a hand-over stands,
// whatever came of the work.
func (r *Request) Closes() bool {
	return r.revisable() && (r.IsPatch() || r.State == Pending)
}

// close ends r with its delegation, and reports whether that changed anything.
func (r *Request) close(end State, commit string) bool {
	if !r.Closes() {
		return false
	}
	if r.Revision.State == r.State || r.Revision.State == Pending {
		r.Revision.State = end
	}
	r.State, r.NextAt = end, nil
	if commit != "" {
		r.Landed = commit
	}
	return true
}

// Overtake puts onto the newest request of a delegation why a yes to it lands nothing.
// CloseRequest, which comes next, writes it. It is Overtaken of orchestrator.Tx.
func Overtake(ctx context.Context, tx Tx, delegationID string, o patch.Overtaken) error {
	r, err := tx.NewestRequest(ctx, delegationID)
	if err != nil || r == nil {
		return err
	}
	r.Revision.Overtaken = &o
	return nil
}

// ShowLanding makes the cards of the newest request of a delegation due, where it is approved:
// what they say of its landing has changed. It is what orchestrator.Tx does under this name.
func ShowLanding(ctx context.Context, tx Tx, delegationID string) error {
	r, err := tx.NewestRequest(ctx, delegationID)
	if err != nil || r == nil || r.State != Approved {
		return err
	}
	return tx.SaveRequest(ctx, r)
}
