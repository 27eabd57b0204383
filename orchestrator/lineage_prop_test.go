package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/approval"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/patch"
	"gatehouse/orchestrator/people"

	"pgregory.net/rapid"
)

// ancestry is what a lead does with its task, in its first run; the task's text.
type ancestry struct {
	N     int  // makes what it writes its own
	Dep   bool // hand to dep on the same repository
	Clash bool // and change dep's file meanwhile, so that its tree is not taken over
	Help  bool // dep hands to help
	Wise  bool // ask wise, who only answers, and write down its answer
}

// line is one tree on its way to a yes, with whom a direct request would bar.
type line struct {
	w      *world
	team   map[string]people.User
	task   string
	rev    int
	n      int
	barred map[string]bool
	owners map[string]string // of the agents, as configured now
	worked []string          // agents with a part in the tree
	files  []string
	did    []string
}

var lineageTeam = []string{"amy", "tess", "leo", "dan", "hal", "wim", "zoe", "eddy", "edna", "fay", "rex", "rita", "nia", "ned"}

// TestNobodyWhomADirectRequestWouldBarGivesAYes: whatever people and agents do with a tree,
// in whatever order, four eyes know of everybody whose work or wish is in it.
func TestNobodyWhomADirectRequestWouldBarGivesAYes(t *testing.T) {
	var cases, steps atomic.Int64
	t.Cleanup(func() { t.Logf("%d cases with %d steps", cases.Load(), steps.Load()) })
	for i := range lineageLines {
		t.Run(fmt.Sprint("line ", i), func(t *testing.T) {
			t.Parallel() // most of a case is waiting for git and for workers
			l, began := newLine(t), time.Now()
			rapid.Check(t, func(rt *rapid.T) {
				if time.Since(began) < lineageTime {
					cases.Add(1)
					l.live(rt, &steps)
				}
			})
		})
	}
}

// TestAForkKeepsOwnersAsTheyWere: a fork is another task with another request, and the agents are
// nobody's by then.
func TestAForkKeepsOwnersAsTheyWere(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.begin(ancestry{Dep: true, Wise: true}, "web")
	l.check(t)
	l.own(map[string]string{})
	for _, what := range []string{"fork", "changes", "edit", "fork"} {
		l.step(what)
		l.check(t)
	}
}

// live is one case: a task, and what is done with what it makes.
func (l *line) live(rt *rapid.T, steps *atomic.Int64) {
	l.begin(ancestry{Dep: rapid.Bool().Draw(rt, "dep"), Clash: rapid.IntRange(0, 2).Draw(rt, "clash") == 0, Help: rapid.Bool().Draw(rt, "help"),
		Wise: rapid.Bool().Draw(rt, "wise")},
		rapid.SampledFrom([]string{"web", "webhook ci"}).Draw(rt, "via"))
	l.check(rt)
	for _, what := range rapid.SliceOfN(rapid.SampledFrom([]string{"edit", "some", "changes", "reload", "retry", "fork", "revert"}), 1, 5).Draw(rt, "steps") {
		l.step(what)
		l.check(rt)
		steps.Add(1)
		if what == "revert" {
			break // nothing goes on from one
		}
	}
	l.must(errOnly(l.w.engine.Cancel(l.w.t.Context(), l.task, "nia")))
}

// lineageLines is how many worlds live at once.
const lineageLines = 2

// lineageTime bounds the cases, whatever rapid.checks says.
const lineageTime = 11 * time.Second

func errOnly[T any](_ T, err error) error { return err }

