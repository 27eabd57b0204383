package main

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/console"

	"gatehouse/cmd/gatehouse/cli"

	"github.com/alecthomas/kong"
)

// A help example is pasted as it stands, so the parser takes it, and a digest in one is whole.
func TestHelpExamplesAreUnderstood(t *testing.T) {
	quoted := regexp.MustCompile(`"[^"]*"`)
	for path, two := range examples() {
		for _, example := range two {
			at := strings.LastIndex(example, "gatehouse "+path)
			if path == "" {
				at = strings.Index(example, "gatehouse ")
			}
			if at < 0 {
				continue // said by the test of examples
			}
			var args []string
			for word := range strings.FieldsSeq(quoted.ReplaceAllString(example[at:], "text")) {
				if strings.Contains("| > < &&", word) {
					break
				}
				args = append(args, strings.Trim(word, `)"`))
			}
			var commands CLI
			k, err := kong.New(&commands, kong.Name("gatehouse"), grammarVars(), kong.Exit(func(int) {}))
			if err != nil {
				t.Fatal(err)
			}
			arranged, err := console.Arrange(k.Model, args[1:])
			if err == nil {
				_, err = k.Parse(arranged)
			}
			if err != nil || commands.Approve.Digest != "" && !cli.WholeDigest.MatchString(commands.Approve.Digest) {
				t.Errorf("%q is not understood: %v", example, err)
			}
		}
	}
}
