package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/record/event"
	"gatehouse/views"
)

// EvidencePage is `/approvals/{id}/evidence`: everything about one request on paper.
type EvidencePage struct {
	views.Chrome
	Request   approval.Request
	Task      string           // the whole text of the task; foreign
	Attached  []views.Attached // files of the task
	TaskAt    time.Time
	Revisions []approval.Revision
	Files     []EvidenceFiles   // of the revisions, in their order
	Answers   []approval.Answer // under the line comments of its decisions, oldest first
	Events    []event.Event     // those about this request, oldest first
	EventsAll int64             // how many the task has
	Head      string            // hash of the task's newest event
	Seal      *EvidenceSeal     // nil: nothing of the task is sealed yet
	Dropped   int               // events whose data retention removed
}

// EvidenceSeal is the checkpoint that covers the end of the task.
type EvidenceSeal struct {
	At  time.Time
	Pos int64
	N   int64  // the task's newest event that it covers
	Key string // fingerprint of the key that signed it
}

// EvidenceFiles are the files of one revision as far as they are printed.
type EvidenceFiles struct {
	Shown []patch.File
	More  int // files that are not printed; the bundle names all
}

// maxEvidenceOutput is how much of a check's output is printed, in bytes of its end.
const maxEvidenceOutput = 4000

// place is the branch of a request, or the tag that a hand-over is made on.
func (p EvidencePage) place() (kind, name string) {
	if q := p.Request.Handover; q != nil && q.Tag != "" {
		return "tag", q.Tag
	}
	return "branch", p.Request.Revision.Base.Branch
}

// ruleAsks says what a rule asks for.
func ruleAsks(r policy.Rule) string {
	switch {
	case r.Deny:
		return "refuses"
	case r.Need == 0:
		return "asks nobody"
	}
	words := views.Plural(r.Need, "approval", "approvals")
	if len(r.From) > 0 {
		words += " of " + strings.Join(r.From, ", ")
	}
	return words + " needed"
}

// asksFor says what the rule of a request asks for.
func asksFor(r approval.Request) string {
	if !r.IsQuestion() {
		return ruleAsks(r.Rule)
	}
	who := "an approver"
	if len(r.Rule.From) > 0 {
		who = "one of " + strings.Join(r.Rule.From, ", ")
	}
	return "an answer of " + who + ", or of who asked for the task"
}

// verdictWords says what somebody did.
func verdictWords(d approval.Decision) string {
	words := cmp.Or(map[approval.Verdict]string{approval.Approve: "approved", approval.Reject: "rejected",
		approval.RequestChanges: "asked for changes", approval.Edit: "edited", approval.Withdraw: "withdrew the approval", approval.Respond: "answered"}[d.Verdict], string(d.Verdict))
	if d.Verdict == approval.Approve && len(d.Files) > 0 {
		words += " " + views.Plural(len(d.Files), "file only", "files only")
	}
	if d.ForTask {
		words += " for the rest of the task"
	}
	return words + d.Anew()
}

// answersTo are those under the i-th line comment of a decision, from 0.
func (p EvidencePage) answersTo(d approval.Decision, i int) []approval.Answer {
	return p.answers(func(thread string) bool { return thread == approval.ThreadID(d, i) })
}

// answersBeside are those under comments that the decision has not any more: retention
// removed them, and not who answered.
func (p EvidencePage) answersBeside(d approval.Decision) []approval.Answer {
	return p.answers(func(thread string) bool {
		n, err := strconv.Atoi(strings.TrimPrefix(thread, d.ID+"."))
		return err == nil && n > len(d.Comments)
	})
}

func (p EvidencePage) answers(under func(thread string) bool) []approval.Answer {
	return slices.DeleteFunc(slices.Clone(p.Answers), func(a approval.Answer) bool { return !under(a.Thread) })
}

// answerWords says what somebody did under a comment, where, and when.
func answerWords(a approval.Answer) string {
	did := map[approval.Act]string{approval.Reply: "replied", approval.Resolve: "resolved it", approval.Reopen: "opened it again"}
	words := cmp.Or(did[a.Act], string(a.Act))
	return fmt.Sprintf("%s %s %s · %s", views.VisibleText(a.User), words, a.Channel.Words(), views.Stamp(a.At))
}

