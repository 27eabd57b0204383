package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/approval"
	"gatehouse/approval/policy"
	"gatehouse/orchestrator"
	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
	"gatehouse/orchestrator/people"
	"gatehouse/orchestrator/record/event"
)

// vote is a verdict of somebody on what r shows.
func (w *world) vote(u people.User, r approval.Request, b approval.Ballot) (approval.Request, error) {
	b.RequestID, b.Principal, b.Channel, b.Digest, b.Revision = r.ID, people.As(u, nil), "web", r.Revision.Digest, r.Revision.N
	b.Seen = approval.Seen{WarningsTicked: approval.Ticks(r)}
	return w.gateway.Decide(w.t.Context(), b)
}

// groupedRulesAboutActions puts groups and rules about calls in force.
func (w *world) groupedRulesAboutActions(groups map[string][]string, rules ...policy.RuleConfig) {
	w.t.Helper()
	p, problems := policy.CompileActions(rules, groups)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	c := w.gateway.Config()
	c.Actions, c.Groups = p, groups
	w.gateway.SetConfig(c)
}

func tool(name, input string) agent.Ask {
	return agent.Ask{Action: &agent.Action{Tool: name, Input: json.RawMessage(input)}}
}

// A yes for the rest of the task, which one approver gave, passes no call for which a rule
// wants to hear two, or somebody else.
func TestAGrantPassesNoStricterRule(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		cleo := w.user("cleo", people.Approver)
		groups := map[string][]string{"maintainers": {"cleo"}}
		w.groupedRulesAboutActions(groups,
			policy.RuleConfig{Name: "two", When: `tool == "deploy" && input.to == "prod"`, Need: new(2)},
			policy.RuleConfig{Name: "theirs", When: `tool == "deploy" && input.to == "core"`, Need: new(1), From: []string{"maintainers"}},
			policy.RuleConfig{Name: "one", When: `tool == "deploy"`, Need: new(1)})
		w.script("coder", caller(tool("deploy", `{"to":"test"}`), tool("deploy", `{"to":"stage"}`), tool("deploy", `{"to":"prod"}`), tool("deploy", `{"to":"core"}`)))
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		if _, err := w.vote(w.bob, r, approval.Ballot{Verdict: approval.Approve, ForTask: true}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"prod", "core"} {
			r = w.request(root.TaskID, 1)
			if !strings.Contains(r.Title, want) {
				t.Fatalf("asked %q, want %s", r.Title, want)
			}
			if want == "prod" {
				_, err := w.vote(w.bob, r, approval.Ballot{Verdict: approval.Approve})
				w.must(err)
			}
			_, err := w.vote(cleo, r, approval.Ballot{Verdict: approval.Approve})
			w.must(err)
		}
		w.state(root.ID, orchestrator.Completed)
		if n := w.count(root.TaskID, event.GrantUsed); n != 1 {
			t.Errorf("the grant was used %d times", n)
		}
	})
}

// parker is a model that parks for its calls, and makes each once it may. Before it makes one,
// it says so and waits.
func parker(said chan string, asks ...agent.Ask) agenttest.Script {
	return func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
		answers, err := host.Consult(ctx, asks)
		if err != nil {
			return agent.Outcome{}, err
		}
		for _, a := range answers {
			if a.State == agent.AskOpen {
				return agent.Outcome{Park: &agent.Park{Asks: asks}}, nil
			}
		}
		if said != nil {
			said <- "may"
			<-said
		}
		var made []string
		for i, a := range answers {
			if a.State == agent.AskAllowed {
				asks[i].Action.Input = a.Input
				if err := host.Proceed(ctx, asks[i]); err != nil {
					made = append(made, err.Error())
					continue
				}
			}
			made = append(made, fmt.Sprintf("%s %s", a.State, a.Input))
		}
		return agenttest.Done(strings.Join(made, "\n")), nil
	}
}

func named(ref string, a agent.Ask) agent.Ask {
	a.Ref = ref
	return a
}

