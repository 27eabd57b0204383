package webhook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
)

// The most that a message holds of anything, in characters or items. A receiver that
// needs all of it asks the API.
const (
	maxTitle     = 200
	maxText      = 300 // of a warning or its path, a check's command, a name
	maxComment   = 500 // of a decision, and of a sentence or a chain
	maxWarnings  = 20
	maxChecks    = 20
	maxDecisions = 20 // the newest
	maxNames     = 50
)

// envelope is the body of a Standard Webhook.
type envelope struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"` // when it happened, as far as that is known
	Data      payload   `json:"data"`
}

// payload has what the message is about.
type payload struct {
	Request *requestShape `json:"request,omitempty"`
	Task    *taskShape    `json:"task,omitempty"`
}

// requestShape has the names of the API where the values are the same.
type requestShape struct {
	ID            string          `json:"id"`
	URL           string          `json:"url"` // the page where people decide
	TaskID        string          `json:"task_id"`
	DelegationID  string          `json:"delegation_id"`
	Kind          approval.Kind   `json:"kind"` // patch, handover, action or question
	State         approval.State  `json:"state"`
	Version       int64           `json:"version"` // of two messages the higher one is newer
	Revision      int             `json:"revision"`
	Digest        string          `json:"digest"`
	Title         string          `json:"title"`
	Agent         string          `json:"agent"`
	Chain         string          `json:"chain"`
	Requester     string          `json:"requester"`
	Via           string          `json:"via"`
	Repository    string          `json:"repository"`
	Target        string          `json:"target"` // branch where it would land
	Branch        string          `json:"branch"`
	Deliver       string          `json:"deliver"` // merge: a yes lands it on target; branch: a yes pushes branch; "" for calls and questions
	Size          sizeShape       `json:"size"`
	Risk          approval.Risk   `json:"risk"`
	Warnings      []warningShape  `json:"warnings"` // at most 20
	WarningCount  int             `json:"warning_count"`
	Checks        []checkShape    `json:"checks"` // at most 20
	CheckCount    int             `json:"check_count"`
	Rule          ruleShape       `json:"rule"`
	Needs         needsShape      `json:"needs"`
	TooFew        string          `json:"too_few"`   // a sentence when too few people can approve, else ""
	Decisions     []decisionShape `json:"decisions"` // at most 20, the newest, oldest first
	DecisionCount int             `json:"decision_count"`
	Landed        string          `json:"landed"`    // commit, "" before
	RevertOf      string          `json:"revert_of"` // request
	Action        *actionShape    `json:"action,omitempty"`
	Question      *questionShape  `json:"question,omitempty"`
	CreatedAt     time.Time       `json:"created_at"`
	ExpiresAt     *time.Time      `json:"expires_at"`
	DecidedAt     *time.Time      `json:"decided_at"`
}

type needsShape struct {
	Count   int      `json:"count"`   // yeses that the rule asks for
	Have    int      `json:"have"`    // people who have said yes to this revision
	From    []string `json:"from"`    // groups; empty: every approver
	Missing []string `json:"missing"` // who could still say yes; empty once decided
}

func needsOf(n approval.Needs) needsShape {
	return needsShape{n.Count, n.Have, some(n.From), some(approval.Names(n.Missing))}
}

