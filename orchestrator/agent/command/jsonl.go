package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/strictjson"
	"gatehouse/orchestrator/textcut"
)

const (
	// maxLine is the longest line of the protocol, in bytes: a patch fits.
	maxLine = 8 << 20
	// lingerTime is how long a program may take to end after its result.
	lingerTime = 5 * time.Second
	// maxDepth is how deep a result's data may be nested. JSON readers differ in what
	// they bear (Go 10,000, others some hundreds), and the data is wrapped a few times.
	maxDepth = 200
	// maxTokens bounds one report of usage, so that sums cannot overflow.
	maxTokens = 1_000_000_000_000
)

// taskLine is the first line that a program reads.
type taskLine struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Feedback *agent.Feedback `json:"feedback,omitempty"`
	Handover *agent.Handover `json:"handover,omitempty"`
	Fallback *agent.Fallback `json:"fallback,omitempty"` // what became of the hand-over that it made
	Source   *agent.Source   `json:"source,omitempty"`   // what the task is about elsewhere (A8)
	Channel  string          `json:"channel,omitempty"`  // where the task came from (P15)
	Chat     string          `json:"chat,omitempty"`
	Revision int             `json:"revision"` // that the run will make, from 1
	// Attachments are the files that came with the task, to be read at their paths.
	Attachments []agent.Attachment `json:"attachments,omitempty"`
	// Messages are what people said to the runs before.
	Messages []agent.PersonMessage `json:"messages,omitempty"`
}

// messageLine is what a person says to the program while it works.
type messageLine struct {
	Type string `json:"type"`
	agent.PersonMessage
}

// answerLine tells a program how a hop that it asked for ended. Error is null when
// the child completed.
type answerLine struct {
	Type  string          `json:"type"`
	Ref   string          `json:"ref"`
	ID    string          `json:"id,omitempty"`
	State string          `json:"state"`
	Text  string          `json:"text"`
	Data  json.RawMessage `json:"data,omitempty"`
	// Artifacts have the text where it is short, and the url to get it from.
	Artifacts []agent.Artifact `json:"artifacts,omitempty"`
	Commit    string           `json:"commit,omitempty"`
	Pushed    string           `json:"pushed,omitempty"` // the branch that has it, where it is not on the target
	Usage     usageLine        `json:"usage"`            // of the child and everything below it (O14)
	Error     *agent.Failure   `json:"error"`
}

type usageLine struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	USD          *float64 `json:"usd"`
}

type contextLine struct {
	Namespace  string `json:"namespace"`
	Key        string `json:"key"`
	Value      string `json:"value"`
	TTLSeconds int64  `json:"ttl_seconds"`
}

type resultLine struct {
	Text      string           `json:"text"`
	Data      json.RawMessage  `json:"data"`
	Artifacts []agent.Artifact `json:"artifacts"`
	Patch     string           `json:"patch"`
}

// dialogue is a conversation in protocol jsonl. One goroutine reads lines, one
// writes answers, and one waits for each open hop; all end with the program.
type dialogue struct {
	*conversation
	open    sync.WaitGroup
	answers chan any
	over    chan struct{} // closed when the program is told nothing more
	deaf    func()        // ends hear, with over: what nobody is told is not taken
	hungUp  sync.Once
	result  *agent.Result
	spawned spawned
}

// lines holds the dialogue until the program closes its output or breaks the
// protocol; the caller stops it then.
func (c *conversation) lines(ctx context.Context) (agent.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &dialogue{conversation: c, answers: make(chan any, 16), over: make(chan struct{})}
	hearing, deaf := context.WithCancel(ctx)
	d.deaf = deaf
	var writing sync.WaitGroup
	writing.Go(d.write)
	d.tell(taskLine{Type: "task", Text: c.job.Text, Feedback: c.job.Feedback, Revision: max(c.job.Revision, 1), Handover: c.job.Handover, Fallback: c.job.Fallback,
		Channel: c.job.Channel, Chat: c.job.Chat, Source: c.job.Source, Attachments: c.job.Attachments, Messages: c.job.Told})
	d.open.Go(func() { d.hear(hearing) })

	err := d.read(ctx)
	cancel() // of the hops that are still open, nobody waits for the answers now
	d.hangUp()
	d.open.Wait()
	writing.Wait()
	if d.result == nil {
		c.silent = true
		return agent.Result{}, err
	}
	return *d.result, err
}

// hear tells the program what people say, until it has ended.
func (d *dialogue) hear(ctx context.Context) {
	for {
		said, err := d.host.Hear(ctx, true)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, agent.ErrStopped) {
				d.cancel(fmt.Errorf("hear what people say: %w", err))
			}
			return
		}
		for _, m := range said {
			d.tell(messageLine{Type: "message", PersonMessage: m})
		}
	}
}

// tell sends one line to the program, unless it is told nothing more.
func (d *dialogue) tell(line any) {
	select {
	case d.answers <- line:
	case <-d.over:
	}
}

// write sends lines until hangUp. A program that does not listen is none of our
// business; its time is limited.
func (d *dialogue) write() {
	out := json.NewEncoder(d.proc.stdin)
	for {
		select {
		case line := <-d.answers:
			_ = out.Encode(line)
		case <-d.over:
			return
		}
	}
}

// hangUp closes the program's standard input.
func (d *dialogue) hangUp() {
	d.hungUp.Do(func() {
		d.deaf()
		close(d.over)
		_ = d.proc.stdin.Close()
	})
}

