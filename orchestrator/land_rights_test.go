package orchestrator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// held is a world whose landings stop at a point until they are let go.
func (w *world) held(point string) (reached <-chan struct{}, letGo func()) {
	at, free := make(chan struct{}, 16), make(chan struct{}, 16)
	w.trace = func(p string) {
		if p == point {
			at <- struct{}{}
			<-free
		}
	}
	w.t.Cleanup(func() { close(free) })
	return at, func() { free <- struct{}{} }
}

// What bob's right may come to between his yes and the intent of the landing, and what
// the event says of it.
func TestAYesOfSomebodyWhoLostTheRightLandsNothing(t *testing.T) {
	for what, lose := range map[string]struct {
		take func(w *world) error
		give func(w *world) error
		why  string
	}{
		"disabled": {func(w *world) error { return w.store.SetDisabled(w.t.Context(), "root", w.bob.ID, true) },
			func(w *world) error { return w.store.SetDisabled(w.t.Context(), "root", w.bob.ID, false) }, "bob is disabled"},
		"no role": {func(w *world) error {
			return w.store.SetRoles(w.t.Context(), "root", w.bob.ID, []people.Role{people.Operator})
		},
			func(w *world) error {
				return w.store.SetRoles(w.t.Context(), "root", w.bob.ID, []people.Role{people.Approver})
			}, "bob has no role approver any more"},
		"no group": {func(w *world) error { w.group("cleo"); return nil }, func(w *world) error { w.group("bob", "cleo"); return nil }, "bob is not in maintainers any more"},
	} {
		t.Run(what, func(t *testing.T) {
			either(t, func(t *testing.T, url string) {
				w := newWorld(t, url, specs("coder")...)
				w.script("coder", writes("new.txt", "new\n"))
				w.user("root", people.Admin)
				cleo := w.user("cleo", people.Approver)
				w.group("bob", "cleo")
				reached, letGo := w.held("landing planned")
				w.start()
				root := w.send("coder", "write")
				r := w.request(root.TaskID, 1)
				main := w.git("rev-parse", "main")
				w.approve(r)
				<-reached
				must(t, lose.take(w))
				letGo()
				d := w.state(root.ID, orchestrator.AwaitingApproval)
				after := w.reread(r.ID)
				if after.State != approval.Pending || after.Revision.State != approval.Pending || after.DecidedAt != nil || d.Work.Land != nil || w.git("rev-parse", "main") != main {
					t.Fatalf("request %s, revision %s, order %+v, main %s", after.State, after.Revision.State, d.Work.Land, w.git("rev-parse", "main"))
				}
				said := w.last(root.TaskID, event.WithdrawnRight)
				var data struct {
					ApprovalID string `json:"approval_id"`
					Message    string
					Have, Need int
					Lost       []approval.LostRight
				}
				must(t, json.Unmarshal(said.Data, &data))
				if len(data.Lost) != 1 || data.Lost[0].User+" "+data.Lost[0].Why != lose.why || data.ApprovalID != r.ID || data.Have != 0 || data.Need != 1 || !strings.Contains(data.Message, lose.why) {
					t.Fatalf("event %s", said.Data)
				}
				// The right comes back, and the yes that was ended does not: cleo's is the one that
				// is needed.
				must(t, lose.give(w))
				if n, err := w.gateway.Needs(w.t.Context(), w.reread(r.ID)); err != nil || n.Have != 0 || !slices.Contains(approval.Names(n.Missing), "bob") {
					t.Fatalf("needs %+v, %v", n, err)
				}
				if _, err := w.gateway.Decide(w.t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(cleo, nil), Channel: "web", Verdict: approval.Approve, Digest: r.Revision.Digest}); err != nil {
					t.Fatal(err)
				}
				<-reached
				letGo()
				w.state(root.ID, orchestrator.Completed)
				if n := w.count(root.TaskID, event.WithdrawnRight); n != 1 || !strings.Contains(w.git("log", "-1", "--format=%B", "main"), "Approved-by: cleo") {
					t.Fatalf("%d events; %s", n, w.git("log", "-1", "--format=%B", "main"))
				}
			})
		})
	}
}

