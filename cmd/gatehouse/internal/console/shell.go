package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gatehouse/web/client"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// Globals are the flags that every command takes.
type Globals struct {
	Config string `help:"The configuration file; gatehouse.yaml in this folder if there is one." env:"GATEHOUSE_CONFIG" placeholder:"FILE"`
	URL    string `name:"url" help:"The server's address; without it the one in the configuration, else ${url}." env:"GATEHOUSE_URL" placeholder:"URL"`
	Token  string `help:"An API token." env:"GATEHOUSE_TOKEN" placeholder:"TOKEN"`
	JSON   bool   `name:"json" help:"Print one JSON document (JSON lines for streams) and nothing else."`
}

// Shell is what every command is given beside its own flags: the global flags, the
// streams and the clock. A command writes results to out and everything else to errs.
type Shell struct {
	Globals
	In   *os.File
	Out  io.Writer
	Errs io.Writer
	Env  func(string) (string, bool)
	Now  func() time.Time

	// find says where the server is that commands speak to, when no --url says so.
	find func(context.Context, *Shell) string

	App    *kong.Application
	Stdin  bool // stdin is a terminal
	Live   bool // stdout and stderr are terminals that may be redrawn
	colour bool // stdout is a terminal that may be coloured
	Tty    bool // stdout is a terminal
	// Nowhere: stdout was closed, or is the null device, so that nobody sees what is written.
	Nowhere bool
}

func NewShell(g Globals, app *kong.Application, find func(context.Context, *Shell) string) *Shell {
	sh := &Shell{Globals: g, In: os.Stdin, Out: os.Stdout, Errs: os.Stderr, Env: os.LookupEnv, Now: time.Now, App: app, find: find}
	noColour, _ := sh.Env("NO_COLOR")
	sh.Tty = term.IsTerminal(int(os.Stdout.Fd()))
	sh.Nowhere = nowhere(os.Stdout)
	sh.Stdin = term.IsTerminal(int(os.Stdin.Fd()))
	plain := noColour != "" || os.Getenv("TERM") == "dumb" || g.JSON
	sh.colour = sh.Tty && !plain
	sh.Live = sh.Tty && term.IsTerminal(int(os.Stderr.Fd())) && !plain
	if sh.ascii() {
		sh.Out, sh.Errs = AsciiWriter{sh.Out, g.JSON}, AsciiWriter{sh.Errs, false}
	}
	return sh
}

// nowhere reports whether what is written to f is seen by nobody. A stream that was closed
// when a program began is the null device: the language opens it there.
func nowhere(f *os.File) bool {
	is, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(is, null)
}

// ascii says that the locale has no UTF-8; a locale that is not set has.
func (sh *Shell) ascii() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := sh.Env(name); v != "" {
			v = strings.ToLower(v)
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return false
}

// CheckGlobals refuses an address that cannot be one, whatever the command.
func (sh *Shell) CheckGlobals() error {
	if sh.URL == "" {
		return nil
	}
	_, err := sh.speak(sh.URL)
	return err
}

// Client speaks to the server that --url or the configuration names.
func (sh *Shell) Client(ctx context.Context) (*client.Client, error) {
	if sh.URL == "" {
		sh.URL = sh.find(ctx, sh)
	}
	return sh.speak(sh.URL)
}

func (sh *Shell) speak(address string) (*client.Client, error) {
	c, err := client.New(address, sh.Token, nil)
	if err != nil {
		return nil, Usage("%s: %s Set --url or GATEHOUSE_URL.", Line(address), "this is no address of a server. Write http://HOST:PORT.")
	}
	return c, nil
}

// Say writes one line of a result.
func (sh *Shell) Say(format string, args ...any) error {
	_, err := fmt.Fprintf(sh.Out, format+"\n", args...)
	return err
}

// Answer is a result: one line, or with --json the document of it.
func (sh *Shell) Answer(document any, format string, args ...any) error {
	if sh.JSON {
		return sh.Document(document)
	}
	return sh.Say(format, args...)
}

// Hint writes one line for people; with --json nobody reads it.
func (sh *Shell) Hint(format string, args ...any) {
	if !sh.JSON {
		fmt.Fprintf(sh.Errs, format+"\n", args...)
	}
}

// Then hints at what comes next, once a result was written.
func (sh *Shell) Then(written error, hint string, args ...any) error {
	if written == nil {
		sh.Hint(hint, args...)
	}
	return written
}

// Document prints one JSON document on one line.
func (sh *Shell) Document(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = sh.Out.Write(append(bytes.TrimSpace(b), '\n'))
	return err
}

// Foreign prints a text of somebody else: exact for a program, safe for a terminal.
func (sh *Shell) Foreign(text string) error {
	if sh.Tty {
		text = Block(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(sh.Out, text)
	return err
}

// maxStdin is above what the server takes as a text (1 MB) and as a context value.
const maxStdin = 8 << 20

// Words joins the words of a text; a single "-" is standard input.
func (sh *Shell) Words(args []string) (string, error) {
	text := strings.Join(args, " ")
	if len(args) == 1 && args[0] == "-" {
		b, err := io.ReadAll(io.LimitReader(sh.In, maxStdin+1))
		switch {
		case err != nil:
			return "", fmt.Errorf("read standard input: %w", err)
		case len(b) > maxStdin:
			return "", Usage("Standard input has more than %d MB. Send less.", maxStdin>>20)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return "", Usage("The text is empty. Write what is to be done, or - to read it from standard input.")
	}
	return text, nil
}

// The colours of the roles in ui.md, as the 16 that every terminal maps by itself.
var ansi = map[string]string{"ok": "32", "bad": "31", "wait": "33", "run": "34", "special": "35", "neutral": "90", "strong": "1"}

// Paint colours s where colours are wanted.
func (sh *Shell) Paint(role, s string) string {
	if code := ansi[role]; sh.colour && code != "" {
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	return s
}
