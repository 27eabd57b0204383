package command

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/agenttest"
)

const done = `echo '{"type":"result","text":"done"}'`

func TestLinesOfJSONTellAStory(t *testing.T) {
	job := shell(t, `read task; echo "$task" > task.json
		echo '{"type":"progress","text":"reading"}'
		echo '{"type":"usage","input_tokens":10,"output_tokens":2,"usd":0.5}'
		echo '{"type":"usage","input_tokens":1,"output_tokens":1}'
		echo '{"type":"context","namespace":"team","key":"found","value":"a bug","ttl_seconds":60}'
		echo
		printf '%s\n' '{"type":"result","text":"nul \u0000","data":{"score":81},"artifacts":[{"name":"Report","path":"out/report.md"}],"patch":"--- a/x\n"}'
		cat > rest.txt`, jsonl)
	job.Feedback = &agent.Feedback{Comment: "again", Comments: []agent.LineComment{{Path: "a.go", Line: 3, Text: "no"}}, Earlier: []agent.Earlier{{Revision: 1, By: "bob", Comment: "please add c2"}}}
	host := agenttest.NewHost()
	res, err := run(t, job, host)
	if err != nil {
		t.Fatal(err)
	}
	if res.Text != "nul \uFFFD" || string(res.Data) != `{"score":81}` || res.Patch != "--- a/x\n" ||
		len(res.Artifacts) != 1 || res.Artifacts[0] != (agent.Artifact{Name: "Report", Path: "out/report.md"}) {
		t.Errorf("result %+v", res)
	}
	if u := host.Used(); u.InputTokens != 11 || u.OutputTokens != 3 || u.USD == nil || *u.USD != 0.5 {
		t.Errorf("usage %+v", u)
	}
	if w := host.Writes(); len(w) != 1 || w[0] != (agent.ContextWrite{Namespace: "team", Key: "found", Value: "a bug", TTLSeconds: 60}) {
		t.Errorf("context %+v", w)
	}
	if shown, _ := host.Shown(); shown != "reading" {
		t.Errorf("progress %q", shown)
	}
	if s := host.Sandboxes(); len(s) != 1 || s[0] == "" {
		t.Errorf("sandboxes %v", s)
	}
	var first taskLine
	if err := json.Unmarshal([]byte(mustRead(t, filepath.Join(job.Dir, "task.json"))), &first); err != nil {
		t.Fatal(err)
	}
	if first.Type != "task" || first.Text != "fix it" || first.Feedback == nil || first.Feedback.Comments[0].Line != 3 || len(first.Feedback.Earlier) != 1 || first.Feedback.Earlier[0] != job.Feedback.Earlier[0] {
		t.Errorf("first line %+v", first)
	}
}

func TestSeveralHopsAreOpenAtOnce(t *testing.T) {
	job := shell(t, `read task
		echo '{"type":"delegate","to":"slow","text":"one","ref":"s"}'
		echo '{"type":"delegate","to":"quick","text":"two","ref":"q"}'
		echo '{"type":"delegate","capability":"review","text":"three","ref":"c","context":{"k":"v"}}'
		read a; read b; read c
		printf '%s\n%s\n%s\n' "$a" "$b" "$c" > answers; `+done, jsonl)
	host := agenttest.NewHost()
	host.Child = func(hop agent.Hop) agent.Child {
		if hop.To == "quick" {
			return agent.Child{State: "completed", Ended: true, Result: &agent.Result{Text: "two done"}}
		}
		return agent.Child{ID: "dlg_" + hop.Ref, State: "queued"}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := run(t, job, host)
		ended <- err
	}()
	agenttest.Eventually(t, "all hops are open", func() bool { return len(host.Hops()) == 3 })
	host.End("dlg_c", "", agent.Fail(agent.CodeExit, "It ended with code 1."))
	host.End("dlg_s", "one done", nil)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	got := map[string]answerLine{}
	for _, line := range strings.Split(strings.TrimSpace(mustRead(t, filepath.Join(job.Dir, "answers"))), "\n") {
		var a answerLine
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		got[a.Ref] = a
	}
	if a := got["q"]; a.Type != "result" || a.State != "completed" || a.Text != "two done" || a.Error != nil {
		t.Errorf("quick: %+v", a)
	}
	if a := got["s"]; a.Text != "one done" {
		t.Errorf("slow: %+v", a)
	}
	if a := got["c"]; a.State != "failed" || a.Error == nil || a.Error.Code != agent.CodeExit {
		t.Errorf("capability: %+v", a)
	}
	if hop := host.Hops()[2]; hop.Capability != "review" || hop.Context["k"] != "v" {
		t.Errorf("hop %+v", hop)
	}
}

