package modeltest

import (
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/orchestrator/agent/llm/model"
)

// Answer is what the model says, and how badly the service behaves while it does. The
// zero value is an empty answer with usage.
type Answer struct {
	Think string `json:"think,omitempty"` // signed thinking (Messages only)
	Text  string `json:"text,omitempty"`
	Calls []Call `json:"calls,omitempty"`
	Stop  string `json:"stop,omitempty"`  // one of model's; "" fits what was said
	Usage *Usage `json:"usage,omitempty"` // nil is counted from the texts

	NoUsage   bool            `json:"no_usage,omitempty"`
	Delay     time.Duration   `json:"delay,omitempty"`     // before the first byte
	Until     <-chan struct{} `json:"-"`                   // the first byte comes when it is closed
	Ping      bool            `json:"ping,omitempty"`      // keep-alives between the events
	Split     int             `json:"split,omitempty"`     // bytes of one write; 0 is an event each
	Hang      int             `json:"hang,omitempty"`      // nothing comes after that many events
	Cut       int             `json:"cut,omitempty"`       // the connection breaks after that many events
	Short     int             `json:"short,omitempty"`     // the stream ends well-formed after that many events
	Malformed int             `json:"malformed,omitempty"` // that event, from 1, is no JSON

	Status     int    `json:"status,omitempty"` // a failure in place of an answer
	Type       string `json:"type,omitempty"`   // the service's class of it
	Message    string `json:"message,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"` // the header, whatever it says
	InStream   int    `json:"in_stream,omitempty"`   // the failure comes after that many events of a good stream
	Raw        string `json:"raw,omitempty"`         // the whole body of a 200, as an event stream
}

// Call is one call of a tool.
type Call struct {
	ID    string          `json:"id,omitempty"` // "" is a new one
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitempty"`
	Text  string          `json:"text,omitempty"`  // in place of Input: any text, such as broken JSON
	NoID  bool            `json:"no_id,omitempty"` // the call comes without an id
}

// Usage are the figures that the service reports.
type Usage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CacheRead    int64 `json:"cache_read,omitempty"`
	CacheWritten int64 `json:"cache_written,omitempty"`
}

// Say is an answer in words.
func Say(text string) Answer { return Answer{Text: text} }

// Use is an answer that calls one tool with input, which is marshalled.
func Use(tool string, input any) Answer { return Answer{Calls: []Call{ToolCall(tool, input)}} }

// ToolCall is a call with input, which is marshalled.
func ToolCall(tool string, input any) Call {
	raw, err := json.Marshal(input)
	if err != nil {
		raw = json.RawMessage("{}") // a test that passes what JSON cannot say sees an empty input
	}
	return Call{Name: tool, Input: raw}
}

// Fail is a failure of the service: 429, 500, 529 and the like.
func Fail(status int, typ, message string) Answer {
	return Answer{Status: status, Type: typ, Message: message}
}

// reply is an answer whose blanks are filled in.
type reply struct {
	Answer
	id    string
	usage Usage
}

// reply fills in ids, usage and the reason to stop.
func (a Answer) reply(ask Ask, next func() int) reply {
	n := next()
	r := reply{Answer: a, id: fmt.Sprintf("msg_%06d", n)}
	r.Calls = append([]Call(nil), a.Calls...)
	said := len(a.Text) + len(a.Think)
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.ID == "" && !c.NoID {
			c.ID = fmt.Sprintf("call_%06d", next())
		}
		if c.Text == "" {
			c.Text = string(c.Input)
		}
		if c.Text == "" {
			c.Text = "{}"
		}
		said += len(c.Text)
	}
	if r.Stop == "" {
		r.Stop = model.StopEnd
		if len(r.Calls) > 0 {
			r.Stop = model.StopTools
		}
	}
	r.usage = Usage{Input: int64(len(ask.Body)/4 + 1), Output: int64(said/4 + 1)}
	if a.Usage != nil {
		r.usage = *a.Usage
	}
	return r
}

// parts cuts a text as a stream would: in pieces of a few characters.
func parts(text string) []string {
	const size = 12
	runes := []rune(text)
	var out []string
	for len(runes) > 0 {
		n := min(size, len(runes))
		out = append(out, string(runes[:n]))
		runes = runes[n:]
	}
	return out
}
