package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/wire"
)

// all counts what runs or waits, asks, and stops what was counted.
func (c *CancelCmd) all(ctx context.Context, sh *console.Shell) error {
	api, err := sh.Client(ctx)
	if err != nil {
		return err
	}
	first, err := api.StopAll(ctx, wire.Stop{Agent: c.Agent, DryRun: true})
	if err != nil {
		return err
	}
	would := first.Value
	if !c.Yes && (would.Delegations > 0 || !sh.Stdin) {
		if !sh.Stdin || sh.JSON {
			return console.Usage("%s. Nothing was stopped: nobody can be asked here, so say --yes.", underway(would))
		}
		if !sure(sh, would) {
			return console.Fail(console.ExitFailed, "Nothing was stopped.")
		}
	}
	answer, err := api.StopAll(ctx, wire.Stop{Agent: c.Agent, Reason: c.Reason, Until: &would.Until})
	if err != nil {
		return err
	}
	if sh.JSON {
		return sh.Document(answer.Raw)
	}
	did := answer.Value
	sh.Hint("%s.", underway(would))
	if did.Landing > 0 {
		sh.Hint("Left alone: %s, because a change lands at this moment. Run this again when it has landed.", console.Counted(did.Landing, "delegation"))
	}
	return sh.Say("stopped %s in %s", console.Counted(did.Delegations, "delegation"), console.Counted(did.Tasks, "task"))
}

// underway says how much runs or waits.
func underway(n wire.Stopped) string {
	verb := "run or wait"
	if n.Delegations == 1 {
		verb = "runs or waits"
	}
	of := ""
	if n.Agent != "" {
		of = " of " + console.Line(n.Agent)
	}
	return fmt.Sprintf("%s%s in %s %s", console.Counted(n.Delegations, "delegation"), of, console.Counted(n.Tasks, "task"), verb)
}

// sure says what would be stopped and reads the answer; only a yes is one.
func sure(sh *console.Shell, would wire.Stopped) bool {
	fmt.Fprintf(sh.Errs, "%s. Stop all of it? It cannot be taken back. [y/N] ", underway(would))
	answer, err := bufio.NewReader(sh.In).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(sh.Errs)
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
