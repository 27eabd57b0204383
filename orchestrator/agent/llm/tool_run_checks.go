package llm

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

// checkShown is how much of a check's output is shown, in bytes: its end, where tools
// say what went wrong.
const checkShown = 12 << 10

func (c *conversation) runChecks() tool {
	return tool{Tool: describe(runChecksTool, ``), alone: true, run: typed(func(ctx context.Context, _ struct{}) (answer, error) {
		results, err := c.host.Checks(ctx)
		if err != nil {
			return answer{}, err
		}
		if len(results) == 0 {
			return answer{Text: "The repository has no checks."}, nil
		}
		var b strings.Builder
		bad := 0
		for _, r := range results {
			word := "passed"
			if !r.OK {
				word = "FAILED"
				bad++
			}
			fmt.Fprintf(&b, "%s: %s\n%s\n\n", r.Command, word, tail(r.Output, checkShown))
		}
		fmt.Fprintf(&b, "%d of %d checks passed.", len(results)-bad, len(results))
		return answer{Text: b.String()}, nil
	})}
}

// tail is the end of a text.
func tail(s string, n int) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for s != "" && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return "… " + s
}
