package main

import (
	"strings"

	"gatehouse/cmd/gatehouse/cli"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"

	"github.com/alecthomas/kong"
)

const defaultURL = "http://127.0.0.1:8080"

// CLI is the grammar of the command line.
type CLI struct {
	console.Globals

	Demo  DemoCmd  `cmd:"" help:"The main job with nothing to set up."`
	Serve ServeCmd `cmd:"" help:"Run the server."`

	Send   cli.SendCmd   `cmd:"" help:"Make a task and return at once."`
	Status cli.StatusCmd `cmd:"" help:"Show where a task or delegation stands."`
	List   cli.ListCmd   `cmd:"" help:"List delegations, newest first."`
	Tree   cli.TreeCmd   `cmd:"" help:"Show who handed what to whom."`
	Waits  cli.WaitsCmd  `cmd:"" help:"Show who waits for whom, and since when."`
	Wait   cli.WaitCmd   `cmd:"" help:"Wait for the end and exit by it."`
	Watch  cli.WatchCmd  `cmd:"" help:"Follow events as they happen."`
	Cancel cli.CancelCmd `cmd:"" help:"Stop a task and everything below it."`
	Retry  cli.RetryCmd  `cmd:"" help:"Run a failed one again."`
	Pause  cli.PauseCmd  `cmd:"" help:"Hold a task: nothing of it is begun any more."`
	Resume cli.ResumeCmd `cmd:"" help:"Let a paused task go on."`
	Tell   cli.TellCmd   `cmd:"" help:"Say something to an agent while it works."`
	Fork   cli.ForkCmd   `cmd:"" help:"Make a task that goes on from a turn of a model."`

	Delegate cli.DelegateCmd `cmd:"" help:"Inside a run: hand work on and print the answer."`
	Spawn    cli.SpawnCmd    `cmd:"" help:"Inside a run: hand work on without waiting and print its id."`
	Children cli.ChildrenCmd `cmd:"" help:"Inside a run: list what it handed on, or wait until all of it has ended."`
	Handoff  cli.HandoffCmd  `cmd:"" help:"Inside a run: give the rest of the work away; the answer ends this run."`

	Permit cli.PermitCmd `cmd:"" help:"Inside a run: ask whether a tool may be called."`
	Ask    cli.AskCmd    `cmd:"" help:"Inside a run: ask people a question and print the answer."`

	MCP cli.MCPCmd `cmd:"" name:"mcp" help:"Servers of the Model Context Protocol."`

	Approvals      cli.ApprovalsCmd      `cmd:"" help:"List approval requests."`
	Review         cli.ReviewCmd         `cmd:"" help:"Show a request and its diff."`
	Approve        cli.ApproveCmd        `cmd:"" help:"Say yes to what was read."`
	Reject         cli.RejectCmd         `cmd:"" help:"Say no, with the reason."`
	RequestChanges cli.RequestChangesCmd `cmd:"" help:"Ask the agent to work on it again."`
	Answer         cli.AnswerCmd         `cmd:"" help:"Answer a question of an agent."`
	Grants         cli.GrantsCmd         `cmd:"" help:"Show and end what was allowed for the rest of a task."`
	Revert         cli.RevertCmd         `cmd:"" help:"Undo what has landed, by a change of its own."`

	Agents  cli.AgentsCmd  `cmd:"" help:"The agents and what they do now."`
	Context cli.ContextCmd `cmd:"" help:"Read and write the shared context."`
	Audit   AuditCmd       `cmd:"" help:"Verify and export the history."`
	Hold    cli.HoldCmd    `cmd:"" help:"Keep things from retention, for a reason."`

	Triggers cli.TriggersCmd `cmd:"" help:"Webhooks and schedules, and what they brought."`

	Policy   cli.PolicyCmd `cmd:"" help:"Try the rules of approval on past requests."`
	User     UserCmd       `cmd:"" help:"People."`
	Link     LinkCmd       `cmd:"" help:"Accounts of channels that belong to people."`
	Token    TokenCmd      `cmd:"" name:"token" help:"API tokens."`
	Conf     ConfigCmd     `cmd:"" name:"config" help:"Look at the configuration."`
	Backup   BackupCmd     `cmd:"" help:"Copy the database, also while the server runs."`
	Migrate  MigrateCmd    `cmd:"" help:"Bring the database to this version."`
	Reindex  ReindexCmd    `cmd:"" help:"Make anew what lists and searches read, also while the server runs."`
	Doctor   DoctorCmd     `cmd:"" help:"Look for what is missing or broken."`
	Bench    BenchCmd      `cmd:"" help:"Measure the engine on a database of its own, beside bare commits."`
	Version  VersionCmd    `cmd:"" help:"Print the version."`
	Licenses LicensesCmd   `cmd:"" help:"Print the licences of all that this program is made of."`

	Completion cli.CompletionCmd `cmd:"" help:"Print the completion script of a shell."`
	Complete   cli.CompleteCmd   `cmd:"" hidden:"" passthrough:"" help:"What may follow, for completion scripts."`
}

// AuditCmd is about the history.
type AuditCmd struct {
	Verify AuditVerifyCmd     `cmd:"" help:"Follow every hash of the history and name what does not fit."`
	List   cli.AuditListCmd   `cmd:"" help:"Search requests, delegations or events."`
	Export cli.AuditExportCmd `cmd:"" help:"Print the history."`
	Key    AuditKeyCmd        `cmd:"" help:"Print the fingerprints of the keys that seal the history."`
}

// grammarVars are what the texts of the grammar name.
func grammarVars() kong.Vars {
	return kong.Vars{"url": defaultURL, "bots": strings.Join(config.BotNames(), ",")}
}
