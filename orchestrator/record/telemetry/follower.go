package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gatehouse/orchestrator/record/event"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Subject is the delegation that a span is about.
type Subject struct {
	ID, TaskID, ParentID string
	From, To             string
	Text                 string
	Repository           string
	State                string
	Depth, Attempt       int
	CreatedAt            time.Time
	EndedAt              *time.Time
	InputTokens          int64
	OutputTokens         int64
	ErrorCode            string
	ErrorMessage         string
}

// Positioned is an event with its place in the order over all tasks.
type Positioned struct {
	Pos int64
	event.Event
}

// Source is the log, with this follower's place in it.
type Source interface {
	// Next returns events behind a position, ascending.
	Next(ctx context.Context, after int64, limit int) ([]Positioned, error)
	// Subject returns a delegation, or an error when there is none.
	Subject(ctx context.Context, delegationID string) (Subject, error)
	// Begin is where to go on; at the very first time it is the end of the log.
	Begin(ctx context.Context) (int64, error)
	// Came records how far the follower has come.
	Came(ctx context.Context, from, to int64, at time.Time) error
	// Mine reports whether this node is the one that follows.
	Mine(ctx context.Context) (bool, error)
	// Grown is closed when there may be more.
	Grown() <-chan struct{}
}

// Options is what a Follower needs.
type Options struct {
	Source Source
	Model  func(agent string) string // the model that an agent asks for, provider/name; "" for none
	Kind   func(agent string) string // llm, command …
	// Content says whether texts of messages are sent.
	Content func() bool
	Latest  bool // names of the newest conventions; see FromEnv
	Version string
	Log     *slog.Logger
}

// Settings are what the environment says.
type Settings struct {
	On     bool
	Latest bool
	// Problem says why it is off although somebody seems to want it on.
	Problem string
}

// FromEnv reads the standard's variables.
func FromEnv(lookup func(string) string) Settings {
	var s Settings
	endpoint := lookup("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + lookup("OTEL_EXPORTER_OTLP_ENDPOINT")
	protocol := lookup("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = lookup("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch {
	case endpoint == "" || strings.EqualFold(lookup("OTEL_SDK_DISABLED"), "true") || lookup("OTEL_TRACES_EXPORTER") == "none":
	case protocol != "" && protocol != "http/protobuf":
		s.Problem = fmt.Sprintf("traces are not sent: the protocol %q is not spoken here. Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", protocol)
	default:
		s.On = true
	}
	for part := range strings.SplitSeq(lookup("OTEL_SEMCONV_STABILITY_OPT_IN"), ",") {
		s.Latest = s.Latest || strings.TrimSpace(part) == "gen_ai_latest_experimental"
	}
	return s
}

// batch is how many events are read at once, and patience the longest pause after failures.
const (
	batch    = 500
	patience = time.Minute
	poll     = 5 * time.Second
)

// Follower sends spans. Run runs it.
type Follower struct {
	Options
	spans  *maker
	export sdk.SpanExporter
}

// New makes a follower that sends to where the environment says.
func New(ctx context.Context, o Options) (*Follower, error) {
	e, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("the exporter of traces: %w", err)
	}
	return &Follower{Options: o, spans: newMaker(o), export: e}, nil
}

// Run follows the log until ctx ends, and returns nil then. A collector that is away is
// tried again, with pauses that grow to a minute; nothing is skipped meanwhile.
func (f *Follower) Run(ctx context.Context) error {
	pause := time.Second
	for ctx.Err() == nil {
		grown := f.Source.Grown()
		more, err := f.step(ctx)
		wait := poll
		switch {
		case ctx.Err() != nil:
		case err != nil:
			f.Log.Warn("traces were not sent; trying again", "err", err, "in", pause)
			wait, grown = pause, nil
			pause = min(2*pause, patience)
		case more:
			pause = time.Second
			continue
		default:
			pause = time.Second
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-grown:
		case <-timer.C:
		}
		timer.Stop()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := f.export.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing the exporter of traces: %w", err)
	}
	return nil
}

// step sends the spans of one batch and reports whether there may be more.
func (f *Follower) step(ctx context.Context) (bool, error) {
	mine, err := f.Source.Mine(ctx)
	if err != nil || !mine {
		return false, err
	}
	from, err := f.Source.Begin(ctx)
	if err != nil {
		return false, err
	}
	events, err := f.Source.Next(ctx, from, batch)
	if err != nil || len(events) == 0 {
		return false, err
	}
	full := len(events) == batch
	// A model's answer and its usage were written together; a batch does not part them.
	if n := len(events); full && events[n-1].Type == event.MessageCompleted {
		events = events[:n-1]
	}
	for i := range events {
		next := event.Event{}
		if i+1 < len(events) {
			next = events[i+1].Event
		}
		if err := f.spans.add(ctx, events[i].Event, next); err != nil {
			f.spans.taken()
			return false, err
		}
	}
	for some := range slices.Chunk(f.spans.taken(), 256) {
		if err := f.export.ExportSpans(ctx, some); err != nil {
			return false, err
		}
	}
	last := events[len(events)-1]
	return full, f.Source.Came(ctx, from, last.Pos, last.At)
}
