package telemetry_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/orchestrator/record/event"
	"gatehouse/orchestrator/record/telemetry"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	taskID = "tsk_01k9m2c8w5q3z7x4v6b8n7f3k9"
	kikID  = "dlg_01k9m2c8w5q3z7x4v6b8n7f3ka"
	codeID = "dlg_01k9m2c8w5q3z7x4v6b8n7f3kb"
)

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// log is a log in memory with a cursor.
type log struct {
	mu     sync.Mutex
	events []telemetry.Positioned
	at     int64
	grown  chan struct{}
}

func (l *log) Next(_ context.Context, after int64, limit int) ([]telemetry.Positioned, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.events[after:]
	return rest[:min(len(rest), limit)], nil
}

func (l *log) Subject(_ context.Context, id string) (telemetry.Subject, error) {
	if id == kikID {
		return telemetry.Subject{ID: id, TaskID: taskID, To: "kik", Text: "secret plan", State: "completed", CreatedAt: start, InputTokens: 100}, nil
	}
	return telemetry.Subject{ID: id, TaskID: taskID, ParentID: kikID, From: "kik", To: "coder", State: "failed", Depth: 1, CreatedAt: start.Add(time.Second), ErrorCode: "exit", ErrorMessage: "secret words"}, nil
}

func (l *log) Begin(context.Context) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at, nil
}

func (l *log) Came(_ context.Context, _, to int64, _ time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = to
	return nil
}

func (l *log) Mine(context.Context) (bool, error) { return true, nil }
func (l *log) Grown() <-chan struct{}             { return l.grown }

// story is a task: kik asks a model, which calls a tool, is refused once and hands to coder, who fails.
func story() *log {
	l := &log{grown: make(chan struct{})}
	for i, e := range []struct {
		who, id string
		kind    event.Type
		data    map[string]any
	}{
		{"ann", kikID, event.TaskCreated, nil},
		{"kik", kikID, event.MessageCompleted, map[string]any{"turn": 1, "model": "sonnet-4-5-20260101", "stop": "tool_use", "text": "secret thought", "took_ms": 700}},
		{"kik", kikID, event.UsageRecorded, map[string]any{"turn": 1, "input_tokens": 90, "output_tokens": 10}},
		{"kik", kikID, event.DelegationRefused, map[string]any{"to": "kik", "code": "self", "message": "no"}},
		{"kik", kikID, event.ToolCompleted, map[string]any{"turn": 2, "id": "call_1", "name": "delegate_to_agent", "ok": false, "text": "secret answer"}},
		{"coder", codeID, event.Failed, nil},
		{"kik", kikID, event.Completed, nil},
	} {
		l.events = append(l.events, telemetry.Positioned{Pos: int64(i + 1), Event: event.Event{TaskID: taskID, N: int64(i + 1), ID: "evt_" + string(rune('a'+i)), Type: e.kind,
			DelegationID: e.id, Actor: e.who, At: start.Add(time.Duration(i+2) * time.Second), Data: event.Data(e.data)}})
	}
	return l
}

