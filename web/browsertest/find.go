package browsertest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const pollEvery = 50 * time.Millisecond

// errAbsent means "not yet": the page may still show it.
var errAbsent = errors.New("there is none on the page")

var keys = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "Space": " ", "Backspace": kb.Backspace,
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

// fields are the roles that can be filled by their label.
var fields = []string{"textbox", "searchbox", "spinbutton", "combobox", "listbox", "Date", "DateTime", "InputTime"}

// Click presses the first element with this role (button, link, checkbox, tab …) and accessible name that a mouse can
// reach, after scrolling to it. An element under another one is not pressed.
func (p *Page) Click(role, name string) {
	p.browser.t.Helper()
	p.eventually(fmt.Sprintf("click the %s %q", role, name), func(ctx context.Context) error {
		nodes, err := p.named(ctx, role, name)
		if err != nil {
			return err
		}
		var failed error
		for _, node := range nodes {
			if err := press(ctx, node); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			return nil
		}
		return failed
	})
}

// Fill replaces what stands in the field with this label. It types nothing into a select: see [Page.Choose].
func (p *Page) Fill(label, value string) {
	p.browser.t.Helper()
	p.eventually(fmt.Sprintf("fill the field %q", label), func(ctx context.Context) error {
		node, err := p.field(ctx, label)
		if err != nil {
			return err
		}
		if err := call(ctx, dom.Focus, dom.FocusParams{BackendNodeID: node}); err != nil {
			return err
		}
		// The browser's own commands work without the page's scripts and fire the events that typing would.
		for _, command := range []string{"selectAll", "deleteBackward"} {
			err := call(ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Commands: []string{command}})
			if err != nil {
				return err
			}
		}
		return call(ctx, input.InsertText, input.InsertTextParams{Text: value})
	})
}

// Choose picks the option with this text in the select with this label.
func (p *Page) Choose(label, option string) {
	p.browser.t.Helper()
	const pick = `function (text) {
		const o = Array.from(this.options || []).find(o => o.text.trim() === text);
		if (!o) return false;
		this.value = o.value;
		this.dispatchEvent(new Event("input", {bubbles: true}));
		this.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	}`
	p.eventually(fmt.Sprintf("choose %q in %q", option, label), func(ctx context.Context) error {
		node, err := p.field(ctx, label)
		if err != nil {
			return err
		}
		text, err := json.Marshal(option)
		if err != nil {
			return err
		}
		found, err := callOn[bool](ctx, node, pick, &runtime.CallArgument{Value: text})
		if err == nil && !found {
			err = errAbsent
		}
		return err
	})
}

// Press sends one key to the focused element; a key has its name of the DOM (Enter, Escape, ArrowDown) or is a letter.
func (p *Page) Press(key string) {
	p.browser.t.Helper()
	if char, special := keys[key]; special {
		key = char
	}
	p.must("press "+key, chromedp.Do(p.soon(), chromedp.KeyEvent(key)))
}

// Wait waits until an element with this role and accessible name is on the page.
func (p *Page) Wait(role, name string) {
	p.browser.t.Helper()
	p.eventually(fmt.Sprintf("wait for the %s %q", role, name), func(ctx context.Context) error {
		_, err := p.named(ctx, role, name)
		return err
	})
}

// Has tells whether the page has such an element now.
func (p *Page) Has(role, name string) bool {
	p.browser.t.Helper()
	_, err := p.named(p.soon(), role, name)
	if err != nil && !errors.Is(err, errAbsent) {
		p.must("look for the "+role, err)
	}
	return err == nil
}

// WaitText waits until the page shows this text.
func (p *Page) WaitText(text string) {
	p.browser.t.Helper()
	p.waitText(text, true)
}

// WaitGone waits until the page does not show this text.
func (p *Page) WaitGone(text string) {
	p.browser.t.Helper()
	p.waitText(text, false)
}

func (p *Page) waitText(text string, want bool) {
	p.browser.t.Helper()
	what := fmt.Sprintf("wait for the text %q", text)
	if !want {
		what = fmt.Sprintf("wait until the text %q is gone", text)
	}
	p.eventually(what, func(ctx context.Context) error {
		shown, err := visibleText(ctx)
		if err != nil {
			return err
		}
		if strings.Contains(shown, text) != want {
			return errors.New("it shows something else")
		}
		return nil
	})
}

// Until waits until an expression is true on the page. It reads what has no name or text.
func (p *Page) Until(expression string) {
	p.browser.t.Helper()
	p.eventually("until "+expression, func(ctx context.Context) error {
		ok, err := evaluate[bool](ctx, expression)
		if err == nil && !ok {
			err = errAbsent
		}
		return err
	})
}

