package config

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/trigger"
)

// The example of the contract, with a schedule in the zone of the server.
func TestTheTriggersOfTheContract(t *testing.T) {
	_, err := Parse("", []byte(`server: {timezone: Europe/Berlin}
agents: {kik: {kind: command, command: [x]}, reviewer: {kind: command, command: [x]}}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "${HOOK_SECRET}", agent: kik, task: "Fix {{.workflow_run.name}}", when: "event.action == 'completed'", owner: ann}
  - {name: nightly, kind: schedule, cron: "0 2 * * *", agent: reviewer, task: "Nightly review", owner: ann}
  - {name: own, kind: webhook, source: hmac, header: X-Sum, secrets: [the old secret of 23 ch, short], capability: x, task: t, owner: ann}
`), env("HOOK_SECRET", "a secret of good length"))
	if err == nil || !strings.Contains(err.Error(), `no agent has the capability "x"`) || strings.Count(err.Error(), "\n") != 0 {
		t.Fatalf("the one mistake: %v", err)
	}
	c, err := Parse("", []byte(`server: {timezone: Europe/Berlin}
agents: {kik: {kind: command, command: [x], capabilities: [x]}}
triggers:
  - {name: ci-failed, kind: webhook, source: github, secret: "${HOOK_SECRET}", agent: kik, task: "Fix {{.workflow_run.name}}", owner: ann, budget: {tokens: 1000}}
  - {name: nightly, kind: schedule, cron: "0 2 * * *", agent: kik, task: "Nightly review", owner: ann}
  - {name: own, kind: webhook, source: hmac, header: X-Sum, secrets: [the old secret of 23 ch, short], capability: x, task: t, owner: ann}
`), env("HOOK_SECRET", "a secret of good length"))
	if err != nil {
		t.Fatal(err)
	}
	hook, nightly, own := c.Triggers[0], c.Triggers[1], c.Triggers[2]
	if hook.Window != trigger.DefaultBodies || *hook.Budget.Tokens != 1000 || nightly.Zone.String() != "Europe/Berlin" || nightly.Overlap != "skip" || nightly.Missed != "skip" || own.Encoding != "hex" {
		t.Errorf("got %+v, %+v, %+v", hook.Spec, nightly.Spec, own.Spec)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "trigger own: its secret is shorter than 16") {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestMistakesInTriggersHaveTheirPlace(t *testing.T) {
	const before = "agents: {kik: {kind: command, command: [x]}, term: {kind: command, command: [x], role: cli}, own: {kind: command, command: [x], repository: one}}\ntriggers:\n"
	hook := func(name, rest string) string {
		return "  - {name: " + name + ", kind: webhook, source: github, secret: sixteen-letters-s, " + rest + "}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"an agent that there is not": {hook("a", "agent: kick, task: t, owner: ann"), `3:80: trigger a starts "kick", which is no agent. Did you mean "kik"?`},
		"an agent that takes none":   {hook("a", "agent: term, task: t, owner: ann"), "has the role cli"},
		"no agent":                   {hook("a", "task: t, owner: ann"), "3:5: trigger a names no agent"},
		"an agent and a capability":  {hook("a", "agent: kik, capability: x, task: t, owner: ann"), "Keep one"},
		"no owner":                   {hook("a", "agent: kik, task: t"), "3:5: trigger a has no owner"},
		"an owner who cannot be":     {hook("a", "agent: kik, task: t, owner: 'a b'"), "can be nobody's name"},
		"a repository of another":    {"  - {name: a, kind: schedule, cron: \"0 2 * * *\", agent: own, task: t, owner: ann, repository: two}\nrepositories: {one: {path: x}, two: {path: y}}\n", "trigger a is for two, and own works in one"},
		"a repository":               {hook("a", "agent: kik, task: t, owner: ann, repository: web"), `works on "web", which is no repository`},
		"Telegram's own address":     {hook("Telegram", "agent: kik, task: t, owner: ann"), "3:12: /hooks/telegram is where Telegram calls"},
		"a name with a slash":        {hook("a/b", "agent: kik, task: t, owner: ann"), "3:12: trigger name"},
		"two of one name":            {hook("a", "agent: kik, task: t, owner: ann") + hook("A", "agent: kik, task: t, owner: ann"), "4:12: trigger 1 is called"},
		"no name":                    {"  - {kind: webhook}\n", "3:5: trigger 1 has no name"},
		"a condition, by its column": {hook("a", "agent: kik, task: t, owner: ann, when: \"event.a == 1 && acton == 2\""), "3:129: trigger a: The condition is not understood: there is no acton here"},
		"a template, by its line":    {"  - name: a\n    kind: webhook\n    source: github\n    secret: sixteen-letters-s\n    agent: kik\n    owner: ann\n    task: |\n      Fix\n      it {{printf .x}}\n", "11:12: trigger a: The template is not taken: there is no function printf"},
		"an unknown key":             {hook("a", "agent: kik, task: t, owner: ann, secrt: x"), "unknown key `secrt`. Did you mean `secret`?"},
		"a zone":                     {"  - {name: a, kind: schedule, cron: '@daily', timezone: Mars/Base, agent: kik, task: t, owner: ann}\n", `3:57: there is no time zone "Mars/Base"`},
		"a cron":                     {"  - {name: a, kind: schedule, cron: '@dayly', agent: kik, task: t, owner: ann}\n", "3:37: trigger a: cron:"},
		"an empty secret in a list":  {"  - {name: a, kind: webhook, source: github, secret: sixteen-letters-s, secrets: [x, ''], agent: kik, task: t, owner: ann}\n", "3:86: trigger a: A secret is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("gatehouse.yaml", []byte(before+c.text), env())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
