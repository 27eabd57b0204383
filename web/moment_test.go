package web_test

import (
	"context"
	"net/http"
	"regexp"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store/storetest"
)

// meddler lets something happen in the middle of a page: right after the position of the
// log was read, which every page does.
type meddler struct {
	handlers.Reader
	meanwhile func()
}

func (m *meddler) LastPosition(ctx context.Context) (int64, error) {
	n, err := m.Reader.LastPosition(ctx)
	if do := m.meanwhile; do != nil {
		m.meanwhile = nil
		do()
	}
	return n, err
}

// formKey is drawn anew for each form.
var formKey = regexp.MustCompile(`name="key" value="[^"]*"`)

// streamFrom is where a page's stream begins. On PostgreSQL it may be behind by what other
// databases of the server hold open, and catch up between two looks.
var streamFrom = regexp.MustCompile(`after=\d+`)

// TestAPageIsOfOneMoment: somebody decides while a page is read. The page is as it was
// before, in all of its parts, and the next one is as it is afterwards.
func TestAPageIsOfOneMoment(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *house{
		"sqlite": open, "postgres": func(t *testing.T) *house { return openAt(t, storetest.Postgres(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			ann, bob := h.user("ann", people.Admin, people.Operator, people.Approver, people.Auditor), h.user("bob", people.Approver)
			b := h.signIn(ann)
			reader := &meddler{Reader: h.store}
			noon := time.Now().Add(time.Minute)
			h.web.Pages.Reader, h.web.Pages.Now = reader, func() time.Time { return noon }
			pages := []func(approval.Request) string{
				func(approval.Request) string { return "/" },
				func(approval.Request) string { return "/approvals" },
				func(r approval.Request) string { return "/approvals/" + r.ID },
				func(approval.Request) string { return "/delegations" },
				func(r approval.Request) string { return "/delegations/" + r.TaskID + "?tab=tree" },
				func(r approval.Request) string { return "/delegations/" + r.TaskID + "?tab=events" },
				func(approval.Request) string { return "/audit?list=delegations" },
				func(approval.Request) string { return "/chat" },
			}
			for _, page := range pages {
				r := h.request(ann)
				path := page(r)
				show := func() string {
					a := b.get(path)
					if a.StatusCode != http.StatusOK {
						t.Fatalf("%s: status %d", path, a.StatusCode)
					}
					if name == "postgres" {
						a.body = streamFrom.ReplaceAllString(a.body, "")
					}
					return formKey.ReplaceAllString(a.body, "")
				}
				show() // a request that is opened for the first time says so
				before := show()
				reader.meanwhile = func() {
					_, err := h.gate.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(bob, nil), Channel: "test",
						Verdict: approval.Reject, Digest: r.Revision.Digest, Revision: 1, Comment: "No."})
					h.must(err)
				}
				if during := show(); during != before {
					t.Errorf("%s shows two moments at once:\n%s", path, firstDifference(before, during))
				}
				if after := show(); after == before {
					t.Errorf("%s does not show what was decided", path)
				}
			}
		})
	}
}

// firstDifference is where two texts part.
func firstDifference(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	from := max(0, i-200)
	return "was:\n" + a[from:min(len(a), i+200)] + "\nis:\n" + b[from:min(len(b), i+200)]
}
