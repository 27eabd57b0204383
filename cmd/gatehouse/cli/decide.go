package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/agent"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// ApproveCmd says yes.
type ApproveCmd struct {
	ID     string   `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Digest string   `help:"The whole digest of what you have read elsewhere, 64 hex digits. Without it, and off a terminal, only what gatehouse review has shown you is approved." placeholder:"DIGEST"`
	Ticked []string `help:"With --digest: the codes of the warnings that you have looked at, separated by commas." placeholder:"CODE,CODE"`
	Yes    bool     `help:"Do not ask on a terminal: what gatehouse review has shown, or --digest names, is approved."`
	// A path may hold a comma, so one flag takes a list and the other one path.
	// ForTask is for a call of a tool.
	ForTask bool     `help:"Of a call: allow what gatehouse review names for the rest of the task, and not this call alone."`
	Files   []string `help:"Approve only these changed files, separated by commas; the rest is declined." placeholder:"A,B"`
	File    []string `sep:"none" help:"Approve only this changed file; may be repeated." placeholder:"PATH"`
}

// WholeDigest is a digest as the contract writes it. A beginning of one could be made to
// fit: an agent tries trees until the first digits agree.
var WholeDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Run sends a yes on what this person has read, and on nothing else.
func (c *ApproveCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	digest := strings.ToLower(c.Digest)
	if digest != "" && !WholeDigest.MatchString(digest) {
		return console.Usage("--digest %s is not a whole digest, which has 64 hex digits. gatehouse review ID --json prints it.", console.Line(c.Digest))
	}
	found, err := findRequest(ctx, sh, api, c.ID, "pending")
	if err != nil {
		return err
	}
	r := found.Value
	if r.Overtaken != nil {
		return console.Fail(console.ExitFailed, "%s Nothing was approved. %s", console.Line(r.Overtaken.Message), renewing(r))
	}
	asks := sh.Stdin && !c.Yes && !sh.JSON && r.State == "pending"
	read, known := recallShown(sh, api, r.ID)
	switch {
	case digest != "" && (!known || read.Digest != digest): // which revision that was, the server finds out
		read = reviewed{Digest: digest}
	case known && read.is(r), digest != "":
	case asks && sh.Tty:
		if known {
			sh.Hint("It changed since you read revision %d of it. This is revision %d:\n", read.Revision, r.Revision)
		}
		if r, err = showRequest(ctx, sh, api, r); err != nil {
			return err
		}
		read = wasShown(sh, api, r)
	case !known && r.State != "pending":
		return console.Fail(console.ExitFailed, "%s is %s, so there is nothing to approve.", console.Line(r.ID), strings.ReplaceAll(console.Line(r.State), "_", " "))
	case !known:
		return console.Fail(console.ExitFailed, "You have not read %s here, so nothing was approved. Run gatehouse review %s, or name what you have read by its full digest: --digest.", console.Line(r.ID), console.Short(r.ID))
	}
	var files []string
	for _, f := range append(c.Files, c.File...) {
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	if asks && read.Digest == r.Digest && !ask(sh, r, files) {
		return console.Fail(console.ExitFailed, "Nothing was approved.")
	}
	return decide(ctx, sh, api, r, wire.Verdict{Verdict: "approve", Scope: scopeOf(c.ForTask), Files: files, Digest: read.Digest, Revision: read.Revision, Ticked: append(read.Codes, c.Ticked...)})
}

func scopeOf(forTask bool) string {
	if forTask {
		return "task"
	}
	return ""
}

// renewing names the command that stands in place of a yes to what was overtaken.
func renewing(r wire.Request) string {
	return fmt.Sprintf("Make revision %d on today's %s: gatehouse request-changes %s --renew", r.Revision+1, console.Line(r.Target), console.Short(r.ID))
}

// ask repeats what a yes does and reads the answer.
func ask(sh *console.Shell, r wire.Request, files []string) bool {
	warnings := ""
	if codes := r.Codes(); len(codes) > 0 {
		warnings = "  ⚠ " + console.Line(strings.Join(codes, ", "))
	}
	what := "it"
	if len(files) > 0 {
		what = fmt.Sprintf("only %s (%d of %s)", console.Line(strings.Join(files, ", ")), len(files), console.Counted(len(r.Files), "file"))
	}
	if r.IsHandover() {
		fmt.Fprintf(sh.Errs, "%s  %s%s\n%s\nLet %s work on it? [y/N] ", console.Line(r.ID), where(r), warnings, console.Line(r.Title), console.Line(r.Question.To))
		agreed, _ := yes(sh)
		return agreed
	}
	if !r.IsPatch() {
		fmt.Fprintf(sh.Errs, "%s  %s%s\n%s\nLet %s make this call? [y/N] ", console.Line(r.ID), where(r), warnings, console.Line(r.Title), console.Line(r.Agent))
		agreed, _ := yes(sh)
		return agreed
	}
	does := fmt.Sprintf("Land %s on %s as one merge commit", what, console.Line(r.Target))
	if r.Pushes() {
		does = fmt.Sprintf("Push %s to %s, and leave %s as it is", what, console.Line(r.Branch), console.Line(r.Target))
	}
	fmt.Fprintf(sh.Errs, "%s  rev %d  %s  %s%s\n%s? [y/N] ", console.Line(r.ID), r.Revision, where(r), size(r), warnings, does)
	agreed, _ := yes(sh)
	return agreed
}

// yes reads the answer to a question; anything but yes is no. Where nothing
// stands on standard input it was not answered.
func yes(sh *console.Shell) (agreed, answered bool) {
	answer, err := bufio.NewReader(sh.In).ReadString('\n')
	word := strings.ToLower(strings.TrimSpace(answer))
	return word == "y" || word == "yes", err == nil || answer != ""
}

// RejectCmd says no.
type RejectCmd struct {
	ID     string `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Reason string `required:"" help:"Why; the agent and everybody who looks later read it." placeholder:"R"`
}

