package browser

import (
	"os"
	"strings"
	"testing"

	"gatehouse/web/browsertest"
)

// mostPicture is how many bytes a picture of the README may have: it is read on phones.
const mostPicture = 150_000

// TestThePicturesOfTheReadme walks through a running demo, as a reader of the README would,
// and takes the four pictures that stand there (make shots keeps them).
func TestThePicturesOfTheReadme(t *testing.T) {
	t.Parallel()
	s := startDemo(t)
	p := browsertest.New(t).Page().Light()
	p.Open(s.link)
	p.WaitText("No tasks yet")
	p.Click("button", "Send this: Modernise the repository")
	p.Wait("heading", demoTitle)
	task, _, _ := strings.Cut(p.URL(), "?")
	s.shows(p, "awaiting approval", itself(p))
	p.Click("link", demoTitle)
	p.WaitText("What to look at")
	s.picture(p, "review")

	scrollThrough(p)
	p.Click("button", "Approve")
	p.WaitText("Your approval was counted.")
	s.shows(p, "landed on main as", itself(p))
	p.Open(task + "?tab=timeline")
	s.shows(p, "completed", itself(p))
	p.WaitText("waits for a person")
	s.picture(p, "delegation")

	p.Open(s.site + "/")
	p.Click("button", "Send this: See a refusal")
	p.Wait("heading", refusedTask)
	s.shows(p, "completed", itself(p))
	s.plant(map[string]string{"old/old.go": "package old\n\nfunc Any(v interface{}) interface{} { return v }\n"})
	s.ask(p)
	p.Fill("Comment", "Not this week; see the plan.")
	p.Click("button", "Reject")
	p.WaitText("You rejected this.")
	s.ask(p)
	p.Open(s.site + "/audit?list=requests&filter=repository:demo")
	p.WaitText("Ready questions")
	p.WaitText("landed")
	p.WaitText("rejected")
	s.picture(p, "audit")
	p.Open(s.site + "/")
	p.Wait("link", demoTitle)
	s.picture(p, "overview")
}

// picture takes one, light enough to be read over a slow line.
func (s *show) picture(p *browsertest.Page, name string) {
	s.Helper()
	is, err := os.Stat(p.View(name))
	if err != nil {
		s.Fatal(err)
	}
	if is.Size() > mostPicture {
		s.Errorf("the picture %s has %d bytes; %d are allowed", name, is.Size(), mostPicture)
	}
}
