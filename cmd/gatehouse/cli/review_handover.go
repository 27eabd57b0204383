package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gatehouse/cmd/gatehouse/internal/console"
	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// showHandover shows a request about a hand-over: what would be handed on, as a whole, with
// the files that travel.
func showHandover(ctx context.Context, sh *console.Shell, api *client.Client, r wire.Request) error {
	var diff bytes.Buffer
	if r.Question.Tree != "" {
		digest, err := api.Patch(ctx, r.ID, &diff)
		if err != nil {
			return err
		}
		if digest != r.Digest {
			return console.Fail(console.ExitFailed, "The request %s changes while it is read. Run the command again.", console.Line(r.ID))
		}
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, sh.Paint("strong", console.Line(r.Title)))
	showHeader(sh, &text, r)
	q := r.Question
	quoted(&text, fmt.Sprintf("%s asks %s:", console.Line(q.From), console.Line(q.To)), q.Text)
	for _, key := range slices.Sorted(maps.Keys(q.Context)) {
		quoted(&text, "context "+console.Line(key)+":", q.Context[key])
	}
	if len(q.Handover) > 0 && string(q.Handover) != "null" {
		quoted(&text, "command object:", string(q.Handover))
	}
	if r.Question.Tree != "" {
		place := console.Line(q.Branch)
		if q.Tag != "" {
			place = "the tag " + console.Line(q.Tag)
		}
		if diff.Len() == 0 {
			fmt.Fprintf(&text, "%s starts from %s of %s at %s, also when that moves before the yes; no file differs\n", console.Line(q.To), place, console.Line(q.Repository), console.Abbreviated(q.Base))
		} else {
			fmt.Fprintf(&text, "%s starts from these files, as they differ from %s:\n", console.Line(q.To), place)
		}
		showDiff(sh, &text, diff.String())
	}
	yours(&text, r)
	return paged(ctx, sh, text.Bytes())
}

// quoted writes what somebody else says below a line that names it.
func quoted(w io.Writer, head, said string) {
	fmt.Fprintln(w, head)
	for l := range strings.Lines(console.Block(said)) {
		fmt.Fprintf(w, "  │ %s\n", strings.TrimRight(l, "\n"))
	}
}

// whereSize is what a yes to r does, for its first line: where a patch lands and how
// large it is, or to whom work is handed.
func whereSize(r wire.Request) string {
	if r.IsHandover() {
		return where(r)
	}
	return fmt.Sprintf("%s  +%d −%d  %s", where(r), r.Added, r.Removed, console.Counted(len(r.Files), "file"))
}