func newLine(t *testing.T) *line {
	w := newWorld(t, "sqlite:"+t.TempDir()+"/g.db", agent.Spec{Name: "lead", Kind: agent.LLM}, agent.Spec{Name: "dep"}, agent.Spec{Name: "help"}, agent.Spec{Name: "wise"})
	l := &line{w: w, team: map[string]people.User{}}
	for _, name := range lineageTeam {
		l.team[name] = w.user(name, people.Approver, people.Operator)
	}
	w.script("lead", leads)
	w.script("dep", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		var a ancestry
		err := json.Unmarshal([]byte(job.Text), &a)
		if a.Help {
			err = errors.Join(err, hands(ctx, host, "help", job.Text, nil))
		}
		return agenttest.Done("dep"), errors.Join(err, writeFile(job.Dir, "dep.txt", fmt.Sprint("dep ", a.N)))
	})
	w.script("help", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		return agenttest.Done("help"), writeFile(job.Dir, "help.txt", job.Text)
	})
	w.script("wise", func(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
		return agenttest.Done("wise words"), nil
	})
	w.votes(2)
	c := w.gateway.Config()
	c.Triggers = map[string]string{"ci": "tess"}
	w.gateway.SetConfig(c)
	l.own(map[string]string{"lead": "leo", "dep": "dan", "help": "hal", "wise": "wim"})
	w.start()
	return l
}

// own configures who owns the agents, for the engine as for the gate.
func (l *line) own(owners map[string]string) {
	l.owners = owners
	c := l.w.gateway.Config()
	c.Agents = map[string]approval.AgentRule{}
	specs := l.w.config.Agents.All()
	for i, s := range specs {
		specs[i].Owner = owners[s.Name]
		if owners[s.Name] != "" {
			c.Agents[s.Name] = approval.AgentRule{Owner: owners[s.Name]}
		}
	}
	var err error
	l.w.config.Agents, err = agent.NewRegistry(specs)
	l.must(err)
	l.w.engine.SetConfig(l.w.config)
	l.w.gateway.SetConfig(c)
}

// asked notes that people are asked anew: who owns one of the agents now is barred, too.
func (l *line) asked() {
	for _, name := range l.worked {
		if owner := l.owners[name]; owner != "" {
			l.barred[owner] = true
		}
	}
}

// hands makes a hop, does something meanwhile, and waits for its end.
func hands(ctx context.Context, host agent.Host, to, text string, meanwhile func() error) error {
	c, err := host.Delegate(ctx, agent.Hop{To: to, Text: text})
	if err == nil && meanwhile != nil {
		err = meanwhile()
	}
	if err == nil && !c.Ended {
		_, err = host.Await(ctx, c.ID)
	}
	return err
}

// leads is the lead: it hands on in its first run only, and a fork of it adds nothing.
func leads(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
	var a ancestry
	if err := json.Unmarshal([]byte(job.Text), &a); err != nil || len(job.Turns) > 0 {
		return agenttest.Done("on"), err
	}
	if a.Dep && job.Generation == 0 {
		clash := func() error { return nil }
		if a.Clash {
			clash = func() error { return writeFile(job.Dir, "dep.txt", fmt.Sprint("lead's ", a.N)) }
		}
		if err := hands(ctx, host, "dep", job.Text, clash); err != nil {
			return agent.Outcome{}, err
		}
	}
	said := ""
	if a.Wise && job.Generation == 0 {
		c, err := host.Delegate(ctx, agent.Hop{To: "wise", Text: job.Text})
		if err == nil && !c.Ended {
			c, err = host.Await(ctx, c.ID)
		}
		if err != nil || c.Result == nil {
			return agent.Outcome{}, errors.Join(err, errors.New("wise said nothing"))
		}
		said = c.Result.Text
	}
	err := errors.Join(writeFile(job.Dir, "lead.txt", fmt.Sprint("lead ", a.N, " ", job.Generation, said)),
		host.SaveTurn(ctx, calls(1, "x"), false), host.SaveTurn(ctx, replies(2, []string{"x"}), true))
	return agenttest.Done("led"), err
}

func (l *line) must(err error) { l.w.t.Helper(); l.w.must(err) }

// begin sends a task of amy's, who is barred with whoever is behind the agents.
func (l *line) begin(a ancestry, via string) {
	l.w.t.Helper()
	l.n++
	a.N = l.n
	text, err := json.Marshal(a)
	l.must(err)
	l.own(map[string]string{"lead": "leo", "dep": "dan", "help": "hal", "wise": "wim"}) // before the work begins
	task, _, _, err := l.w.engine.Submit(l.w.t.Context(), orchestrator.Submission{Agent: "lead", Text: string(text), Repository: "app", Via: origin.Parse(via),
		RequesterID: l.team["amy"].ID, Requester: "amy"})
	l.must(err)
	l.task, l.rev, l.did = task.ID, 1, []string{via + " " + string(text)}
	l.barred, l.worked = map[string]bool{"amy": true, "tess": via != "web"}, []string{"lead"}
	if a.Dep {
		l.worked = append(l.worked, "dep") // with its tree, or with its answer alone
	}
	if a.Dep && a.Help {
		l.worked = append(l.worked, "help")
	}
	if a.Wise {
		l.worked = append(l.worked, "wise")
	}
	l.asked()
}

