package telemetry

import (
	"encoding/json"
	"strings"
	"time"

	"gatehouse/orchestrator/record/event"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// provider is who serves a model: the attribute changed its name with version 1.37.
func (m *maker) provider(model string) attribute.KeyValue {
	name, _, _ := strings.Cut(model, "/")
	if m.Latest {
		return attribute.String("gen_ai.provider.name", name)
	}
	return attribute.String("gen_ai.system", name)
}

// delegation is the span of one hop: an agent was asked, and answered.
func (m *maker) delegation(e event.Event, d Subject) {
	s := span{e: e, name: "invoke_agent " + d.To, from: d.CreatedAt}
	s.add(attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", d.To), attribute.String("gen_ai.agent.id", d.ID),
		attribute.String("gen_ai.conversation.id", d.TaskID), attribute.String("gatehouse.agent.kind", m.Kind(d.To)), attribute.String("gatehouse.state", d.State),
		attribute.Int("gatehouse.depth", d.Depth), attribute.Int("gatehouse.attempt", d.Attempt),
		attribute.Int64("gen_ai.usage.input_tokens", d.InputTokens), attribute.Int64("gen_ai.usage.output_tokens", d.OutputTokens))
	if model := m.Model(d.To); model != "" {
		_, bare, _ := strings.Cut(model, "/")
		s.add(m.provider(model), attribute.String("gen_ai.request.model", bare))
	}
	if d.From != "" {
		s.add(attribute.String("gatehouse.from", d.From))
	}
	if d.Repository != "" {
		s.add(attribute.String("gatehouse.repository", d.Repository))
	}
	if e.Type != event.Completed {
		if s.failed = d.ErrorCode; s.failed == "" {
			s.failed = strings.TrimPrefix(string(e.Type), "delegation.")
		}
	}
	// An error's sentence may repeat what an agent printed.
	if m.Content() {
		s.why = d.ErrorMessage
		m.said(&s, "user", d.Text)
	}
	parent := trace.SpanID{}
	if d.ParentID != "" {
		parent = SpanID(d.ParentID)
	}
	m.write(s, SpanID(d.ID), parent)
}

// call is the span of one call of a model. Its usage is in the event behind its own.
func (m *maker) call(e, next event.Event) {
	f := event.Read[event.MessageCompletedData](e)
	model := m.Model(e.Actor)
	_, bare, named := strings.Cut(model, "/")
	if !named {
		bare = f.Model
	}
	s := span{e: e, name: "chat " + bare, kind: trace.SpanKindClient, from: e.At.Add(-time.Duration(number(f.TookMS)) * time.Millisecond)}
	s.add(attribute.String("gen_ai.operation.name", "chat"), m.provider(model), attribute.String("gen_ai.request.model", bare), attribute.String("gen_ai.response.model", f.Model),
		attribute.String("gen_ai.agent.name", e.Actor), attribute.String("gen_ai.conversation.id", e.TaskID), attribute.Int64("gatehouse.turn", number(f.Turn)))
	if f.Stop != "" {
		s.add(attribute.StringSlice("gen_ai.response.finish_reasons", []string{f.Stop}))
	}
	if used := event.Read[event.UsageRecordedData](next); next.Type == event.UsageRecorded && next.DelegationID == e.DelegationID {
		s.add(attribute.Int64("gen_ai.usage.input_tokens", number(used.InputTokens)), attribute.Int64("gen_ai.usage.output_tokens", number(used.OutputTokens)))
	}
	if m.Content() {
		m.said(&s, "assistant", f.Text)
	}
	m.write(s, SpanID(e.ID), SpanID(e.DelegationID))
}

// tool is the span of one call of a tool, from the answer of the model that asked for it.
func (m *maker) tool(e event.Event) {
	f := event.Read[event.ToolCompletedData](e)
	s := span{e: e, name: "execute_tool " + f.Name, from: e.At}
	if asked, known := m.asked[e.DelegationID]; known {
		s.from = asked
	}
	s.add(attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", f.Name), attribute.String("gen_ai.tool.call.id", f.ID),
		attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.agent.name", e.Actor))
	if f.OK == event.Given(false) {
		s.failed = "tool_error"
	}
	if m.Content() {
		if m.Latest {
			s.add(attribute.String("gen_ai.tool.call.result", f.Text))
		} else {
			s.about, s.content = "gen_ai.tool.message", []attribute.KeyValue{attribute.String("content", f.Text), attribute.String("id", f.ID)}
		}
	}
	m.write(s, SpanID(e.ID), SpanID(e.DelegationID))
}

// said puts the text of a message where the conventions want it.
func (m *maker) said(s *span, role, text string) {
	if text == "" {
		return
	}
	if !m.Latest {
		s.about, s.content = "gen_ai."+role+".message", []attribute.KeyValue{attribute.String("content", text)}
		return
	}
	key := "gen_ai.input.messages"
	if role == "assistant" {
		key = "gen_ai.output.messages"
	}
	message, err := json.Marshal([]map[string]any{{"role": role, "parts": []map[string]string{{"type": "text", "content": text}}}})
	if err == nil {
		s.add(attribute.String(key, string(message)))
	}
}

// number is a number of the log; what is senseless is 0.
func number[N int | int64](v N) int64 {
	if v < 0 || int64(v) > 1<<50 {
		return 0
	}
	return int64(v)
}
