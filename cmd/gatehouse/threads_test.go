package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/cmd/gatehouse/internal/placetest"
	"gatehouse/orchestrator/agent/llm/modeltest"
	"gatehouse/orchestrator/people"
	"gatehouse/web/wire"
)

// Shows 8 from the command line: three follow-ups remember over the wire, and two people in two
// threads have only their own.
func TestFollowUpsFromTheCommandLineRemember(t *testing.T) {
	t.Parallel()
	placetest.AnyPlace(t, func(t *testing.T, database string) {
		p := hearingPlace(t, database, func(a modeltest.Ask) modeltest.Answer {
			var said []string
			for _, m := range a.Messages {
				said = append(said, strings.TrimSpace(m.Text()))
			}
			return modeltest.Say(fmt.Sprintf("answer %d to [%s]", a.Turn, strings.Join(said, "; ")))
		})
		n := p.Start(p.Config, "")
		other := p.Person("dora", people.Operator)
		send := func(token string, words ...string) (id, said string) {
			t.Helper()
			out, code := p.Cli(n, append([]string{"--json", "--token", token, "send", "--wait"}, words...)...)
			var d wire.Delegation
			if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 || d.Result == nil {
				t.Fatalf("send %q: %d %v\n%s", words, code, err, out)
			}
			return d.TaskID, d.Result.Text
		}
		mine, _ := send(p.Asker, "kik", "my name is Ann")
		theirs, _ := send(other, "kik", "my name is Dora")
		_, second := send(p.Asker, "--follow", mine, "what is my name?")
		if second != "answer 2 to [my name is Ann; answer 1 to [my name is Ann]; what is my name?]" {
			t.Errorf("the first follow-up: %s", second)
		}
		third, _ := send(p.Asker, "--follow", mine[len(mine)-8:], "kik", "and yours?")
		_, fourth := send(p.Asker, "--follow", third, "bye")
		if !strings.HasPrefix(fourth, "answer 4 to [my name is Ann;") || !strings.HasSuffix(fourth, "; and yours?; "+`answer 3 to [my name is Ann; answer 1 to [my name is Ann]; what is my name?; `+second+"; and yours?]; bye]") {
			t.Errorf("the third follow-up: %s", fourth)
		}
		if _, again := send(other, "--follow", theirs, "and mine?"); strings.Contains(again, "Ann") || !strings.Contains(again, "my name is Dora") {
			t.Errorf("dora's thread: %s", again)
		}
		if out, code := p.Cli(n, "--token", other, "send", "--follow", mine, "and me?"); code == 0 || !strings.Contains(out, "No thread has the id") || strings.Contains(out, "Ann") {
			t.Errorf("dora goes on with ann's thread: %d %s", code, out)
		}
	})
}
