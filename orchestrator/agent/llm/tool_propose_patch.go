package llm

import (
	"context"
	"strings"
)

// maxDiff is the longest diff, in bytes.
const maxDiff = 2 << 20

func (c *conversation) proposePatch() tool {
	type input struct {
		Diff  string `json:"diff"`
		Patch string `json:"patch"` // as some models call it
	}
	return tool{Tool: describe(proposePatchTool, `"diff":{"type":"string","description":"The whole unified diff"}`, "diff"), alone: true, changes: true,
		run: typed(func(ctx context.Context, in input) (answer, error) {
			diff := firstOf(in.Diff, in.Patch)
			switch {
			case strings.TrimSpace(diff) == "":
				return sorry("The diff is empty."), nil
			case len(diff) > maxDiff:
				return sorry("The diff has %d bytes; %d is the limit. Make several smaller ones.", len(diff), maxDiff), nil
			case !strings.HasSuffix(diff, "\n"):
				diff += "\n" // models forget it, and no line of a diff goes without
			}
			if err := c.host.Apply(ctx, diff); err != nil {
				return answer{}, err
			}
			return answer{Text: "The checkout is changed as the diff says.", Changed: true}, nil
		})}
}
