package command

import (
	"strings"
	"testing"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

// A program of protocol jsonl asks people, several questions at once, and reads each answer
// under its own name; one that nobody answers, too.
func TestAProgramOfLinesAsksPeople(t *testing.T) {
	job := shell(t, `read task
		echo '{"type":"ask","question":"Which colour?","choices":["red","blue"],"to":"ops","ref":"c"}'
		echo '{"type":"ask","question":"Anybody?","ref":"n"}'
		read a; read b; echo "$a" > said; echo "$b" >> said
		`+done, jsonl)
	host := agenttest.NewHost()
	host.OnAsk = func(a agent.Ask) agent.Answer {
		if a.Ref == "c" {
			return agent.Answer{ID: "apr_1", State: agent.AskAnswered, Text: "blue", By: "ann"}
		}
		return agent.Answer{ID: "apr_2", State: agent.AskExpired, Text: "Nobody answered."}
	}
	if _, err := run(t, job, host); err != nil {
		t.Fatal(err)
	}
	said := mustRead(t, job.Dir+"/said")
	for _, line := range []string{`{"type":"answer","ref":"c","state":"answered","text":"blue","by":"ann"}`, `{"type":"answer","ref":"n","state":"expired","text":"Nobody answered.","by":""}`} {
		if strings.Count(said, line+"\n") != 1 {
			t.Errorf("it read %q, without %s", said, line)
		}
	}
	for _, a := range host.Asked() {
		if a.Ref == "c" && (a.Question == nil || a.Question.Text != "Which colour?" || len(a.Question.Choices) != 2 || a.Question.To != "ops") {
			t.Errorf("asked %+v", a.Question)
		}
	}
	mustNot(t, shell(t, `read task; echo '{"type":"ask","question":["x"]}'; sleep 10`, jsonl), agenttest.NewHost(), agent.CodeProtocol, "question")
}
