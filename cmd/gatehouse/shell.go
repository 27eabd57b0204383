package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/config"
	"gatehouse/web/client"

	"github.com/alecthomas/kong"
	"golang.org/x/term"
)

// shell is what every command is given beside its own flags: the global flags, the
// streams and the clock. A command writes results to out and everything else to errs.
type shell struct {
	Globals
	in   *os.File
	out  io.Writer
	errs io.Writer
	env  func(string) (string, bool)
	now  func() time.Time

	app    *kong.Application
	stdin  bool // stdin is a terminal
	live   bool // stdout and stderr are terminals that may be redrawn
	colour bool // stdout is a terminal that may be coloured
	tty    bool // stdout is a terminal
}

func newShell(g Globals, app *kong.Application) *shell {
	sh := &shell{Globals: g, in: os.Stdin, out: os.Stdout, errs: os.Stderr, env: os.LookupEnv, now: time.Now, app: app}
	noColour, _ := sh.env("NO_COLOR")
	sh.tty = term.IsTerminal(int(os.Stdout.Fd()))
	sh.stdin = term.IsTerminal(int(os.Stdin.Fd()))
	plain := noColour != "" || os.Getenv("TERM") == "dumb" || g.JSON
	sh.colour = sh.tty && !plain
	sh.live = sh.tty && term.IsTerminal(int(os.Stderr.Fd())) && !plain
	if sh.ascii() {
		sh.out, sh.errs = asciiWriter{sh.out, g.JSON}, asciiWriter{sh.errs, false}
	}
	return sh
}

// ascii says that the locale has no UTF-8; a locale that is not set has.
func (sh *shell) ascii() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v, _ := sh.env(name); v != "" {
			v = strings.ToLower(v)
			return !strings.Contains(v, "utf-8") && !strings.Contains(v, "utf8")
		}
	}
	return false
}

// checkGlobals refuses an address that cannot be one, whatever the command.
func (sh *shell) checkGlobals() error {
	if sh.URL == "" {
		return nil
	}
	_, err := sh.speak(sh.URL)
	return err
}

// client speaks to the server that --url or the configuration names.
func (sh *shell) client(ctx context.Context) (*client.Client, error) { return sh.speak(sh.server(ctx)) }

func (sh *shell) speak(address string) (*client.Client, error) {
	c, err := client.New(address, sh.Token, nil)
	if err != nil {
		return nil, usage("%s: %s Set --url or GATEHOUSE_URL.", line(address), "this is no address of a server. Write http://HOST:PORT.")
	}
	return c, nil
}

// config reads the file that --config names, with everything that the server needs.
func (sh *shell) config() (*config.Config, error) {
	return taken(config.Load(sh.Globals.Config, sh.env))
}

// part reads it for a command that uses only what stands at the keys; a secret that is
// missing elsewhere is the server's matter.
func (sh *shell) part(keys ...string) (*config.Config, error) {
	return taken(config.LoadFor(sh.Globals.Config, sh.env, keys...))
}

func taken(c *config.Config, err error) (*config.Config, error) {
	if err == nil {
		return c, nil
	}
	return nil, &failure{code: exitUsage, message: block(err.Error()), cause: err}
}

// say writes one line of a result.
func (sh *shell) say(format string, args ...any) error {
	_, err := fmt.Fprintf(sh.out, format+"\n", args...)
	return err
}

// hint writes one line for people; with --json nobody reads it.
func (sh *shell) hint(format string, args ...any) {
	if !sh.JSON {
		fmt.Fprintf(sh.errs, format+"\n", args...)
	}
}

// document prints one JSON document on one line.
func (sh *shell) document(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = sh.out.Write(append(bytes.TrimSpace(b), '\n'))
	return err
}

// foreign prints a text of somebody else: exact for a program, safe for a terminal.
func (sh *shell) foreign(text string) error {
	if sh.tty {
		text = block(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(sh.out, text)
	return err
}

// maxStdin is above what the server takes as a text (1 MB) and as a context value.
const maxStdin = 8 << 20

// words joins the words of a text; a single "-" is standard input.
func (sh *shell) words(args []string) (string, error) {
	text := strings.Join(args, " ")
	if len(args) == 1 && args[0] == "-" {
		b, err := io.ReadAll(io.LimitReader(sh.in, maxStdin+1))
		switch {
		case err != nil:
			return "", fmt.Errorf("read standard input: %w", err)
		case len(b) > maxStdin:
			return "", usage("Standard input has more than %d MB. Send less.", maxStdin>>20)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return "", usage("The text is empty. Write what is to be done, or - to read it from standard input.")
	}
	return text, nil
}

// The colours of the roles in ui.md, as the 16 that every terminal maps by itself.
var ansi = map[string]string{"ok": "32", "bad": "31", "wait": "33", "run": "34", "special": "35", "neutral": "90", "strong": "1"}

// paint colours s where colours are wanted.
func (sh *shell) paint(role, s string) string {
	if code := ansi[role]; sh.colour && code != "" {
		return "\x1b[" + code + "m" + s + "\x1b[0m"
	}
	return s
}
