package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"gatehouse/web/wire"
)

// all counts what runs or waits, asks, and stops what was counted.
func (c *CancelCmd) all(ctx context.Context, sh *shell) error {
	api, err := sh.client(ctx)
	if err != nil {
		return err
	}
	first, err := api.StopAll(ctx, wire.Stop{Agent: c.Agent, DryRun: true})
	if err != nil {
		return err
	}
	would := first.Value
	if !c.Yes && (would.Delegations > 0 || !sh.stdin) {
		if !sh.stdin || sh.JSON {
			return usage("%s. Nothing was stopped: nobody can be asked here, so say --yes.", underway(would))
		}
		if !sure(sh, would) {
			return fail(exitFailed, "Nothing was stopped.")
		}
	}
	answer, err := api.StopAll(ctx, wire.Stop{Agent: c.Agent, Reason: c.Reason, Until: &would.Until})
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.document(answer.Raw)
	}
	did := answer.Value
	sh.hint("%s.", underway(would))
	if did.Landing > 0 {
		sh.hint("Left alone: %s, because a change lands at this moment. Run this again when it has landed.", counted(did.Landing, "delegation"))
	}
	return sh.say("stopped %s in %s", counted(did.Delegations, "delegation"), counted(did.Tasks, "task"))
}

// underway says how much runs or waits.
func underway(n wire.Stopped) string {
	verb := "run or wait"
	if n.Delegations == 1 {
		verb = "runs or waits"
	}
	of := ""
	if n.Agent != "" {
		of = " of " + line(n.Agent)
	}
	return fmt.Sprintf("%s%s in %s %s", counted(n.Delegations, "delegation"), of, counted(n.Tasks, "task"), verb)
}

// sure says what would be stopped and reads the answer; only a yes is one.
func sure(sh *shell, would wire.Stopped) bool {
	fmt.Fprintf(sh.errs, "%s. Stop all of it? It cannot be taken back. [y/N] ", underway(would))
	answer, err := bufio.NewReader(sh.in).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(sh.errs)
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