// Text returns what the page shows, as a person would copy it.
func (p *Page) Text() string {
	p.browser.t.Helper()
	shown, err := visibleText(p.soon())
	p.must("read the page", err)
	return shown
}

func visibleText(ctx context.Context) (string, error) {
	return evaluate[string](ctx, `document.body ? document.body.innerText : ""`)
}

// eventually tries until it works or [Patience] ends. A page that navigates makes any attempt fail, so every failure
// counts as "not yet".
func (p *Page) eventually(what string, try func(context.Context) error) {
	p.browser.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	late, rebuilt := time.Now().Add(Patience/2), false
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if errors.Is(err, errAbsent) && !rebuilt && time.Now().After(late) {
			rebuilt = true
			p.must("build the accessibility tree anew", p.rebuild(ctx))
		}
		if last == nil || ctx.Err() == nil { // the attempt that the deadline cut says nothing about the page
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if p.browser.shots != "" {
				if _, err := p.shot("failed-" + p.browser.t.Name()); err != nil { // a page that is stuck cannot be drawn
					p.browser.t.Logf("no picture of it: %v", err)
				}
			}
			where, err := chromedp.Run(p.soon(), chromedp.Location())
			shown, textErr := visibleText(p.soon())
			p.browser.t.Fatalf("%s: not within %s on %s: %v\nThe page shows:\n%s", what, Patience, where, errors.Join(p.instead(last), err, textErr), shown)
		}
	}
}

// rebuild has Chromium build the accessibility tree anew. On a busy machine it was seen to
// lack a field for as long as anybody waited, while the page showed the field and its label.
func (p *Page) rebuild(ctx context.Context) error {
	if err := call(ctx, accessibility.Disable, cdp.Empty{}); err != nil {
		return err
	}
	return call(ctx, accessibility.Enable, cdp.Empty{})
}

// named finds elements by what assistive technology calls them; hidden ones do not count. A page that loads or
// is being changed has none: asked in the middle of it, Chromium's accessibility tree may bring the whole tab down.
func (p *Page) named(ctx context.Context, role, name string) ([]cdp.BackendNodeID, error) {
	if err := p.settled(ctx); err != nil {
		return nil, err
	}
	root, err := chromedp.Call(ctx, accessibility.GetRootAXNode, accessibility.GetRootAXNodeParams{})
	if err != nil {
		return nil, err
	}
	found, err := chromedp.Call(ctx, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{
		BackendNodeID: root.Node.BackendDOMNodeID, Role: role, AccessibleName: name,
	})
	if err != nil {
		return nil, err
	}
	var nodes []cdp.BackendNodeID
	for _, node := range found.Nodes {
		if !node.Ignored && node.BackendDOMNodeID != 0 {
			nodes = append(nodes, node.BackendDOMNodeID)
		}
	}
	if len(nodes) == 0 {
		return nil, absent{root.Node.BackendDOMNodeID, role}
	}
	return nodes, nil
}

// absent is [errAbsent] of a role. Which names elements of it do have is only asked for a test that fails.
type absent struct {
	root cdp.BackendNodeID
	role string
}

func (absent) Error() string { return errAbsent.Error() }
func (absent) Unwrap() error { return errAbsent }

// instead is an error with the names that elements of the role have.
func (p *Page) instead(err error) error {
	var a absent
	if !errors.As(err, &a) {
		return err
	}
	found, askErr := chromedp.Call(p.soon(), accessibility.QueryAXTree, accessibility.QueryAXTreeParams{BackendNodeID: a.root, Role: a.role})
	if askErr != nil {
		return err
	}
	var names []string
	for _, node := range found.Nodes {
		if !node.Ignored && node.Name != nil {
			names = append(names, string(node.Name.Value))
		}
	}
	return fmt.Errorf("%w; of this role: %s", err, strings.Join(names, ", "))
}

// settled waits until the page looks the same as a moment before.
func (p *Page) settled(ctx context.Context) error {
	const look = `document.readyState + " " + location + " " + document.documentElement.outerHTML.length`
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for before := ""; ; {
		now, err := chromedp.Run(ctx, chromedp.Evaluate[string](look))
		if err != nil {
			return err
		}
		if now == before && strings.HasPrefix(now, "complete") {
			return nil
		}
		before = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Page) field(ctx context.Context, label string) (cdp.BackendNodeID, error) {
	var missed error // of the first role: what there is of it helps whoever reads a failure
	for _, role := range fields {
		nodes, err := p.named(ctx, role, label)
		if err == nil {
			return nodes[0], nil
		}
		if !errors.Is(err, errAbsent) {
			return 0, err
		}
		missed = cmp.Or(missed, err)
	}
	return 0, missed
}
