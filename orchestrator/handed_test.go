package orchestrator_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/origin"
	"gatehouse/orchestrator/record/event"
)

// runs is a deployer's script: it starts the program of its own configuration in its
// checkout, as the command runner does, and answers with what that printed.
func runs(_ context.Context, job agent.Job, _ agent.Host) (agent.Outcome, error) {
	cmd := exec.Command(filepath.Join(job.Dir, job.Agent.Command[0]))
	cmd.Dir = job.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return agent.Outcome{}, agent.Fail(agent.CodeStart, "%v: %s", err, out)
	}
	return agenttest.Done(strings.TrimSpace(string(out))), nil
}

// runnable writes something that may be run.
func runnable(dir, name, text string) error {
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(at, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		return err
	}
	return os.Chmod(at, 0o755)
}

// deploying is a team whose coder does something to its checkout and hands on "deploy
// release 8" to deployer, who runs ./deploy.sh. main has one that prints "ours".
func deploying(t *testing.T, url string, deployer agent.Spec, caller func(dir string) error) *world {
	deployer.Name, deployer.Command = "deployer", []string{"./deploy.sh"}
	w := newWorld(t, url, agent.Spec{Name: "coder", Restricted: deployer.AskFirst, DelegatesTo: []string{"deployer"}}, deployer)
	if err := runnable(w.repo, "deploy.sh", "echo ours; cat .claude/settings.json; echo later > made.txt"); err != nil {
		t.Fatal(err)
	}
	w.commit(map[string]string{".claude/settings.json": "branch\n"})
	w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
		if err := caller(job.Dir); err != nil {
			return agent.Outcome{}, err
		}
		c, err := host.Delegate(ctx, agent.Hop{To: "deployer", Text: "deploy release 8", Context: map[string]string{"note": "quietly"},
			Handover: &agent.Handover{Goto: "deployer", Update: agent.HandoverUpdate{Artifacts: map[string]*string{"plan": nil}}}})
		if err != nil {
			return agent.Outcome{}, err
		}
		if c.State == agent.Refused {
			return agenttest.Done(c.Error.Code + ": " + c.Error.Message), nil
		}
		// It goes on writing while people read.
		if job.Agent.Restricted {
			if err := runnable(job.Dir, "deploy.sh", "echo later"); err != nil {
				return agent.Outcome{}, err
			}
		}
		c, err = host.Await(ctx, c.ID)
		switch {
		case err != nil:
			return agent.Outcome{}, err
		case c.Error != nil:
			return agenttest.Done(c.Error.Code + ": " + c.Error.Message), nil
		}
		return agenttest.Done(c.Result.Text), nil
	})
	w.script("deployer", runs)
	w.start()
	return w
}

func codesOf(r approval.Request) []string {
	var codes []string
	for _, x := range r.Revision.Warnings {
		codes = append(codes, x.Code+" "+x.Path)
	}
	slices.Sort(codes)
	return codes
}

// Row 3: a yes to "deploy release 8" never runs what the caller wrote. The request names
// what the caller changed and shows what travels; what is written after the question does
// not.
func TestAYesToAHandoverRunsTheProgramOfTheBranch(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := deploying(t, url, agent.Spec{AskFirst: true}, func(dir string) error {
			if err := runnable(dir, "deploy.sh", "echo evil; cat $SECRET"); err != nil {
				return err
			}
			if err := writeFile(dir, ".claude/settings.json", "evil\n"); err != nil {
				return err
			}
			return writeFile(dir, "core/a.txt", "one\n2\nthree\n")
		})
		root := w.send("coder", "release")
		r := w.request(root.TaskID, 1)
		q := r.Handover
		if want := []string{".claude/settings.json", "deploy.sh"}; !slices.Equal(q.Steering, want) || !slices.Equal(codesOf(r), []string{"steering_files .claude/settings.json", "steering_files deploy.sh"}) {
			t.Errorf("changed: %v, warnings %v", q.Steering, codesOf(r))
		}
		if len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "core/a.txt" || r.Revision.Tree != q.Tree || q.Tree == "" || q.FilesHash == "" || q.Branch != "main" || r.Revision.Base.Commit != q.BaseCommit {
			t.Errorf("what travels: %+v of %+v", r.Revision.Files, q)
		}
		if q.Context["note"] != "quietly" || !slices.Equal(q.Artifacts(), []string{"plan"}) || approval.RiskOf(r).Level != approval.Careful {
			t.Errorf("asked %+v at %v", q, approval.RiskOf(r))
		}
		w.approve(r)
		d := w.state(r.DelegationID, orchestrator.Completed)
		if d.Result.Text != "ours\nbranch" || d.Work.Handover == nil || !slices.Equal(d.Work.Steering, q.Steering) {
			t.Errorf("deployer ran %q with %+v", d.Result.Text, d.Work)
		}
		if d.Work.BaseTree != q.Tree {
			t.Error("it ran on another tree than the one that was asked about")
		}
		// What deployer made goes back; what coder changed is coder's still, and asked for.
		p := w.request(root.TaskID, 1)
		var paths []string
		for _, f := range p.Revision.Files {
			paths = append(paths, f.Path)
		}
		if p.Kind != approval.Patch || !slices.Equal(paths, []string{".claude/settings.json", "core/a.txt", "deploy.sh", "made.txt"}) {
			t.Errorf("asked next about %v", paths)
		}
		named := false
		for _, e := range w.events(root.TaskID) {
			named = named || e.Type == event.Delegated && strings.Contains(string(e.Data), `"steering":[".claude/settings.json","deploy.sh"]`)
		}
		if !named {
			t.Error("no event names what the caller changed")
		}
	})
}

