package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"

	"github.com/alecthomas/kong"
)

// CompletionCmd prints the script that teaches a shell to complete.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts only carry words back and forth; what may follow is known in one place,
// the hidden command complete.
var completions = map[string]string{
	"bash": `_gatehouse() {
  local IFS=$'\n'
  COMPREPLY=($(gatehouse complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _gatehouse gatehouse
`,
	"zsh": `#compdef gatehouse
_gatehouse() {
  local -a found
  found=("${(@f)$(gatehouse complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "${found[1]}" ]] && compadd -- $found || _files
}
if [ "$funcstack[1]" = "_gatehouse" ]; then _gatehouse "$@"; else compdef _gatehouse gatehouse; fi
`,
	"fish": `function __gatehouse
  set -l words (commandline -opc) (commandline -ct)
  gatehouse complete $words[2..-1] 2>/dev/null
end
complete -c gatehouse -a '(__gatehouse)'
`,
}

// Run prints the script.
func (c *CompletionCmd) Run(sh *console.Shell) error {
	_, err := fmt.Fprint(sh.Out, completions[c.Shell])
	return err
}

// CompleteCmd prints what may stand for the last of the words, one a line.
type CompleteCmd struct {
	Words []string `arg:"" optional:""`
}

// completeWithin keeps a Tab from hanging on a server that is away.
const completeWithin = 700 * time.Millisecond

// Run never fails: a completion that finds nothing is silent.
func (c *CompleteCmd) Run(ctx context.Context, sh *console.Shell) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	last := words[len(words)-1]
	for _, found := range candidates(ctx, sh, words[:len(words)-1], last) {
		if strings.HasPrefix(found, last) {
			if err := sh.Say("%s", console.Line(found)); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates lists what may follow the words before.
func candidates(ctx context.Context, sh *console.Shell, before []string, last string) []string {
	node, position := sh.App.Node, 0
	for _, w := range before {
		if strings.HasPrefix(w, "-") {
			continue
		}
		if child := console.ChildOf(node, w); child != nil && position == 0 {
			node = child
			continue
		}
		position++
	}
	var found []string
	if strings.HasPrefix(last, "-") {
		for at := node; at != nil; at = at.Parent {
			for _, f := range at.Flags {
				if !f.Hidden {
					found = append(found, "--"+f.Name)
				}
			}
		}
		slices.Sort(found)
		return found
	}
	if position == 0 {
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, child.Name)
			}
		}
	}
	if len(found) == 0 && position < len(node.Positional) {
		found = dynamic(ctx, sh, node, node.Positional[position])
	}
	return found
}

// dynamic asks the server for names and ids; one that does not answer knows none.
func dynamic(ctx context.Context, sh *console.Shell, node *kong.Node, arg *kong.Value) []string {
	api, err := sh.Client(ctx)
	if err != nil {
		return nil
	}
	var found []string
	switch {
	case node.Name == "completion":
		return []string{"bash", "zsh", "fish"}
	case arg.Name == "agent" || arg.Name == "from" || arg.Name == "to":
		all, err := api.Agents(ctx)
		for i := 0; err == nil && i < len(all.Items); i++ {
			found = append(found, all.Items[i].Name)
		}
	case arg.Name == "trigger":
		all, err := api.Triggers(ctx)
		for i := 0; err == nil && i < len(all.Items); i++ {
			found = append(found, all.Items[i].Name)
		}
	case arg.Name == "id" && (decides(node.Name) || node.Name == "revert"):
		state := "pending"
		if node.Name == "revert" {
			state = "landed"
		}
		all, err := api.Requests(ctx, client.RequestFilter{State: state, Limit: 20})
		for i := 0; err == nil && i < len(all.Items); i++ {
			found = append(found, all.Items[i].ID)
		}
	case arg.Name == "id" && node.Parent == sh.App.Node:
		all, err := api.Delegations(ctx, client.Filter{Limit: 20})
		for i := 0; err == nil && i < len(all.Items); i++ {
			found = append(found, all.Items[i].TaskID)
		}
		found = slices.Compact(found)
	}
	return found
}

func decides(command string) bool {
	return slices.Contains([]string{"review", "approve", "reject", "request-changes"}, command)
}
