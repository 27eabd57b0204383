package console

import (
	"slices"
	"strings"

	"gatehouse/orchestrator/nearest"

	"github.com/alecthomas/kong"
)

// Arrange puts the arguments into the order that the parser wants (command, flags,
// --, words), so that flags may stand anywhere and a text that begins with a dash is
// a text. A command or flag that does not exist is answered here, with the nearest.
func Arrange(app *kong.Application, args []string) ([]string, error) {
	if len(args) > 0 && args[0] == "--version" {
		args = append([]string{"version"}, args[1:]...)
	}
	flags := flagsOf(app.Node)
	node := app.Node
	var command, options, words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if node.Passthrough {
			words = append(words, args[i:]...)
			break
		}
		if arg == "--" {
			words = append(words, args[i+1:]...)
			break
		}
		if name, value, isFlag := flagIn(arg); isFlag {
			f, known := flags[name]
			switch {
			case !known:
				return nil, unknownFlag(node, arg, name)
			case !f.IsBool() && value == nil && i+1 < len(args):
				i++
				arg += "=" + args[i]
			case !f.IsBool() && value == nil:
				return nil, Usage("--%s needs a value. See gatehouse %s--help.", name, PathOf(node))
			}
			options = append(options, arg)
			continue
		}
		if child := ChildOf(node, arg); child != nil && len(words) == 0 {
			node = child
			command = append(command, arg)
			continue
		}
		if node == app.Node || (len(node.Positional) == 0 && hasCommands(node)) {
			return nil, unknownCommand(node, arg)
		}
		words = append(words, arg)
	}
	for _, arg := range options { // a flag of another command is none of this one
		if name, _, _ := flagIn(arg); node != app.Node && !hasFlag(node, name) {
			return nil, unknownFlag(node, "--"+name, name)
		}
	}
	arranged := slices.Concat(command, options)
	if len(words) > 0 {
		if !node.Passthrough {
			arranged = append(arranged, "--")
		}
		arranged = append(arranged, words...)
	}
	return arranged, nil
}

// flagIn reads --name or --name=value. What has a space in its name is a text.
func flagIn(arg string) (name string, value *string, ok bool) {
	if arg == "-h" {
		return "help", nil, true
	}
	rest, dashed := strings.CutPrefix(arg, "--")
	if !dashed {
		// "-" is standard input; "-x" is no flag of ours, but nobody means it as a text.
		return arg, nil, len(arg) == 2 && arg[0] == '-' && arg != "--"
	}
	name, v, has := strings.Cut(rest, "=")
	if strings.ContainsAny(name, " \t\n") {
		return "", nil, false
	}
	if has {
		value = &v
	}
	return name, value, true
}

// flagsOf collects the flags of a node and of everything below it, by name.
func flagsOf(n *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, f := range n.Flags {
		flags[f.Name] = f
	}
	for _, child := range n.Children {
		for name, f := range flagsOf(child) {
			flags[name] = f
		}
	}
	return flags
}

// hasFlag says whether a node, what stands above it or what is below it takes a flag.
func hasFlag(n *kong.Node, name string) bool {
	if _, has := flagsOf(n)[name]; has {
		return true
	}
	for at := n.Parent; at != nil; at = at.Parent {
		if slices.ContainsFunc(at.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			return true
		}
	}
	return false
}

func ChildOf(n *kong.Node, name string) *kong.Node {
	for _, child := range n.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func hasCommands(n *kong.Node) bool {
	return slices.ContainsFunc(n.Children, func(c *kong.Node) bool { return !c.Hidden })
}

// PathOf is the command of a node, with a space behind it.
func PathOf(n *kong.Node) string {
	if n.Parent == nil {
		return ""
	}
	return PathOf(n.Parent) + n.Name + " "
}

func unknownCommand(n *kong.Node, word string) error {
	var names []string
	for _, child := range n.Children {
		if !child.Hidden {
			names = append(names, child.Name)
		}
	}
	near := Meant(word, names)
	if near == "" {
		return Usage("There is no command %q. See gatehouse %s--help.", Line(word), PathOf(n))
	}
	return Usage("There is no command %q. Did you mean `gatehouse %s%s`?", Line(word), PathOf(n), near)
}

// unknownFlag names the nearest flag of the command, or of all where it has none yet.
func unknownFlag(n *kong.Node, arg, name string) error {
	var names []string
	for at := n; at != nil; at = at.Parent {
		for _, f := range at.Flags {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		}
	}
	hint, word := "", strings.TrimLeft(name, "-")
	near := Meant(word, names)
	most := 2 // two letters that changed places
	if len(word) < 4 {
		most = 1 // of three letters two others are another word
	}
	if near != "" && (strings.HasPrefix(near, word) || strings.HasPrefix(word, near) || nearest.Distance(word, near) <= most) {
		hint = " Did you mean --" + near + "?"
	}
	return Usage("There is no flag %s.%s See gatehouse %s--help.", Line(arg), hint, PathOf(n))
}

// Meant is the name with the fewest edits from word; a name that begins with it wins.
// It is "" where all of them are so far that half of the letters would change.
func Meant(word string, names []string) string {
	best, distance := "", 1<<30
	for _, name := range names {
		d := 2 * nearest.Distance(word, name)
		if strings.HasPrefix(name, word) || strings.HasPrefix(word, name) {
			d = 1
		}
		if d < distance {
			best, distance = name, d
		}
	}
	if distance > max(4, len(word), len(best)) { // two letters that changed places are 4
		return ""
	}
	return best
}
