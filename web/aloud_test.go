package web_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// needName are what a person cannot use without being told what it is.
var needName = []string{"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "spinbutton", "switch", "tab", "dialog", "region", "navigation", "img", "image", "meter", "progressbar"}

// Who hears the pages in place of seeing them finds one way in, headings without holes, and a name on whatever can be used.
func TestThePagesReadAloud(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor)
	w := h.furnish(ann)
	p := h.seat(browsertest.New(t), ann)
	for _, page := range []struct {
		name, path string
		says       []string // lines that have to be there, as role and name
	}{
		{"overview", "/", []string{"heading Needs you", "heading Running now", "heading Went wrong today", "heading Today", "link Approvals", "link Audit"}},
		{"review", "/approvals/" + w.pending.ID, []string{"heading What to look at", "button Reject", "button Request changes", "button Approve", "heading Files", "tree Changed files", "rowheader added line", "link Comment on added line 1"}},
		{"delegation", "/delegations/" + w.task.ID, []string{"link Timeline", "link Conversation", "table Who handed to whom", "columnheader State"}},
		{"audit", "/audit", []string{"heading Audit", "link Requests", "columnheader Outcome", "link without four eyes"}},
	} {
		p.Open(h.url + page.path)
		spoken := p.Aloud()
		var lines []string
		level, firsts, mains := 0, 0, 0
		for _, s := range spoken {
			lines = append(lines, s.String())
			switch {
			case s.Role == "main":
				mains++
			case s.Role == "heading" && s.Level == 1:
				firsts++
			case s.Role == "heading" && s.Level > level+1:
				t.Errorf("%s: the heading %q is of level %d below one of level %d", page.name, s.Name, s.Level, level)
			}
			if s.Role == "heading" {
				level = s.Level
			}
			if s.Name == "" && slices.Contains(needName, s.Role) {
				t.Errorf("%s: a %s has no name", page.name, s.Role)
			}
		}
		if mains != 1 || firsts != 1 {
			t.Errorf("%s has %d main parts and %d headings of the first level", page.name, mains, firsts)
		}
		for _, want := range page.says {
			role, name, _ := strings.Cut(want, " ")
			if !slices.ContainsFunc(spoken, func(s browsertest.Spoken) bool { return s.Role == role && strings.HasPrefix(s.Name, name) }) {
				t.Errorf("%s: nothing says %q", page.name, want)
			}
		}
		if folder := os.Getenv("GATEHOUSE_SHOTS"); folder != "" {
			h.must(os.WriteFile(filepath.Join(folder, "aloud-"+page.name+".txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		}
	}
}
