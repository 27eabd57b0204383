// Package modeltest is a server of models for tests: it speaks the wire formats of
// Anthropic's Messages, OpenAI's Chat Completions and OpenAI's Responses, streamed and
// not, and answers as a script says. It refuses what the real services refuse, and can
// be as broken as they are on a bad day. `make judge` has the services' SDKs talk to it and to
// our clients, in testdata/judge.
//
// The room may import agent and model. Only tests and its own command import it.
package modeltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/orchestrator/agent"
	"gatehouse/orchestrator/agent/llm/model"
)

// The wire formats.
const (
	Messages  = "messages"
	Chat      = "chat"
	Responses = "responses"
)

// Ask is one call as the script sees it.
type Ask struct {
	API      string // one of the wire formats
	Model    string
	Key      string
	System   string
	Messages []agent.Message
	Tools    []model.Tool
	Stream   bool
	// Conversation is the last text of the user before the first answer: it tells the runs
	// apart. Coding agents put words about their surroundings before the task.
	Conversation string
	// Turn is the number of the answer that is asked for in its conversation, from 1.
	Turn int
	// N is how often exactly these messages were asked, this time included: more than 1 is
	// a call that was paid again.
	N      int
	Digest string // of the messages
	Header http.Header
	Body   []byte
}

// Last is the message that the model is to answer.
func (a Ask) Last() agent.Message {
	if len(a.Messages) == 0 {
		return agent.Message{}
	}
	return a.Messages[len(a.Messages)-1]
}

// Result is the result of the newest call of the tool, "" when there is none.
func (a Ask) Result(tool string) string {
	for i := len(a.Messages) - 1; i >= 0; i-- {
		for _, call := range slices.Backward(a.Messages[i].Calls()) {
			if call.Name != tool {
				continue
			}
			for _, m := range a.Messages[i:] {
				for _, b := range m.Blocks {
					if b.Type == agent.AnswerBlock && b.ID == call.ID {
						return b.Text
					}
				}
			}
		}
	}
	return ""
}

// Script answers. It is called from many goroutines.
type Script func(Ask) Answer

// Server is the fake service. It is an http.Handler, so that a program can serve it, too.
type Server struct {
	script Script
	http   *httptest.Server // nil when a program serves it
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	asks  []Ask
	count map[string]int
	ids   int
}

// New makes a Server that nobody serves yet.
func New(script Script) *Server {
	return &Server{script: script, closed: make(chan struct{}), count: map[string]int{}}
}

// Start makes a Server and serves it on loopback until Close.
func Start(script Script) *Server {
	s := New(script)
	s.http = httptest.NewServer(s)
	return s
}

// Close ends what hangs, and the serving.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closed)
		if s.http != nil {
			s.http.CloseClientConnections()
			s.http.Close()
		}
	})
}

// Anthropic is the base URL that Anthropic's clients take.
func (s *Server) Anthropic() string { return s.http.URL }

// OpenAI is the base URL that OpenAI's clients take.
func (s *Server) OpenAI() string { return s.http.URL + "/v1" }

// Asks returns all calls so far, in the order in which they came.
func (s *Server) Asks() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asks)
}

// Asked counts the calls of one conversation.
func (s *Server) Asked(conversation string) int {
	return len(slices.DeleteFunc(s.Asks(), func(a Ask) bool { return a.Conversation != conversation }))
}

// Repeats counts the calls whose very messages had been asked before: what a crash had
// paid again.
func (s *Server) Repeats() int {
	return len(slices.DeleteFunc(s.Asks(), func(a Ask) bool { return a.N < 2 }))
}

// ServeHTTP makes a Server an http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	switch {
	case r.Method == http.MethodHead: // Claude Code asks whether anybody is there
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodGet && path == "/models":
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}, "has_more": false})
	case r.Method != http.MethodPost:
		writeJSON(w, http.StatusNotFound, errorBody(Messages, "not_found_error", "Not found"))
	case path == "/messages":
		s.serve(w, r, messagesAPI{})
	case path == "/messages/count_tokens":
		s.countTokens(w, r)
	case path == "/chat/completions":
		s.serve(w, r, chatAPI{})
	case path == "/responses":
		s.serve(w, r, responsesAPI{})
	default:
		writeJSON(w, http.StatusNotFound, errorBody(Messages, "not_found_error", "Not found"))
	}
}

// api is one wire format.
type api interface {
	name() string
	// read makes an Ask of a body, or says why the service refuses it.
	read(body []byte) (Ask, error)
	// events are the stream of an answer.
	events(a Ask, r reply) []frame
	// whole is the answer in one piece.
	whole(a Ask, r reply) any
}

// maxBody is larger than what any service takes.
const maxBody = 64 << 20

func (s *Server) serve(w http.ResponseWriter, r *http.Request, format api) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody(format.name(), "invalid_request_error", err.Error()))
		return
	}
	ask, err := format.read(body)
	if err == nil {
		err = paired(ask.Messages)
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody(format.name(), "invalid_request_error", err.Error()))
		return
	}
	ask.API, ask.Header, ask.Body = format.name(), r.Header.Clone(), body
	ask.Key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key := r.Header.Get("X-Api-Key"); key != "" {
		ask.Key = key
	}
	ask = s.record(ask)
	answer := s.script(ask)
	if !s.wait(r.Context(), answer) {
		return
	}
	out := writer{w: w, done: r.Context().Done(), closed: s.closed, answer: answer}
	out.write(format, ask, answer.reply(ask, s.id))
}

// record counts the call.
func (s *Server) record(a Ask) Ask {
	a.Turn = 1
	for _, m := range a.Messages {
		if m.Role == agent.FromModel {
			a.Turn++
		}
		for _, b := range m.Blocks {
			if a.Turn == 1 && m.Role == agent.FromUser && b.Type == agent.TextBlock {
				a.Conversation = b.Text
			}
		}
	}
	text, err := json.Marshal(a.Messages)
	if err != nil {
		text = a.Body
	}
	sum := sha256.Sum256(append([]byte(a.Model+"\n"), text...))
	a.Digest = hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[a.Digest]++
	a.N = s.count[a.Digest]
	s.asks = append(s.asks, a)
	return a
}

// id makes the next id of a call.
func (s *Server) id() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids++
	return s.ids
}

// wait holds the answer back as it says; false when nobody waits for it any more.
func (s *Server) wait(ctx context.Context, a Answer) bool {
	if a.Delay > 0 {
		t := time.NewTimer(a.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		case <-s.closed:
			return false
		}
	}
	if a.Until != nil {
		select {
		case <-a.Until:
		case <-ctx.Done():
			return false
		case <-s.closed:
			return false
		}
	}
	return true
}

// countTokens answers Anthropic's count of a request's tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody(Messages, "invalid_request_error", err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"input_tokens": n/4 + 1})
}