// lineWords names the line that a comment is about; 0 is the whole file.
func lineWords(path, side string, line int) string {
	s := views.VisibleText(path)
	if line > 0 {
		s += ":" + strconv.Itoa(line)
	}
	if side == approval.LeftSide {
		s += " (old file)"
	}
	return s
}

// seenWords says what a decider had before them; a surface without files says nothing of them.
func seenWords(d approval.Decision) string {
	var parts []string
	if d.Seen.Surface != "" {
		parts = append(parts, "shown: "+strings.ReplaceAll(d.Seen.Surface, "_", " "))
	}
	switch {
	case d.Seen.Files == 0:
	case d.Seen.Surface != approval.SurfacePage && len(d.Seen.Read) == 0:
		parts = append(parts, "the revision had "+views.Plural(d.Seen.Files, "file", "files"))
	case d.Seen.Surface != approval.SurfacePage: // below
	case d.Seen.FilesOpened > 0:
		parts = append(parts, fmt.Sprintf("%s of %s opened, %s marked as viewed", views.Thousands(d.Seen.FilesOpened), views.Plural(d.Seen.Files, "file", "files"), views.Thousands(d.Seen.FilesViewed)))
	default: // also what was decided before it was known what is opened
		parts = append(parts, fmt.Sprintf("%s of %s marked as viewed", views.Thousands(d.Seen.FilesViewed), views.Plural(d.Seen.Files, "file", "files")))
	}
	if elsewhere := readElsewhere(d); elsewhere != "" {
		parts = append(parts, elsewhere)
	}
	if at := d.Seen.OpenedAt; at != nil {
		parts = append(parts, "decided "+views.Duration(d.At.Sub(*at))+" after the page was opened")
	}
	return strings.Join(parts, " · ")
}

// readElsewhere is what a decider had before them in other places than the page of their verdict.
func readElsewhere(d approval.Decision) string {
	if d.Seen.Surface == approval.SurfacePage {
		d.Seen.Read = slices.DeleteFunc(slices.Clone(d.Seen.Read), func(r approval.Read) bool { return r.Surface == approval.SurfacePage && !r.Whole })
	}
	if len(d.Seen.Read) == 0 {
		return ""
	}
	d.Revision = 1
	return views.VisibleText(approval.Request{Revision: approval.Revision{N: 1}, Decisions: []approval.Decision{d}}.HowRead())
}

// readWithoutVerdict says who read the current revision and decided nothing; "" for nobody.
func readWithoutVerdict(r approval.Request) string {
	if len(r.Readers) == 0 {
		return ""
	}
	return fmt.Sprintf("Revision %d was %s.", r.Revision.N, approval.Request{Readers: r.Readers}.HowRead())
}

// checkOutput is the end of what a check printed, and how many bytes before it are left out.
func checkOutput(s string) (text string, left int) {
	s = strings.TrimRight(s, "\n")
	if len(s) <= maxEvidenceOutput {
		return s, 0
	}
	left = len(s) - maxEvidenceOutput
	return strings.ToValidUTF8(s[left:], ""), left
}

// madeWords says how a revision came about.
func madeWords(v approval.Revision) string {
	by := ""
	if v.Editor != nil {
		by = " by " + v.Editor.User
	}
	switch v.Made {
	case approval.MadeByEdit:
		return fmt.Sprintf("edited%s, from revision %d", by, v.MadeFrom)
	case approval.MadeByFiles:
		return fmt.Sprintf("some files of revision %d, chosen%s", v.MadeFrom, by)
	}
	return "by the agent"
}

// changeWords says what happened to a file.
func changeWords(f patch.File) string {
	words := string(f.Status)
	if f.OldMode != f.NewMode && f.OldMode != "" && f.NewMode != "" {
		words += ", mode " + f.OldMode + " → " + f.NewMode
	}
	if f.Binary {
		words += ", binary"
	}
	return words
}

// textLabel is whose words the text of a revision is, and what it says.
func textLabel(r approval.Request) string {
	agent := views.VisibleText(r.Agent)
	switch {
	case r.IsAction():
		return "What would be called, by " + agent
	case r.IsQuestion():
		return "What is asked, by " + agent
	}
	return "What " + agent + " said"
}
