package cli

import (
	"fmt"
	"io"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/wire"
)

// sayComments says what people said about lines and which of that is open. They warn; they
// do not keep a request from its yes.
func sayComments(sh *console.Shell, w io.Writer, r wire.Request) {
	open := 0
	for _, c := range r.Comments {
		if !c.Resolved {
			open++
		}
	}
	switch {
	case len(r.Comments) == 0:
		return
	case open > 0:
		fmt.Fprintf(w, "%s\n", sh.Paint("wait", fmt.Sprintf("%s of %d on lines", console.Counted(open, "open comment"), len(r.Comments))))
	default:
		fmt.Fprintf(w, "%s on lines, resolved\n", console.Counted(len(r.Comments), "comment"))
	}
	for _, c := range r.Comments {
		where := console.Line(c.Path)
		if c.Line > 0 {
			where += fmt.Sprintf(":%d", c.Line)
		}
		if c.Side == "L" {
			where += " (old file)"
		}
		state := "open"
		if c.Resolved {
			state = "resolved"
		}
		if c.Revision != r.Revision {
			state += fmt.Sprintf(", of revision %d", c.Revision) // its line may be elsewhere now
		}
		fmt.Fprintf(w, "  %s (%s) %s: %s\n", where, state, console.Line(c.User), console.Brief(console.Line(c.Text), 200))
		for _, a := range c.Answers {
			said := map[string]string{"resolve": "resolved this", "reopen": "opened this again"}[a.Act]
			if a.Act == "reply" {
				said = console.Brief(console.Line(a.Text), 200)
			}
			if said != "" {
				fmt.Fprintf(w, "    %s: %s\n", console.Line(a.User), said)
			}
		}
	}
}
