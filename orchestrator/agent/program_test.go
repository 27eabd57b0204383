package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
)

// Which paths of a command the checkout decides about: "!" is what is started, "x" what
// counts where it may be executed, "?" what counts where there is such a file.
func TestProgramsOfACommand(t *testing.T) {
	for command, want := range map[string]string{
		"./deploy.sh":                        "!./deploy.sh",
		"tools/deploy --now":                 "!tools/deploy",
		"claude -p":                          "",
		"/usr/bin/deploy ./x.sh":             "x./x.sh",
		"sh deploy.sh main.go":               "?deploy.sh",
		"/bin/bash -e ./deploy.sh":           "?./deploy.sh x./deploy.sh",
		"bash -o pipefail deploy.sh":         "?pipefail ?deploy.sh",
		"python3.12 -u tools/run.py src":     "?tools/run.py",
		"python -m tools.run":                "?tools/run.py ?tools/run",
		"node --require ./hook.js app.js":    "?./hook.js ?app.js x./hook.js",
		"node --import=./hook.js app.js":     "?./hook.js ?app.js",
		"deno run main.ts":                   "?main.ts",
		"env A=1 ./deploy.sh":                "!./deploy.sh",
		"env -i sh deploy.sh":                "?deploy.sh",
		"timeout 5 ./deploy.sh":              "x./deploy.sh",
		"sh -c|./deploy.sh --prod":           "?deploy.sh",
		"sh -ec|cd tools && ./deploy.sh":     "?tools/deploy.sh",
		"sh -c|cat notes.txt > out":          "",
		"sh -c|. ./lib.sh; sh run.sh \"$1\"": "?lib.sh ?run.sh",
	} {
		argv := strings.Fields(command)
		if before, line, ok := strings.Cut(command, "|"); ok {
			argv = append(strings.Fields(before), line)
		}
		var got []string
		for _, p := range (agent.Spec{Kind: agent.Command, Command: argv}).Programs() {
			mark := "?"
			switch {
			case p.Sure:
				mark = "!"
			case p.Started:
				mark = "x"
			}
			got = append(got, mark+p.Path)
		}
		if fmt.Sprint(got) != fmt.Sprint(strings.Fields(want)) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if got := (agent.Spec{Kind: agent.LLM, MCP: []agent.MCPServer{{Command: []string{"./server"}}}}).Programs(); len(got) != 1 || !got[0].Sure {
		t.Errorf("a server of an llm agent: %v", got)
	}
}
