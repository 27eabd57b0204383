package views_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"gatehouse/views"
	taskview "gatehouse/views/task"
)

// TestTheFlowDrawing (H30): a box for each agent, the artifact beside its arrow, the branch's
// condition, the refused one dashed with its code, and all of it in a table.
func TestTheFlowDrawing(t *testing.T) {
	html := render(t, taskview.FlowView(taskview.FlowPage{Chrome: chrome(views.SectionDelegations, "Flow", "/"), TaskID: taskID, Text: "Release", Flow: storyFlow()}))
	for _, want := range []string{">researcher<", ">2× ResearchPack<", ">if steps.score.data.sco", `stroke-dasharray="5 4"`, ">cycle<", ">unknown_agent<", "<desc id=", "ValidationReport</", ">ann<", "asked for it"} {
		if !strings.Contains(html, want) {
			t.Errorf("the drawing lacks %s", want)
		}
	}
	if strings.Count(html, `<g class="flow-box`) != 7 {
		t.Errorf("%d boxes, want 7", strings.Count(html, `<g class="flow-box`))
	}
}

// The file is XML as it is, with its stylesheet beside it and no script, whatever names agents have.
func TestTheDrawingAloneIsXML(t *testing.T) {
	svg := render(t, taskview.FlowSVG(storyFlow(), true))
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("it has a script")
		}
	}
	if !strings.HasPrefix(svg, "<?xml ") || !strings.Contains(svg, "insight.css") || strings.Contains(svg, "\u202e") {
		t.Errorf("it begins %.200s", svg)
	}
}
