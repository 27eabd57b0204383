package wire

import (
	"encoding/json"
	"slices"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/origin"
)

// Request is the question "may this patch land?", "may this work be handed on?", "may this call be
// made?", or what an agent asks people.
type Request struct {
	ID           string `json:"id"`
	TaskID       string `json:"task_id"`
	DelegationID string `json:"delegation_id"`
	Kind         string `json:"kind"` // patch, handover, action or question
	// Question is what a hand-over would hand on, or what an agent asks; null for others.
	Question *Question `json:"question"`
	// Action is the call that would be made; others have none.
	Action *Action `json:"action,omitempty"`
	// Scope says what a yes to the call would cover for the rest of the task; "" where there is
	// no such yes.
	Scope string `json:"scope,omitempty"`
	// Answer is what people answered; "" while nobody has.
	Answer string `json:"answer,omitempty"`
	// The same of a hand-over, beside tree and files; null for a patch.
	Context    map[string]string `json:"context"`
	Artifacts  []string          `json:"artifacts"` // names
	Handover   *agent.Handover   `json:"handover"`  // the command object
	State      string            `json:"state"`
	Revision   int               `json:"revision"`
	Digest     string            `json:"digest"`
	Made       string            `json:"made"`      // how people made the revision: files, edit, or "" by the agent
	MadeFrom   int               `json:"made_from"` // from which revision, 0 by the agent
	Editor     Maybe             `json:"editor"`    // who edited it
	Declined   []string          `json:"declined"`  // files of made_from that were left out
	Mode       string            `json:"mode"`      // where a yes may be given: any, web, chat or telegram
	Repository string            `json:"repository"`
	Target     string            `json:"target"`
	Branch     string            `json:"branch"`
	Deliver    string            `json:"deliver"` // merge: a yes lands it on target; branch: a yes pushes branch
	Base       string            `json:"base"`    // the commit that the change was made on
	BaseAt     *time.Time        `json:"base_at"` // when that commit was made; null in old requests and without files
	Tree       string            `json:"tree"`
	Commit     string            `json:"commit"`
	Agent      string            `json:"agent"`
	Title      string            `json:"title"`
	Text       string            `json:"text"`
	Files      []File            `json:"files"`
	Added      int               `json:"added"`
	Removed    int               `json:"removed"`
	Warnings   []Warning         `json:"warnings"`
	Notes      []Note            `json:"notes"`
	Checks     []Check           `json:"checks"`
	Rule       Rule              `json:"rule"`
	Decisions  []Decision        `json:"decisions"`
	Read       HowRead           `json:"read"`
	Risk       Risk              `json:"risk"`
	Needs      Needs             `json:"needs"`
	ExpiresAt  *time.Time        `json:"expires_at"`
	CreatedAt  time.Time         `json:"created_at"`
	DecidedAt  *time.Time        `json:"decided_at"`
	Cards      []Card            `json:"cards"`
	Requester  string            `json:"requester"`
	RevertOf   Maybe             `json:"revert_of"`
	RevertedBy Maybe             `json:"reverted_by"`
	// Comments are the line comments of all revisions; only where one request is read.
	Comments []Comment `json:"comments,omitempty"`
	// Refused is why the yes of who asks would not be taken; only where one request is read.
	Refused string `json:"refused,omitempty"`
	// Overtaken says that the target changed so that a yes lands nothing; null: it may land,
	// or nobody knows. The verdict renew makes the next revision on the target as it is today.
	Overtaken *Overtaken `json:"overtaken"`
	// Missed is what became of their newest yes where it landed nothing; only where one
	// request is read or decided.
	Missed string `json:"missed,omitempty"`
	// May are the verdicts that they may give; only there, too.
	May []string `json:"may,omitempty"`
}

// Pushes reports whether a yes pushes the agent's branch, and the target stays as it is.
func (r Request) Pushes() bool { return r.Deliver == "branch" }

// IsHandover reports whether the request asks about a hand-over and not about a patch.
func (r Request) IsHandover() bool { return r.Kind == "handover" && r.Question != nil }

// IsPatch reports whether the request asks about a change that would land.
func (r Request) IsPatch() bool { return !r.IsHandover() && r.Action == nil && r.Kind != "question" }