func TestWaitingForAChildDoesNotCountAsRunning(t *testing.T) {
	job := shell(t, `read task; echo '{"type":"delegate","to":"helper","text":"look"}'; read answer; `+done, jsonl)
	job.Agent.Timeout = time.Second
	host := agenttest.NewHost()
	host.Child = func(agent.Hop) agent.Child { return agent.Child{ID: "dlg_1", State: "queued"} }
	release := time.AfterFunc(2500*time.Millisecond, func() { host.End("dlg_1", "ok", nil) })
	defer release.Stop()
	if _, err := run(t, job, host); err != nil {
		t.Fatal(err)
	}
}

func TestLinesThatAreNotOfTheProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		words []string
	}{
		"no JSON":           {`hello`, []string{"Line 2 of sh is not JSON", "hello"}},
		"a key twice":       {`{"type":"result","text":"all is well","text":"send money"}`, []string{`the key "text" stands twice`}},
		"another case":      {`{"type":"result","text":"all is well","Text":"send money"}`, []string{`"text" and "Text" differ in their case only`}},
		"only another case": {`{"type":"result","Text":"send money"}`, []string{`the key "Text" must be written "text"`}},
		"twice in the data": {`{"type":"result","data":{"score":90,"score":10}}`, []string{`the key "score" stands twice`}},
		"something behind":  {`{"type":"progress","text":"a"} {"type":"result"}`, []string{"there is more behind"}},
		"no object":         {`[1]`, []string{"Line 2", "is a JSON array"}},
		"no type":           {`{"text":"x"}`, []string{"has no `type`"}},
		"unknown type":      {`{"type":"shout"}`, []string{"unknown type \"shout\""}},
		"text is a number":  {`{"type":"progress","text":5}`, []string{"has a number in `text`", "a string is expected"}},
		"half a token":      {`{"type":"usage","input_tokens":1.5}`, []string{"`input_tokens`", "a whole number"}},
		"negative tokens":   {`{"type":"usage","input_tokens":-5}`, []string{"reports -5 and 0 tokens"}},
		"endless tokens":    {`{"type":"usage","output_tokens":9000000000000000000}`, []string{"tokens"}},
		"negative price":    {`{"type":"usage","usd":-1}`, []string{"-1 dollars"}},
		"context, no key":   {`{"type":"context","namespace":"a","value":"v"}`, []string{"without `key`"}},
		"negative life":     {`{"type":"context","namespace":"a","key":"k","value":"v","ttl_seconds":-1}`, []string{"ttl_seconds -1"}},
		"hop to nobody":     {`{"type":"delegate","text":"x"}`, []string{"`to`"}},
		"hop with no text":  {`{"type":"delegate","to":"x"}`, []string{"`text`"}},
		"artifact outside":  {`{"type":"result","artifacts":[{"name":"a","path":"../../etc/passwd"}]}`, []string{"artifact 1"}},
		"artifact unnamed":  {`{"type":"result","artifacts":[{"text":"a"}]}`, []string{"artifact 1"}},
		"bottomless data":   {`{"type":"result","data":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, []string{"nested"}},
		"two results":       {`{"type":"result"}` + "\n" + `{"type":"result"}`, []string{"Line 3", "after the result"}},
		"a NUL in the line": {`{"type":"a` + "\x00" + `"}`, []string{"is not JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			// The program would not end by itself: the line ends it.
			job := shell(t, `echo '{"type":"progress","text":"on"}'; cat "$LINES"; sleep 600`, jsonl)
			job.Agent.Env["LINES"] = filepath.Join(job.ScratchDir, "lines")
			write(t, job.Agent.Env["LINES"], c.line+"\n", 0o600)
			f := mustFail(t, job, agent.CodeProtocol, c.words...)
			if strings.ContainsRune(f.Message, 0) {
				t.Error("a NUL in the failure")
			}
		})
	}
}

func TestALineLongerThanTheLimitEndsTheRun(t *testing.T) {
	mustFail(t, shell(t, `head -c 100000000 /dev/zero | tr '\0' x; sleep 600`, jsonl), agent.CodeProtocol, "Line 1", "longer than 8 MB")
}

func TestWithoutAResultThereIsNoAnswer(t *testing.T) {
	mustFail(t, shell(t, `echo '{"type":"progress","text":"x"}'`, jsonl), agent.CodeProtocol, "without a line of type result")
	mustFail(t, shell(t, `echo broken >&2; exit 2`, jsonl), agent.CodeExit, "code 2", "broken")
	mustFail(t, shell(t, done+`; exit 4`, jsonl), agent.CodeExit, "code 4")
}

func TestAFailureAfterTheResultKeepsWhatItSaid(t *testing.T) {
	job := shell(t, `echo '{"type":"result","text":"half of it is done"}'; exit 3`, jsonl)
	mustFail(t, job, agent.CodeExit, "sh ended with code 3. The last it said:\nIts result, which does not count since it failed after it: half of it is done")
}

func TestTheLastLineMayLackItsEnd(t *testing.T) {
	if got := mustAnswer(t, shell(t, `printf '{"type":"result","text":"done"}'`, jsonl)).Text; got != "done" {
		t.Fatalf("got %q", got)
	}
}

func TestAProgramThatForgetsToEndIsEndedAfterItsResult(t *testing.T) {
	started := time.Now()
	if got := mustAnswer(t, shell(t, done+`; sleep 600`, jsonl)).Text; got != "done" {
		t.Fatalf("got %q", got)
	}
	took := time.Since(started)
	t.Logf("ended after %s, which should be little more than %s", took, lingerTime)
	if took < lingerTime || took > 5*time.Minute { // by itself it would have ended after ten
		t.Errorf("took %s", took)
	}
}

// slowHost takes its time for each write, as a database with a slow disk does.
type slowHost struct{ *agenttest.Host }

func (h slowHost) PutContext(ctx context.Context, w agent.ContextWrite) error {
	if w.Key == "k0" {
		time.Sleep(3 * drainTime)
	}
	return h.Host.PutContext(ctx, w)
}

// The program has long ended when its lines are read; its result is the last of them.
func TestLinesThatAreReadLateAreNotLost(t *testing.T) {
	job := shell(t, `read task; for i in 0 1 2 3 4 5 6 7 8 9; do
		printf '{"type":"context","namespace":"n","key":"k%d","value":"%0100d"}\n' $i 0; done
		head -c 40000 /dev/zero | tr '\0' '\n'; `+done, jsonl)
	host := slowHost{agenttest.NewHost()}
	res, err := run(t, job, host)
	if err != nil || res.Text != "done" || len(host.Writes()) != 10 {
		t.Fatalf("got %q and %d writes, %v", res.Text, len(host.Writes()), err)
	}
}

func TestTextInDataDoesNotCountAsDepth(t *testing.T) {
	for data, want := range map[string]int{``: 0, `1`: 0, `"[[\"[["`: 0, `{"a":[1,{"b":"]"}]}`: 3, `["\\",[]]`: 2} {
		if got := depth(json.RawMessage(data)); got != want {
			t.Errorf("%s is %d deep, want %d", data, got, want)
		}
	}
}

func TestTheRunsTokenIsNotInItsResult(t *testing.T) {
	job := shell(t, `echo "{\"type\":\"result\",\"text\":\"$GATEHOUSE_TOKEN\",\"data\":{\"t\":\"$GATEHOUSE_TOKEN\"}}"`, jsonl)
	res := mustAnswer(t, job)
	if res.Text != "[secret]" || string(res.Data) != `{"t":"[secret]"}` {
		t.Errorf("result %q %s", res.Text, res.Data)
	}
}

// What people say after the result, while the program still ends, is not taken: nothing would
// be told it.
func TestWhatIsSaidAfterTheResultIsLeft(t *testing.T) {
	job := shell(t, `read task; `+done+`; touch ended; sleep 1`, jsonl)
	host := agenttest.NewHost()
	go func() {
		for !exists(filepath.Join(job.Dir, "ended")) {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond) // until the result was read
		host.Say("bob", "too late")
	}()
	if _, err := run(t, job, host); err != nil {
		t.Fatal(err)
	}
	if left, err := host.Unread(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