// The yes of whoever is given the right back stays ended, so that of two yeses none counts
// once the other is lost, too: it lands in the name of who says yes again, and in no other.
func TestAMergeNamesOnlyThoseWhoseYesCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("coder")...)
	w.script("coder", writes("new.txt", "new\n"))
	w.user("root", people.Admin)
	cleo := w.user("cleo", people.Approver)
	w.group("bob", "cleo")
	reached, letGo := w.held("landing planned")
	w.start()
	root := w.send("coder", "write")
	r := w.request(root.TaskID, 1)
	w.approve(r)
	<-reached
	must(t, w.store.SetDisabled(t.Context(), "root", w.bob.ID, true))
	letGo()
	w.state(root.ID, orchestrator.AwaitingApproval)
	if _, err := w.gateway.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(cleo, nil), Channel: "web", Verdict: approval.Approve, Digest: r.Revision.Digest}); err != nil {
		t.Fatal(err)
	}
	<-reached // ordered in cleo's name
	must(t, w.store.SetDisabled(t.Context(), "root", w.bob.ID, false))
	must(t, w.store.SetRoles(t.Context(), "root", cleo.ID, []people.Role{people.Operator}))
	letGo()
	w.state(root.ID, orchestrator.AwaitingApproval)
	w.approve(r) // bob says it again
	<-reached
	letGo()
	w.state(root.ID, orchestrator.Completed)
	if message := w.git("log", "-1", "--format=%B", "main"); !strings.Contains(message, "Approved-by: bob") || strings.Contains(message, "Approved-by: cleo") {
		t.Fatalf("the merge says:\n%s", message)
	}
}

// The branch moves on while the landing is planned, so it is planned anew, and the right
// that was lost in between counts then.
func TestALandingThatIsPlannedAnewAsksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("coder")...)
	w.script("coder", writes("new.txt", "new\n"))
	w.user("root", people.Admin)
	reached, letGo := w.held("intent committed")
	w.start()
	root := w.send("coder", "write")
	r := w.request(root.TaskID, 1)
	w.approve(r)
	<-reached
	moved := w.commit(map[string]string{"other.txt": "people's\n"}) // the push of the intent fails on it
	must(t, w.store.SetDisabled(t.Context(), "root", w.bob.ID, true))
	letGo()
	w.state(root.ID, orchestrator.AwaitingApproval)
	if w.git("rev-parse", "main") != moved || w.reread(r.ID).State != approval.Pending || w.count(root.TaskID, event.WithdrawnRight) != 1 {
		t.Fatalf("main is at %s, the request %s\n%s", w.git("rev-parse", "main"), w.reread(r.ID).State, w.history(root.TaskID))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// group makes these people the maintainers, of whom every rule wants to hear.
func (w *world) group(names ...string) {
	w.t.Helper()
	one := 1
	groups := map[string][]string{"maintainers": names}
	p, problems := policy.CompileRules([]policy.RuleConfig{{Name: "all", When: "true", Need: &one, From: []string{"maintainers"}}}, groups)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	c := w.gateway.Config()
	c.Policy, c.Groups = p, groups
	w.gateway.SetConfig(c)
}

// owner says whose an agent is.
func (w *world) owner(agent, name string) {
	c := w.gateway.Config()
	all := map[string]approval.AgentRule{agent: {Owner: name}}
	for k, v := range c.Agents {
		if k != agent {
			all[k] = v
		}
	}
	c.Agents = all
	w.gateway.SetConfig(c)
}

// last is the newest event of a type.
func (w *world) last(taskID string, typ event.Type) event.Event {
	w.t.Helper()
	var found event.Event
	for _, e := range w.events(taskID) {
		if e.Type == typ {
			found = e
		}
	}
	return found
}

// Between the yes and the intent it turns out that who gave it may not: four eyes are
// switched on for a change of one's own, or the deputy's absent one may not decide any more.
func TestWhatChangedBeforeLandingIsLookedAt(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		before func(w *world, cleo people.User)
		lose   func(w *world, cleo people.User) error
		why    string
	}{
		"four eyes": {before: func(w *world, _ people.User) { w.eyes(false); w.owner("coder", "bob") },
			lose: func(w *world, _ people.User) error { w.eyes(true); return nil }, why: "bob owns the agent coder, so somebody else must approve it"},
		"the absent one": {before: func(w *world, cleo people.User) {
			w.group("cleo")
			w.must(w.store.SetAway(w.t.Context(), "root", cleo.ID, &people.Away{To: w.bob.ID, From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}))
		}, lose: func(w *world, cleo people.User) error {
			return w.store.SetRoles(w.t.Context(), "root", cleo.ID, []people.Role{people.Operator})
		}, why: "stood in for cleo, who may not decide any more"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", specs("coder")...)
			w.script("coder", writes("new.txt", "new\n"))
			w.user("root", people.Admin)
			cleo := w.user("cleo", people.Approver)
			c.before(w, cleo)
			reached, letGo := w.held("landing planned")
			w.start()
			root := w.send("coder", "write")
			r := w.request(root.TaskID, 1)
			main := w.git("rev-parse", "main")
			w.approve(r)
			<-reached
			must(t, c.lose(w, cleo))
			letGo()
			w.state(root.ID, orchestrator.AwaitingApproval)
			said := w.last(root.TaskID, event.WithdrawnRight)
			if w.reread(r.ID).State != approval.Pending || w.git("rev-parse", "main") != main || !strings.Contains(string(said.Data), c.why) {
				t.Fatalf("the request is %s, the event %s", w.reread(r.ID).State, said.Data)
			}
		})
	}
}

