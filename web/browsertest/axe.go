package browsertest

import (
	"context"
	_ "embed" // the rules of accessibility are a file beside the tests
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe/axe.min.js
var axe string

// axeRun holds a page to WCAG 2.2 AA and to what axe calls best practice.
const axeRun = `axe.run(document, {resultTypes: ["violations"], runOnly: {type: "tag",
	values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}})
	.then(found => found.violations.map(v => ({rule: v.id, impact: v.impact, help: v.help,
		nodes: v.nodes.map(n => n.target.join(" ") + ": " + n.html.slice(0, 200) + " — " + n.failureSummary)})))`

// Violation is a rule of accessibility that a page breaks.
type Violation struct {
	Rule   string   `json:"rule"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"` // where: the selector, the element's beginning, what to do
}

// String names the rule and the first places.
func (v Violation) String() string {
	const most = 3
	return fmt.Sprintf("%s (%s): %s\n  %d times, as\n  %s", v.Rule, v.Impact, v.Help, len(v.Nodes), strings.Join(v.Nodes[:min(most, len(v.Nodes))], "\n  "))
}

// Violations asks axe-core what is hard to use about the page for people with an impairment. It works in a world of
// its own beside the page's scripts, so that the page's content security policy stays as strict as it is for people.
func (p *Page) Violations() []Violation {
	p.browser.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	p.must("wait for the page", p.settled(ctx))
	var found []Violation
	p.must("ask axe", func() error {
		tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return err
		}
		world, err := chromedp.Call(ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.Frame.ID, WorldName: "axe"})
		if err != nil {
			return err
		}
		yes := true
		if _, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: axe, ContextID: world.ExecutionContextID}); err != nil {
			return err
		}
		answer, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{
			Expression: axeRun, ContextID: world.ExecutionContextID, AwaitPromise: &yes, ReturnByValue: &yes})
		if err != nil {
			return err
		}
		if d := answer.ExceptionDetails; d != nil {
			if d.Exception != nil {
				return errors.New(d.Exception.Description)
			}
			return errors.New(d.Text)
		}
		return json.Unmarshal(answer.Result.Value, &found)
	}())
	return found
}
