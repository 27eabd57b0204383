package flow

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// show writes a drawing so that a person can check it: rows of boxes, then the arrows.
func show(c Chart) string {
	var b strings.Builder
	for _, x := range c.Boxes {
		fmt.Fprintf(&b, "%s %d,%d\n", x.Name, x.X, x.Y)
	}
	for _, l := range c.Lines {
		dir := "down"
		if l.Back {
			dir = "up"
		}
		fmt.Fprintf(&b, "%s>%s %s %q%s via %v\n", l.From, l.To, dir, l.Label(), map[bool]string{true: " if " + l.Condition}[l.Condition != ""], l.Way)
	}
	return b.String()
}

// TestTheFlowOfAHandoffTask (H30): boxes are agents, arrows are labelled by the artifact, the
// branch at score 80 is a condition, the retry is a loop that leads up.
func TestTheFlowOfAHandoffTask(t *testing.T) {
	got := show(Lay(Merge([]Arrow{
		{From: "ann", To: "release", Label: "Release 2.0"},
		{From: "release", To: "researcher", Label: "Research it"},
		{From: "researcher", To: "analyst", Label: "ResearchPack"},
		{From: "analyst", To: "researcher", Condition: "score < 80", Label: "again"},
		{From: "researcher", To: "analyst", Label: "ResearchPack"},
		{From: "analyst", To: "coder", Label: "ValidationReport", Condition: "score >= 80"},
		{From: "coder", To: "release", Label: "Help", Code: "cycle"},
	})))
	want := strings.TrimLeft(`
ann 16,16
release 16,152
researcher 16,288
analyst 16,424
coder 16,560
ann>release down "Release 2.0" via [{104 60} {74 152}]
release>researcher down "Research it" via [{104 196} {74 288}]
researcher>analyst down "2× ResearchPack" via [{104 332} {104 424}]
analyst>researcher up "again" if score < 80 via [{74 468} {74 478} {208 478} {208 278} {133 278} {133 288}]
analyst>coder down "ValidationReport" if score >= 80 via [{133 468} {104 560}]
coder>release up "cycle" via [{104 604} {104 614} {234 614} {234 142} {133 142} {133 152}]
`, "\n")
	if got != want {
		t.Errorf("the drawing is\n%s\nwant\n%s", got, want)
	}
}

func TestArrowsThatSayTheSameAreCounted(t *testing.T) {
	var arrows []Arrow
	for i := range 30 {
		arrows = append(arrows, Arrow{From: "kik", To: "coder", Label: fmt.Sprint("part ", i)})
	}
	arrows = append(arrows, Arrow{From: "kik", To: "coder", Label: "x", Code: "repeat"}, Arrow{From: "kik", To: "coder", Label: "y", Code: "repeat"})
	edges := Merge(arrows)
	if len(edges) != 2 || edges[0].Label() != "30× part 0 +29" || edges[0].More != 10 || edges[1].Label() != "2× repeat" {
		t.Errorf("edges %+v", edges)
	}
}

func TestMoreAgentsThanADrawingHoldsShareABox(t *testing.T) {
	var arrows []Arrow
	for i := range 10_000 {
		arrows = append(arrows, Arrow{From: "kik", To: fmt.Sprint("agent", i)})
	}
	c := Lay(Merge(arrows))
	if len(c.Boxes) != MaxBoxes || c.Boxes[MaxBoxes-1].Name != Others || c.Lines[len(c.Lines)-1].Count != 10_000-(MaxBoxes-2) {
		t.Errorf("%d boxes, the last is %q with %d hand-overs", len(c.Boxes), c.Boxes[len(c.Boxes)-1].Name, c.Lines[len(c.Lines)-1].Count)
	}
}

// TestAnyArrowsMakeADrawing: no box covers another, every arrow ends at its boxes, all of it
// lies within the drawing, and the same arrows are drawn the same way.
func TestAnyArrowsMakeADrawing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for try := range 300 {
		var arrows []Arrow
		for range 1 + r.IntN(60) {
			a := Arrow{From: fmt.Sprint("a", r.IntN(1+try%25)), To: fmt.Sprint("a", r.IntN(1+try%25)), Label: "x"}
			if r.IntN(5) == 0 {
				a.Code = "cycle"
			}
			arrows = append(arrows, a)
		}
		c := Lay(Merge(arrows))
		if !reflect.DeepEqual(c, Lay(Merge(arrows))) {
			t.Fatal("drawn twice, it differs")
		}
		at := map[string]Box{}
		for i, b := range c.Boxes {
			at[b.Name] = b
			if b.X < 0 || b.Y < 0 || b.X+BoxWidth > c.Width || b.Y+BoxHeight > c.Height {
				t.Fatalf("%s lies outside of %d×%d: %+v", b.Name, c.Width, c.Height, b)
			}
			for _, o := range c.Boxes[:i] {
				if abs(o.X-b.X) < BoxWidth && abs(o.Y-b.Y) < BoxHeight {
					t.Fatalf("%s covers %s", b.Name, o.Name)
				}
			}
		}
		for _, l := range c.Lines {
			first, last := l.Way[0], l.Way[len(l.Way)-1]
			if !touches(at[l.From], first) || !touches(at[l.To], last) {
				t.Fatalf("the arrow %s>%s does not end at its boxes: %v", l.From, l.To, l.Way)
			}
			if !l.Back && at[l.To].Layer <= at[l.From].Layer {
				t.Fatalf("%s>%s leads down to the same layer or a higher one", l.From, l.To)
			}
			for _, p := range append(l.Way, l.Text) {
				if p.X < 0 || p.Y < 0 || p.X > c.Width || p.Y > c.Height {
					t.Fatalf("%s>%s leaves the drawing at %v", l.From, l.To, p)
				}
			}
		}
	}
	if empty := Lay(nil); len(empty.Boxes) != 0 {
		t.Errorf("nothing has %d boxes", len(empty.Boxes))
	}
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

func touches(b Box, p Point) bool {
	return p.X >= b.X && p.X <= b.X+BoxWidth && p.Y >= b.Y && p.Y <= b.Y+BoxHeight
}
