package llm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/mask"
	"gatehouse/orchestrator/textcut"
)

// The limits of one command.
const (
	commandTime    = 2 * time.Minute // where the call does not say
	maxCommandTime = 10 * time.Minute
	commandShown   = 24 << 10 // bytes of its output: the end, where programs say what went wrong
	maxCommand     = 16 << 10 // bytes of a line
)

// Commands run lines of a shell for models, supervised and confined as the programs of
// agents are.
type Commands interface {
	// Command runs one line in the job's checkout. A line that fails or is ended is a Ran; a
	// *agent.Failure says why it could not be run at all.
	Command(ctx context.Context, job agent.Job, host agent.Host, line string, limit time.Duration) (Ran, error)
	// Hook runs a hook's program, apart from the agent's files, with input on its standard
	// input. One that fails or is ended is a Ran.
	Hook(ctx context.Context, job agent.Job, host agent.Host, hook HookProgram, input string) (Ran, error)
	// Confines is what confines them, as Host.Sandbox is told.
	Confines(ctx context.Context, spec agent.Spec) (string, error)
}

// Ran is how a command ended.
type Ran struct {
	Code   int
	Output string // standard output and error as they came: at least the last 48 kB
	Cut    bool   // there was more
	Errors string // of a hook: the end of its standard error
	Ended  string // why it was ended before it ended by itself, as a sentence
}

func (c *conversation) runCommand() tool {
	type input struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout_seconds"`
	}
	schema := fmt.Sprintf(`"command":{"type":"string","description":"One line for sh -c"},"timeout_seconds":{"type":"integer","description":"%d when absent, at most %d"}`,
		int(commandTime.Seconds()), int(maxCommandTime.Seconds()))
	return tool{Tool: describe(commandTool, schema, "command"), alone: true, changes: true, run: typed(func(ctx context.Context, in input) (answer, error) {
		limit := commandTime
		switch {
		case strings.TrimSpace(in.Command) == "":
			return sorry("There is no command. Give one line for a shell."), nil
		case len(in.Command) > maxCommand:
			return sorry("The command has %d bytes; %d is the limit. Write a script with %s and run that.", len(in.Command), maxCommand, writeFileTool), nil
		case strings.ContainsRune(in.Command, 0):
			return sorry("The command has a NUL character, which no shell takes."), nil
		case in.Timeout < 0 || in.Timeout > int(maxCommandTime.Seconds()):
			return sorry("timeout_seconds: %d is out of range. Write 1 to %d.", in.Timeout, int(maxCommandTime.Seconds())), nil
		case in.Timeout > 0:
			limit = time.Duration(in.Timeout) * time.Second
		}
		if err := c.host.Progress(ctx, "runs "+textcut.Characters(in.Command, interim)); err != nil {
			return answer{}, err
		}
		ran, err := c.commands.Command(ctx, c.job, c.host, in.Command, limit)
		return answerOf(ran), err
	})}
}

// answerOf is a command's end as the model reads it. A code other than 0 is what the command
// says, no failure of the tool.
func answerOf(ran Ran) answer {
	out := mask.Text(ran.Output)
	shown := tail(out, commandShown)
	a := answer{Text: fmt.Sprintf("Exit code %d.", ran.Code), IsError: ran.Ended != "", Changed: true}
	if ran.Ended != "" {
		a.Text = ran.Ended
	}
	switch {
	case strings.TrimSpace(shown) == "":
		a.Text += " It printed nothing."
	case ran.Cut || len(shown) < len(strings.TrimRight(out, "\n")):
		a.Text += " The end of what it printed:\n\n" + shown
	default:
		a.Text += "\n\n" + shown
	}
	return a
}

// confined says what confines the run before it begins. Its own tools work on files; where
// the model may run commands it is what confines those, whether or not it runs one: a run
// that goes on after a wait must not forget the one before. A tool server says it for itself.
func (c *conversation) confined(ctx context.Context, commands Commands) error {
	kind := agent.NoProgram
	if c.job.Dir != "" {
		c.commands = commands
	}
	if c.commands != nil && RunsCommands(c.job.Agent) {
		var err error
		if kind, err = commands.Confines(ctx, c.job.Agent); err != nil {
			return err
		}
	}
	return c.host.Sandbox(ctx, kind)
}