// Links do not help, nobody has to be asked for it to hold, and what only the caller has
// is not run.
func TestAProgramIsNeverTheCallers(t *testing.T) {
	t.Parallel()
	url := func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "gatehouse.db") }
	for name, caller := range map[string]func(dir string) error{
		"a link to another file": func(dir string) error {
			os.Remove(filepath.Join(dir, "deploy.sh")) //nolint:errcheck // the link fails then
			return errorsOf(runnable(dir, "evil.sh", "echo evil"), os.Symlink("evil.sh", filepath.Join(dir, "deploy.sh")))
		},
		"a folder": func(dir string) error {
			os.Remove(filepath.Join(dir, "deploy.sh")) //nolint:errcheck // the write fails then
			return writeFile(dir, "deploy.sh/x", "evil")
		},
		"gone": func(dir string) error { return os.Remove(filepath.Join(dir, "deploy.sh")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := deploying(t, url(t), agent.Spec{AnalysisOnly: true}, func(dir string) error { return errorsOf(caller(dir), writeFile(dir, "core/b.txt", "c\n")) })
			root := w.send("coder", "release")
			w.until(root.ID, "the answer", func(d orchestrator.Delegation) bool { return d.Result != nil })
			for _, d := range w.tree(root.TaskID) {
				if d.To == "deployer" && (d.Result == nil || d.Result.Text != "ours\nbranch") {
					t.Errorf("deployer ended with %+v, %+v", d.Result, d.Error)
				}
			}
		})
	}
	t.Run("only the caller has it", func(t *testing.T) {
		w := newWorld(t, url(t), agent.Spec{Name: "kik"}, agent.Spec{Name: "coder", Command: []string{"./new.sh"}, AskFirst: true})
		w.script("kik", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if err := runnable(job.Dir, "new.sh", "echo evil"); err != nil {
				return agent.Outcome{}, err
			}
			c, err := host.Delegate(ctx, agent.Hop{To: "coder", Text: "go"})
			os.Remove(filepath.Join(job.Dir, "new.sh")) //nolint:errcheck // kik asks for no landing
			return agenttest.Done(c.Error.Code + ": " + c.Error.Message), err
		})
		w.script("coder", runs)
		w.start()
		d := w.state(w.send("kik", "go").ID, orchestrator.Completed)
		if !strings.HasPrefix(d.Result.Text, "start: ./new.sh, which coder is started with, is not on main") || !strings.Contains(d.Result.Text, "trust_checkout: true") {
			t.Errorf("kik was told %q", d.Result.Text)
		}
		if w.count(d.TaskID, event.DelegationRefused) != 1 || w.count(d.TaskID, event.Requested) != 0 {
			t.Errorf("history:\n%s", w.history(d.TaskID))
		}
		w.git("tag", "v1")
		onTag, err := w.sendOn("kik", "go", "v1", "")
		if err != nil {
			t.Fatal(err)
		}
		if d := w.state(onTag.ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, "start: ./new.sh, which coder is started with, is not on the tag v1: nobody") {
			t.Errorf("on a tag kik was told %q", d.Result.Text)
		}
	})
}