type sizeShape struct {
	Files   int `json:"files"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

type warningShape struct {
	Code string `json:"code"`
	Path string `json:"path"`
	Text string `json:"text"`
}

type checkShape struct {
	Command string `json:"command"`
	OK      bool   `json:"ok"`
}

type ruleShape struct {
	Name string   `json:"name"`
	Need int      `json:"need"`
	From []string `json:"from"`
}

type decisionShape struct {
	User     string           `json:"user"`
	For      string           `json:"for"` // the absent person in whose place
	Channel  origin.Channel   `json:"channel"`
	Verdict  approval.Verdict `json:"verdict"`
	Comment  string           `json:"comment"`
	Files    int              `json:"files"`    // with approve: of so many only; 0 means all
	ForTask  bool             `json:"for_task"` // with approve of a call: for the rest of its task
	Revision int              `json:"revision"`
	Digest   string           `json:"digest"`
	At       time.Time        `json:"at"`
}

// standard makes the body of a Standard Webhook. It holds neither the diff nor what
// the agent or its checks said, which may quote it.
func standard(n news, r approval.Request, view approval.CardView, link string) ([]byte, error) {
	v := r.Revision
	short := func(s string) string { return clip(s, maxText) }
	s := requestShape{
		ID: r.ID, URL: link, TaskID: r.TaskID, DelegationID: r.DelegationID, Kind: r.Kind, State: r.State, Version: r.Version,
		Revision: v.N, Digest: v.Digest, Title: clip(titleOf(r), maxTitle), Agent: short(r.Agent), Chain: clip(r.Chain.String(), maxComment),
		Requester: short(r.Requester), Via: short(r.Via.String()), Repository: short(r.Repository), Target: short(r.Target()), Branch: short(v.Branch), Deliver: deliverOf(r),
		Size: sizeShape{len(v.Files), v.Added, v.Removed}, Risk: view.Risk,
		Warnings: []warningShape{}, WarningCount: len(v.Warnings), Checks: []checkShape{}, CheckCount: len(v.Checks),
		Rule: ruleShape{short(r.Rule.Name), r.Rule.Need, some(r.Rule.From)}, Needs: needsOf(view.Needs), TooFew: clip(view.TooFew, maxComment),
		Decisions: []decisionShape{}, DecisionCount: len(r.Decisions), Landed: r.Landed, RevertOf: r.RevertOf,
		Action: actionOf(r), Question: questionOf(r), CreatedAt: r.CreatedAt.UTC(), ExpiresAt: utc(r.ExpiresAt), DecidedAt: utc(r.DecidedAt),
	}
	s.Risk.Reasons = some(view.Risk.Reasons)
	for _, w := range v.Warnings[:min(len(v.Warnings), maxWarnings)] {
		s.Warnings = append(s.Warnings, warningShape{short(w.Code), short(w.Path), short(w.Text)})
	}
	for _, c := range v.Checks[:min(len(v.Checks), maxChecks)] {
		s.Checks = append(s.Checks, checkShape{short(c.Command), c.OK})
	}
	for _, d := range r.Decisions[max(0, len(r.Decisions)-maxDecisions):] {
		s.Decisions = append(s.Decisions, decisionShape{short(d.User), short(d.For), origin.Channel(short(string(d.Channel))), d.Verdict, clip(mask.Text(d.Comment), maxComment),
			len(d.Files), d.ForTask, d.Revision, d.Digest, d.At.UTC()})
	}
	body, err := json.Marshal(envelope{Type: n.kind, Timestamp: n.at.UTC(), Data: payload{Request: &s}})
	if err != nil {
		return nil, fmt.Errorf("writing the message about %s: %w", r.ID, err)
	}
	return body, nil
}

func deliverOf(r approval.Request) string {
	if r.IsAction() || r.IsQuestion() {
		return ""
	}
	return cmp.Or(r.Revision.Deliver, patch.DeliverMerge)
}

// some is at most maxNames of list, each of bounded length; never nil, so that it is [] in JSON.
func some(list []string) []string {
	out := make([]string, 0, min(len(list), maxNames))
	for _, s := range list[:min(len(list), maxNames)] {
		out = append(out, clip(strings.ToValidUTF8(s, "\uFFFD"), maxText))
	}
	return out
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// handed is the headline of a request about a hand-over.
func handed(n news, r approval.Request, view approval.CardView) string {
	to := foreign(r.Agent, slackText)
	switch n.kind {
	case Requested:
		return as(approval.Pending, "Approval needed · hand-over to "+to)
	case Expired:
		return as(approval.Expired, "Expired, not approved · not handed to "+to)
	case Failed:
		return as(approval.Failed, "Failed · not handed to "+to)
	case Cancelled:
		return as(approval.Cancelled, "Cancelled · not handed to "+to)
	}
	switch r.State {
	case approval.Approved:
		return as(approval.Approved, "Approved · handed to "+to)
	case approval.Rejected:
		return as(approval.Rejected, "Rejected · not handed to "+to)
	}
	return as(approval.Pending, fmt.Sprintf("Approval needed · %d of %d so far", view.Needs.Have, view.Needs.Count))
}