// read takes lines until the end of the output.
func (d *dialogue) read(ctx context.Context) error {
	in := bufio.NewReaderSize(d.proc.stdout, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in)
		switch {
		case errors.Is(err, errLongLine):
			return d.broken(n, fmt.Sprintf("is longer than %d MB", maxLine>>20))
		case err != nil && !isEnd(err):
			return fmt.Errorf("read the program's lines: %w", err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := d.take(ctx, n, line); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// broken is the failure of a line that is not of the protocol.
func (d *dialogue) broken(n int, what string) error {
	return agent.Fail(agent.CodeProtocol,
		"Line %d of %s %s. The run was ended. Write one JSON object a line, as the protocol jsonl says.", n, d.run.program, d.safe(what))
}

func (d *dialogue) take(ctx context.Context, n int, line []byte) error {
	var kind struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if what := decode(line, &kind); what != "" {
		return d.broken(n, what)
	}
	if d.result != nil && kind.Type != "progress" && kind.Type != "usage" {
		return d.broken(n, fmt.Sprintf("comes after the result, and is %q", textcut.Brief(kind.Type, 40)))
	}
	switch kind.Type {
	case "progress":
		d.progress.add(d.safe(kind.Text))
		return nil
	case "usage":
		return d.usage(ctx, n, line)
	case "context":
		return d.context(ctx, n, line)
	case "delegate":
		return d.delegate(ctx, n, line)
	case "spawn":
		return d.spawn(ctx, n, line)
	case "handoff":
		return d.handOver(ctx, n, line)
	case "ask":
		return d.ask(ctx, n, line)
	case "wait":
		d.waitForSpawned(ctx)
		return nil
	case "result":
		return d.end(n, line)
	case "":
		return d.broken(n, "has no `type`")
	}
	return d.broken(n, fmt.Sprintf("has the unknown type %q", textcut.Brief(kind.Type, 40)))
}

func (d *dialogue) usage(ctx context.Context, n int, line []byte) error {
	var u usageLine
	if what := decode(line, &u); what != "" {
		return d.broken(n, what)
	}
	if u.InputTokens < 0 || u.OutputTokens < 0 || u.InputTokens > maxTokens || u.OutputTokens > maxTokens {
		return d.broken(n, fmt.Sprintf("reports %d and %d tokens; what was used since the last report counts, from 0 up", u.InputTokens, u.OutputTokens))
	}
	if u.USD != nil && (*u.USD < 0 || *u.USD > maxTokens) {
		return d.broken(n, fmt.Sprintf("reports %g dollars; what was spent since the last report counts, from 0 up", *u.USD))
	}
	return d.host.Usage(ctx, agent.Usage(u))
}

func (d *dialogue) context(ctx context.Context, n int, line []byte) error {
	var w contextLine
	if what := decode(line, &w); what != "" {
		return d.broken(n, what)
	}
	switch {
	case w.Key == "":
		return d.broken(n, "writes to the shared context without `key`")
	case w.TTLSeconds < 0:
		return d.broken(n, fmt.Sprintf("has ttl_seconds %d; leave it out for a value that stays", w.TTLSeconds))
	}
	return d.host.PutContext(ctx, agent.ContextWrite{
		Namespace: clean(w.Namespace), Key: clean(w.Key), Value: d.safe(w.Value), TTLSeconds: w.TTLSeconds,
	})
}

func answerTo(ref string, child agent.Child) answerLine {
	a := answerLine{Type: "result", Ref: ref, ID: child.ID, State: child.State, Usage: usageLine(child.Usage), Error: child.Error}
	if child.Result != nil {
		a.Text, a.Data, a.Artifacts = child.Result.Text, child.Result.Data, child.Result.Artifacts
		a.Commit, a.Pushed = child.Result.Commit, child.Result.Pushed
	}
	return a
}

// end takes the result. The program is expected to end now; what it only forgot to
// end is ended for it.
func (d *dialogue) end(n int, line []byte) error {
	var l resultLine
	if what := decode(line, &l); what != "" {
		return d.broken(n, what)
	}
	data, artifacts, what := d.given(l.Data, l.Artifacts)
	if what != "" {
		return d.broken(n, what)
	}
	d.result = &agent.Result{Text: d.safe(l.Text), Data: data, Artifacts: artifacts, Patch: l.Patch}
	d.hangUp()
	d.linger = time.AfterFunc(lingerTime, func() { d.proc.stop(grace) })
	return nil
}

// decode reads one line and says in words what is wrong with it.
func decode(line []byte, into any) string {
	err := strictjson.Into(line, into, maxDepth+1)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return fmt.Sprintf("is a JSON %s, not an object", wrong.Value)
		}
		return fmt.Sprintf("has a %s in `%s`, where %s is expected", wrong.Value, wrong.Field, jsonName(wrong))
	}
	refused, ok := errors.AsType[*strictjson.Refusal](err)
	switch {
	case err == nil:
		return ""
	case !ok:
		return "cannot be read: " + textcut.Brief(string(line), 80)
	case refused.Whole:
		return refused.What + ": " + textcut.Brief(string(line), 80)
	}
	return "can be read in two ways, as " + refused.What + ": " + textcut.Brief(string(line), 80)
}

// depth is how deep valid JSON is nested.
func depth(data json.RawMessage) int {
	deepest, open := 0, 0
	text, escaped := false, false
	for _, b := range data {
		switch {
		case escaped:
			escaped = false
		case text:
			text, escaped = b != '"', b == '\\'
		case b == '"':
			text = true
		case b == '[' || b == '{':
			open++
			deepest = max(deepest, open)
		case b == ']' || b == '}':
			open--
		}
	}
	return deepest
}

// jsonName is what JSON calls the type that was expected.
func jsonName(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

var errLongLine = errors.New("line too long")

// readLine returns the next line with its end, and the error that came with it.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errLongLine
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, err
		}
	}
}