// A secret in any part of a question makes it careful; its digest is over the secret, too.
func TestASecretInAQuestionIsAWarning(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("aB3", 12)
	for part, hop := range map[string]agent.Hop{
		"text":    {Text: "deploy with " + token},
		"context": {Text: "deploy", Context: map[string]string{"note": "use " + token}},
		"object":  {Text: "deploy", Handover: &agent.Handover{Goto: "ops", Update: agent.HandoverUpdate{Context: agent.HandoverContext{TaskDescription: token}}}},
		"nothing": {Text: "deploy with the token that you have"},
	} {
		t.Run(part, func(t *testing.T) {
			w := newWorld(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), agent.Spec{Name: "kik"}, agent.Spec{Name: "ops", AskFirst: true})
			hop.To = "ops"
			w.script("kik", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
				c, err := host.Delegate(ctx, hop)
				if err == nil {
					_, err = host.Await(ctx, c.ID)
				}
				return agenttest.Done("done"), err
			})
			w.script("ops", agenttest.Answer("done"))
			w.start()
			r := w.request(w.send("kik", "go").TaskID, 1)
			want, level := []string{"secret_like "}, approval.Careful
			if part == "nothing" {
				want, level = nil, approval.Plain
			}
			if risk := approval.RiskOf(r); !slices.Equal(codesOf(r), want) || risk.Level != level {
				t.Errorf("warnings %v, %v", codesOf(r), risk)
			}
			if digest, err := r.Handover.Digest(r.TaskID); err != nil || digest != r.Revision.Digest || part != "nothing" && !strings.Contains(r.Handover.Text+r.Handover.Carried(), token) {
				t.Errorf("the digest is not over what is asked: %v", err)
			}
			w.approve(r)
			w.state(r.DelegationID, orchestrator.Completed)
		})
	}
}

// What travels on a tag is compared with the tag, and the question names it.
func TestAHandoverOnATagNamesTheTag(t *testing.T) {
	t.Parallel()
	w := deploying(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), agent.Spec{AskFirst: true, AnalysisOnly: true}, func(dir string) error {
		return errorsOf(runnable(dir, "deploy.sh", "echo evil"), writeFile(dir, "core/b.txt", "c\n"))
	})
	w.git("tag", "v1")
	root, err := w.sendOn("coder", "release", "v1", "")
	if err != nil {
		t.Fatal(err)
	}
	r := w.request(root.TaskID, 1)
	if r.Handover.Place() != "the tag v1" || r.Handover.Branch != "" || len(r.Revision.Warnings) == 0 || !strings.HasSuffix(r.Revision.Warnings[0].Text, "deployer gets it from the tag v1 instead.") ||
		!strings.Contains(r.Handover.Whole(), "taken from the tag v1 instead:") {
		t.Errorf("asked %+v, warnings %+v", r.Handover, r.Revision.Warnings)
	}
	w.approve(r)
	w.until(r.DelegationID, "the end", func(d orchestrator.Delegation) bool { return d.State.Ended() })
}

// trust_checkout runs the caller's program, and the request says so.
func TestTrustCheckoutIsAWarning(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := deploying(t, url, agent.Spec{AskFirst: true, TrustCheckout: true}, func(dir string) error { return runnable(dir, "deploy.sh", "echo the caller\\'s") })
		root := w.send("coder", "release")
		r := w.request(root.TaskID, 1)
		if !slices.Contains(codesOf(r), "trust_checkout deploy.sh") || len(r.Revision.Files) != 1 || r.Revision.Files[0].Path != "deploy.sh" || !r.Handover.Trusted {
			t.Fatalf("warnings %v, files %+v", codesOf(r), r.Revision.Files)
		}
		w.approve(r)
		if d := w.state(r.DelegationID, orchestrator.Completed); d.Result.Text != "the caller's" {
			t.Errorf("deployer ran %q", d.Result.Text)
		}
	})
}

// A yes is to the settings of the question: an agent that is started with something else
// by now does not run it from its caller's files.
func TestAnotherProgramSinceTheQuestionDoesNotRun(t *testing.T) {
	t.Parallel()
	w := deploying(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), agent.Spec{AskFirst: true}, func(dir string) error { return runnable(dir, "other.sh", "echo evil") })
	root := w.send("coder", "release")
	r := w.request(root.TaskID, 1)
	registry, err := agent.NewRegistry([]agent.Spec{{Name: "coder", Kind: agent.Command}, {Name: "deployer", Kind: agent.Command, Command: []string{"./other.sh"}, AskFirst: true}})
	if err != nil {
		t.Fatal(err)
	}
	c := w.config
	c.Agents = registry
	w.engine.SetConfig(c)
	w.approve(r)
	if d := w.state(r.DelegationID, orchestrator.Failed); !strings.Contains(d.Error.Message, "would run or read ./other.sh as coder left it") {
		t.Errorf("it failed with %+v", d.Error)
	}
}