// eyes switches four eyes on or off.
func (w *world) eyes(four bool) {
	c := w.gateway.Config()
	c.FourEyes = four
	w.gateway.SetConfig(c)
}

// A push that is refused keeps its intent, for days where nobody mends what is in its way.
// Whoever loses the right meanwhile lands nothing by it, and the merge names nobody whose yes
// does not count.
func TestALandingThatWasHeldUpAsksAgain(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, specs("coder")...)
		w.script("coder", writes("new.txt", "new\n"))
		w.user("root", people.Admin)
		cleo := w.user("cleo", people.Approver)
		w.group("bob", "cleo")
		reached, letGo := w.held("intent committed")
		w.start()
		root := w.send("coder", "write")
		r := w.request(root.TaskID, 1)
		main, busy := w.git("rev-parse", "main"), filepath.Join(w.git("rev-parse", "--absolute-git-dir"), "refs/heads/main.lock")
		w.approve(r)
		<-reached
		must(t, os.WriteFile(busy, nil, 0o600))
		letGo()
		w.until(root.ID, "held up behind its intent", func(d orchestrator.Delegation) bool {
			return d.Work.Problem != "" && d.Work.Land.Intent != nil
		})
		must(t, w.store.SetDisabled(t.Context(), "root", w.bob.ID, true))
		must(t, os.Remove(busy))
		w.state(root.ID, orchestrator.AwaitingApproval)
		if after := w.reread(r.ID); after.State != approval.Pending || w.git("rev-parse", "main") != main || w.count(root.TaskID, event.WithdrawnRight) != 1 {
			t.Fatalf("request %s, main moved: %v", after.State, w.git("rev-parse", "main") != main)
		}
		if _, err := w.gateway.Decide(t.Context(), approval.Ballot{RequestID: r.ID, Principal: people.As(cleo, nil), Channel: "web", Verdict: approval.Approve, Digest: r.Revision.Digest}); err != nil {
			t.Fatal(err)
		}
		<-reached
		letGo()
		w.state(root.ID, orchestrator.Completed)
		if message := w.git("log", "-1", "--format=%B", "main"); strings.Contains(message, "Approved-by: bob") || !strings.Contains(message, "Approved-by: cleo") {
			t.Errorf("the merge says:\n%s", message)
		}
	})
}