// Codes are the codes of what a yes has to say that it was looked at.
func (r Request) Codes() []string {
	codes := slices.Clone(r.Risk.Reasons)
	for _, w := range r.Warnings {
		if !slices.Contains(codes, w.Code) {
			codes = append(codes, w.Code)
		}
	}
	return codes
}

// Question is what a hand-over would hand on; or what an agent asks: then it has From, Text and
// Choices, and To is the group that is asked.
type Question struct {
	From    string            `json:"from"`
	To      string            `json:"to"`
	Choices []string          `json:"choices,omitempty"`
	Text    string            `json:"text"`
	Context map[string]string `json:"context,omitempty"`
	// Handover is the command object as it is: who reads it sees all of it.
	Handover json.RawMessage `json:"handover,omitempty"`

	// The files that travel: Tree against BaseTree, the tree of Base on Branch, or of the tag Tag; "" where none do.
	Repository string   `json:"repository,omitempty"`
	Branch     string   `json:"branch,omitempty"`
	Tag        string   `json:"tag,omitempty"`
	Base       string   `json:"base,omitempty"`
	BaseTree   string   `json:"base_tree,omitempty"`
	Tree       string   `json:"tree,omitempty"`
	FilesHash  string   `json:"files_sha256,omitempty"`
	Steering   []string `json:"steering,omitempty"` // paths that steer programs and that the caller had changed
	Trusted    bool     `json:"trust_checkout,omitempty"`
	// Attachments are the files of the task, which whoever works on it is given.
	Attachments []agent.Attachment `json:"attachments,omitempty"`
}

// HowRead is how the revision was read: by those who decided on it, and by those who did not.
type HowRead struct {
	Text string   `json:"text"` // as a line; "" while nobody has
	By   []Reader `json:"by"`
}

// Reader is how one person read a revision.
type Reader struct {
	User    string `json:"user"`
	Of      int    `json:"of"` // files that the revision had
	Reads   []Read `json:"read"`
	Decided bool   `json:"decided"`
}

// Read is what was before a person in one place.
type Read struct {
	Surface string `json:"surface"`
	Files   int    `json:"files"` // that were before them to their end
	Whole   bool   `json:"whole"` // the whole diff in one piece
}

// Overtaken is how the target branch changed.
type Overtaken struct {
	Branch  string   `json:"branch"`
	Head    string   `json:"head"`
	Files   []string `json:"files"`
	Why     string   `json:"why"`
	Message string   `json:"message"` // what every place shows
	Brief   string   `json:"brief"`   // for a line of a list: what happened, and what to do
}

// Needs says how many yeses there are, who can still give one, and why they do not suffice.
type Needs struct {
	Count   int      `json:"count"`
	Have    int      `json:"have"`
	From    []string `json:"from"`
	Missing Names    `json:"missing"`
	Problem string   `json:"problem,omitempty"` // there are too few people for a yes, and what to do
}

// Names is a list that may also come as one sentence.
type Names []string

// UnmarshalJSON takes a list, a sentence or null.
func (n *Names) UnmarshalJSON(b []byte) error {
	var many []string
	if json.Unmarshal(b, &many) == nil {
		*n = many
		return nil
	}
	var one string
	if err := json.Unmarshal(b, &one); err != nil {
		return err
	}
	if *n = nil; one != "" {
		*n = Names{one}
	}
	return nil
}

// File is one changed file.
type File struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path"`
	Status  string `json:"status"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary"`
	OldMode string `json:"old_mode"`
	NewMode string `json:"new_mode"`
}

// Warning makes a request careful; Path is the raw name.
type Warning struct {
	Code string `json:"code"`
	Path string `json:"path"`
	Text string `json:"text"`
}

// Note is said, but makes nothing careful.
type Note struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Risk is how much care a request asks for, with the codes of what gave it.
type Risk struct {
	Level   string   `json:"level"` // plain or careful
	Reasons []string `json:"reasons"`
}

// Check is a check of the repository that ran on the result.
type Check struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Output  string `json:"output"`
}

// Rule is the rule that matched.
type Rule struct {
	Name string   `json:"name"`
	Need int      `json:"need"`
	From []string `json:"from"`
}

