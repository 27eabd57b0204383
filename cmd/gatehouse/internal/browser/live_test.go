package browser

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/browsertest"
)

// watch opens a page and notes from then on whether it is loaded again, and what its live
// line said.
func watch(p *browsertest.Page, address string) {
	p.Expect("ERR_").Expect("htmx:").Expect("status of 50")
	p.Open(address)
	browsertest.Eval[bool](p, `(() => {
		window.sameDocument = true
		window.said = []
		const line = document.getElementById("live-line")
		new MutationObserver(() => window.said.push(line.textContent)).observe(line, {childList: true})
		return true
	})()`)
	live(p)
}

// live waits until the page says that it is.
func live(p *browsertest.Page) {
	p.Until(`document.getElementById("live-dot").dataset.liveState === "on"`)
}

// healed waits until a page is live again without having been loaded again, and returns how
// many events it says that it caught up.
func healed(p *placetest.Place, page *browsertest.Page) int {
	p.Helper()
	live(page)
	page.Until(`window.said.some(s => s.startsWith("Live again."))`)
	said := browsertest.Eval[string](page, `window.said.filter(s => s.startsWith("Live again.")).pop()`)
	if !browsertest.Eval[bool](page, "window.sameDocument === true") {
		p.Errorf("%s was loaded again", page.URL())
	}
	browsertest.Eval[bool](page, "(window.said = []) !== null")
	n := 0
	if m := regexp.MustCompile(`(\d+) events? caught up`).FindStringSubmatch(said); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	return n
}

// lost waits until a page says that it is not live.
func lost(page *browsertest.Page) {
	page.Until(`document.getElementById("live-dot").dataset.liveState === "lost"`)
	page.WaitText("Not live since")
}

// onceEach holds the events that a page lists to what is stored: each one once, in order.
func onceEach(p *placetest.Place, page *browsertest.Page, taskID string) {
	p.Helper()
	want := len(p.Events(taskID))
	page.Until(fmt.Sprintf(`document.querySelectorAll(".event-n").length >= %d`, want))
	var stored []string
	for i := range want {
		stored = append(stored, strconv.Itoa(want-i))
	}
	shown := strings.Fields(browsertest.Eval[string](page, `Array.from(document.querySelectorAll(".event-n"), e => e.textContent).join(" ")`))
	if got, want := strings.Join(shown, " "), strings.Join(stored, " "); got != want {
		p.Errorf("the page lists the events %s; stored are %s", got, want)
	}
}

// enter makes a person and opens the browser at an address, signed in as them.
func enter(p *placetest.Place, page *browsertest.Page, site, name string, roles ...people.Role) {
	p.Helper()
	p.Person(name, roles...)
	signIn(p, page, site, name)
}

func signIn(p *placetest.Place, page *browsertest.Page, site, name string) {
	p.Helper()
	u, err := p.Store.UserByName(p.Context(), name)
	p.Must(err)
	code, err := placetest.SignedIn(p.Context(), p.Store, u)
	p.Must(err)
	page.Open(site + "/login/link?code=" + code)
	page.WaitText("Needs you")
}

// TestOpenPagesHealWhenTheLineOrTheServerWasGone: while a task runs, the network between
// three open pages and the server is cut, and later the server is killed. Each page says so,
// then heals by itself: nothing is missing and nothing is there twice.
func TestOpenPagesHealWhenTheLineOrTheServerWasGone(t *testing.T) {
	t.Parallel()
	p := placetest.AwayPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), "3s")
	n := p.Start(p.Config, "")
	line := newWire(t, n.URL)
	task := n.Send("early", "app", "early")
	browser := browsertest.New(t)
	overview := browser.Page()
	enter(p, overview, line.url(), "eve", people.Operator, people.Approver, people.Auditor)
	trace, list := overview.Tab(), overview.Tab()
	pages := []*browsertest.Page{overview, trace, list}
	p.Until("the agent to work", func() bool { return p.Exists("early-works") })
	watch(overview, line.url()+"/")
	watch(trace, line.url()+"/delegations/"+task+"?tab=events")
	watch(list, line.url()+"/audit?filter=&live=1")

	line.cut()
	for _, page := range pages {
		lost(page)
	}
	before := len(p.Events(task))
	missed := n.Send("clerk", "", "what nobody saw")
	n.Through(missed)
	p.Touch("early-ends")
	p.Asked(task)
	happened := len(p.Events(task)) - before + len(p.Events(missed))
	line.mend()
	for _, page := range pages {
		if caught := healed(p, page); caught < happened {
			t.Errorf("%s says that it caught up %d events; %d happened", page.URL(), caught, happened)
		}
	}
	overview.WaitText("Do early")
	trace.WaitText("awaiting approval")
	list.WaitText("Do early")
	onceEach(p, trace, task)

	late := n.Send("late", "app", "late")
	p.Until("the agent to work", func() bool { return p.Exists("late-works") })
	watch(trace, line.url()+"/delegations/"+late+"?tab=events")
	n.Kill()
	for _, page := range pages {
		lost(page)
	}
	n = p.Start(p.Config, "")
	line.lead(n.URL)
	p.Touch("late-ends")
	for _, page := range pages {
		healed(p, page)
	}
	p.Asked(late)
	trace.WaitText("awaiting approval")
	overview.WaitText("Do late")
	list.WaitText("Do late")
	onceEach(p, trace, late)
	for _, id := range []string{task, late} {
		n.Through(id)
		p.LandedOnce(id)
	}
	overview.WaitGone("Do late")
}

