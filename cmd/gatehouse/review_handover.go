package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gatehouse/web/client"
	"gatehouse/web/wire"
)

// question shows a request about a hand-over: what would be handed on, as a whole, with
// the files that travel.
func (sh *shell) question(ctx context.Context, api *client.Client, r wire.Request) error {
	var diff bytes.Buffer
	if r.Question.Tree != "" {
		digest, err := api.Patch(ctx, r.ID, &diff)
		if err != nil {
			return err
		}
		if digest != r.Digest {
			return fail(exitFailed, "The request %s changes while it is read. Run the command again.", line(r.ID))
		}
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, sh.paint("strong", line(r.Title)))
	sh.header(&text, r)
	q := r.Question
	quoted(&text, fmt.Sprintf("%s asks %s:", line(q.From), line(q.To)), q.Text)
	for _, key := range slices.Sorted(maps.Keys(q.Context)) {
		quoted(&text, "context "+line(key)+":", q.Context[key])
	}
	if len(q.Handover) > 0 && string(q.Handover) != "null" {
		quoted(&text, "command object:", string(q.Handover))
	}
	if r.Question.Tree != "" {
		place := line(q.Branch)
		if q.Tag != "" {
			place = "the tag " + line(q.Tag)
		}
		fmt.Fprintf(&text, "%s starts from these files, as they differ from %s:\n", line(q.To), place)
		if diff.Len() == 0 {
			fmt.Fprintln(&text, "  none")
		}
		sh.diff(&text, diff.String())
	}
	yours(&text, r)
	return sh.page(ctx, text.Bytes())
}

// quoted writes what somebody else says below a line that names it.
func quoted(w io.Writer, head, said string) {
	fmt.Fprintln(w, head)
	for l := range strings.Lines(block(said)) {
		fmt.Fprintf(w, "  │ %s\n", strings.TrimRight(l, "\n"))
	}
}

// whereSize is what a yes to r does, for its first line: where a patch lands and how
// large it is, or to whom work is handed.
func whereSize(r wire.Request) string {
	if r.IsHandover() {
		return where(r)
	}
	return fmt.Sprintf("%s  +%d −%d  %s", where(r), r.Added, r.Removed, counted(len(r.Files), "file"))
}
