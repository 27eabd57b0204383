package browsertest

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Page is one tab. Its methods end the test when they cannot do what they are asked.
type Page struct {
	browser *Browser
	ctx     context.Context

	mu       sync.Mutex // the browser reports problems from its own goroutine
	problems []string
	expected []string
}

func newPage(b *Browser, ctx context.Context, cancel context.CancelFunc) *Page {
	b.t.Helper()
	p := &Page{browser: b, ctx: ctx}
	b.t.Cleanup(func() {
		cancel()
		for _, problem := range p.Problems() {
			b.t.Errorf("the page reported: %s", problem)
		}
	})
	p.must("open a tab", chromedp.Do(ctx))
	p.must("listen to the tab", chromedp.Listen(ctx, p.notice))
	p.must("listen for blocked content", call(p.soon(), audits.Enable, cdp.Empty{}))
	p.must("switch on accessible names", call(p.soon(), accessibility.Enable, cdp.Empty{}))
	return p.Desktop()
}

// Tab opens a second tab of the same person: it has the same cookies.
func (p *Page) Tab() *Page {
	p.browser.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	return newPage(p.browser, ctx, cancel)
}

// soon ends after [Patience]: a page that is stuck fails the test and does not hang it.
func (p *Page) soon() context.Context {
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	p.browser.t.Cleanup(cancel)
	return ctx
}

// Desktop sets a window of 1280 by 800. It is the default.
func (p *Page) Desktop() *Page {
	p.browser.t.Helper()
	p.must("set the window's size", chromedp.Do(p.soon(), chromedp.EmulateViewport(1280, 800)))
	return p
}

// Phone sets a screen of 390 by 844 at two pixels each, held upright and touched.
func (p *Page) Phone() *Page {
	p.browser.t.Helper()
	p.must("set the phone's size", chromedp.Do(p.soon(), chromedp.EmulateViewport(390, 844,
		chromedp.EmulateScale(2), chromedp.EmulatePortrait, chromedp.EmulateMobile, chromedp.EmulateTouch)))
	return p
}

// Light and Dark set the colour scheme that the person prefers.
func (p *Page) Light() *Page { return p.scheme("light") }

// Dark is the opposite of [Page.Light].
func (p *Page) Dark() *Page { return p.scheme("dark") }

func (p *Page) scheme(name string) *Page {
	p.browser.t.Helper()
	p.must("set the colour scheme", call(p.soon(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	}))
	return p
}

// Paper shows the page in the style that it is printed in.
func (p *Page) Paper() *Page {
	p.browser.t.Helper()
	p.must("show as printed", call(p.soon(), emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
	return p
}

// Script switches JavaScript on or off, from the next page on. It is on by default.
func (p *Page) Script(on bool) *Page {
	p.browser.t.Helper()
	p.must("switch JavaScript", call(p.soon(), emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: !on}))
	return p
}

// Open goes to an address and waits until it has loaded, whatever its status.
func (p *Page) Open(address string) {
	p.browser.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	p.must("open "+address, chromedp.Do(ctx, chromedp.Navigate(address)))
}

// Forget empties the browser's cache, so that the next page is a first visit. Cookies stay.
func (p *Page) Forget() {
	p.browser.t.Helper()
	p.must("empty the cache", call(p.soon(), network.ClearBrowserCache, cdp.Empty{}))
}

// Reload loads the page again.
func (p *Page) Reload() {
	p.browser.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	p.must("reload the page", chromedp.Do(ctx, chromedp.Reload()))
}

// URL returns the page's present address.
func (p *Page) URL() string {
	p.browser.t.Helper()
	address, err := chromedp.Run(p.soon(), chromedp.Location())
	p.must("read the address", err)
	return address
}

// Eval runs an expression on the page, once all of it has arrived, and returns its value. It works with the page's own
// scripts switched off, too.
func Eval[T any](p *Page, expression string) T {
	p.browser.t.Helper()
	value, err := evaluate[T](p.soon(), expression)
	p.must("evaluate "+expression, err)
	return value
}

// evaluate runs an expression once the whole document is read: of a page that still arrives only the beginning is
// there, and what a test counts on it would be too little.
func evaluate[T any](ctx context.Context, expression string) (T, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		state, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.readyState"))
		if err == nil && state != "loading" {
			return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			var none T
			return none, errors.Join(err, ctx.Err())
		}
	}
}

// Shot stores a picture of the whole page, all that scrolling would show, as NAME.png where somebody wants to look at
// it, and returns its path. Drawing one takes longer than most of what tests do, so that nobody's is not drawn.
func (p *Page) Shot(name string) string {
	p.browser.t.Helper()
	if p.browser.shots == "" {
		return ""
	}
	path, err := p.shot(name)
	p.must("take a screenshot", err)
	return path
}

func (p *Page) shot(name string) (string, error) {
	const png = 100 // chromedp's word for lossless
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(png))
	if err != nil {
		return "", err
	}
	path := shotPath(p.browser.shots, name)
	return path, os.WriteFile(path, picture, 0o644)
}

// View is [Page.Shot] of what the window shows, without scrolling.
func (p *Page) View(name string) string {
	p.browser.t.Helper()
	picture, err := chromedp.Run(p.soon(), chromedp.CaptureScreenshot())
	p.must("take a picture of the window", err)
	folder := p.browser.shots
	if folder == "" {
		folder = p.browser.t.TempDir()
	}
	path := shotPath(folder, name)
	p.must("store the picture", os.WriteFile(path, picture, 0o644))
	return path
}

// Expect says that a problem whose text contains this part is meant to happen, so that it does not fail the test.
func (p *Page) Expect(part string) *Page {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, part)
	return p
}

// Problems returns what the page has reported so far and nobody expected: script errors, failed requests, and what
// the content security policy blocked.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.problems), func(problem string) bool {
		return slices.ContainsFunc(p.expected, func(part string) bool { return strings.Contains(problem, part) })
	})
}

// notice runs on the goroutine that reads the browser's messages, so it only writes down.
func (p *Page) notice(event any) {
	text := problem(event)
	if text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// problem puts an event into words, or returns nothing for an event that is no problem.
func problem(event any) string {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		d := e.ExceptionDetails
		if d.Exception != nil && d.Exception.Description != "" {
			return "script error: " + d.Exception.Description
		}
		return "script error: " + d.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type != "error" && e.Type != "assert" {
			return ""
		}
		words := []string{"console:"}
		for _, arg := range e.Args {
			if arg.Description != "" {
				words = append(words, arg.Description)
			} else {
				words = append(words, string(arg.Value))
			}
		}
		return strings.Join(words, " ")
	case *inspector.EventTargetCrashed:
		return "the tab crashed; nothing answers from here on"
	case *log.EventEntryAdded:
		if e.Entry.Level != "error" {
			return ""
		}
		return strings.TrimSpace(string(e.Entry.Source) + ": " + e.Entry.Text + " " + e.Entry.URL)
	case *audits.EventIssueAdded:
		if e.Issue.Details == nil || e.Issue.Details.ContentSecurityPolicyIssueDetails == nil {
			return ""
		}
		d := e.Issue.Details.ContentSecurityPolicyIssueDetails
		return strings.TrimSpace("content security policy: " + d.ViolatedDirective + " blocked " + d.BlockedURL)
	}
	return ""
}

func (p *Page) must(what string, err error) {
	p.browser.t.Helper()
	if err != nil {
		p.browser.t.Fatalf("%s: %v", what, err)
	}
}

// call sends one command whose answer does not matter.
func call[P, R any](ctx context.Context, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, command, params)
	return err
}
