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

	"gatehouse/cmd/gatehouse/cli"
	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/orchestrator/agent/command"
	"gatehouse/web/client"

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
	code, message := exitOf(err)
	if message != "" {
		fmt.Fprintln(os.Stderr, message)
	}
	os.Exit(code)
}

// exitOf is the exit code of what a command returned, and the line to print.
func exitOf(err error) (int, string) {
	if known, ok := errors.AsType[*console.Failure](err); ok {
		return known.Code, known.Message
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return console.ExitUsage, console.Block(err.Error())
	}
	return console.Verdict(err)
}

// run understands the arguments and runs the one command that they name.
func run(ctx context.Context, args []string) error {
	var commands CLI
	parser, err := kong.New(&commands,
		kong.Name("gatehouse"),
		kong.Description("Teams of AI agents, with a gate in front of everything they want to change."),
		kong.Help(helpWithExamples),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		grammarVars(),
	)
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	if len(args) == 0 {
		return showHelp(parser, os.Stderr)
	}
	args, err = console.Arrange(parser.Model, args)
	if err != nil {
		return err
	}
	selected, err := parser.Parse(args)
	if err != nil {
		return usageError(err)
	}
	sh := console.NewShell(commands.Globals, parser.Model, serverOf)
	if err := sh.CheckGlobals(); err != nil {
		return err
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	selected.Bind(cli.RuleReader(rulesOf))
	speak := func(ctx context.Context, sh *console.Shell) (*client.Client, error) { return sh.Client(ctx) }
	if err := selected.BindToProvider(speak); err != nil {
		return err
	}
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
	return &console.Failure{Code: console.ExitUsage}
}

// usageError makes one sentence of what the parser says.
func usageError(err error) error {
	text := strings.TrimSuffix(err.Error(), ".")
	if text == "" {
		return console.Usage("The command is not understood.")
	}
	command := "gatehouse"
	if parse,
		ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil && parse.Context.Selected() != nil {
		command = parse.Context.Selected().FullPath()
	}
	return console.Usage("%s. See %s --help.", console.Capital(console.Line(text)), command)
}