// check asks for each of the team whether they may say yes now.
func (l *line) check(rt interface{ Fatalf(string, ...any) }) {
	r := l.w.request(l.task, l.rev)
	l.files = nil
	for _, f := range r.Revision.Files {
		l.files = append(l.files, f.Path)
	}
	e, err := l.w.gateway.Electorate(l.w.t.Context())
	l.must(err)
	for _, name := range lineageTeam {
		refused := e.May(people.As(l.team[name], nil), r, approval.Approve)
		switch {
		case l.barred[name] && (refused == nil || refused.Code != orchestrator.CodeFourEyes):
			rt.Fatalf("%s may approve after %s: %+v", name, strings.Join(l.did, ", "), r.Lineage)
		case refused != nil && (name == "nia" || name == "ned"):
			rt.Fatalf("%s, who has no part in it, may not approve after %s: %v", name, strings.Join(l.did, ", "), refused)
		}
	}
}

// step does one thing with the tree and says who is barred by it.
func (l *line) step(what string) {
	w, ctx := l.w, l.w.t.Context()
	r := w.request(l.task, l.rev)
	l.did = append(l.did, what)
	l.n++
	switch what {
	case "edit":
		who := []string{"eddy", "edna"}[l.n%2]
		l.must(errOnly(w.edit(l.team[who], r, patch.FileEdit{Path: "lead.txt", Text: fmt.Sprint("edited ", l.n)})))
		l.barred[who] = true
		l.rev++
	case "some":
		if len(l.files) < 2 || !slices.Contains(l.files, "lead.txt") {
			return
		}
		l.must(errOnly(w.some(l.team["nia"], r, "lead.txt")))
		l.rev++
	case "changes":
		b := w.ballot(l.team["nia"], r, approval.RequestChanges)
		b.Comment = "again"
		l.must(errOnly(w.gateway.Decide(ctx, b)))
		l.rev++
	case "retry":
		l.must(errOnly(w.gateway.Decide(ctx, w.ballot(l.team["nia"], r, approval.Reject))))
		l.must(errOnly(w.engine.Retry(ctx, l.task, l.team["rita"])))
		l.rev, l.worked = 1, []string{"lead"}
		for _, name := range []string{"leo", "dan", "hal", "wim", "zoe", "eddy", "edna"} {
			delete(l.barred, name) // its checkout is fresh
		}
		l.barred["rita"] = true
	case "reload":
		l.own([]map[string]string{{}, {"dep": "zoe", "wise": "leo"}, {"lead": "zoe", "help": "wim"}}[l.n%3])
		return // people are asked nothing by that
	case "fork":
		old := l.task
		task, _, err := w.engine.Fork(ctx, orchestrator.Fork{DelegationID: r.DelegationID, RequesterID: l.team["fay"].ID, Requester: "fay", Via: origin.From(origin.API)})
		l.must(err)
		l.must(errOnly(w.engine.Cancel(ctx, old, "nia")))
		l.task, l.rev = task.ID, 1
		l.barred["fay"] = true
	case "revert":
		l.must(errOnly(w.gateway.Decide(ctx, w.ballot(l.team["ned"], r, approval.Approve))))
		if l.w.reread(r.ID).State == approval.Pending {
			l.must(errOnly(w.gateway.Decide(ctx, w.ballot(l.team["nia"], r, approval.Approve))))
		}
		w.state(r.DelegationID, orchestrator.Completed)
		task, err := w.gateway.Revert(ctx, r.ID, people.As(l.team["rex"], nil))
		l.must(err)
		l.task, l.rev = task.ID, 1
		l.barred["rex"] = true
	}
	l.asked()
}
