package agent

import (
	"path"
	"strings"
)

// Program is a path in a command that the agent's working folder decides about.
type Program struct {
	Path string
	// Sure says that it is what runs. One that is not counts only where the folder has such
	// a file; with Started only where that may be executed, too.
	Sure    bool
	Started bool
}

// interpreters are programs whose first argument that is no flag is a program, too.
var interpreters = map[string]bool{
	"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "fish": true, "python": true, "python3": true, "node": true, "nodejs": true,
	"ruby": true, "perl": true, "php": true, "deno": true, "bun": true, "lua": true, "tsx": true, "ts-node": true,
}

// valued are flags of interpreters that take the next argument as their value. Where that
// is a file, it runs as well.
var valued = map[string]bool{
	"-r": true, "--require": true, "--import": true, "--loader": true, "--experimental-loader": true, "-W": true, "-X": true, "-I": true,
	"-o": true, "+o": true, "-O": true, "+O": true, "--rcfile": true, "--init-file": true, "-d": true, "--preload": true,
}

// Programs are the paths of s's command that are relative to its checkout: its program
// when that is written ./x, what an interpreter is given, and every ./x that may be
// executed. What MCP servers are started with counts as well.
func (s Spec) Programs() []Program {
	var all []Program
	if s.Kind == Command {
		all = programsOf(s.Command)
	}
	for _, m := range s.MCP {
		all = append(all, programsOf(m.Command)...)
	}
	return all
}

// programsOf finds the programs of one command.
func programsOf(argv []string) []Program {
	if len(argv) == 0 {
		return nil
	}
	var all []Program
	name := path.Base(argv[0])
	if relative(argv[0]) && strings.Contains(argv[0], "/") {
		all = append(all, Program{Path: argv[0], Sure: true})
	}
	rest := argv[1:]
	if name == "env" || name == "exec" {
		for len(rest) > 0 && (strings.HasPrefix(rest[0], "-") || strings.Contains(rest[0], "=")) {
			rest = rest[1:]
		}
		return append(all, programsOf(rest)...)
	}
	if interpreters[interpreter(name)] {
		all = append(all, interpreted(interpreter(name), rest)...)
	}
	for _, a := range rest {
		if strings.HasPrefix(a, "./") && !strings.ContainsAny(a, " \n") {
			all = append(all, Program{Path: a, Started: true})
		}
	}
	return all
}

// interpreter is a program's name without its version: python3.12 is python3.
func interpreter(name string) string {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}

// interpreted finds what an interpreter runs.
func interpreted(name string, args []string) []Program {
	var all []Program
	for i := 0; i < len(args); i++ {
		a := args[i]
		flag, value, joined := strings.Cut(a, "=")
		switch {
		case (name == "deno" || name == "bun") && (a == "run" || a == "x"):
		case strings.HasPrefix(name, "python") && a == "-m" && i+1 < len(args):
			module := strings.ReplaceAll(args[i+1], ".", "/")
			return append(all, Program{Path: module + ".py"}, Program{Path: module})
		case shell(name) && strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c") && i+1 < len(args):
			return append(all, inLine(args[i+1])...) // what follows are its arguments
		case valued[flag] && joined && relative(value):
			all = append(all, Program{Path: value})
		case valued[a]:
			if i++; i < len(args) && relative(args[i]) {
				all = append(all, Program{Path: args[i]})
			}
		case strings.HasPrefix(a, "-") || strings.HasPrefix(a, "+"):
		case relative(a):
			return append(all, Program{Path: a})
		default:
			return all
		}
	}
	return all
}

func shell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "fish":
		return true
	}
	return false
}

// inLine finds what a shell's line starts: the first word of each of its commands, where
// that is a path, and what an interpreter there is given.
func inLine(line string) []Program {
	var all []Program
	dir := ""
	for part := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(";&|(){}\n`", c) }) {
		words := strings.Fields(part)
		for len(words) > 0 && (keyword[words[0]] || strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-")) {
			words = words[1:]
		}
		for i, w := range words {
			words[i] = strings.Trim(w, `"'`)
		}
		if len(words) == 2 && words[0] == "cd" && relative(words[1]) {
			dir = path.Join(dir, words[1])
			continue
		}
		for _, p := range programsOf(words) {
			p.Sure = false // the line may never come there
			if relative(p.Path) {
				p.Path = path.Join(dir, p.Path)
			}
			all = append(all, p)
		}
	}
	return all
}

// keyword are words of a shell's line behind which a command follows.
var keyword = map[string]bool{"exec": true, "then": true, "do": true, "else": true, "if": true, "elif": true, "while": true, "until": true, "!": true,
	"time": true, "nohup": true, "command": true, ".": true, "source": true}

// relative reports whether a is a path that begins in the working folder.
func relative(a string) bool {
	return a != "" && a != "-" && !path.IsAbs(a) && !strings.Contains(a, "://") && !strings.ContainsAny(a, "\x00\n")
}
