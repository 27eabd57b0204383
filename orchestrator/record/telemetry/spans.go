package telemetry

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/record/event"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TraceID is that of a task: the 128 bits of its ULID.
func TraceID(taskID string) trace.TraceID {
	_, rest, _ := strings.Cut(taskID, "_")
	if u, err := ulid.ParseStrict(strings.ToUpper(rest)); err == nil {
		return trace.TraceID(u)
	}
	sum := sha256.Sum256([]byte(taskID))
	return trace.TraceID(sum[:16])
}

// SpanID is that of a delegation, or of one of its events.
func SpanID(name string) trace.SpanID {
	sum := sha256.Sum256([]byte(name))
	return trace.SpanID(sum[:8])
}

// ids gives a span the ids that its context carries.
type ids struct{}

type idKey struct{}

type identity struct {
	trace trace.TraceID
	span  trace.SpanID
}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(idKey{}).(identity)
	return id.trace, id.span
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(idKey{}).(identity)
	return id.span
}

// gather keeps ended spans until they are taken.
type gather struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
}

func (g *gather) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (g *gather) Shutdown(context.Context) error             { return nil }
func (g *gather) ForceFlush(context.Context) error           { return nil }

func (g *gather) OnEnd(s sdk.ReadOnlySpan) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spans = append(g.spans, s)
}

// maker makes spans of events. It belongs to one goroutine.
type maker struct {
	Options
	out    *gather
	tracer trace.Tracer
	asked  map[string]time.Time // when a delegation's model last answered: its tools began then
}

func newMaker(o Options) *maker {
	out := &gather{}
	// What the environment says of the resource wins over our name.
	res, err := resource.Merge(resource.NewSchemaless(attribute.String("service.name", "gatehouse"), attribute.String("service.version", o.Version)), resource.Environment())
	if err != nil {
		res = resource.Default()
	}
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(out), sdk.WithIDGenerator(ids{}), sdk.WithSampler(sdk.AlwaysSample()), sdk.WithResource(res))
	return &maker{Options: o, out: out, tracer: p.Tracer("gatehouse"), asked: map[string]time.Time{}}
}

// taken are the spans since the last call.
func (m *maker) taken() []sdk.ReadOnlySpan {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	spans := m.out.spans
	m.out.spans = nil
	return spans
}

// add makes the span that e ends, if it ends one. next is the event behind it.
func (m *maker) add(ctx context.Context, e, next event.Event) error {
	switch e.Type {
	case event.Completed, event.Failed, event.Cancelled:
		delete(m.asked, e.DelegationID)
		d, err := m.Source.Subject(ctx, e.DelegationID)
		if err != nil {
			return err
		}
		m.delegation(e, d)
	case event.MessageCompleted:
		m.remember(e)
		m.call(e, next)
	case event.ToolCompleted:
		m.tool(e)
	case event.DelegationRefused:
		f := event.Read[event.DelegationRefusedData](e)
		s := span{e: e, name: "refused " + f.To, from: e.At, failed: f.Code}
		s.add(attribute.String("gatehouse.refused.to", f.To), attribute.String("gatehouse.refused.code", f.Code))
		m.write(s, SpanID(e.ID), SpanID(e.DelegationID))
	}
	return nil
}

// mostAsked bounds what is remembered of delegations whose end never comes by here.
const mostAsked = 10_000

func (m *maker) remember(e event.Event) {
	if len(m.asked) >= mostAsked {
		clear(m.asked)
	}
	m.asked[e.DelegationID] = e.At
}

// span is one span before it is written.
type span struct {
	e       event.Event
	name    string
	kind    trace.SpanKind
	from    time.Time
	failed  string // error.type; "" for none
	why     string
	attrs   []attribute.KeyValue
	content []attribute.KeyValue // an event's, before the newest conventions
	about   string               // the name of that event
}

func (s *span) add(more ...attribute.KeyValue) { s.attrs = append(s.attrs, more...) }

// write makes the span of s under its parent; a parent of 0 makes it the trace's root.
func (m *maker) write(s span, id, parent trace.SpanID) {
	taskTrace := TraceID(s.e.TaskID)
	ctx := context.WithValue(context.Background(), idKey{}, identity{taskTrace, id})
	if parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: taskTrace, SpanID: parent, TraceFlags: trace.FlagsSampled}))
	}
	if s.from.IsZero() || s.from.After(s.e.At) {
		s.from = s.e.At
	}
	s.add(attribute.String("gatehouse.task.id", s.e.TaskID), attribute.String("gatehouse.delegation.id", s.e.DelegationID))
	_, sp := m.tracer.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attrs...))
	if len(s.content) > 0 {
		sp.AddEvent(s.about, trace.WithTimestamp(s.e.At), trace.WithAttributes(s.content...))
	}
	if s.failed != "" {
		sp.SetAttributes(attribute.String("error.type", s.failed))
		sp.SetStatus(codes.Error, s.why)
	}
	sp.End(trace.WithTimestamp(s.e.At))
}