// streams is how many streams are connected to the server, by its own figures.
func streams(n *placetest.Node) int {
	n.Helper()
	var text strings.Builder
	if status, err := n.Text("/metrics", n.Asker, &text); err != nil || status != http.StatusOK {
		n.Fatalf("/metrics: %d, %v", status, err)
	}
	m := regexp.MustCompile(`(?m)^gatehouse_streams_open (\d+)$`).FindStringSubmatch(text.String())
	if m == nil {
		n.Fatal("/metrics counts no streams")
	}
	count, err := strconv.Atoi(m[1])
	n.Must(err)
	return count
}

// TestEightTabsShareOneStream: on plain HTTP/1.1 a browser keeps six connections to a host,
// and eight tabs are live all the same; when the tab goes that holds the stream, another one takes
// it over; and tabs of a session that has ended hear nothing of the next person's.
func TestEightTabsShareOneStream(t *testing.T) {
	t.Parallel()
	p := placetest.AwayPlace(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), "10m")
	n := p.Start(p.Config, "")
	first := browsertest.New(t).Page()
	enter(p, first, n.URL, "eve", people.Operator, people.Approver)
	tabs := []*browsertest.Page{first}
	for len(tabs) < 8 {
		tabs = append(tabs, first.Tab())
	}
	for _, tab := range tabs {
		tab.Expect("401")
		watch(tab, n.URL+"/")
	}
	p.Until("one stream for eight tabs", func() bool { return streams(n) == 1 })
	n.Send("early", "app", "the eighth hears")
	for _, tab := range tabs {
		tab.WaitText("Do the eighth hears")
	}

	hide := func(tab *browsertest.Page, hidden bool) {
		browsertest.Eval[bool](tab, fmt.Sprintf(`(() => {
			Object.defineProperty(document, "hidden", {value: %t, configurable: true})
			return document.dispatchEvent(new Event("visibilitychange"))
		})()`, hidden))
	}
	back := tabs[1]
	hide(back, true)
	first.Open("about:blank") // it held the stream
	tabs = tabs[1:]
	p.Until("another tab to hold the stream", func() bool { return streams(n) == 1 })
	n.Send("early", "app", "handed over")
	for _, tab := range tabs[1:] {
		tab.WaitText("Do handed over")
		live(tab)
	}
	if strings.Contains(back.Text(), "Do handed over") {
		t.Error("a tab in the background asks for what nobody looks at")
	}
	hide(back, false)
	back.WaitText("Do handed over")

	// Another person signs in in the same browser.
	for _, tab := range tabs {
		browsertest.Eval[bool](tab, `(() => { window.heard = []; document.addEventListener("gh-event", e => window.heard.push(e.detail.task)); return true })()`)
	}
	other := tabs[0]
	enter(p, other, n.URL, "ivy", people.Operator)
	tabs = tabs[1:]
	for _, tab := range tabs {
		tab.WaitText("You are signed out.")
	}
	watch(other, n.URL+"/")
	id := n.Send("early", "app", "only ivy hears")
	other.WaitText("Do only ivy hears")
	p.Until("one stream, which is ivy's", func() bool { return streams(n) == 1 })
	for _, tab := range tabs {
		if heard := browsertest.Eval[string](tab, `window.heard.join(" ")`); strings.Contains(heard, id) || strings.Contains(tab.Text(), "only ivy hears") {
			t.Errorf("a tab of eve's session hears what ivy's does: %s", heard)
		}
	}
	// Without anybody signed in there is no stream left, and the tab says why.
	again := other.Tab()
	again.Open(n.URL + "/")
	again.Click("DisclosureTriangle", "Session of ivy")
	again.Click("button", "Sign out")
	again.Wait("button", "Sign in")
	other.WaitText("You are signed out.")
	p.Until("the end of every stream", func() bool { return streams(n) == 0 })
}
