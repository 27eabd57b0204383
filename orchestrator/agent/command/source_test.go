package command

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
)

// A program is told what its task is about elsewhere: in its environment and, in lines, in
// the first one (A8). Where nobody said, the variable is empty.
func TestAProgramIsToldTheSource(t *testing.T) {
	about := func(job *agent.Job) { job.Source = &agent.Source{Kind: "gitlab", Ref: "group/app!17"} }
	want := `{"kind":"gitlab","ref":"group/app!17"}`
	if got := mustAnswer(t, shell(t, `printf %s "$GATEHOUSE_SOURCE"`, about)).Text; got != want {
		t.Errorf("GATEHOUSE_SOURCE is %s", got)
	}
	if got := mustAnswer(t, shell(t, `printf %s "none:$GATEHOUSE_SOURCE"`)).Text; got != "none:" {
		t.Errorf("without a source: %s", got)
	}
	lines := mustAnswer(t, shell(t, `read -r line; case "$line" in *'"source":`+want+`'*) said=told;; *) said=missing;; esac; echo "{\"type\":\"result\",\"text\":\"$said\"}"`, about, jsonl)).Text
	if !strings.Contains(lines, "told") {
		t.Errorf("the first line: %s", lines)
	}
}

// P15: and so is where the task came from, in its environment and in the first line.
func TestAProgramIsToldTheChat(t *testing.T) {
	from := func(job *agent.Job) { job.Channel, job.Chat = "telegram", "-100" }
	if got := mustAnswer(t, shell(t, `printf %s "$GATEHOUSE_CHANNEL $GATEHOUSE_CHAT"`, from)).Text; got != "telegram -100" {
		t.Errorf("it is told %q", got)
	}
	lines := mustAnswer(t, shell(t, `read -r line; case "$line" in *'"channel":"telegram","chat":"-100"'*) said=told;; *) said=missing;; esac; echo "{\"type\":\"result\",\"text\":\"$said\"}"`, from, jsonl)).Text
	if !strings.Contains(lines, "told") {
		t.Errorf("the first line: %s", lines)
	}
}
