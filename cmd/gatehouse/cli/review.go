package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/badge"
	"gatehouse/orchestrator/each"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// ReviewCmd shows a request and its diff, and remembers that: what approve lands off a
// terminal is what was shown here. With --json there is no diff, so that does not count.
type ReviewCmd struct {
	ID string `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
}

// Run prints what to look at, then the diff, through the pager on a terminal.
func (c *ReviewCmd) Run(ctx context.Context, sh *console.Shell, api *client.Client) error {
	found, err := findRequest(ctx, sh, api, c.ID, "pending")
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(found.Raw)
	}
	_, err = showRequest(ctx, sh, api, found.Value)
	return err
}

// showRequest prints all of a request and remembers that this person has it before them. It
// returns the request as it was shown.
func showRequest(ctx context.Context, sh *console.Shell, api *client.Client, r wire.Request) (wire.Request, error) {
	if sh.Nowhere {
		return r, console.Fail(console.ExitFailed, "Standard output is closed or the null device, so nobody would see %s. Nothing was shown or remembered.", console.Line(r.ID))
	}
	if r.IsHandover() {
		if err := showHandover(ctx, sh, api, r); err != nil {
			return r, err
		}
		if r.Question.Tree != "" {
			tellRead(ctx, sh, api, r)
		}
		rememberShown(sh, api, r)
		return r, nil
	}
	if !r.IsPatch() {
		if err := showAsked(ctx, sh, r); err != nil {
			return r, err
		}
		rememberShown(sh, api, r)
		return r, nil
	}
	var diff bytes.Buffer
	digest, err := api.Patch(ctx, r.ID, &diff)
	if err != nil {
		return r, err
	}
	if digest != "" && digest != r.Digest {
		// A new revision came between the two; what is shown must be one of them.
		again, err := api.Request(ctx, r.ID)
		if err != nil {
			return r, err
		}
		r = again.Value
		if digest != r.Digest {
			return r, console.Fail(console.ExitFailed, "The request %s changes while it is read. Run the command again.", console.Line(r.ID))
		}
	}
	var text bytes.Buffer
	showHeader(sh, &text, r)
	showDiff(sh, &text, diff.String())
	yours(&text, r)
	if err := paged(ctx, sh, text.Bytes()); err != nil {
		return r, err
	}
	tellRead(ctx, sh, api, r)
	rememberShown(sh, api, r)
	return r, nil
}

// tellRead has the server know that all of the diff was written: fetching it is no reading. It
// stands in the history beside a verdict and decides nothing, so that it cannot is a hint.
func tellRead(ctx context.Context, sh *console.Shell, api *client.Client, r wire.Request) {
	if err := api.HasRead(ctx, r.ID, wire.Shown{Revision: r.Revision, Digest: r.Digest}); err != nil {
		sh.Hint("The server could not be told that you have read this: %s", console.Line(err.Error()))
	}
}

// yours says which commands decide on r, or why they are not for who asks.
func yours(w io.Writer, r wire.Request) {
	switch {
	case r.State != "pending":
	case r.Overtaken != nil && slices.Contains(r.May, "renew"):
		fmt.Fprintf(w, "%s\nreject: gatehouse reject %s --reason \"…\"\n", renewing(r), console.Short(r.ID))
	case r.Refused != "":
		fmt.Fprintf(w, "not yours to approve: %s\n", console.Line(r.Refused))
		if slices.Contains(r.May, "reject") {
			fmt.Fprintf(w, "reject: gatehouse reject %s --reason \"…\"\n", console.Short(r.ID))
		}
	default:
		fmt.Fprintf(w, "approve: gatehouse approve %s     reject: gatehouse reject %s --reason \"…\"\n", console.Short(r.ID), console.Short(r.ID))
	}
}

// showHeader says what the request is and what to look at, first what keeps it from a yes.
func showHeader(sh *console.Shell, w io.Writer, r wire.Request) {
	warn := func(text string) { fmt.Fprintf(w, "%s\n", sh.Paint("wait", "⚠ "+text)) }
	if r.Needs.Problem != "" {
		warn(console.Line(r.Needs.Problem))
	}
	if r.Missed != "" && (r.Overtaken == nil || r.Missed != r.Overtaken.Message) {
		warn(console.Line(r.Missed))
	}
	if r.Overtaken != nil {
		warn(console.Line(r.Overtaken.Message))
	}
	showState(sh, w, r)
	for _, d := range r.Decisions {
		text := console.Line(d.User) + " " + said(d.Verdict) + anew(d.StartOver) + " on " + console.Line(d.Channel)
		if d.Revision > 0 && d.Revision != r.Revision {
			text += fmt.Sprintf(" of revision %d", d.Revision) // it says nothing of this one
		}
		fmt.Fprintf(w, "  %s\n", console.Parts(text, console.Ago(d.At, sh.Now()), console.Brief(d.Comment, 100)))
	}
	if r.Read.Text != "" {
		fmt.Fprintf(w, "  %s\n", console.Line(r.Read.Text))
	}
	sayComments(sh, w, r)
	if len(r.Declined) > 0 {
		fmt.Fprintln(w, share(len(r.Files), r.Declined))
	}
	for _, warning := range r.Warnings {
		text := cmp.Or(console.Line(warning.Text), strings.ReplaceAll(console.Line(warning.Code), "_", " "))
		if warning.Path != "" {
			text = strings.TrimRight(text, ".") + ": " + console.Line(warning.Path)
		}
		warn(text)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "· %s\n", console.Line(n.Text))
	}
	if len(r.Checks) > 0 {
		fmt.Fprintln(w, strings.Join(each.Of(r.Checks, func(c wire.Check) string {
			if c.OK {
				return sh.Paint("ok", "✓ "+console.Line(c.Command))
			}
			return sh.Paint("bad", "✕ "+console.Line(c.Command)+" (failed)")
		}), "   "))
	}
	if said := strings.TrimSpace(r.Text); said != "" && r.IsPatch() {
		quoted(w, console.Line(r.Agent)+" says:", said)
	}
}

// showState says what the request is, where it stands and what a yes does.
func showState(sh *console.Shell, w io.Writer, r wire.Request) {
	rule := ""
	if r.Rule.Name != "" {
		rule = fmt.Sprintf("   rule %s: %d of %d", console.Line(r.Rule.Name), r.Needs.Have, max(r.Needs.Count, r.Rule.Need))
	}
	digest := console.Line(r.Digest[:min(8, len(r.Digest))])
	fmt.Fprintf(w, "%s  rev %d  digest %s  %s%s\n", console.Line(r.ID), r.Revision, digest, whereSize(r), rule)
	if r.State == "pending" {
		left := console.Expiry(r.ExpiresAt, sh.Now())
		fmt.Fprintf(w, "%s  %s\n", sh.State(r.State, 0), console.Parts(needed("needs", r), console.Ago(r.CreatedAt,
			sh.Now()), left))
	} else {
		where := ""
		if r.State == "landed" && r.Commit != "" {
			where = "  " + arrived(r)
		}
		fmt.Fprintf(w, "%s%s\n", sh.State(badge.Arrived(r.State, r.Pushes()), 0), where)
	}
	if r.Base != "" && r.Target != "" {
		fmt.Fprintf(w, "made on %s at %s%s\n", console.Line(r.Target), console.Abbreviated(r.Base), console.Age(r.BaseAt, sh.Now()))
	}
	if r.State == "pending" && r.Pushes() {
		fmt.Fprintf(w, "yes pushes %s; %s stays as it is\n", console.Line(r.Branch), console.Line(r.Target))
	}
}

// showDiff writes a unified diff with its hidden characters made visible.
func showDiff(sh *console.Shell, w io.Writer, text string) {
	for l := range strings.Lines(console.Block(text)) {
		l = strings.TrimSuffix(l, "\n")
		role := ""
		switch {
		case strings.HasPrefix(l, "diff --git "), strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
			role = "strong"
		case strings.HasPrefix(l, "@@"):
			role = "run"
		case strings.HasPrefix(l, "+"):
			role = "ok"
		case strings.HasPrefix(l, "-"):
			role = "bad"
		}
		fmt.Fprintln(w, sh.Paint(role, l))
	}
}

// paged shows a long text: through $PAGER (less) on a terminal, else as it is.
func paged(ctx context.Context, sh *console.Shell, text []byte) error {
	pager, set := sh.Env("PAGER")
	if !set {
		pager = "less"
	}
	if !sh.Tty || !sh.Stdin || strings.TrimSpace(pager) == "" || pager == "cat" {
		_, err := sh.Out.Write(text)
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), sh.Out, sh.Errs
	// F: no pager for what fits the screen; R: our colours; X: the text stays on it.
	cmd.Env = os.Environ()
	if _, set := sh.Env("LESS"); !set {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() != 127: // 127: there is no such program
		return nil // a pager may be left early
	}
	_, err = sh.Out.Write(text)
	return err
}

// anew says that the agent starts over; "" where it goes on from what it has made.
func anew(startOver bool) string {
	if !startOver {
		return ""
	}
	return ", starting over,"
}

// sayComments says what people said about lines and which of that is open. They warn; they
// do not keep a request from its yes.
func sayComments(sh *console.Shell, w io.Writer, r wire.Request) {
	open := 0
	for _, c := range r.Comments {
		if !c.Resolved {
			open++
		}
	}
	switch {
	case len(r.Comments) == 0:
		return
	case open > 0:
		fmt.Fprintf(w, "%s\n", sh.Paint("wait", fmt.Sprintf("%s of %d on lines", console.Counted(open, "open comment"), len(r.Comments))))
	default:
		fmt.Fprintf(w, "%s on lines, resolved\n", console.Counted(len(r.Comments), "comment"))
	}
	for _, c := range r.Comments {
		where := console.Line(c.Path)
		if c.Line > 0 {
			where += fmt.Sprintf(":%d", c.Line)
		}
		if c.Side == "L" {
			where += " (old file)"
		}
		state := "open"
		if c.Resolved {
			state = "resolved"
		}
		if c.Revision != r.Revision {
			state += fmt.Sprintf(", of revision %d", c.Revision) // its line may be elsewhere now
		}
		fmt.Fprintf(w, "  %s (%s) %s: %s\n", where, state, console.Line(c.User), console.Brief(console.Line(c.Text), 200))
		for _, a := range c.Answers {
			said := map[string]string{"resolve": "resolved this", "reopen": "opened this again"}[a.Act]
			if a.Act == "reply" {
				said = console.Brief(console.Line(a.Text), 200)
			}
			if said != "" {
				fmt.Fprintf(w, "    %s: %s\n", console.Line(a.User), said)
			}
		}
	}
}

// showHandover shows a request about a hand-over: what would be handed on, as a whole, with
// the files that travel.
func showHandover(ctx context.Context, sh *console.Shell, api *client.Client, r wire.Request) error {
	var diff bytes.Buffer
	if r.Question.Tree != "" {
		digest, err := api.Patch(ctx, r.ID, &diff)
		if err != nil {
			return err
		}
		if digest != r.Digest {
			return console.Fail(console.ExitFailed, "The request %s changes while it is read. Run the command again.", console.Line(r.ID))
		}
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, sh.Paint("strong", console.Line(r.Title)))
	showHeader(sh, &text, r)
	q := r.Question
	quoted(&text, fmt.Sprintf("%s asks %s:", console.Line(q.From), console.Line(q.To)), q.Text)
	for _, key := range slices.Sorted(maps.Keys(q.Context)) {
		quoted(&text, "context "+console.Line(key)+":", q.Context[key])
	}
	if len(q.Handover) > 0 && string(q.Handover) != "null" {
		quoted(&text, "command object:", string(q.Handover))
	}
	for _, a := range q.Attachments {
		fmt.Fprintf(&text, "file of the task: %s (%d bytes, sha256 %s)\n", console.Line(a.Name), a.Size, console.Line(a.SHA256))
	}
	if r.Question.Tree != "" {
		place := console.Line(q.Branch)
		if q.Tag != "" {
			place = "the tag " + console.Line(q.Tag)
		}
		if diff.Len() == 0 {
			fmt.Fprintf(&text, "%s starts from %s of %s at %s, also when that moves before the yes; no file differs\n", console.Line(q.To), place, console.Line(q.Repository), console.Abbreviated(q.Base))
		} else {
			fmt.Fprintf(&text, "%s starts from these files, as they differ from %s:\n", console.Line(q.To), place)
		}
		showDiff(sh, &text, diff.String())
	}
	yours(&text, r)
	return paged(ctx, sh, text.Bytes())
}

// quoted writes what somebody else says below a line that names it.
func quoted(w io.Writer, head, said string) {
	fmt.Fprintln(w, head)
	for l := range strings.Lines(console.Block(said)) {
		fmt.Fprintf(w, "  │ %s\n", strings.TrimRight(l, "\n"))
	}
}

// whereSize is what a yes to r does, for its first line: where a patch lands and how
// large it is, or to whom work is handed.
func whereSize(r wire.Request) string {
	if !r.IsPatch() {
		return where(r)
	}
	return fmt.Sprintf("%s  +%d −%d  %s", where(r), r.Added, r.Removed, console.Counted(len(r.Files), "file"))
}
