package main

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/web/wire"

	"github.com/alecthomas/kong"
)

// A help example is pasted as it stands, so the parser takes it, and a digest in one is whole.
func TestHelpExamplesAreUnderstood(t *testing.T) {
	quoted := regexp.MustCompile(`"[^"]*"`)
	for path, two := range examples {
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
			var cli CLI
			k, err := kong.New(&cli, kong.Name("gatehouse"), kong.Vars{"url": defaultURL}, kong.Exit(func(int) {}))
			if err != nil {
				t.Fatal(err)
			}
			arranged, err := arrange(k.Model, args[1:])
			if err == nil {
				_, err = k.Parse(arranged)
			}
			if err != nil || cli.Approve.Digest != "" && !wholeDigest.MatchString(cli.Approve.Digest) {
				t.Errorf("%q is not understood: %v", example, err)
			}
		}
	}
}

// Where nobody who has not done so can say yes, every face says that and what to do.
func TestARequestThatNobodyCanSatisfy(t *testing.T) {
	t.Parallel()
	r := wire.Request{State: "pending"}
	r.Needs.Have, r.Needs.Count, r.Needs.Problem = 1, 2, "This needs 2 approvers, but only ann can."
	const want = "nobody else can say yes: add an approver or change the rule"
	if got := outcome(r, "approved"); got != "approved, 1 of 2 yes; "+want {
		t.Errorf("the yes says %q", got)
	}
	if got := (view{request: &r}).turnNames(); got != want {
		t.Errorf("wait says %q", got)
	}
	if got := needed("needs", r); got != want {
		t.Errorf("approvals says %q", got)
	}
	r.Needs.Missing = []string{"bob"}
	if got := needed("needs", r); got != "needs bob" {
		t.Errorf("with bob it says %q", got)
	}
}

// What failed in the way that its state names says so once.
func TestTheTreeSaysCancelledOnce(t *testing.T) {
	t.Parallel()
	p := planter{}
	d := wire.Delegation{State: "cancelled", Error: &agent.Failure{Code: "cancelled", Message: "ann cancelled this"}}
	if got := p.outcome(d); got != "cancelled: ann cancelled this" {
		t.Errorf("it says %q", got)
	}
	d.State, d.Error.Code = "failed", "exit"
	if got := p.outcome(d); got != "failed: exit: ann cancelled this" {
		t.Errorf("it says %q", got)
	}
}
