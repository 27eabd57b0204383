package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"gatehouse/web/client"
)

// ApproveCmd says yes.
type ApproveCmd struct {
	ID     string `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Digest string `help:"The digest that you have read, or its beginning; another one is refused." placeholder:"PREFIX"`
	Yes    bool   `help:"Do not ask on a terminal."`
}

// minPrefix keeps a prefix from fitting by chance: 4 hex digits fit one of 65,536.
const minPrefix = 4

// Run sends a yes on the digest that it has just read.
func (c *ApproveCmd) Run(ctx context.Context, sh *shell) error {
	if c.Digest != "" && len(c.Digest) < minPrefix {
		return usage("--digest %s is too short. Give %d characters or more; `gatehouse review` prints 8.", line(c.Digest), minPrefix)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	r, err := findRequest(ctx, sh, api, c.ID, "pending")
	if err != nil {
		return err
	}
	if c.Digest != "" && !strings.HasPrefix(r.Digest, strings.ToLower(c.Digest)) {
		return fail(exitFailed, "Revision %d with the digest %s replaced the one you read (superseded). Nothing was approved. Read it, then decide: gatehouse review %s",
			r.Revision, line(r.Digest[:min(8, len(r.Digest))]), short(r.ID))
	}
	if r.State == "pending" && sh.stdin && !c.Yes && !sh.JSON {
		if !ask(sh, r) {
			return fail(exitFailed, "Nothing was approved.")
		}
	}
	return decide(ctx, sh, api, r, client.Verdict{Verdict: "approve"})
}

// ask repeats what a yes does and reads the answer.
func ask(sh *shell, r client.Request) bool {
	warnings := ""
	if n := len(r.Warnings); n > 0 {
		warnings = "  ⚠ " + counted(n, "warning")
	}
	fmt.Fprintf(sh.errs, "%s  rev %d  %s  %s%s\nLand it on %s as one merge commit? [y/N] ", line(r.ID), r.Revision, where(r), size(r), warnings, line(r.Target))
	answer, err := bufio.NewReader(sh.in).ReadString('\n')
	if err != nil && answer == "" {
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// RejectCmd says no.
type RejectCmd struct {
	ID     string `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Reason string `required:"" help:"Why; the agent and everybody who looks later read it." placeholder:"R"`
}

// Run sends a no on the current digest.
func (c *RejectCmd) Run(ctx context.Context, sh *shell) error {
	return decideWith(ctx, sh, c.ID, "reject", "--reason", c.Reason)
}

// RequestChangesCmd asks the agent to work on it again.
type RequestChangesCmd struct {
	ID      string `arg:"" help:"A request's id, or a task's while one of its requests is pending."`
	Comment string `required:"" help:"What is to be different; the agent reads it." placeholder:"C"`
}

// Run sends the comment on the current digest.
func (c *RequestChangesCmd) Run(ctx context.Context, sh *shell) error {
	return decideWith(ctx, sh, c.ID, "request_changes", "--comment", c.Comment)
}

func decideWith(ctx context.Context, sh *shell, id, verdict, flag, comment string) error {
	if strings.TrimSpace(comment) == "" {
		return usage("%s is empty. Say what the agent should know.", flag)
	}
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	r, err := findRequest(ctx, sh, api, id, "pending")
	if err != nil {
		return err
	}
	return decide(ctx, sh, api, r, client.Verdict{Verdict: verdict, Comment: comment})
}

// decide sends a verdict on the digest of r and says what came of it.
func decide(ctx context.Context, sh *shell, api *client.Client, r client.Request, v client.Verdict) error {
	v.Digest = r.Digest
	after, err := api.Decide(ctx, r.ID, v)
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(after)
	}
	if err := sh.say("%s %s", line(after.ID), outcome(after, v.Verdict)); err != nil || after.State != "approved" {
		return err
	}
	return followLanding(ctx, sh, api, after)
}

// outcome says what a verdict has done.
func outcome(r client.Request, verdict string) string {
	switch r.State {
	case "pending":
		return fmt.Sprintf("%s, %d of %d yes; still needs %s", strings.ReplaceAll(verdict, "_", " "), r.Needs.Have, r.Needs.Count, who(r))
	case "approved":
		return "approved, landing on " + line(r.Target)
	case "landed":
		return "approved, landed " + commit(r.Commit) + " on " + line(r.Target)
	case "rejected":
		return "rejected; nothing landed"
	case "changes_requested":
		return "changes requested; " + line(r.Agent) + " works on it again"
	}
	return strings.ReplaceAll(line(r.State), "_", " ")
}
