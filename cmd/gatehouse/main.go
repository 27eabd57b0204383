// Command gatehouse is the whole product in one program: the server, the demo and
// the command line that speaks to a server. It may import every room.
//
// main.go starts; cli.go has the grammar; each subcommand has a file of its own.
// shell.go has what a subcommand is given, failure.go the exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gatehouse/orchestrator/agent/command"

	"github.com/alecthomas/kong"
)

func main() {
	// The supervisor of an agent's program: nothing else of this program may run in it.
	if len(os.Args) > 1 && os.Args[1] == command.SuperviseCommand {
		os.Exit(command.Supervise())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	code, message := verdict(err)
	if message != "" {
		fmt.Fprintln(os.Stderr, message)
	}
	os.Exit(code)
}

// run understands the arguments and runs the one command that they name.
func run(ctx context.Context, args []string) error {
	var cli CLI
	parser, err := kong.New(&cli,
		kong.Name("gatehouse"),
		kong.Description("Teams of AI agents, with a gate in front of everything they want to change."),
		kong.Help(helpWithExamples),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"url": defaultURL},
	)
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	if len(args) == 0 {
		return showHelp(parser, os.Stderr)
	}
	args, err = arrange(parser.Model, args)
	if err != nil {
		return err
	}
	selected, err := parser.Parse(args)
	if err != nil {
		return usageError(err)
	}
	sh := newShell(cli.Globals, parser.Model)
	if err := sh.checkGlobals(); err != nil {
		return err
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	return selected.Run(sh)
}

// showHelp answers a call without a command.
func showHelp(parser *kong.Kong, to io.Writer) error {
	parser.Stdout = to
	kctx, err := kong.Trace(parser, nil)
	if err != nil {
		return err
	}
	if err := helpWithExamples(kong.HelpOptions{Compact: true, ValueFormatter: kong.DefaultHelpValueFormatter}, kctx); err != nil {
		return err
	}
	return &failure{code: exitUsage}
}

// usageError makes one sentence of what the parser says.
func usageError(err error) error {
	text := strings.TrimSuffix(err.Error(), ".")
	if text == "" {
		return usage("The command is not understood.")
	}
	command := "gatehouse"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil && parse.Context.Selected() != nil {
		command = parse.Context.Selected().FullPath()
	}
	return usage("%s. See %s --help.", capital(line(text)), command)
}
