package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// press clicks the middle of an element that stands still, as far as the element is what a mouse would meet there. A
// page that goes to its anchor late moves it away between the two.
func press(ctx context.Context, node cdp.BackendNodeID) error {
	if err := call(ctx, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: node}); err != nil {
		return err
	}
	beforeX, beforeY, err := middle(ctx, node)
	if err != nil {
		return err
	}
	time.Sleep(pollEvery)
	x, y, err := middle(ctx, node)
	if err != nil {
		return err
	}
	if x != beforeX || y != beforeY {
		return errors.New("it moves")
	}
	view, err := chromedp.Call(ctx, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return err
	}
	hit, err := chromedp.Call(ctx, dom.GetNodeForLocation, dom.GetNodeForLocationParams{
		X: int64(x + view.CSSVisualViewport.PageX), Y: int64(y + view.CSSVisualViewport.PageY),
	})
	if err != nil {
		return err
	}
	over, err := contains(ctx, node, hit.BackendNodeID)
	if err != nil {
		return err
	}
	if !over {
		return errors.New("something else lies over it")
	}
	return chromedp.Do(ctx, chromedp.MouseClickXY(x, y))
}

// middle returns the centre of the element's first box, in the window's coordinates.
func middle(ctx context.Context, node cdp.BackendNodeID) (x, y float64, err error) {
	boxes, err := chromedp.Call(ctx, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: node})
	if err != nil {
		return 0, 0, err
	}
	for _, q := range boxes.Quads {
		if len(q) == 8 && (q[0] != q[4] || q[1] != q[5]) {
			return (q[0] + q[4]) / 2, (q[1] + q[5]) / 2, nil
		}
	}
	return 0, 0, errors.New("it has no size")
}

// contains tells whether a click on inner is a click on outer: it lies inside, or in the label that belongs to it.
func contains(ctx context.Context, outer, inner cdp.BackendNodeID) (bool, error) {
	const test = `function (other) {
		if (other.nodeType !== Node.ELEMENT_NODE) other = other.parentElement;
		return this.contains(other) || other?.closest("label")?.control === this;
	}`
	hit, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: inner})
	if err != nil {
		return false, err
	}
	return callOn[bool](ctx, outer, test, &runtime.CallArgument{ObjectID: hit.Object.ObjectID})
}

// callOn calls a function of JavaScript with an element as "this".
func callOn[T any](ctx context.Context, node cdp.BackendNodeID, function string, arg *runtime.CallArgument) (T, error) {
	var value T
	this, err := chromedp.Call(ctx, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node})
	if err != nil {
		return value, err
	}
	byValue := true
	answer, err := chromedp.Call(ctx, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		FunctionDeclaration: function, ObjectID: this.Object.ObjectID, ReturnByValue: &byValue,
		Arguments: []*runtime.CallArgument{arg},
	})
	if err != nil {
		return value, err
	}
	if answer.ExceptionDetails != nil {
		return value, errors.New(answer.ExceptionDetails.Text)
	}
	return value, json.Unmarshal(answer.Result.Value, &value)
}
