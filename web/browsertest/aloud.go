package browsertest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
)

// Spoken is one element as assistive technology gets it.
type Spoken struct {
	Role  string
	Name  string
	Level int // of a heading, from 1
	Depth int // elements above it that are spoken, too
}

// String is a line of the page as it is read aloud.
func (s Spoken) String() string {
	return strings.Repeat("  ", s.Depth) + s.Role + strings.Repeat("*", s.Level) + " " + s.Name
}

// silent are roles that are not spoken by themselves: boxes, and text whose element says it already.
var silent = map[string]bool{"": true, "none": true, "generic": true, "InlineTextBox": true, "StaticText": true, "RootWebArea": true, "ListMarker": true, "LineBreak": true}

// Aloud is the page's accessibility tree in the order in which it is read. Chromium builds the
// tree behind the page, a part at a time, so that it counts when two looks see the same.
func (p *Page) Aloud() []Spoken {
	p.browser.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, Patience)
	defer cancel()
	for before := []Spoken(nil); ; time.Sleep(pollEvery) {
		p.must("wait for the page", p.settled(ctx))
		now := p.spoken(ctx)
		if len(now) > 0 && slices.Equal(now, before) {
			return now
		}
		before = now
	}
}

func (p *Page) spoken(ctx context.Context) []Spoken {
	p.browser.t.Helper()
	tree, err := chromedp.Call(ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	p.must("read the accessibility tree", err)
	nodes := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range tree.Nodes {
		nodes[n.NodeID] = n
	}
	var all []Spoken
	var walk func(id accessibility.NodeID, depth int)
	walk = func(id accessibility.NodeID, depth int) {
		n := nodes[id]
		if n == nil {
			return
		}
		s := Spoken{Role: text(n.Role), Name: strings.Join(strings.Fields(text(n.Name)), " "), Depth: depth}
		for _, property := range n.Properties {
			if property.Name == accessibility.PropertyNameLevel && s.Role == "heading" {
				p.must("read a heading's level", json.Unmarshal(property.Value.Value, &s.Level))
			}
		}
		if !n.Ignored && !silent[s.Role] {
			all, depth = append(all, s), depth+1
		}
		for _, child := range n.ChildIDs {
			walk(child, depth)
		}
	}
	if len(tree.Nodes) > 0 {
		walk(tree.Nodes[0].NodeID, 0)
	}
	return all
}

// text is a value of the tree that is text; "" for none.
func text(v *accessibility.Value) string {
	var s string
	if v == nil || json.Unmarshal(v.Value, &s) != nil {
		return ""
	}
	return s
}