// Rules about hand-overs see what goes along.
func TestRulesSeeWhatGoesAlongWithAHandover(t *testing.T) {
	t.Parallel()
	for when, path := range map[string]string{
		`any(files, .path startsWith "infra/")`: "infra/x.tf",
		`context_text contains "quietly"`:       "core/b.txt",
		`context.note == "quietly"`:             "core/b.txt",
		`"plan" in artifacts`:                   "core/b.txt",
	} {
		w := deploying(t, "sqlite:"+filepath.Join(t.TempDir(), "gatehouse.db"), agent.Spec{AnalysisOnly: true}, func(dir string) error { return writeFile(dir, path, "x\n") })
		p, problems := policy.CompileHandovers([]policy.RuleConfig{{Name: "never", When: when, Deny: true}}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := w.gateway.Config()
		c.Handovers = p
		w.gateway.SetConfig(c)
		d := w.until(w.send("coder", "go").ID, "the answer", func(d orchestrator.Delegation) bool { return d.Result != nil })
		if !strings.HasPrefix(d.Result.Text, `human_refused: The rule "never"`) {
			t.Errorf("%s: coder was told %q", when, d.Result.Text)
		}
	}
}

// Nobody asked for the task of a trigger when it came: a person is asked before an agent
// that wants that, again when somebody retries it, and a rule may deny it.
func TestATriggersTaskIsAskedAbout(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "ops", AskFirst: true})
		ops := w.script("ops", agenttest.Answer("done"))
		w.start()
		submit := func(via, key string) (orchestrator.Task, orchestrator.Delegation, bool) {
			task, root, created, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "ops", Text: "deploy", Via: origin.Parse(via), Key: key, RequesterID: w.ann.ID, Requester: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			return task, root, created
		}
		task, root, _ := submit("webhook ci", "one")
		if again, _, created := submit("webhook ci", "one"); created || again.ID != task.ID {
			t.Error("the same delivery made another task")
		}
		r := w.request(task.ID, 1)
		if r.Handover.From != "webhook ci" || r.Handover.To != "ops" || r.DelegationID != root.ID || len(r.Lineage) == 0 || r.Chain.String() != "ops" || ops.Runs() != 0 {
			t.Fatalf("asked %+v of %v", r.Handover, r.Lineage)
		}
		if live, err := w.store.Task(t.Context(), task.ID); err != nil || live.EndedAt != nil {
			t.Errorf("the task that waits has ended: %v", err)
		}
		if _, err := w.decide(r, approval.Reject, "Not now."); err != nil {
			t.Fatal(err)
		}
		d := w.state(root.ID, orchestrator.Rejected)
		if d.Error.Code != "human_refused" || !strings.Contains(d.Error.Message, "Not now.") || !strings.Contains(d.Error.Message, "Nothing ran") {
			t.Errorf("it ended with %+v", d.Error)
		}
		// The owner's own retry is no yes.
		if _, err := w.engine.Retry(t.Context(), task.ID, w.ann); err != nil {
			t.Fatal(err)
		}
		second := w.request(task.ID, 1)
		if second.ID == r.ID || ops.Runs() != 0 {
			t.Fatal("the retry asked nobody")
		}
		w.approve(second)
		w.state(root.ID, orchestrator.Completed)
		if ops.Runs() != 1 || w.count(task.ID, event.Requested) != 2 {
			t.Errorf("%d runs\n%s", ops.Runs(), w.history(task.ID))
		}
		nightly, _, _ := submit("schedule nightly", "two")
		w.approve(w.request(nightly.ID, 1))
		mine, own, _ := submit("web", "three")
		w.state(own.ID, orchestrator.Completed)
		if w.count(mine.ID, event.Requested) != 0 {
			t.Error("a person's own task was asked about")
		}
		p, problems := policy.CompileHandovers([]policy.RuleConfig{{Name: "never", When: `from startsWith "webhook "`, Deny: true}}, nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c := w.gateway.Config()
		c.Handovers = p
		w.gateway.SetConfig(c)
		_, _, _, err := w.engine.Submit(t.Context(), orchestrator.Submission{Agent: "ops", Text: "deploy", Via: origin.Trigger(origin.Webhook, "ci"), RequesterID: w.ann.ID, Requester: "ann"})
		if orchestrator.CodeOf(err) != "human_refused" {
			t.Errorf("a denied trigger got %v", err)
		}
	})
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// tree reads all delegations of a task.
func (w *world) tree(taskID string) []orchestrator.Delegation {
	w.t.Helper()
	all, err := w.store.Tree(w.t.Context(), taskID)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}