// Decision is one verdict on one revision.
type Decision struct {
	ID       string         `json:"id"`
	User     string         `json:"user"`
	Channel  origin.Channel `json:"channel"`
	Verdict  string         `json:"verdict"`
	Comment  string         `json:"comment"`
	Digest   string         `json:"digest"`
	At       time.Time      `json:"at"`
	Revision int            `json:"revision"`
	Seen     Seen           `json:"seen"`
	// For is the absent person in whose place it was made.
	For      string              `json:"for,omitempty"`
	Files    []string            `json:"files,omitempty"`
	Comments []agent.LineComment `json:"comments,omitempty"`
	// StartOver: with request_changes, the agent begins from the base.
	StartOver bool `json:"start_over,omitempty"`
}

// Seen is what was before a person when they decided.
type Seen struct {
	Surface        string   `json:"surface"`
	Files          int      `json:"files"`
	FilesViewed    int      `json:"files_viewed"`
	FilesOpened    int      `json:"files_opened"`
	WarningsTicked []string `json:"warnings_ticked"`
	// Read is what was before them in every place; null in verdicts of before that was kept.
	Read []Read `json:"read"`
	// OpenedAt is when the page of the verdict was drawn.
	OpenedAt *time.Time `json:"opened_at,omitempty"`
}

// Card says how far a channel is behind the request.
type Card struct {
	Channel origin.Channel `json:"channel"`
	State   string         `json:"state"` // due, sent, failed or dead
}

// Comment is a line comment that was sent, with what was said and done under it.
type Comment struct {
	ID       string    `json:"id"` // the decision's id, a dot, and the comment's number in it
	User     string    `json:"user"`
	Revision int       `json:"revision"` // on which it was written
	Path     string    `json:"path"`
	Line     int       `json:"line"` // of that revision; 0 is the whole file
	Side     string    `json:"side"` // L: the old file
	Code     string    `json:"code,omitempty"`
	Text     string    `json:"text"`
	Resolved bool      `json:"resolved"`
	Answers  []Reply   `json:"answers"`
	At       time.Time `json:"at"`
}

// Reply is one act under a comment: reply, resolve or reopen.
type Reply struct {
	Act  string    `json:"act"`
	User string    `json:"user"`
	Text string    `json:"text,omitempty"`
	At   time.Time `json:"at"`
}

// Shown is the body of POST /approvals/{id}/read: the revision of which the caller had the
// whole diff before them.
type Shown struct {
	Revision int    `json:"revision"`
	Digest   string `json:"digest"`
}

// Verdict is the body of POST /approvals/{id}/decision.
type Verdict struct {
	Verdict string `json:"verdict"` // approve, reject, request_changes, edit, withdraw, renew or answer
	// Scope is, with approve of a call: once, also where it is not said; or task, for the rest of
	// the task.
	Scope string `json:"scope,omitempty"`
	// Input is, with edit of a call, the whole new input: an object.
	Input json.RawMessage `json:"input,omitempty"`
	// Choice is, with an answer, one of the choices.
	Choice string `json:"choice,omitempty"`
	Digest string `json:"digest"`
	// Revision is the one that was read; 0: the digest must be that of one revision only.
	Revision int    `json:"revision,omitempty"`
	Comment  string `json:"comment,omitempty"`
	// Ticked are, with approve, the codes of what was looked at.
	Ticked []string `json:"ticked,omitempty"`
	// Files are the only ones that are approved; none: all.
	Files    []string            `json:"files,omitempty"`
	Comments []agent.LineComment `json:"comments,omitempty"` // with request_changes
	// StartOver has, with request_changes, the agent begin from the base with an empty conversation.
	StartOver bool `json:"start_over,omitempty"`
	// TakeDrafts adds the caller's drafts, which they wrote on the page. Only a false that
	// is said leaves them there.
	TakeDrafts *bool  `json:"take_drafts,omitempty"`
	Edits      []Edit `json:"edits,omitempty"`
	Patch      string `json:"patch,omitempty"`
}

// Edit is a new text of one file.
type Edit struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	Delete bool   `json:"delete,omitempty"`
}

// Said is the body of POST /approvals/{id}/comments/{comment}.
type Said struct {
	Act  string `json:"act"` // reply, resolve or reopen
	Text string `json:"text"`
	// Seen is how many answers of the comment the caller has read: sent again, the same
	// reply is then the one that is there. Absent, only the newest answer is compared.
	Seen *int `json:"seen,omitempty"`
}
