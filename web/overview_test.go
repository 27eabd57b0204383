package web_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/handlers"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/people"
)

// TestTodayCountsWhatTheStepsOfAWorkflowLanded: the root of such a task has landed
// nothing itself.
func TestTodayCountsWhatTheStepsOfAWorkflowLanded(t *testing.T) {
	h := open(t)
	dora := h.user("dora", people.Operator)
	for _, state := range []approval.State{approval.Landed, approval.Landed, approval.Rejected, approval.Pending} {
		now := time.Now()
		r := h.request(dora, func(r *approval.Request) { r.State, r.Revision.State, r.DecidedAt = state, state, &now })
		h.must(h.store.InGate(h.ctx, r.TaskID, func(tx approval.Tx) error {
			d, err := tx.Delegation(h.ctx, r.DelegationID)
			if err != nil {
				return err
			}
			from := d.State
			d.State, d.EndedAt = orchestrator.Completed, &now
			return tx.Move(h.ctx, d, from, d.Attempt)
		}))
	}
	page := h.signIn(h.user("ann", people.Operator, people.Approver)).get("/").body
	for name, want := range map[string]string{"tasks": "4", "landed": "2", "rejected": "1"} {
		m := regexp.MustCompile(`<dt>` + name + `</dt><dd><a[^>]*>([0-9]+)[ <]`).FindStringSubmatch(page)
		if m == nil || m[1] != want {
			t.Errorf("%s today: %q, want %s", name, m, want)
		}
	}
}

// TestOverviewSaysWhatRunsAndWhatWentWrong: a task shows where its work is; a refused
// hand-over and a failed task show their reason and what to do.
func TestOverviewSaysWhatRunsAndWhatWentWrong(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator)
	h.busy(h.token(ann))
	failed, root := h.task(ann, "Bump <b>deps</b>")
	h.must(h.store.InTask(h.ctx, failed.ID, func(tx orchestrator.Tx) error {
		d, err := tx.Delegation(h.ctx, root.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		d.State, d.EndedAt, d.Error = orchestrator.Failed, &now, &agent.Failure{Code: "exit", Message: "claude: not signed in"}
		return tx.Move(h.ctx, d, orchestrator.Queued, d.Attempt)
	}))
	page := h.signIn(ann).get("/").body
	for _, want := range []string{"coder is next in line", "claude: not signed in", "then Retry", "Bump &lt;b&gt;deps&lt;/b&gt;", "<code>cycle</code>", "from=kik&amp;to=%3Ckik%3E", "1 refusal", "all closed", "since midnight, UTC"} {
		if !strings.Contains(page, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
	if strings.Contains(page, "<kik>") {
		t.Error("a name is markup")
	}
}

// TestOverviewTellsWhatIsWrongWithTheHouse: on top, with the page that helps.
func TestOverviewTellsWhatIsWrongWithTheHouse(t *testing.T) {
	h := open(t)
	now := time.Now()
	h.web.Site.Condition = func(context.Context) (handlers.Condition, error) {
		return handlers.Condition{Nodes: []handlers.NodeSeen{{Name: "one", Seen: now}, {Name: "two", Seen: now.Add(-4 * time.Minute)}},
			Sealed: now.Add(-3 * time.Hour), Unsealed: now.Add(-2 * time.Hour), Free: 200_000_000}, nil
	}
	b := h.signIn(h.user("ann", people.Admin, people.Operator))
	page := b.get("/").body
	for _, want := range []string{"Node two has not been heard of for 4 min", "has not been sealed for 2 h", "200 MB left", "Nodes:</span> 1"} {
		if !strings.Contains(page, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
	h.web.Site.Condition = func(context.Context) (handlers.Condition, error) {
		return handlers.Condition{Nodes: []handlers.NodeSeen{{Name: "one", Seen: now}}, Sealed: now.Add(-3 * time.Hour), Free: 200_000_000_000}, nil
	}
	if page := b.get("/").body; strings.Contains(page, `class="problem"`) || !strings.Contains(page, "Last seal:") {
		t.Error("a house that does well has problems, or says nothing of its seals")
	}
}

// TestSearchLeadsToWhatAnEndingNames: of tasks, delegations and requests alike, written short
// or whole; a word that is no ending is searched.
func TestSearchLeadsToWhatAnEndingNames(t *testing.T) {
	h := open(t)
	ann := h.user("ann", people.Admin, people.Operator)
	r := h.request(ann)
	b := h.signIn(ann)
	for q, want := range map[string]string{
		r.ID:                         "/approvals/" + r.ID,
		r.ID[len(r.ID)-8:]:           "/approvals/" + r.ID,
		"apr_…" + r.ID[len(r.ID)-6:]: "/approvals/" + r.ID,
		r.TaskID[len(r.TaskID)-9:]:   "/delegations/" + r.TaskID,
		"DLG_" + strings.ToUpper(r.DelegationID[len(r.DelegationID)-8:]): "/delegations/" + r.DelegationID,
		"uploader": "/delegations",
		"000000":   "/delegations",
	} {
		if a := b.get("/delegations?q=" + url.QueryEscape(q)); a.StatusCode != http.StatusOK || a.Request.URL.Path != want {
			t.Errorf("%q led to %d %s, want %s", q, a.StatusCode, a.Request.URL.Path, want)
		}
	}
}
