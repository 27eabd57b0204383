package web_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/store/storetest"
)

// meddler lets something happen in the middle of a page: right before or right after the
// position of the log is read, which every page does.
type meddler struct {
	handlers.Reader
	before, after func()
}

func (m *meddler) LastPosition(ctx context.Context) (int64, error) {
	once(&m.before)
	n, err := m.Reader.LastPosition(ctx)
	once(&m.after)
	return n, err
}

func once(do *func()) {
	if now := *do; now != nil {
		*do = nil
		now()
	}
}

// formKey is drawn anew for each form.
var formKey = regexp.MustCompile(`name="key" value="[^"]*"`)

// streamFrom is where a page's stream begins.
var streamFrom = regexp.MustCompile(`data-stream="[^"]*[?]after=(\d+)`)

// settled waits until the last event of r's task has its place in the order over all tasks,
// and returns that place: nothing else happens beside these stories.
func (h *house) settled(r approval.Request) string {
	h.Helper()
	events, err := h.store.Events(h.ctx, r.TaskID, 0, 100)
	h.must(err)
	last := events[len(events)-1]
	for next := int64(1); ; {
		h.awaitOrder(next)
		ordered, err := h.store.Ordered(h.ctx, next-1, 1000)
		h.must(err)
		newest := ordered[len(ordered)-1]
		if newest.TaskID == last.TaskID && newest.N == last.N {
			return strconv.FormatInt(newest.Pos, 10)
		}
		next = newest.Pos + 1
	}
}

// TestAPageIsOfOneMoment: somebody decides while a page is read. The page is as it was
// before or as it is afterwards, in all of its parts, and its stream begins with the very
// next thing that happens: neither is an event lost between the two nor told twice.
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
			h.web.Site.Reader, h.web.Site.Now = reader, func() time.Time { return noon }
			show := func(path string) string {
				a := b.get(path)
				if a.StatusCode != http.StatusOK {
					t.Fatalf("%s: status %d", path, a.StatusCode)
				}
				return formKey.ReplaceAllString(a.body, "")
			}
			for _, page := range []string{"/", "/approvals", "/approvals/REQUEST", "/delegations", "/delegations/TASK?tab=tree", "/delegations/TASK?tab=events",
				"/audit?list=delegations", "/chat"} {
				for moment, at := range map[string]*func(){"before its position is read": &reader.before, "after its position is read": &reader.after} {
					r := h.request(ann)
					path := strings.NewReplacer("REQUEST", r.ID, "TASK", r.TaskID).Replace(page)
					show(path) // a request that is opened for the first time says so
					old := h.settled(r)
					was := show(path)
					*at = func() {
						_, err := h.gate.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(bob, nil), Channel: "test",
							Verdict: approval.Reject, Digest: r.Revision.Digest, Revision: 1, Comment: "No."})
						h.must(err)
						h.settled(r)
					}
					during := show(path)
					newest := h.settled(r)
					is := show(path)
					if is == was {
						t.Errorf("%s does not show what was decided", path)
					}
					if during != was && during != is {
						t.Errorf("%s shows two moments at once when it is decided %s:\n%s", path, moment, firstDifference(was, during))
					}
					for body, want := range map[string]string{was: old, is: newest} {
						if strings.Contains(body, `data-stream=""`) { // a list that stands still
							continue
						}
						if got := streamFrom.FindStringSubmatch(body); got == nil || got[1] != want {
							t.Errorf("%s begins its stream at %q; what it shows is of %s", path, got, want)
						}
					}
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