// receiver is a collector that refuses the first failures requests.
type receiver struct {
	mu       sync.Mutex
	failures int
	spans    []*otlp.Span
	came     chan struct{}
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures > 0 {
		c.failures--
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	b, err := io.ReadAll(body)
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(b, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(nil)
	select {
	case c.came <- struct{}{}:
	default:
	}
}

// follow sends the story to a collector and returns the spans by name.
func follow(t *testing.T, l *log, failures int, change func(*telemetry.Options)) map[string]*otlp.Span {
	t.Helper()
	c := &receiver{failures: failures, came: make(chan struct{}, 1)}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	o := telemetry.Options{Source: l, Log: slog.New(slog.DiscardHandler), Content: func() bool { return false },
		Model: func(name string) string { return map[string]string{"kik": "anthropic/sonnet-4-5"}[name] }, Kind: func(string) string { return "llm" }}
	if change != nil {
		change(&o)
	}
	ctx, stop := context.WithCancel(t.Context())
	f, err := telemetry.New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	select {
	case <-c.came:
	case <-time.After(30 * time.Second):
		t.Error("no span came")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	byName := map[string]*otlp.Span{}
	for _, s := range c.spans {
		byName[s.Name] = s
	}
	return byName
}

// attrs are the attributes of a span and of its events as text.
func attrs(s *otlp.Span) map[string]string {
	m := map[string]string{}
	for _, a := range s.GetAttributes() {
		m[a.Key] = strings.Trim(a.Value.String(), "\"")
	}
	for _, e := range s.GetEvents() {
		for _, a := range e.Attributes {
			m[e.Name+"/"+a.Key] = a.Value.String()
		}
	}
	return m
}

// TestATaskIsATrace (A5, O14): a span for each delegation below its caller's, for each call of a
// model with its usage, for each tool and each refusal; the trace's id is the task's.
func TestATaskIsATrace(t *testing.T) {
	spans := follow(t, story(), 0, nil)
	root, child, chat, tool, refused := spans["invoke_agent kik"], spans["invoke_agent coder"], spans["chat sonnet-4-5"], spans["execute_tool delegate_to_agent"], spans["refused kik"]
	if len(spans) != 5 || root == nil || child == nil || chat == nil || tool == nil || refused == nil {
		t.Fatalf("spans: %v", spans)
	}
	if len(root.ParentSpanId) != 0 || string(child.ParentSpanId) != string(root.SpanId) || string(chat.ParentSpanId) != string(root.SpanId) || string(tool.ParentSpanId) != string(root.SpanId) {
		t.Error("the spans do not hang together")
	}
	want := telemetry.TraceID(taskID)
	for name, s := range spans {
		if hex.EncodeToString(s.TraceId) != want.String() {
			t.Errorf("%s is in the trace %x, want that of the task, %s", name, s.TraceId, want)
		}
	}
	for key, v := range map[string]string{"gen_ai.operation.name": `string_value:"chat"`, "gen_ai.system": `string_value:"anthropic"`, "gen_ai.request.model": `string_value:"sonnet-4-5"`,
		"gen_ai.response.model": `string_value:"sonnet-4-5-20260101"`, "gen_ai.usage.input_tokens": "int_value:90", "gen_ai.usage.output_tokens": "int_value:10", "gen_ai.agent.name": `string_value:"kik"`} {
		if got := attrs(chat)[key]; strings.Trim(got, `"`) != strings.Trim(v, `"`) {
			t.Errorf("%s is %s, want %s", key, got, v)
		}
	}
	if chat.EndTimeUnixNano-chat.StartTimeUnixNano != uint64(700*time.Millisecond) || tool.StartTimeUnixNano != chat.EndTimeUnixNano {
		t.Error("times of the calls are wrong")
	}
	if child.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || !strings.Contains(attrs(child)["error.type"], "exit") || root.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("outcomes: %v %v", child.Status, root.Status)
	}
	for name, s := range spans {
		if strings.Contains(s.String(), "secret") {
			t.Errorf("%s has the text of a message although nobody allowed it", name)
		}
	}
}

// The switch of the conventions changes names; texts are sent only where they are allowed.
func TestNamesAndTextsAreSettings(t *testing.T) {
	latest := follow(t, story(), 0, func(o *telemetry.Options) { o.Latest, o.Content = true, func() bool { return true } })
	chat := attrs(latest["chat sonnet-4-5"])
	if chat["gen_ai.provider.name"] == "" || chat["gen_ai.system"] != "" || !strings.Contains(chat["gen_ai.output.messages"], "secret thought") {
		t.Errorf("newest names: %v", chat)
	}
	old := attrs(follow(t, story(), 0, func(o *telemetry.Options) { o.Content = func() bool { return true } })["chat sonnet-4-5"])
	if old["gen_ai.system"] == "" || !strings.Contains(old["gen_ai.assistant.message/content"], "secret thought") || old["gen_ai.output.messages"] != "" {
		t.Errorf("names before: %v", old)
	}
}

// A collector that is away gets everything once it is back; the cursor waits for it.
func TestWhatACollectorMissedIsSentLater(t *testing.T) {
	l := story()
	if spans := follow(t, l, 1, nil); len(spans) != 5 {
		t.Errorf("%d spans came, want 5", len(spans))
	}
	if again := telemetry.SpanID(kikID); again != telemetry.SpanID(kikID) || again == telemetry.SpanID(codeID) {
		t.Error("a span that is sent twice is not the same")
	}
}

func TestTheEnvironmentSwitchesTracesOn(t *testing.T) {
	for _, c := range []struct {
		env     map[string]string
		on      bool
		latest  bool
		problem bool
	}{
		{map[string]string{}, false, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"}, true, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x:4318/v1/traces", "OTEL_SEMCONV_STABILITY_OPT_IN": "http, gen_ai_latest_experimental"}, true, true, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "TRUE"}, false, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, false, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, false, true},
	} {
		got := telemetry.FromEnv(func(name string) string { return c.env[name] })
		if got.On != c.on || got.Latest != c.latest || (got.Problem != "") != c.problem {
			t.Errorf("%v: %+v", c.env, got)
		}
	}
}