// A yes that is taken back, edited and given again while the run is busy with something else
// does not let the call be made with the input from before.
func TestACallThatWasEditedMeanwhileIsNotMadeAsItWas(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Kind: agent.LLM})
		cleo := w.user("cleo", people.Approver)
		w.rulesAboutActions(shellAsks())
		said := make(chan string)
		w.script("coder", parker(said, named("a", bash("npm publish"))))
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		w.approve(r)
		<-said
		r, err := w.vote(w.bob, r, approval.Ballot{Verdict: approval.Withdraw})
		w.must(err)
		r, err = w.vote(w.bob, r, approval.Ballot{Verdict: approval.Edit, Input: json.RawMessage(`{"command":"npm publish --dry-run"}`)})
		w.must(err)
		_, err = w.vote(cleo, r, approval.Ballot{Verdict: approval.Approve})
		w.must(err)
		said <- "go"
		if d := w.state(root.ID, orchestrator.Completed); strings.Contains(d.Result.Text, `allowed {"command":"npm publish"}`) {
			t.Errorf("it made the call as it was: %q", d.Result.Text)
		}
	})
}

// A grant that is revoked while the run is busy with something else lets nothing through.
func TestAGrantThatIsRevokedMeanwhile(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Kind: agent.LLM})
		w.rulesAboutActions(shellAsks())
		said := make(chan string)
		again := false
		w.script("coder", func(ctx context.Context, job agent.Job, host agent.Host) (agent.Outcome, error) {
			if again {
				return parker(said, named("b", bash("npm publish again")))(ctx, job, host)
			}
			answers, err := host.Consult(ctx, []agent.Ask{named("a", bash("npm publish"))})
			if err == nil && answers[0].State == agent.AskOpen {
				return agent.Outcome{Park: &agent.Park{Asks: []agent.Ask{named("a", bash("npm publish"))}}}, nil
			}
			again = true
			return parker(said, named("b", bash("npm publish again")))(ctx, job, host)
		})
		w.start()
		root := w.send("coder", "release it")
		_, err := w.vote(w.bob, w.request(root.TaskID, 1), approval.Ballot{Verdict: approval.Approve, ForTask: true})
		w.must(err)
		<-said
		grants, err := w.gateway.Grants(t.Context(), root.TaskID)
		w.must(err)
		_, err = w.gateway.Revoke(t.Context(), grants[0].ID, people.As(w.bob, nil))
		w.must(err)
		said <- "go"
		if d := w.state(root.ID, orchestrator.Completed); !strings.Contains(d.Result.Text, agent.CodeActionRefused) {
			t.Errorf("it made the call: %q", d.Result.Text)
		}
	})
}

// Whoever may not decide any more when the call would be made has not allowed it: people are
// asked again.
func TestAYesOfWhoLostTheRightLetsNoCallBeMade(t *testing.T) {
	story := func(t *testing.T, url string, spec agent.Spec, script agenttest.Script) {
		w := newWorld(t, url, spec)
		cleo := w.user("cleo", people.Approver)
		w.rulesAboutActions(shellAsks())
		w.script(spec.Name, script)
		w.start()
		root := w.send(spec.Name, "release it")
		r := w.request(root.TaskID, 1)
		w.stop()
		w.approve(r)
		w.must(w.store.SetDisabled(t.Context(), "cli", w.bob.ID, true))
		w.start()
		w.until(root.ID, "asked again, without a slot", func(d orchestrator.Delegation) bool {
			used, _ := w.engine.Slots() // given back once the row waits
			return w.count(root.TaskID, event.WithdrawnRight) == 1 && d.State == orchestrator.Waiting && used == 0
		})
		again := w.request(root.TaskID, 1)
		if again.ID != r.ID || len(again.Decisions) != 2 {
			t.Errorf("asked %s, and not %s again, with %d decisions", again.ID, r.ID, len(again.Decisions))
		}
		_, err := w.vote(cleo, again, approval.Ballot{Verdict: approval.Approve})
		w.must(err)
		if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != `allowed {"command":"npm publish"}` {
			t.Errorf("it answered %q", d.Result.Text)
		}
	}
	t.Run("program", func(t *testing.T) {
		databases(t, func(t *testing.T, url string) {
			story(t, url, agent.Spec{Name: "coder"}, caller(bash("npm publish")))
		})
	})
	t.Run("model", func(t *testing.T) {
		databases(t, func(t *testing.T, url string) {
			story(t, url, agent.Spec{Name: "coder", Kind: agent.LLM}, parker(nil, named("a", bash("npm publish"))))
		})
	})
}

