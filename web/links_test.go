package web_test

import (
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/trigger"
)

// element is one start tag of a page: its name, and all between that and its end.
type element struct{ name, rest string }

// elements are the start tags of a page. Pages escape what looks like one in a value. An
// expression would take most of this test's time under the race detector.
func elements(page string) []element {
	var all []element
	for _, part := range strings.Split(page, "<")[1:] {
		tag, _, closed := strings.Cut(part, ">")
		name, rest, _ := strings.Cut(tag, " ")
		if closed && name != "" && name[0] >= 'a' && name[0] <= 'z' {
			all = append(all, element{name, " " + rest})
		}
	}
	return all
}

// value is an attribute as it is written; "" where there is none.
func (e element) value(attribute string) string {
	_, rest, _ := strings.Cut(e.rest, " "+attribute+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// leads is where an element leads to or what it loads. A count of nothing is hidden until
// there is something to lead to.
func (e element) leads() string {
	switch {
	case e.name == "a" && e.value("data-n") != "0", e.name == "link":
		return e.value("href")
	case e.name == "script", e.name == "img":
		return e.value("src")
	}
	return ""
}

// titled reports whether a page says in its title what it shows.
func titled(page string) bool {
	_, rest, _ := strings.Cut(page, "<title>")
	title, _, closed := strings.Cut(rest, "</title>")
	what, named := strings.CutSuffix(title, " · Gatehouse")
	return closed && named && strings.TrimSpace(what) != "" && !strings.Contains(title, "<")
}

// A link that is shown leads somewhere, for each role: no page that is not there, none that
// one may not open, none that breaks, and no place on a page that is not on it.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	h := open(t)
	crew := map[people.Role]people.User{}
	for _, role := range people.Roles() {
		crew[role] = h.user("the-"+string(role), role)
	}
	dora, ann, aud := h.user("dora", people.Operator), crew[people.Approver], crew[people.Auditor]
	t.Run("in an empty house", func(t *testing.T) { h.crawl(t, crew) })

	h.triggers()
	h.failedTask(dora)
	started, _ := h.task(dora, "Fix build")
	h.busy(h.token(dora))
	h.delivered(trigger.Started, `{"action":"completed"}`, func(d *trigger.Delivery) { d.TaskID, d.Text = started.ID, "Fix build" })
	h.delivered(trigger.Refused, `{"a":1,"a":2}`, func(d *trigger.Delivery) { d.Code, d.Message = "duplicate_key", "The key \"a\" stands twice." })
	h.request(dora)
	h.decided(dora, ann, "approve")
	h.decided(dora, ann, "reject")
	held, _ := h.task(dora, "Look at "+tricky)
	_, err := h.engine.Pause(h.ctx, held.ID, dora.ID)
	h.must(err)
	h.signIn(aud).post("/audit/holds", url.Values{"what": {"id"}, "subject": {held.ID}, "reason": {"case 12"}})
	t.Run("in a busy one", func(t *testing.T) { h.crawl(t, crew) })
}

// crawl opens every link that each of the people is shown. Three choices of view at once
// lead nowhere that two do not, and would be most of the addresses.
func (h *house) crawl(t *testing.T, crew map[people.Role]people.User) {
	for role, who := range crew {
		t.Run(string(role), func(t *testing.T) {
			b := h.signIn(who)
			from, linked := map[string]string{"/": "the address bar"}, map[string]string{}
			places := map[string][]string{} // the ids on each page
			for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
				a := b.get(queue[0])
				if a.StatusCode != http.StatusOK {
					t.Errorf("%s, linked from %s: %d", queue[0], from[queue[0]], a.StatusCode)
				}
				if !strings.Contains(a.Header.Get("Content-Type"), "text/html") {
					continue
				}
				if !titled(a.body) {
					t.Errorf("%s has no title", queue[0])
				}
				places[queue[0]] = nil
				for _, e := range elements(a.body) {
					if id := e.value("id"); id != "" {
						places[queue[0]] = append(places[queue[0]], html.UnescapeString(id))
					}
					address := e.leads()
					if address == "" {
						continue
					}
					to, err := a.Request.URL.Parse(html.UnescapeString(address))
					if err != nil || to.Scheme != "http" || !strings.HasSuffix(h.url, to.Host) {
						continue
					}
					place := to.Fragment
					to.Fragment, to.RawFragment = "", ""
					path := to.RequestURI()
					if place != "" {
						linked[path+"#"+place] = queue[0]
					}
					if _, seen := from[path]; !seen && len(to.Query()) <= 2 {
						from[path] = queue[0]
						queue = append(queue, path)
					}
				}
			}
			for link, page := range linked {
				path, place, _ := strings.Cut(link, "#")
				if ids, read := places[path]; read && !slices.Contains(ids, place) {
					t.Errorf("%s links to %s, and there is no such place", page, link)
				}
			}
			t.Logf("%d pages", len(from))
			if len(from) < 10 {
				t.Errorf("only %d pages", len(from))
			}
		})
	}
}
