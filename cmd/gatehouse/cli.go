package main

const defaultURL = "http://127.0.0.1:8080"

// Globals are the flags that every command takes.
type Globals struct {
	Config string `help:"The configuration file; gatehouse.yaml in this folder if there is one." env:"GATEHOUSE_CONFIG" placeholder:"FILE"`
	URL    string `name:"url" help:"The server's address; without it the one in the configuration, else ${url}." env:"GATEHOUSE_URL" placeholder:"URL"`
	Token  string `help:"An API token." env:"GATEHOUSE_TOKEN" placeholder:"TOKEN"`
	JSON   bool   `name:"json" help:"Print one JSON document (JSON lines for streams) and nothing else."`
}

// CLI is the grammar of the command line.
type CLI struct {
	Globals

	Demo  DemoCmd  `cmd:"" help:"The main job with nothing to set up."`
	Serve ServeCmd `cmd:"" help:"Run the server."`

	Send   SendCmd   `cmd:"" help:"Make a task and return at once."`
	Status StatusCmd `cmd:"" help:"Show where a task or delegation stands."`
	List   ListCmd   `cmd:"" help:"List delegations, newest first."`
	Tree   TreeCmd   `cmd:"" help:"Show who handed what to whom."`
	Waits  WaitsCmd  `cmd:"" help:"Show who waits for whom, and since when."`
	Wait   WaitCmd   `cmd:"" help:"Wait for the end and exit by it."`
	Watch  WatchCmd  `cmd:"" help:"Follow events as they happen."`
	Cancel CancelCmd `cmd:"" help:"Stop a task and everything below it."`
	Retry  RetryCmd  `cmd:"" help:"Run a failed one again."`
	Pause  PauseCmd  `cmd:"" help:"Hold a task: nothing of it is begun any more."`
	Resume ResumeCmd `cmd:"" help:"Let a paused task go on."`
	Fork   ForkCmd   `cmd:"" help:"Make a task that goes on from a turn of a model."`

	Delegate DelegateCmd `cmd:"" help:"Inside a run: hand work on and print the answer."`
	Spawn    SpawnCmd    `cmd:"" help:"Inside a run: hand work on without waiting and print its id."`
	Children ChildrenCmd `cmd:"" help:"Inside a run: list what it handed on, or wait until all of it has ended."`
	Handoff  HandoffCmd  `cmd:"" help:"Inside a run: give the rest of the work away; the answer ends this run."`

	Approvals      ApprovalsCmd      `cmd:"" help:"List approval requests."`
	Review         ReviewCmd         `cmd:"" help:"Show a request and its diff."`
	Approve        ApproveCmd        `cmd:"" help:"Say yes to what was read."`
	Reject         RejectCmd         `cmd:"" help:"Say no, with the reason."`
	RequestChanges RequestChangesCmd `cmd:"" help:"Ask the agent to work on it again."`
	Revert         RevertCmd         `cmd:"" help:"Undo what has landed, by a change of its own."`

	Agents  AgentsCmd  `cmd:"" help:"The agents and what they do now."`
	Context ContextCmd `cmd:"" help:"Read and write the shared context."`
	Audit   AuditCmd   `cmd:"" help:"Verify and export the history."`
	Hold    HoldCmd    `cmd:"" help:"Keep things from retention, for a reason."`

	Triggers TriggersCmd `cmd:"" help:"Webhooks and schedules, and what they brought."`

	Policy   PolicyCmd   `cmd:"" help:"Try the rules of approval on past requests."`
	User     UserCmd     `cmd:"" help:"People."`
	Link     LinkCmd     `cmd:"" help:"Accounts of channels that belong to people."`
	Token    TokenCmd    `cmd:"" name:"token" help:"API tokens."`
	Conf     ConfigCmd   `cmd:"" name:"config" help:"Look at the configuration."`
	Backup   BackupCmd   `cmd:"" help:"Copy the database, also while the server runs."`
	Migrate  MigrateCmd  `cmd:"" help:"Bring the database to this version."`
	Doctor   DoctorCmd   `cmd:"" help:"Look for what is missing or broken."`
	Bench    BenchCmd    `cmd:"" help:"Measure the engine on a database of its own, beside bare commits."`
	Version  VersionCmd  `cmd:"" help:"Print the version."`
	Licenses LicensesCmd `cmd:"" help:"Print the licences of all that this program is made of."`

	Completion CompletionCmd `cmd:"" help:"Print the completion script of a shell."`
	Complete   CompleteCmd   `cmd:"" hidden:"" passthrough:"" help:"What may follow, for completion scripts."`
}