// What a person said of a call holds, also where the rules would let it pass by now.
func TestANoOutlivesTheRuleThatAsked(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Kind: agent.LLM})
		w.rulesAboutActions(shellAsks())
		w.script("coder", parker(nil, named("a", bash("npm publish"))))
		w.start()
		root := w.send("coder", "release it")
		r := w.request(root.TaskID, 1)
		w.stop()
		_, err := w.decide(r, approval.Reject, "no")
		w.must(err)
		w.rulesAboutActions(policy.RuleConfig{Name: "free", When: `tool == "Bash"`, Need: new(0)})
		w.start()
		if d := w.state(root.ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, "refused") {
			t.Errorf("it was %s", d.Result.Text)
		}
	})
}

// Inputs that are made to look like something else, or to break what stores or shows them.
func TestInputsThatAreMadeToDeceive(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder"})
		w.rulesAboutActions(policy.RuleConfig{Name: "pass", When: `input.command startsWith "go "`, Need: new(0)}, policy.RuleConfig{Name: "shell", When: `tool == "Bash"`, Need: new(1)})
		w.start()
		for input, warned := range map[string]string{
			`{"command":"npm test\u0000rm -rf x"}`:       "control",
			`{"command":"npm test\u202exx"}`:             "bidi",
			`{"command":"npm test\u2028command: ls"}`:    "invisible",
			`{"command":"npm test\u0085command: ls"}`:    "control",
			`{"command":"npm test\u000bcommand: ls"}`:    "control",
			`{"command":"npm test\rls                "}`: "control",
			`{"command":"npm test\u200b"}`:               "invisible",
			`{"command":"npm t\u0435st"}`:                "lookalike",
			`{"command":"npm test","comm\u0430nd":"x"}`:  "lookalike",
			`{"a":{"b":["\u202e"]},"command":"npm"}`:     "bidi",
		} {
			w.script("coder", caller(tool("Bash", input)))
			root := w.send("coder", input)
			r := w.request(root.TaskID, 1)
			if !strings.Contains(fmt.Sprint(r.Revision.Warnings), warned) {
				t.Errorf("%s: warned %+v", input, r.Revision.Warnings)
			}
			_, err := w.decide(r, approval.Reject, "")
			w.must(err)
			w.state(root.ID, orchestrator.Completed)
		}
		for _, input := range []string{`{"command":"go test","command":"rm"}`, "{\"command\":\"go \xff\"}", `{"command":"go test","a":{"b":1,"b":2}}`, `{"command":"go test","Command":"rm x"}`, `{"command":"go test","x":{"a":1,"A":2}}`} {
			w.script("coder", caller(tool("Bash", input)))
			root := w.send("coder", input)
			if d := w.state(root.ID, orchestrator.Completed); !strings.HasPrefix(d.Result.Text, "refused") {
				t.Errorf("%s: %s", input, d.Result.Text)
			}
		}
	})
}

// A yes that an attempt before asked for under another name is one yes, whatever names a model
// calls it by.
func TestAYesFromBeforeIsUsedOnce(t *testing.T) {
	either(t, func(t *testing.T, url string) {
		w := newWorld(t, url, agent.Spec{Name: "coder", Kind: agent.LLM})
		w.rulesAboutActions(shellAsks())
		parked := false
		w.script("coder", func(ctx context.Context, _ agent.Job, host agent.Host) (agent.Outcome, error) {
			if !parked {
				parked = true
				return agent.Outcome{Park: &agent.Park{Asks: []agent.Ask{named("a", bash("npm publish"))}}}, nil
			}
			made := 0
			for _, ref := range []string{"b", "c", "d"} {
				a := named(ref, bash("npm publish"))
				got, err := host.Consult(ctx, []agent.Ask{a})
				if err != nil {
					return agent.Outcome{}, err
				}
				if got[0].State == agent.AskAllowed && host.Proceed(ctx, a) == nil {
					made++
				}
			}
			return agenttest.Done(fmt.Sprint(made)), nil
		})
		w.start()
		root := w.send("coder", "release it")
		w.approve(w.request(root.TaskID, 1))
		if d := w.state(root.ID, orchestrator.Completed); d.Result.Text != "1" {
			t.Errorf("one yes let it be made %s times", d.Result.Text)
		}
	})
}
