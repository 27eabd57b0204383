package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gatehouse/orchestrator/agent"
)

// frame is one server-sent event.
type frame struct {
	event string // "" writes none, as OpenAI's chat does
	data  string
}

// event makes a frame of a value.
func event(name string, v any) frame {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null") // maps of strings and numbers always marshal
	}
	return frame{event: name, data: string(raw)}
}

func (f frame) bytes() []byte {
	var b bytes.Buffer
	if f.event != "" {
		fmt.Fprintf(&b, "event: %s\n", f.event)
	}
	fmt.Fprintf(&b, "data: %s\n\n", f.data)
	return b.Bytes()
}

// writer writes one answer, as badly as it says.
type writer struct {
	w            http.ResponseWriter
	done, closed <-chan struct{}
	answer       Answer
}

func (o writer) write(format api, ask Ask, r reply) {
	a := o.answer
	if a.RetryAfter != "" {
		o.w.Header().Set("Retry-After", a.RetryAfter)
	}
	if a.Status != 0 && a.InStream == 0 {
		writeJSON(o.w, a.Status, errorBody(format.name(), a.Type, a.Message))
		return
	}
	if !ask.Stream && a.Raw == "" {
		writeJSON(o.w, http.StatusOK, format.whole(ask, r))
		return
	}
	o.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	o.w.WriteHeader(http.StatusOK)
	if a.Raw != "" {
		o.send([]byte(a.Raw))
		return
	}
	o.stream(format, format.events(ask, r))
}

// stream writes the frames until the answer's fault.
func (o writer) stream(format api, frames []frame) {
	a := o.answer
	for i, f := range frames {
		switch n := i + 1; {
		case a.Hang > 0 && i == a.Hang:
			select {
			case <-o.done:
			case <-o.closed:
			}
			return
		case a.Cut > 0 && i == a.Cut:
			o.cut()
			return
		case a.Short > 0 && i == a.Short:
			return
		case a.InStream > 0 && i == a.InStream:
			f := event("error", errorBody(format.name(), a.Type, a.Message))
			if format.name() == Chat {
				f.event = ""
			}
			o.send(f.bytes())
			return
		case a.Malformed == n:
			f.data = f.data[:len(f.data)/2] + "\x00{{"
		}
		if a.Ping {
			o.send([]byte(": keep-alive\n\n"))
			if format.name() == Messages {
				o.send(event("ping", map[string]any{"type": "ping"}).bytes())
			}
		}
		o.send(f.bytes())
	}
}

// send writes in pieces, each of which goes out at once.
func (o writer) send(b []byte) {
	size := o.answer.Split
	if size <= 0 {
		size = len(b)
	}
	flush := http.NewResponseController(o.w)
	for len(b) > 0 {
		n := min(size, len(b))
		if _, err := o.w.Write(b[:n]); err != nil {
			return // nobody reads any more
		}
		if flush.Flush() != nil {
			return
		}
		b = b[n:]
	}
}

// cut breaks the connection in the middle of the answer.
func (o writer) cut() {
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return
	}
	conn.Close() //nolint:errcheck // it is to break
}

// errorBody is a failure as each service writes it.
func errorBody(api, typ, message string) any {
	if api == Messages {
		return map[string]any{"type": "error", "error": map[string]any{"type": typ, "message": message}, "request_id": "req_000001"}
	}
	return map[string]any{"error": map[string]any{"type": typ, "code": typ, "message": message, "param": nil}}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(raw) //nolint:errcheck // nobody reads any more
}

// paired refuses what the services refuse: a call without its result in the next message,
// a result without its call, an id twice (O18).
func paired(messages []agent.Message) error {
	if len(messages) == 0 {
		return errors.New("messages: at least one message is required")
	}
	open := map[string]bool{}
	for i, m := range messages {
		for _, b := range m.Blocks {
			if b.Type != agent.AnswerBlock {
				continue
			}
			if !open[b.ID] {
				return fmt.Errorf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, b.ID)
			}
			delete(open, b.ID)
		}
		if m.Role != agent.FromTools && len(open) > 0 {
			var ids []string
			for id := range open {
				ids = append(ids, id)
			}
			return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i, strings.Join(ids, ", "))
		}
		for _, c := range m.Calls() {
			if open[c.ID] {
				return fmt.Errorf("messages.%d: `tool_use` ids must be unique: %s", i, c.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("messages.%d: `tool_use` ids were found without `tool_result` blocks", len(messages)-1)
	}
	return nil
}

// words reads a content that is a string or an array of blocks with text.
func words(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var out []string
	for _, b := range blocks {
		if b.Text != "" {
			out = append(out, b.Text)
		}
	}
	return strings.Join(out, "\n")
}
