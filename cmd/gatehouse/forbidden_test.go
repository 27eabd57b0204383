package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// pairTeam is one agent whose every change two people have to want.
const pairTeam = `
engine: {workers: 2}
repositories:
  app: {path: "REPO", branch: main}
approval: {rules: [{name: pair, when: "true", need: 2}]}
agents:
  coder:
    kind: command
    repository: app
    env: {PLACE: MARK}
    command: [sh, -c, 'cat > "note-$GATEHOUSE_TASK_ID.txt"']
`

// pair is a server at which two people have to want a change.
type pair struct {
	*placetest.Node
	tokens map[string]string
}

// say gives a verdict by the API and returns the status.
func (p pair) say(r approval.Request, who string, v wire.Verdict) int {
	p.Helper()
	code, err := p.Call(http.MethodPost, "/api/v1/approvals/"+r.ID+"/decision", p.tokens[who], v, nil)
	if err != nil {
		p.Error(err)
	}
	return code
}

// heads is how many commits main has.
func (p pair) heads() int {
	p.Helper()
	return strings.Count(placetest.Git(p.T, p.Repo, "rev-list", "main"), "\n")
}

// TestNothingLandsThatTheRulesForbid: one person counts once however often they say it, a yes
// to what was not shown counts never, and of an end and a yes that race one holds as a whole.
func TestNothingLandsThatTheRulesForbid(t *testing.T) {
	t.Parallel()
	placetest.Places(t, func(t *testing.T, database string) {
		p := placetest.New(t, database, pairTeam)
		all := pair{p.Start(p.Config, ""), map[string]string{"bob": p.Approver, "cleo": p.Person("cleo", people.Approver)}}
		all.countsOnce()
		all.landsWhatWasShown()
		for i := range 6 {
			all.endsAsOne(time.Duration(i*i) * 15 * time.Millisecond)
		}
		all.Stop()
	})
}

// countsOnce: bob says yes and takes it back from many clients at once; alone he lands nothing.
func (p pair) countsOnce() {
	r := p.Asked(p.Send("coder", "app", "once"))
	before := p.heads()
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			verdict := "approve"
			if i%3 == 2 {
				verdict = "withdraw"
			}
			p.say(r, "bob", wire.Verdict{Verdict: verdict, Digest: r.Revision.Digest})
		})
	}
	wg.Wait()
	now := p.Requests(r.TaskID)[0]
	if now.State != approval.Pending || len(now.Yes()) > 1 || p.heads() != before {
		p.Errorf("bob alone: %s with %d yeses, %d commits more", now.State, len(now.Yes()), p.heads()-before)
	}
	p.say(r, "bob", wire.Verdict{Verdict: "reject", Comment: "No.", Digest: r.Revision.Digest})
	for _, who := range []string{"bob", "cleo"} {
		if code := p.say(r, who, wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest}); code != http.StatusConflict {
			p.Errorf("%s says yes to what was rejected: %d", who, code)
		}
	}
	if now := p.Requests(r.TaskID)[0]; now.State != approval.Rejected || p.heads() != before {
		p.Errorf("after a no: %s, %d commits more", now.State, p.heads()-before)
	}
}

// landsWhatWasShown: a digest that is missing, made up, cut or another request's is no yes.
func (p pair) landsWhatWasShown() {
	other, r := p.Asked(p.Send("coder", "app", "other")), p.Asked(p.Send("coder", "app", "shown"))
	before, right := p.heads(), r.Revision.Digest
	for _, digest := range []string{"", right[:8], right[:63], strings.ToUpper(right), right + " ", strings.Repeat("0", 64), other.Revision.Digest} {
		for who := range p.tokens {
			if code := p.say(r, who, wire.Verdict{Verdict: "approve", Digest: digest}); code < 400 || code >= 500 {
				p.Errorf("%s's yes to digest %q: %d", who, digest, code)
			}
		}
	}
	for _, task := range []string{r.TaskID, other.TaskID} {
		if now := p.Requests(task)[0]; now.State != approval.Pending || len(now.Decisions) != 0 || p.heads() != before {
			p.Errorf("after wrong digests: %s, decisions %+v, %d commits more", now.State, now.Decisions, p.heads()-before)
		}
	}
}

// endsAsOne: the asker cancels so long after the second yes was sent. Either the change landed
// and everything says so, or nothing did.
func (p pair) endsAsOne(after time.Duration) {
	r := p.Asked(p.Send("coder", "app", time.Now().String()))
	before := p.heads()
	p.say(r, "bob", wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if i%2 == 0 {
				p.say(r, "cleo", wire.Verdict{Verdict: "approve", Digest: r.Revision.Digest})
				return
			}
			time.Sleep(after)
			if _, err := p.Call(http.MethodPost, "/api/v1/delegations/"+r.DelegationID+"/cancel", p.Asker, nil, nil); err != nil {
				p.Error(err)
			}
		})
	}
	wg.Wait()
	p.Until("the end", func() bool { return p.Root(r.TaskID).State.Ended() })
	now, root, more := p.Requests(r.TaskID)[0], p.Root(r.TaskID), p.heads()-before
	landed := root.State == orchestrator.Completed
	switch {
	case landed && (now.State != approval.Landed || len(now.Yes()) != 2 || now.Landed == "" || more == 0):
		p.Errorf("landed: request %s with %d yeses at %q, %d commits more", now.State, len(now.Yes()), now.Landed, more)
	case !landed && (now.State != approval.Cancelled || now.Landed != "" || more != 0):
		p.Errorf("%s: request %s at %q, %d commits more", root.State, now.State, now.Landed, more)
	}
	p.Logf("cancelled %s after the second yes: %s", after, root.State)
	p.Events(r.TaskID)
}