// Run sends a no on the current digest.
func (c *RejectCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	return decideWith(ctx, sh, api, c.ID, "--reason", wire.Verdict{Verdict: "reject", Comment: c.Reason})
}

// RequestChangesCmd asks the agent to work on it again.
type RequestChangesCmd struct {
	ID      string   `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Comment string   `help:"What is to be different; the agent reads it." placeholder:"C"`
	At      []string `sep:"none" help:"A remark on one line of the new file; may be repeated." placeholder:"PATH:LINE:TEXT"`
	// Renew is for a change whose branch has changed under it.
	Renew bool `help:"Once its branch has moved, the agent makes this change again on the branch as it is today, with what was asked for so far. It needs no comment, and starts over anyway."`
	// StartOver throws away what the agent has made.
	StartOver bool `help:"The agent begins from the base with an empty conversation, instead of going on from this revision."`
}

// Run sends the comment on the current digest.
func (c *RequestChangesCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	v := wire.Verdict{Verdict: "request_changes", Comment: c.Comment, StartOver: c.StartOver}
	if c.Renew {
		v.Verdict, v.StartOver = "renew", false
	}
	if len(c.At) == 0 && c.Renew {
		return send(ctx, sh, api, c.ID, v)
	}
	if len(c.At) == 0 {
		return decideWith(ctx, sh, api, c.ID, "--comment", v)
	}
	for _, at := range c.At {
		parts := remark.FindStringSubmatch(at)
		if parts == nil {
			return console.Usage("--at %s is not understood. Write PATH:LINE:TEXT, as in --at core/a.go:12:'Close the file.'", console.Line(at))
		}
		n, err := strconv.Atoi(parts[2])
		if err != nil {
			return console.Usage("--at %s names a line that no file has.", console.Line(at))
		}
		v.Comments = append(v.Comments, agent.LineComment{Path: parts[1], Line: n, Text: parts[3]})
	}
	return send(ctx, sh, api, c.ID, v)
}

// remark is PATH:LINE:TEXT; the first number between colons is the line.
var remark = regexp.MustCompile(`(?s)^(.+?):(\d+):(.*\S.*)$`)

// decideWith sends a verdict whose comment, from that flag, must say something.
func decideWith(ctx context.Context, sh *console.Shell, api *client.Client, id, flag string, v wire.Verdict) error {
	if strings.TrimSpace(v.Comment) == "" {
		return console.Usage("%s is empty. Say what the agent should know.", flag)
	}
	return send(ctx, sh, api, id, v)
}

// send sends a verdict on the current digest.
func send(ctx context.Context, sh *console.Shell, api *client.Client, id string, v wire.Verdict) error {
	r, err := findRequest(ctx, sh, api, id, "pending")
	if err != nil {
		return err
	}
	return decide(ctx, sh, api, r.Value, v)
}

// decide sends a verdict, on the current revision of r unless it names another, and says
// what came of it.
func decide(ctx context.Context, sh *console.Shell, api *client.Client, r wire.Request, v wire.Verdict) error {
	if v.Digest == "" {
		v.Digest, v.Revision = r.Digest, r.Revision
	}
	answer, err := api.Decide(ctx, r.ID, v)
	if err != nil {
		return err
	}
	after := answer.Value
	came, missed := outcome(after, v.Verdict), v.Verdict == "approve" && after.Missed != ""
	if missed {
		came = console.Line(after.Missed)
	}
	if sh.JSON {
		err = sh.Document(answer.Raw)
	} else {
		err = sh.Say("%s %s", console.Line(after.ID), came)
	}
	switch {
	case err != nil:
		return err
	case (after.State == "approved" || after.State == "stale" || inPart(after)) && after.IsPatch():
		return followLanding(ctx, sh, api, after)
	case missed: // it counts, and others are needed; what they say yes to lands no more than this
		return nothingLanded(renewing(after))
	}
	return nil
}

// inPart says that r is what a yes to some of the files made of a request: the next revision
// is made of these, and mostly lands by that yes.
func inPart(r wire.Request) bool { return r.State == "superseded" }

// arrived says where a commit of a yes is now.
func arrived(r wire.Request) string {
	if r.Pushes() {
		return "pushed " + console.Abbreviated(r.Commit) + " to " + console.Line(r.Branch)
	}
	return "landed " + console.Abbreviated(r.Commit) + " on " + console.Line(r.Target)
}

// delivered says which commit landed, or to which branch it was pushed instead.
func delivered(r wire.Result) string {
	if r.Pushed != "" {
		return "pushed " + console.Abbreviated(r.Commit) + " to " + console.Line(r.Pushed)
	}
	return "landed " + console.Abbreviated(r.Commit)
}

// said says in words what a verdict was.
func said(verdict string) string {
	words := map[string]string{"approve": "approved", "reject": "rejected", "request_changes": "asked for changes", "edit": "edited it", "withdraw": "withdrew the approval", "answer": "answered"}
	return cmp.Or(words[verdict], strings.ReplaceAll(console.Line(verdict), "_", " "))
}

// outcome says what a verdict has done.
func outcome(r wire.Request, verdict string) string {
	switch r.State {
	case "pending":
		return fmt.Sprintf("%s, %d of %d yes; %s", strings.ReplaceAll(verdict, "_", " "), r.Needs.Have, r.Needs.Count, needed("still needs", r))
	case "approved":
		if r.IsHandover() {
			return "approved; the work is handed to " + console.Line(r.Question.To)
		}
		if !r.IsPatch() {
			return "approved; " + console.Line(r.Agent) + " may make the call"
		}
		if r.Pushes() {
			return "approved, being pushed to " + console.Line(r.Branch)
		}
		if r.Target == "" {
			return "approved; it names no branch to land on, so it is asked again"
		}
		return "approved, landing on " + console.Line(r.Target)
	case "landed":
		return "approved, " + arrived(r)
	case "rejected":
		if r.IsHandover() {
			return "rejected; " + console.Line(r.Question.To) + " is not asked to work"
		}
		if !r.IsPatch() {
			return "rejected; " + console.Line(r.Agent) + " is told"
		}
		return "rejected; nothing landed"
	case "superseded":
		return fmt.Sprintf("approved in part; revision %d is made of these files and checked, and your yes counts on it", r.Revision+1)
	case "changes_requested":
		return "changes requested; " + console.Line(r.Agent) + " works on it again"
	}
	return strings.ReplaceAll(console.Line(r.State), "_", " ")
}

// RevertCmd undoes what has landed.
type RevertCmd struct {
	ID string `arg:"" help:"A landed request's id, or a task's when one of its requests has landed."`
}

// Run asks for the revert, which is a task whose change people decide on.
func (c *RevertCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	r, err := findRequest(ctx, sh, api, c.ID, "landed")
	if err != nil {
		return err
	}
	got, err := api.Revert(ctx, r.Value.ID)
	return act(sh, got, err, func(sent wire.Submitted) error {
		undone, target := console.Abbreviated(r.Value.Commit), console.Line(r.Value.Target)
		return started(sh, api, sent.ID, fmt.Sprintf("undoes %s on %s, once it is approved", undone, target))
	})
}
